"""Cells of several methods and encoders that a worker evaluates in one process are those of `xlgrid evaluate` alone."""

import json
import re
from math import prod
from pathlib import Path
from typing import Any

import pytest
from project import first, make, project, succeeds

pytestmark = pytest.mark.slow

METHODS: dict[str, Any] = {
    "full-ft": {},
    "bitfit": {},
    "adapters": {"base": "madx", "options": {"language": False, "invertible": False}},
    "queries": {"base": "qcross"},
}
# A worker gives each job one core.
OF_PROCESS = ("seconds", "cpu_seconds", "command", "threads")


def study() -> dict[str, Any]:
    """Four methods on two encoders and three targets: 24 cells, which one worker evaluates in turn."""
    made = first()
    encoder = made["encoders"]["mini-xlmr"]
    made["encoders"]["other"] = {**encoder, "scratch": {**encoder["scratch"], "hidden": 32}}
    made["methods"] = METHODS
    [grid] = made["grids"].values()
    grid |= {"encoder": list(made["encoders"]), "method": list(METHODS), "target": ["mono"]}
    made["exhibits"] = {}
    return made


def entries(path: Path) -> dict[str, Any]:
    return {name: value for name, value in json.loads(path.read_text()).items() if name not in OF_PROCESS}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = project(tmp_path_factory.mktemp("resident") / "project", study(), "demo")
    make(folder, "results/demo/summary.csv")
    return folder


def test_cells_of_a_worker_are_those_that_their_commands_make_alone(made: Path) -> None:
    cells = sorted(made.glob("results/demo/cells/**/*.json"))
    [grid] = study()["grids"].values()
    axes = ("task", "encoder", "method", "source", "seed")
    # `mono` stands for each language.
    assert len(cells) == prod(len(grid[axis]) for axis in axes) * len(study()["languages"])
    for cell in cells:
        command = json.loads(cell.read_text())["command"]
        # The path of a cell names what it is.
        succeeds(made, re.sub(r"--output (\S+)", r"--output alone/\1", command))
        assert entries(made / "alone" / cell.relative_to(made)) == entries(cell), cell
