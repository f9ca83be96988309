"""What every run needs of a machine: commands on PATH, and a folder for results that can be written. It imports nothing large."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

RESULTS = Path("results")
ACTIVATE = "run `. .venv/bin/activate` in the folder of the project, and then the same command again"


def elsewhere(name: str) -> str | None:
    """Why a command is not that of the environment in which this process runs, with what to do; None if it is, or if this
    environment has no such command."""
    path, here = shutil.which(name), Path(sys.prefix) / "bin" / name
    if path is None:
        return f"`{name}` is not on PATH, and the rules call it by its name: {ACTIVATE}"
    if here.exists() and not os.path.samefile(path, here):
        return f"{path} comes first on PATH, and not {here} of this environment: {ACTIVATE}"
    return None


def existing(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    return next(place for place in (path, *path.absolute().parents) if place.exists())


def unwritable(folder: Path) -> str | None:
    """Why no file can be written below a folder, which need not exist yet, with what to do; None if files can be written there."""
    place = existing(folder)
    try:
        with tempfile.TemporaryDirectory(prefix=".xlgrid-", dir=place):
            return None
    except OSError as error:
        return (
            f"{place.absolute()} cannot be written ({error.strerror}): see who owns it and whether the disk is mounted read-only or full, "
            f"or let {folder} be a link to a folder of yours, and run the same command again"
        )
