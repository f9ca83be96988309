"""What an evaluation costs in a process that runs one after another, beside a fork each: `python benchmarks/resident.py RESULTS`.

    python benchmarks/resident.py results/first [--cells 200] [--rounds 3]

A worker of the executor evaluates cells of a study that is made, again and again, into a temporary folder. The cells are those of
the first encoder and task. The ways take turns:

- `resident`: one process evaluates them all, as in the profiles;
- `forks ahead`: each is evaluated in a fork of a worker that has loaded the encoder;
- `forks`: each is evaluated in a fork of a worker that has imported the libraries only.

Seconds of CPU are those of the worker and all its processes, per cell, without the start: a worker with a single cell is subtracted.
All entries of the cells but times and commands must be equal to each other.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from snakemake_executor_plugin_submitit.bundles import Bundle, Job, read_statuses

WAYS = {
    "resident": "",
    "forks ahead": """
import xlgrid.cli
from xlgrid.data import batches
from xlgrid.evaluation import trained
xlgrid.cli.serves = lambda arguments: False
only_imports = xlgrid.cli.warm_up
def warm_up(arguments):
    import torch
    only_imports(arguments)
    if trained._keeper is None:
        torch.set_num_threads(1)
        trained.keep()
        encoder, tokens = (arguments[arguments.index(name) + 1] for name in ("--encoder", "--tokens"))
        trained._take(Path(encoder).parent, batches.read(tokens))
xlgrid.cli.warm_up = warm_up
""",
    "forks": "import xlgrid.cli\nxlgrid.cli.serves = lambda arguments: False\n",
}
RUN = "import sys\nfrom pathlib import Path\n{}\nfrom snakemake_executor_plugin_submitit.worker import Worker\nWorker(sys.argv[1])()\n"
OF_ONE_RUN = {"seconds", "cpu_seconds", "commit", "command"}


def commands(results: Path, cells: int) -> list[list[str]]:
    """The commands of cells of one encoder and task, each `xlgrid evaluate ...`, as often as it takes."""
    records = [json.loads(path.read_text()) for path in sorted(results.glob("cells/**/*.json"))]
    first = records[0]
    alike = [
        shlex.split(r["command"]) for r in records if (r["task"], r["encoder"]) == (first["task"], first["encoder"])
    ]
    return list(islice(cycle(alike), cells))


def measure(way: str, words: list[list[str]], project: Path, folder: Path) -> tuple[float, float, list[dict[str, Any]]]:
    """CPU-seconds of a worker, the MB of its largest process at the end, and the cells."""
    jobs, outputs = [], []
    for number, command in enumerate(words):
        at, output = command.index("--output") + 1, folder / str(number)
        output /= command[at]
        line = shlex.join([*command[:at], str(output), *command[at + 1 :]])
        jobs.append(Job(str(number), "evaluate", "shell", f"{line} 2> {folder}/{number}.log", outputs=(str(output),)))
        outputs.append(output)
    bundle = folder / "array" / "bundle"
    Bundle(tuple(jobs), str(project), scripts=("xlgrid",), threads=1, latency_wait=0.1).write(bundle)
    process = subprocess.Popen(
        [sys.executable, "-c", RUN.format(WAYS[way]), str(bundle)], cwd=project, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    statuses = {number: each for number, each, _ in read_statuses(bundle)}
    if status or any(each.state != "done" for each in statuses.values()):
        raise RuntimeError(next(f"{each.cause}: {each.message}" for each in statuses.values() if each.state != "done"))
    made = [json.loads(path.read_text()) for path in outputs]
    return used.ru_utime + used.ru_stime, statuses[len(words) - 1].memory_mb or 0, made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="the folder of a study that is made, such as results/first")
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    words = commands(arguments.results, arguments.cells)
    project = arguments.results.absolute().parents[1]
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    memory, expected = {}, None
    for number in range(arguments.rounds):
        for way in WAYS:
            with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as all_of_them:
                begin, before, _ = measure(way, words[:1], project, Path(one))
                total, after, cells = measure(way, words, project, Path(all_of_them))
            seconds[way].append((total - begin) / (len(words) - 1))
            memory[way] = before, after
            rest = [{k: v for k, v in cell.items() if k not in OF_ONE_RUN} for cell in cells]
            expected = expected or rest
            assert rest == expected, f"cells differ in {way}"
            ratio = seconds[way][-1] / seconds["resident"][-1]
            print(f"round {number + 1}, {way}: {1000 * seconds[way][-1]:.0f} ms a cell ({ratio:.2f})", flush=True)
    own = statistics.median(cell["cpu_seconds"] for cell in cells)
    for way in WAYS:
        ratio = statistics.median(a / b for a, b in zip(seconds[way], seconds["resident"], strict=True))
        print(
            f"{way}: {1000 * statistics.median(seconds[way]):.0f} ms of CPU a cell, {ratio:.2f} of resident; "
            f"{memory[way][0]:.0f} MB in the first cell, {memory[way][1]:.0f} in the last"
        )
    print(f"a cell in a fork says {1000 * own:.0f} ms; all entries of {len(words)} cells are equal")


if __name__ == "__main__":
    main()
