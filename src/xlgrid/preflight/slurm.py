"""Whether Slurm is there and answers, and whether a job of one second runs on it."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from xlgrid.preflight.lines import Line, State

PROFILE = Path("slurm/profile.v9+.yaml")
# The settings of the profile that decide where a job runs.
OPTIONS = ("partition", "account", "qos", "constraint", "gres")
# Seconds that sinfo has for its answer, and that the job has to end.
ANSWER, JOB = 20, 300


def slurm_lines(submit: bool = False) -> Iterator[Line]:
    """A line on Slurm, and if asked for, one on a job of one second that is submitted to it.

    Only a user who wants a job on Slurm has a problem where it is missing or does not answer.
    """
    unasked = State.PROBLEM if submit else State.OPEN
    if shutil.which("sinfo") is None:
        yield Line(
            unasked,
            "Slurm",
            "is not on this machine, so it was not asked: `--profile laptop` needs none; for `--profile slurm`, go to a login node",
        )
        return
    try:
        done = subprocess.run(
            ["sinfo", "--noheader", "--format=%R %D"], check=True, capture_output=True, text=True, timeout=ANSWER
        )
    except (OSError, subprocess.SubprocessError) as error:
        words = " ".join(str(getattr(error, "stderr", None) or error).split())
        yield Line(
            unasked,
            "Slurm",
            f"does not answer ({words}): `--profile laptop` needs none; `--profile slurm` would wait for it, at most "
            "--submitit-unreachable-minutes",
        )
        return
    partitions = [line.split() for line in done.stdout.splitlines() if line.strip()]
    nodes = ", ".join(f"{name} with {number} nodes" for name, number in partitions)
    yield Line(State.GOOD, "Slurm", f"answers; its partitions are {nodes or 'none'}")
    if submit:
        yield _job_line()


def settings_of_profile(profile: Path = PROFILE) -> dict[str, str]:
    """Partition, account and other options for submitit, as far as the profile for Slurm sets them."""
    # All values are read as they are written: another account than 0123 must not pay.
    entries: Any = yaml.load(profile.read_text(encoding="utf-8"), yaml.BaseLoader) if profile.is_file() else {}
    return {f"slurm_{name}": str(entries[f"submitit-{name}"]) for name in OPTIONS if entries.get(f"submitit-{name}")}


def _job_line() -> Line:
    """Submit a job of one second through submitit, as the executor does, and wait for its end."""
    try:
        import submitit
    except ImportError:
        return Line(
            State.PROBLEM,
            "a job on Slurm",
            "submitit is not installed: `pip install snakemake-executor-plugin-submitit`",
        )
    # All nodes have to see the folder of the job, as they see that of the executor.
    Path(".snakemake").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="doctor-", dir=".snakemake") as folder:
        executor = submitit.AutoExecutor(folder=Path(folder).resolve(), cluster="slurm")
        executor.update_parameters(name="xlgrid-doctor", timeout_min=5, **settings_of_profile())
        began = time.monotonic()
        try:
            job = executor.submit(time.sleep, 1)
        except Exception as error:  # submitit raises errors of its own, with the words of sbatch.
            return Line(State.PROBLEM, "a job on Slurm", f"is refused ({error}): correct the settings in {PROFILE}")
        while time.monotonic() < began + JOB and not job.done():
            time.sleep(1)
        waited = time.monotonic() - began
        if not job.done():
            job.cancel()
            return Line(
                State.OPEN,
                "a job on Slurm",
                f"job {job.job_id} had not ended after {JOB} s ({job.state}) and is cancelled: see `sinfo`",
            )
        try:
            job.result()
        except Exception as error:  # Whatever ended the job, its message names the log.
            return Line(State.PROBLEM, "a job on Slurm", f"job {job.job_id} failed: {error}")
        return Line(State.GOOD, "a job on Slurm", f"job {job.job_id} of one second ended after {waited:.0f} s")
