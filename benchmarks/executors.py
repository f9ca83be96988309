"""Seconds per cell of many short jobs: this project's executor, on Slurm the official one and submitit's map_array, on one machine Snakemake's, HyperQueue and Parsl.

Run from the repository root, where Slurm is (`packages/snakemake-executor-plugin-submitit/tests/slurm/cluster.sh up` starts one on a spare machine), with
`pip install snakemake-executor-plugin-slurm hyperqueue parsl` for the comparison:

    python benchmarks/executors.py [--cells 100 1000] [--without slurm] [--chain 20] [--real results/demo]

The official executor takes an hour for 1,000 cells on a small Slurm with its default settings. `--chain` measures the seconds from the end of
a job of one second to the start of the next one, which needs its output. `--real`, after `make demo`, evaluates 100 cells of its runs again.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
SNAKEFILE = """\
rule all:
    input:
        expand("out/{i}", i=range(int(config["cells"]))),


rule cell:
    output:
        "out/{i}",
    shell:
        "touch {output}"
"""
CHAIN = """\
N = int(config["cells"])


rule all:
    input:
        f"out/{N}",


rule step:
    input:
        lambda w: [f"out/{int(w.i) - 1}"] if int(w.i) > 1 else [],
    output:
        "out/{i}",
    shell:
        "date +%s.%N > {output}; sleep 1; date +%s.%N >> {output}"
"""
ON_SLURM = ["--executor", "submitit", "--seconds-between-status-checks", "1"]
HERE = ["--executor", "submitit", "--submitit-cluster", "local"]
ALWAYS = ["--jobs", "100000", "--max-jobs-per-timespan", "1000000/1s", "--quiet", "all"]
RESOURCES = ["--default-resources", "mem_mb=100", "runtime=5"]


def snakemake(folder: Path, *arguments: str) -> None:
    environment = {**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run([sys.executable, "-m", "snakemake", *arguments], cwd=folder, check=True, env=environment)


def through_submitit(folder: Path, cells: int) -> None:
    (folder / "Snakefile").write_text(SNAKEFILE)
    half = str((cells + 1) // 2)
    options = [*ON_SLURM, "--submitit-bundle-size", half]
    snakemake(folder, "--config", f"cells={cells}", *options, *ALWAYS, *RESOURCES)


def through_submitit_here(folder: Path, cells: int) -> None:
    (folder / "Snakefile").write_text(SNAKEFILE)
    snakemake(folder, "--config", f"cells={cells}", *HERE, *ALWAYS)


def through_snakemake(folder: Path, cells: int) -> None:
    (folder / "Snakefile").write_text(SNAKEFILE)
    snakemake(folder, "--config", f"cells={cells}", "--cores", "all", "--quiet", "all")


def through_hyperqueue(folder: Path, cells: int) -> None:
    hyperqueue_runs(folder, touches(folder, cells))


def hyperqueue_runs(folder: Path, commands: Sequence[str]) -> None:
    from hyperqueue import Job, LocalCluster
    from hyperqueue.cluster import WorkerConfig

    with LocalCluster(worker_config=WorkerConfig(cores=os.cpu_count())) as cluster:
        client = cluster.client()
        job = Job(default_workdir=folder)
        for command in commands:
            job.program(["sh", "-c", command])
        client.wait_for_jobs([client.submit(job)])


def through_parsl(folder: Path, cells: int) -> None:
    parsl_runs(folder, touches(folder, cells))


def parsl_runs(folder: Path, commands: Sequence[str]) -> None:
    import parsl
    from parsl.config import Config
    from parsl.executors import HighThroughputExecutor

    def given(command: str) -> str:
        return command

    workers = HighThroughputExecutor(max_workers_per_node=os.cpu_count() or 1, address="127.0.0.1")
    with parsl.load(Config(executors=[workers], run_dir=str(folder / "parsl"))):
        app = parsl.bash_app(given)
        for future in [app(f"cd {folder} && {command}") for command in commands]:
            future.result()


def touches(folder: Path, cells: int) -> list[str]:
    """The commands of the cells, which find their folder."""
    (folder / "out").mkdir()
    return [f"touch out/{i}" for i in range(cells)]


def through_slurm(folder: Path, cells: int) -> None:
    (folder / "Snakefile").write_text(SNAKEFILE)
    (folder / "bin").mkdir()
    # The official executor's job step forgets SLURM_CONF, which a Slurm in a folder of its own needs.
    step = f'#!/bin/sh\nexport SLURM_CONF={os.environ.get("SLURM_CONF", "")}\nexec {shutil.which("srun")} "$@"\n'
    (folder / "bin" / "srun").write_text(step)
    (folder / "bin" / "srun").chmod(0o755)
    options = ["--executor", "slurm", "--slurm-no-account", "--slurm-init-seconds-before-status-checks", "2"]
    options += ["--seconds-between-status-checks", "2", "--latency-wait", "10"]
    snakemake(folder, "--config", f"cells={cells}", *options, *ALWAYS, *RESOURCES)


def touch(path: str) -> None:
    Path(path).touch()


def through_map_array(folder: Path, cells: int) -> None:
    import submitit

    executor = submitit.AutoExecutor(folder=folder / "submitit", cluster="slurm")
    executor.update_parameters(
        timeout_min=5,
        mem_gb=0.1,
        cpus_per_task=1,
        slurm_array_parallelism=cells,
        slurm_setup=[f"export PYTHONPATH={Path(__file__).parent}:$PYTHONPATH"],
    )
    (folder / "out").mkdir()
    jobs = []
    for start in range(0, cells, 1000):
        chunk = [str(folder / "out" / str(i)) for i in range(start, min(cells, start + 1000))]
        jobs += executor.map_array(touch, chunk)
    while not all(job.paths.result_pickle.exists() for job in jobs):
        time.sleep(0.2)


def evaluations(study: Path, folder: Path, cells: int) -> list[str]:
    """A copy of the project with a finished study, less some cells; their paths."""
    for name in ("workflow", "rules", "notebooks", "envs", "studies", "slurm", "laptop"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("config.yaml", "Snakefile"):
        shutil.copy(ROOT / name, folder)
    (folder / "results").mkdir()
    subprocess.run(["cp", "-a", str(study), str(folder / "results")], check=True)
    chosen = sorted((folder / "results" / study.name).glob("cells/**/*.json"))[:cells]
    for path in chosen:
        path.unlink()
    return [str(path.relative_to(folder)) for path in chosen]


def timed(name: str, cells: int, run: Callable[[], object]) -> float:
    """Run, print and return seconds per cell."""
    start = time.perf_counter()
    run()
    seconds = time.perf_counter() - start
    print(f"{name:32} {cells:6} cells {seconds:8.1f} s {seconds / cells:9.4f} s a cell", flush=True)
    return seconds / cells


WAYS = {
    "submitit": through_submitit,
    "map_array": through_map_array,
    "slurm": through_slurm,
    "submitit-here": through_submitit_here,
    "snakemake": through_snakemake,
    "hyperqueue": through_hyperqueue,
    "parsl": through_parsl,
}
# Which ways are compared: on Slurm, and on one machine.
BESIDE = {"submitit": ("map_array", "slurm"), "submitit-here": ("snakemake", "hyperqueue", "parsl")}


def trivial(folder: Path, cells: int, without: list[str]) -> None:
    seconds_per_cell = {}
    for label, run in WAYS.items():
        if label not in without:
            (folder / label).mkdir()
            seconds_per_cell[label] = timed(label, cells, partial(run, folder / label, cells))
    for ours, others in BESIDE.items():
        for label in others:
            if {ours, label} <= seconds_per_cell.keys():
                print(f"{label} / {ours}: {seconds_per_cell[label] / seconds_per_cell[ours]:.1f}")


def chain(folder: Path, cells: int) -> None:
    """Print the seconds between the jobs of a chain."""
    ways = {
        "submitit": [*ON_SLURM, *ALWAYS, *RESOURCES],
        "submitit-here": [*HERE, *ALWAYS],
        "snakemake": ["--cores", "all", "--quiet", "all"],
    }
    for label, options in ways.items():
        place = folder / label
        place.mkdir()
        (place / "Snakefile").write_text(CHAIN)
        snakemake(place, "--config", f"cells={cells}", *options)
        times = [[float(line) for line in (place / "out" / str(i)).read_text().split()] for i in range(1, cells + 1)]
        gaps = [later[0] - earlier[1] for earlier, later in pairwise(times)]
        print(
            f"{label:32} {cells:6} jobs in a chain: {median(gaps):.3f} s between two, {max(gaps):.3f} s at most",
            flush=True,
        )


def commands_of(folder: Path, paths: Sequence[str], chosen: Sequence[str]) -> list[str]:
    """The commands that make these cells, in folders that are there."""
    asked = [sys.executable, "-m", "snakemake", "--dry-run", "--printshellcmds", *chosen, "--", *paths]
    plan = subprocess.run(asked, cwd=folder, check=True, capture_output=True, text=True)
    commands = re.findall(r"xlgrid evaluate .*", plan.stdout + plan.stderr)
    assert len(commands) == len(paths), f"{len(commands)} commands for {len(paths)} cells"
    for path in (*paths, *re.findall(r"2> (\S+)", " ".join(commands))):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
    return commands


def real(folder: Path, cells: int, study: Path, without: Sequence[str]) -> None:
    chosen = ["--config", f"study={study.name}", "--rerun-triggers", "mtime"]
    profiles = {"submitit": "slurm", "submitit-here": "laptop"}
    light = {"submitit": ["--set-resources", "evaluate:mem_mb=1000", "evaluate:gpus=0"], "submitit-here": []}
    others = {"hyperqueue": hyperqueue_runs, "parsl": parsl_runs}
    seconds_per_cell = {}
    for label in (*profiles, "snakemake", *others):
        if label in without:
            continue
        (folder / label).mkdir()
        paths = evaluations(study, folder / label, cells)
        run: Callable[[], object]
        if label in others:
            run = partial(others[label], folder / label, commands_of(folder / label, paths, chosen))
        else:
            way = ["--profile", profiles[label], *light[label]] if label in profiles else ["--cores", "all"]
            run = partial(snakemake, folder / label, *way, *chosen, "--quiet", "all", "--", *paths)
        seconds_per_cell[label] = timed(f"evaluations, {label}", len(paths), run)
        assert all((folder / label / path).exists() for path in paths), f"{label} has not made all cells"
    best = min(seconds_per_cell, key=seconds_per_cell.__getitem__)
    for label, seconds in seconds_per_cell.items():
        print(f"{label} / {best}: {seconds / seconds_per_cell[best]:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, nargs="*", default=[100, 1000], help="(default: 100 1000)")
    parser.add_argument("--without", nargs="*", default=[], choices=WAYS, help="leave out")
    parser.add_argument("--chain", type=int, help="jobs of a chain")
    parser.add_argument("--real", type=Path, help="a finished study, results/NAME: then 100 of its evaluations")
    arguments = parser.parse_args()
    # Nodes must see the folders.
    for cells in arguments.cells:
        with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".benchmark-") as name:
            trivial(Path(name), cells, arguments.without)
    if arguments.chain:
        with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".benchmark-") as name:
            chain(Path(name), arguments.chain)
    if arguments.real:
        with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".benchmark-") as name:
            real(Path(name), 100, arguments.real.resolve(), arguments.without)


if __name__ == "__main__":
    main()
