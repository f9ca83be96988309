"""What the tests on a real Slurm ask of the machine, and what they leave behind: nothing."""

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
