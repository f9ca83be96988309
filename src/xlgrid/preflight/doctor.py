"""Checks of this machine: Python, PATH, packages, clusters, GPUs, fonts, and the folder of results."""

import platform
import shutil
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from xlgrid.base import device
from xlgrid.preflight.clusters import cluster_lines
from xlgrid.preflight.lines import Line, State
from xlgrid.preflight.machine import RESULTS, elsewhere, existing, unwritable

LOCK = Path("envs/lock.txt")
# Major version of CUDA -> the oldest driver for it, and the index of torch's builds for an older CUDA.
DRIVERS = {"12": 525, "13": 580}
OLDER = "https://download.pytorch.org/whl/cu126"
# A disk with less free space, in bytes, is full before long.
LITTLE = 2_000_000_000
# Script (ISO 15924) -> a word in it, for scripts in whose letters figures show tokens of languages that xlgrid knows.
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
    """Whether a version of Python is one that xlgrid runs with.

    Args:
        required: a specifier such as ">=3.11".
    """
    from packaging.specifiers import SpecifierSet

    if version in SpecifierSet(required):
        return Line(State.GOOD, "Python", f"{version} in {sys.prefix}")
    return Line(
        State.PROBLEM,
        "Python",
        f"{version}, and xlgrid needs {required}: install another one, and `make .venv/installed PYTHON=python3.11` with it",
    )


def command_line(name: str) -> Line:
    """Whether a command is found on PATH, and is that of the environment in which this process runs."""
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
    installed = {name: _version(name) for name in expected}
    missing = [name for name, version in installed.items() if version is None]
    # torch's builds differ in a label such as +cpu.
    others = [
        f"{name} {version} instead of {expected[name]}"
        for name, version in installed.items()
        if version is not None and version.partition("+")[0] != expected[name]
    ]
    if missing or others:
        parts = [f"missing: {', '.join(missing)}"] if missing else []
        parts += (
            [f"{len(others)} of another version: {', '.join(others[:5])}{' ...' if len(others) > 5 else ''}"]
            if others
            else []
        )
        return Line(
            State.PROBLEM, "packages", f"{'; '.join(parts)}: `pip install -r {lock}` installs those of the lock"
        )
    return Line(State.GOOD, "packages", f"all {len(expected)} have the versions of {lock}")


def locked(lock: Path) -> dict[str, str]:
    """Package -> version, of the lines of a lock file that apply to this Python and system."""
    from packaging.requirements import Requirement

    lines = (line.partition("#")[0].strip() for line in lock.read_text(encoding="utf-8").splitlines())
    requirements = [Requirement(line) for line in lines if line and not line.startswith("-")]
    return {
        each.name: next(iter(each.specifier)).version
        for each in requirements
        if each.specifier and (each.marker is None or each.marker.evaluate())
    }


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


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
            advice = f"{needs}: update the driver, or install a build of torch for an older CUDA, as with `pip install torch --index-url {OLDER}`"
        return Line(
            State.PROBLEM,
            "GPUs",
            f"{given}, but torch {torch.__version__} can use no GPU ({device.reason()}). {advice}; see whether `nvidia-smi` lists a GPU",
        )
    return Line(State.GOOD, "GPUs", "none: trainings run on the cores of this machine")


def font_line() -> Line:
    """The scripts that figures can show: those for which one of their fonts is installed."""
    from xlgrid.exhibits.drawing.plots import lacking

    # One call for all words: each call reads the fonts.
    absent = {*lacking("".join(WORDS.values()))}
    missing = [script for script, word in WORDS.items() if absent & {*word}]
    if not missing:
        return Line(State.GOOD, "fonts", f"figures can show tokens in {', '.join(WORDS)}")
    return Line(
        State.OPEN,
        "fonts",
        f"no font for {', '.join(missing)}, whose tokens are boxes in figures of attention: install the Noto fonts "
        "(fonts-noto on Debian), if a study has such figures",
    )


def results_line(results: Path) -> Line:
    """Whether files can be written below a folder, which need not exist yet."""
    if reason := unwritable(results):
        return Line(State.PROBLEM, str(results), reason)
    return Line(State.GOOD, str(results), f"can be written in {existing(results).resolve()}")


def disk_line(results: Path) -> Line:
    """The free disk below a folder."""
    free = shutil.disk_usage(existing(results)).free
    if free < LITTLE:
        return Line(
            State.PROBLEM,
            "disk",
            f"only {gigabytes(free)} are free: free some space, or let {results} be a link to a larger disk",
        )
    return Line(State.GOOD, "disk", f"{gigabytes(free)} are free; `xlgrid check STUDY` says how much a study needs")


def gigabytes(number: float) -> str:
    """Bytes in GB, or in MB where they are fewer than one GB."""
    return f"{number / 1e9:,.1f} GB" if number >= 1e9 else f"{number / 1e6:,.0f} MB"
