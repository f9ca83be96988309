"""Projects of `features/` in which Snakemake has run, and the files that the run leaves."""

import base64
import json
import os
import shutil
import stat
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from workflow import run

HERE = Path(__file__).parent / "features"


class Ran(NamedTuple):
    """A project in which Snakemake has run."""

    folder: Path
    status: int
    out: str
    err: str
    began: float
    ended: float


def ran(folder: Path, *args: str, prepare: Callable[[Path], object], timeout: float = 300, **variables: str) -> Ran:
    """Run Snakemake in a fresh copy of `features/`, after `prepare`, which is told where it is."""
    shutil.copytree(HERE, folder)
    (folder / "in").mkdir()
    (folder / "in" / "text.txt").write_text("input\n")
    prepare(folder)
    began = time.time()
    process = run(folder, *args, check=False, timeout=timeout, env=variables)
    return Ran(folder, process.returncode, process.stdout, process.stderr, began, time.time())


def of_old(folder: Path, *paths: str) -> None:
    """Make files that lie there from before, older than the input."""
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("before\n")
        os.utime(folder / path, (1e9, 1e9))


def contents(path: Path, project: Path) -> str:
    """Return the content of a file without the project's path and without values that differ between any two runs."""
    if path.name.endswith(".ipynb"):
        cells = json.loads(path.read_text())["cells"]
        shown = [cell for cell in cells if "snakemake-job-properties" not in cell["metadata"].get("tags", [])]
        return repr([(cell["source"], cell.get("outputs")) for cell in shown])
    data = path.read_bytes().replace(str(project).encode(), b"PROJECT")
    return "\n".join(sorted(data.decode().split("\0"))) if path.parent.name == "environment" else data.decode()


def files(project: Path, roots: Sequence[Path]) -> dict[str, tuple[str, str]]:
    """Path -> (type and mode, contents) of everything below some folders."""
    listing = {}
    for root in roots:
        for path in [root, *root.rglob("*")] if root.exists() else []:
            kind = stat.filemode(path.lstat().st_mode)
            if path.is_symlink():
                content = str(path.readlink()).replace(str(project), "PROJECT")
            else:
                content = "" if path.is_dir() else contents(path, project)
            listing[str(path.relative_to(project))] = (kind, content)
    return listing


def records(folder: Path) -> dict[str, dict[str, Any]]:
    """Snakemake's metadata by output."""
    paths = [path for path in (folder / ".snakemake" / "metadata").rglob("*") if path.is_file()]
    return {
        base64.b64decode("".join(path.relative_to(folder / ".snakemake" / "metadata").parts)).decode(): json.loads(
            path.read_text()
        )
        for path in paths
    }
