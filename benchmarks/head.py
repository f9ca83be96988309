"""Time of the head process alone: many cells that end the moment they are submitted.

Run from the repository root: python benchmarks/head.py [--cells 20000] [--profile]
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Tables of a hundred cells each, as a study has them: a single rule with all the cells as inputs takes Snakemake itself
# a time that grows with their square.
SNAKEFILE = """\
tables = range(int(config["cells"]) // 100)


rule all:
    input:
        expand("tables/{table}", table=tables),


rule table:
    input:
        lambda w: [f"out/{100 * int(w.table) + i}" for i in range(100)],
    output:
        "tables/{table}",
    shell:
        "touch {output}"


rule cell:
    output:
        "out/{i}",
    shell:
        "touch {output}"
"""
# The executor, with a cluster that makes the outputs and the statuses itself.
PLUGIN = """\
import itertools, time
from pathlib import Path
from snakemake_executor_plugin_submitit import Executor, ExecutorSettings, clusters, common_settings
from snakemake_executor_plugin_submitit.bundles import Status, modification_times, read_bundle

class Instant:
    name = "local"
    stuck, waiting = {}, ()
    count = itertools.count()
    def __init__(self, *settings): pass
    def room(self, request): return (1000, 1000)
    def submit(self, folder, name, bundles, request, minutes):
        for bundle in bundles:
            for number, job in enumerate(read_bundle(bundle).jobs):
                Path(job.outputs[0]).parent.mkdir(exist_ok=True)
                Path(job.outputs[0]).touch()
                now = time.time()
                Status("done", now, "here", ended=now, stamps=modification_times(job.outputs)).write(bundle, number)
        return [str(next(self.count)) for _ in bundles]
    def states(self, tasks): return {task: "ENDED" for task in tasks}
    def cancel(self, tasks): pass
    def learn(self): pass
    def longest(self, request, minutes): return None
    def stray(self, folder, name): return {}
    def hurry(self): pass

clusters.Local = Instant
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=20_000, help="in hundreds (default: 20000)")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "Snakefile").write_text(SNAKEFILE)
        (folder / "snakemake_executor_plugin_instant.py").write_text(PLUGIN)
        (folder / "snakemake_executor_plugin_instant").mkdir()
        (folder / "snakemake_executor_plugin_instant.py").rename(
            folder / "snakemake_executor_plugin_instant" / "__init__.py"
        )
        watch = ["-m", "cProfile", "-s", "cumtime"] if arguments.profile else []
        command = [sys.executable, *watch, "-m", "snakemake", "--executor", "instant", "--instant-cluster", "local"]
        command += [
            "--jobs",
            "unlimited",
            "--max-jobs-per-timespan",
            "1000000/1s",
            "--config",
            f"cells={arguments.cells}",
        ]
        path = f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
        start = time.perf_counter()
        with (folder / "log").open("w") as log:
            subprocess.run(
                command, cwd=folder, check=True, env={**os.environ, "PYTHONPATH": path}, stdout=log, stderr=log
            )
        seconds = time.perf_counter() - start
        if arguments.profile:
            print("\n".join((folder / "log").read_text().splitlines()))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{arguments.cells:,} cells: {seconds:.1f} s ({used.ru_utime + used.ru_stime:.1f} s of CPU), "
        f"{1e3 * seconds / arguments.cells:.2f} ms a cell, {used.ru_maxrss / 1024:.0f} MB"
    )


if __name__ == "__main__":
    main()
