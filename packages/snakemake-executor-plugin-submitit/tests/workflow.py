"""Small Snakemake projects for the tests of the executor, and the real Snakemake in them."""

import os
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src"
# What a cluster's profile sets, so that neither the number of jobs nor their rate is limited by Snakemake.
COMMON = [
    *("--executor", "submitit", "--jobs", "unlimited", "--max-jobs-per-timespan", "1000000/1s"),
    *("--default-resources", "mem_mb=100", "runtime=5"),
]
LOCAL = [*COMMON, "--submitit-cluster", "local"]
SLURM = [*COMMON, "--submitit-cluster", "slurm", "--latency-wait", "5"]
STOCK = ["--cores", "2"]


def environment() -> dict[str, str]:
    """The environment in which Snakemake starts: the plugin on its path, its own Python first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    sources = os.pathsep.join([str(SOURCES), *filter(None, [os.environ.get("PYTHONPATH")])])
    # A profile or arguments of whoever runs the tests would change what they test.
    rest = {name: value for name, value in os.environ.items() if not name.startswith(("SNAKEMAKE_", "MAKE"))}
    return {**rest, "PATH": path, "PYTHONPATH": sources}


def run(
    folder: Path, *args: str, check: bool = True, timeout: float = 120, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Snakemake in a folder that has a `Snakefile`, and return what it printed.

    Args:
        check: fail with its output unless its exit status is 0.
        timeout: seconds, after which it is interrupted as by Ctrl-C, so that it takes its jobs along.
        env: further variables.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--nocolor", *args],
        cwd=folder,
        env={**environment(), **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.terminate()
        try:
            out, err = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        raise AssertionError(
            f"snakemake {' '.join(args)} took over {timeout} s\n{out[-2000:]}\n{err[-6000:]}"
        ) from None
    result = subprocess.CompletedProcess(process.args, process.returncode, out, err)
    if check:
        assert result.returncode == 0, f"snakemake {' '.join(args)} failed\n{out[-2000:]}\n{err[-6000:]}"
    return result


def project(folder: Path, snakefile: str) -> Path:
    """A folder with this Snakefile."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Snakefile").write_text(snakefile, encoding="utf-8")
    return folder
