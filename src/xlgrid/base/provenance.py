"""Which code made a result, and by which command: entries of records that change nothing else."""

import shlex
import subprocess
import sys
from functools import cache
from importlib import metadata
from pathlib import Path


def provenance() -> dict[str, str | None]:
    """The entries of a record.

    Returns:
        `xlgrid`, the version; `commit`, see `commit`; `command`, the command line of this process.
    """
    return {"xlgrid": version(), "commit": commit(), "command": command()}


@cache
def version() -> str:
    """The version of xlgrid; `unknown` where it is not installed, but only on the path of Python."""
    try:
        return metadata.version("xlgrid")
    except metadata.PackageNotFoundError:
        return "unknown"


@cache
def commit() -> str | None:
    """The commit of this code, with `-dirty` where tracked files differ from it; None outside a git checkout.

    A process asks git once, and so does a worker for all its jobs (`xlgrid.warm`).
    """
    here = Path(__file__)
    # In a checkout of something else, such as that of a project whose environment has xlgrid, git does not track this file.
    tracked = ["git", "ls-files", "--error-unmatch", here.name]
    name = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        subprocess.run(tracked, cwd=here.parent, check=True, capture_output=True, timeout=10)
        described = subprocess.run(name, cwd=here.parent, check=True, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return described.stdout.strip()


def command() -> str:
    """The command line of this process, as a shell reads it."""
    program = Path(sys.argv[0])
    # Processes that share a pre-training are started as `python -m xlgrid`.
    name = program.parent.name if program.name == "__main__.py" else program.name
    return shlex.join([name, *sys.argv[1:]])
