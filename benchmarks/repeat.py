"""Does a whole study repeat itself? `python benchmarks/repeat.py STUDY` makes it twice from nothing, and compares all results.

    python benchmarks/repeat.py demo [--kills 3] [--seed 0] [--cores 2] [--at FOLDER]

Two copies of the project run the study with `snakemake --cores`. The first one is left alone. In the second one, Snakemake and all that it
started get SIGKILL after random times, and the study goes on as a person would have it go on. What is in neither git nor `results/`, such as
data and checkpoints, is linked into both copies.

Tokens, weights, cells, exhibits and all other files have to be the same to the byte. JSON may differ in the seconds that something took,
and in the files that it came from, which have other times. Left out are logs, measurements of Snakemake's, and the report, which states
when it was made.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LEFT_OUT = ("logs", "benchmarks", "report.html", "report.ipynb")
# The keys of a record that differ between two runs of the same program.
OF_ONE_RUN = {"seconds", "cpu_seconds", "inputs", "commit", "command"}


def copy(folder: Path) -> Path:
    """A copy of the project without results."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    for name in listed:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    for path in sorted(ROOT.iterdir()):
        if not (folder / path.name).exists() and path.name not in (".git", ".snakemake", "results", "site"):
            (folder / path.name).symlink_to(path)
    for path in (ROOT / "studies").glob("*.yaml"):
        shutil.copy(path, folder / "studies")
    return folder


def start(folder: Path, study: str, cores: int) -> subprocess.Popen[bytes]:
    """Start to make the study, in a process group of its own."""
    # Where the code is installed as editable, the copies would import it from there.
    paths = [folder / "src", *sorted((folder / "packages").glob("*/src"))]
    with (folder / "snakemake.log").open("ab") as log:
        return subprocess.Popen(
            [
                *snakemake(),
                "--cores",
                str(cores),
                "--config",
                f"study={study}",
                "--rerun-incomplete",
                "--quiet",
                "host",
                "progress",
                "rules",
                "--",
                "all",
            ],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def snakemake() -> list[str]:
    return [sys.executable, "-m", "snakemake"]


def finish(process: subprocess.Popen[bytes], folder: Path) -> None:
    if process.wait():
        raise SystemExit((folder / "snakemake.log").read_text(errors="replace")[-4000:])


def kill(process: subprocess.Popen[bytes], folder: Path, study: str) -> None:
    """Kill Snakemake and what it started, and take away the lock that it left."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    unlock = [*snakemake(), "--unlock", "--config", f"study={study}"]
    subprocess.run(unlock, cwd=folder, check=True, capture_output=True)


def plain(value: Any) -> Any:
    """A record without the keys that differ between two runs."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items() if key not in OF_ONE_RUN}
    return [plain(part) for part in value] if isinstance(value, list) else value


def contents(results: Path) -> dict[str, str]:
    """Path of each result that is compared -> a digest of its contents."""
    digests = {}
    for path in sorted(results.rglob("*")):
        place = path.relative_to(results)
        if not path.is_file() or place.parts[0] in LEFT_OUT or path.name.startswith("."):
            continue
        content = path.read_bytes()
        if path.suffix in (".json", ".jsonl"):
            records = content.decode().splitlines() if path.suffix == ".jsonl" else [content.decode()]
            content = json.dumps([plain(json.loads(record)) for record in records]).encode()
        digests[str(place)] = hashlib.sha256(content).hexdigest()
    return digests


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0, help="decides when the kills come")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--at", type=Path, help="a folder for the copies, which stay; absent: one that is deleted at the end"
    )
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = asked.at or Path(temporary)
        first, second = (copy(place / name) for name in ("first", "second"))
        begin = time.monotonic()
        finish(start(first, asked.study, asked.cores), first)
        took = time.monotonic() - begin
        print(f"made once in {took:.0f} s", flush=True)
        draw = random.Random(asked.seed)
        # Dry runs of large studies take some time, in which a kill would interrupt nothing.
        pauses = sorted(draw.uniform(0.1, 0.9) * took for _ in range(asked.kills))
        for before, after in zip([0.0, *pauses], pauses, strict=False):
            process = start(second, asked.study, asked.cores)
            time.sleep(after - before)
            if process.poll() is not None:
                break
            kill(process, second, asked.study)
            print(f"killed after {after - before:.0f} s", flush=True)
        finish(start(second, asked.study, asked.cores), second)
        digests = [contents(folder / "results" / asked.study) for folder in (first, second)]
    differ = sorted(
        path for path in digests[0].keys() | digests[1].keys() if digests[0].get(path) != digests[1].get(path)
    )
    kinds = Counter(path.partition("/")[0] for path in digests[0])
    print(", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items())))
    print(f"{len(differ)} of {len(digests[0]):,} files differ", *differ[:20], sep="\n  ")
    sys.exit(bool(differ))


if __name__ == "__main__":
    main()
