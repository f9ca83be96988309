"""Installed packages with entry points, for tests: what `pip install` leaves in a folder of `sys.path`."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from xlgrid.heads import ALL_HEADS
from xlgrid.tasks import ALL_TASKS


def install(folder: Path, package: str, version: str, code: str, entry_points: Mapping[str, Mapping[str, str]]) -> Path:
    """Write a package of one module into `folder`, and return the folder.

    Args:
        package: the distribution's name; that of the module has underscores for hyphens.
        code: of the module.
        entry_points: group -> name -> `module:attribute`.
    """
    module = package.replace("-", "_")
    about = folder / f"{module}-{version}.dist-info"
    about.mkdir(parents=True)
    (folder / f"{module}.py").write_text(code)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    lines = [
        line
        for group, points in entry_points.items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in points.items()))
    ]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


GUESSING = '''
"""A head whose metric and module no head of xlgrid has, and a task with this head."""

from xlgrid.heads.metrics import Ratio
from xlgrid.heads.sequence import SequenceHead
from xlgrid.tasks import Task


class GuessHead(SequenceHead):
    name = "guess"
    modules = ("guesser",)
    all_metrics = (Ratio("guess-rate", "tests", lambda outcome: (outcome, 1)),)


HEAD = GuessHead()
TASK = Task("riddles", ("text",), "label", ("a", "b"), (), HEAD)
'''


@pytest.fixture
def guessing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package `my-guessing` 0.3, with a head and a task, is installed."""
    points = {"xlgrid.heads": {"guess": "my_guessing:HEAD"}, "xlgrid.tasks": {"riddles": "my_guessing:TASK"}}
    monkeypatch.syspath_prepend(install(tmp_path, "my-guessing", "0.3", GUESSING, points))
    yield
    ALL_HEADS.imported.clear()
    ALL_TASKS.imported.clear()
