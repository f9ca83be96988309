"""Checks of this machine: Python, PATH, packages, clusters, GPUs, fonts, and the folder of results. Importing it is cheap."""

import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from xlgrid.base import device
from xlgrid.base.profiles import profiles
from xlgrid.preflight import Line, State

RESULTS = Path("results")
ACTIVATE = "run `. .venv/bin/activate` in the folder of the project, and then the same command again"
LOCK = Path("envs/lock.txt")
# Major version of CUDA -> the oldest driver that supports it; and the package index of torch for an older CUDA.
DRIVERS = {"12": 525, "13": 580}
OLDER = "https://download.pytorch.org/whl/cu126"
# Bytes. A disk with less free space is soon full.
LITTLE = 2_000_000_000
# Script (ISO 15924) -> a word in this script, for the scripts of the languages whose tokens figures may show.
WORDS = {
    "Latn": "word",
    "Cyrl": "слово",
    "Arab": "كلمة",
    "Deva": "शब्द",
    "Hans": "词语",
    "Thai": "คำ",
    "Hebr": "מילה",
    "Beng": "শব্দ",
    "Taml": "சொல்",
    "Geor": "სიტყვა",
}
# The executor is a separate package, which lists its clusters.
ABOUT = [sys.executable, "-P", "-m", "snakemake_executor_plugin_submitit", "about"]
SNAKEFILE = 'rule second:\n    output: "ended"\n    shell: "sleep 1; touch {output}"\n'
# The most seconds until a cluster answers, until the job ends, and until Snakemake has cancelled it.
ANSWER, JOB, END = 60, 300, 60


def machine_lines(submit: bool = False, lock: Path = LOCK) -> Iterator[Line]:
    """A line for each part of the machine and of its environment.

    Args:
        submit: whether a job of one second is submitted to each cluster that answers.
        lock: the file with the exact version of each package.
    """
    yield python_line(platform.python_version(), metadata.metadata("xlgrid")["Requires-Python"])
    for name in ("xlgrid", "snakemake"):
        yield command_line(name)
    yield environment_line(lock)
    yield from cluster_lines(submit)
    yield gpu_line()
    yield font_line()
    yield results_line(RESULTS)
    yield disk_line(RESULTS)


def python_line(version: str, required: str) -> Line:
    """Whether xlgrid supports a version of Python.

    Args:
        required: a specifier such as ">=3.11".
    """
    from packaging.specifiers import SpecifierSet

    if version in SpecifierSet(required):
        return Line(State.GOOD, "Python", f"{version} in {sys.prefix}")
    return Line(
        State.PROBLEM,
        "Python",
        f"{version}, but xlgrid needs {required}: install such a version, and run `make .venv/installed "
        "PYTHON=python3.11` with it",
    )


def command_line(name: str) -> Line:
    """Whether PATH finds a command in the environment of this process."""
    if problem := elsewhere(name):
        return Line(State.PROBLEM, name, problem)
    return Line(State.GOOD, name, str(shutil.which(name)))


def environment_line(lock: Path) -> Line:
    """Whether the installed packages have the versions of the lock file."""
    if not lock.is_file():
        return Line(
            State.OPEN,
            "packages",
            f"there is no {lock} here to compare them with: run this in the folder of the project",
        )
    expected = locked(lock)
    missing, others = [], []
    for name, version in expected.items():
        try:
            installed = metadata.version(name)
        except metadata.PackageNotFoundError:
            missing.append(name)
            continue
        # Builds of torch have different labels, such as +cpu.
        if installed.partition("+")[0] != version:
            others.append(f"{name} {installed} instead of {version}")
    if missing or others:
        parts = [f"missing: {', '.join(missing)}"] if missing else []
        parts += [f"{len(others)} of another version: {', '.join(others[:5])}"] if others else []
        advice = f"`pip install -r {lock}` installs the versions of the lock file"
        return Line(State.PROBLEM, "packages", f"{'; '.join(parts)}: {advice}")
    return Line(State.GOOD, "packages", f"all {len(expected)} have the versions of {lock}")


def locked(lock: Path) -> dict[str, str]:
    """Package -> version, for the lines of a lock file that apply to this version of Python and this system."""
    from packaging.requirements import Requirement

    lines = (line.partition("#")[0].strip() for line in lock.read_text(encoding="utf-8").splitlines())
    requirements = [Requirement(line) for line in lines if line and not line.startswith("-")]
    return {
        each.name: next(iter(each.specifier)).version
        for each in requirements
        if each.specifier and (each.marker is None or each.marker.evaluate())
    }


def cluster_lines(submit: bool = False) -> Iterator[Line]:
    """A line for each cluster, and, with `submit`, a line on a job of one second.

    A cluster that is missing or does not answer is a problem only with `submit`.
    """
    for cluster, profile in profiles().items():
        try:
            done = subprocess.run([*ABOUT, cluster], capture_output=True, text=True, timeout=ANSWER)
            said, error = done.stdout.strip(), " ".join(done.stderr.split()) if done.returncode else ""
        except (OSError, subprocess.SubprocessError) as trouble:
            said, error = "", str(trouble)
        if error:
            yield Line(
                State.PROBLEM if submit else State.OPEN,
                f"cluster {cluster}",
                f"does not answer ({error}): other profiles than `{profile}` do not need it",
            )
        elif said:
            yield Line(State.GOOD, f"cluster {cluster}", f"answers: {said}")
            if submit:
                yield _job_line(cluster, profile)


def _job_line(cluster: str, profile: str) -> Line:
    """Run a workflow with one job of one second on a cluster."""
    thing = f"a job on {cluster}"
    # All nodes have to see the folder of the job, so it is in .snakemake/, like the executor's folder.
    Path(".snakemake").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="doctor-", dir=".snakemake") as folder:
        snakefile = Path(folder, "Snakefile")
        snakefile.write_text(SNAKEFILE)
        command = [sys.executable, "-m", "snakemake", "--nocolor", "--snakefile", str(snakefile), "--directory", folder]
        began = time.monotonic()
        process = subprocess.Popen(
            [*command, "--profile", profile, "--verbose", "--retries", "0", "--", "ended"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            said, _ = process.communicate(timeout=JOB)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=END)
            return Line(State.OPEN, thing, f"the job had not ended after {JOB} s, and is cancelled: look at the queue")
        if process.returncode:
            # After this word, Snakemake prints the executor's message on a failed job.
            words = re.search(r"message: (.*)", said) or re.search(r"(\S.*)\s*\Z", said)
            reason = words[1] if words else f"exit status {process.returncode}"
            return Line(State.PROBLEM, thing, f"it fails ({reason}): correct the settings in {profile}/")
        return Line(State.GOOD, thing, f"a job of one second ended after {time.monotonic() - began:.0f} s")


def gpu_line() -> Line:
    """The GPUs that torch can use."""
    import torch

    if torch.cuda.is_available():
        names = [torch.cuda.get_device_properties(number) for number in range(torch.cuda.device_count())]
        return Line(State.GOOD, "GPUs", ", ".join(f"{each.name} with {gigabytes(each.total_memory)}" for each in names))
    given = device.given_gpu() or ("there is an nvidia-smi" if shutil.which("nvidia-smi") else "")
    if given:
        cuda = str(torch.version.cuda or "")
        oldest = DRIVERS.get(cuda.partition(".")[0])
        advice = "install the build of torch for CUDA, which is the one on PyPI"
        if cuda:
            needs = f"CUDA {cuda} needs" + (f" driver {oldest} or newer" if oldest else " a newer driver")
            advice = f"{needs}: update the driver, or install an older torch: `pip install torch --index-url {OLDER}`"
        return Line(
            State.PROBLEM,
            "GPUs",
            f"{given}, but torch {torch.__version__} can use no GPU ({device.reason()}). {advice}; see whether `nvidia-smi` lists a GPU",
        )
    return Line(State.GOOD, "GPUs", "none: trainings run on the cores of this machine")


def font_line() -> Line:
    """The scripts that figures can show, because a font for them is installed."""
    from xlgrid.exhibits.drawing.plots import lacking

    # One call checks all words, because each call reads the fonts.
    absent = {*lacking("".join(WORDS.values()))}
    missing = [script for script, word in WORDS.items() if absent & {*word}]
    if not missing:
        return Line(State.GOOD, "fonts", f"figures can show tokens in {', '.join(WORDS)}")
    return Line(
        State.OPEN,
        "fonts",
        f"no font for {', '.join(missing)}: figures of attention show boxes for these tokens; install the Noto fonts "
        "(fonts-noto on Debian), if a study has such figures",
    )


def results_line(results: Path) -> Line:
    """Whether files can be written below a folder, which need not exist yet."""
    if reason := unwritable(results):
        return Line(State.PROBLEM, str(results), reason)
    return Line(State.GOOD, str(results), f"can be written in {existing(results).resolve()}")


def disk_line(results: Path) -> Line:
    """The free disk space in a folder, which need not exist yet."""
    free = shutil.disk_usage(existing(results)).free
    if free < LITTLE:
        return Line(
            State.PROBLEM,
            "disk",
            f"only {gigabytes(free)} are free: free some space, or let {results} be a link to a larger disk",
        )
    return Line(State.GOOD, "disk", f"{gigabytes(free)} are free; `xlgrid check STUDY` says how much a study needs")


def gigabytes(number: float) -> str:
    """A number of bytes as text in GB, or in MB below one GB."""
    return f"{number / 1e9:,.1f} GB" if number >= 1e9 else f"{number / 1e6:,.0f} MB"


def elsewhere(name: str) -> str | None:
    """The problem, and what to do, if PATH does not find a command in the environment of this process.

    None if there is no problem, or if the environment has no such command.
    """
    path, here = shutil.which(name), Path(sys.prefix) / "bin" / name
    if path is None:
        return f"`{name}` is not on PATH, and the rules call it by its name: {ACTIVATE}"
    if here.exists() and not os.path.samefile(path, here):
        return f"{path} comes first on PATH, before {here} of this environment: {ACTIVATE}"
    return None


def existing(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    return next(place for place in (path, *path.absolute().parents) if place.exists())


def unwritable(folder: Path) -> str | None:
    """The problem, and what to do, if no file can be written in a folder, which need not exist yet; otherwise None."""
    place = existing(folder)
    try:
        with tempfile.TemporaryDirectory(prefix=".xlgrid-", dir=place):
            return None
    except OSError as error:
        return (
            f"{place.absolute()} cannot be written ({error.strerror}): see who owns it and whether the disk is mounted read-only or full, "
            f"or let {folder} be a link to a folder of yours, and run the same command again"
        )
