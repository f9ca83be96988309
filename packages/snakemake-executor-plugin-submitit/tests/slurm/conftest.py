"""The fixture of the tests on a real Slurm: a project whose processes and tasks are stopped at the end of the test."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))  # `workflow`, which the other tests share

from grid import Grid


@pytest.fixture
def grid(slurm: None, tmp_path: Path) -> Iterator[Grid]:
    """An empty project; whatever it started is stopped at the end of the test."""
    grid = Grid(tmp_path)
    yield grid
    grid.stop()
