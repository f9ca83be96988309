"""The fixture of the tests on a real Slurm: a project whose processes and tasks are stopped at the end of the test."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))  # `workflow`, which the other tests share

from grid import Grid


@pytest.fixture
def grid(slurm: Callable[[], AbstractContextManager[None]], tmp_path: Path) -> Iterator[Grid]:
    """An empty project; whatever it started is stopped at the end of the test."""
    with slurm():
        grid = Grid(tmp_path)
        yield grid
        grid.stop()
