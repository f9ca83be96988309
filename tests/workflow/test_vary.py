"""The real Snakemake on a study that varies the number of training examples, of the source and of the target."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from project import SIZES, project, succeeds

from xlgrid.results import records

SCRATCH = {"kind": "xlmr", "languages": ["qa1", "qb1"], **SIZES}
GRID = {
    "task": ["ner"],
    "encoder": ["mini"],
    "method": ["full-ft"],
    "source": ["qa1"],
    "target": ["qb1"],
    "seed": [1, 2],
}
STUDY: dict[str, Any] = {
    "title": "Few examples",
    "languages": ["qa1", "qb1"],
    "text": {"sentences": 200},
    "encoders": {"mini": {"scratch": SCRATCH, "training": {"steps": 5}}},
    "tasks": {"ner": {"kind": "wikiann", "options": {"n": 100}, "max_length": 64}},
    "methods": {"full-ft": {}},
    "training": [{"set": {"epochs": 2, "batch_size": 4, "lr": 1.0e-2, "evaluations": 2}}],
    "grids": {
        "plain": GRID,
        "few-source": {**GRID, "vary": {"examples": [8, 16, "all"]}},
        "few-target": {**GRID, "vary": {"shots": [0, 8, "all"]}},
    },
    "exhibits": {
        "of-source": {"kind": "curve", "title": "Examples of the source", "x": "examples", "lines": "target"},
        "of-target": {"kind": "table", "title": "Examples of the target", "rows": ["shots"], "columns": "target"},
        "whole": {"kind": "table", "title": "All examples", "rows": ["method"], "columns": "target"},
    },
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = project(tmp_path_factory.mktemp("vary"), STUDY, "few")
    succeeds(folder, "snakemake --profile laptop results/few/report.html")
    return folder / "results" / "few"


def cell(made: Path, method: str, source: str, seed: int = 1) -> dict[str, Any]:
    return records.read_cell(made / f"cells/ner/mini/{method}/{source}/qb1/seed{seed}.json")


def run(made: Path, method: str, source: str, seed: int = 1) -> dict[str, Any]:
    return json.loads((made / f"runs/ner/mini/{method}/{source}/seed{seed}/run.json").read_text())


def test_the_first_point_is_zero_shot_transfer(made: Path) -> None:
    for seed in (1, 2):
        zero = cell(made, "full-ft@shots=0", "qa1@qb1", seed)
        assert zero["outcomes"] == cell(made, "full-ft", "qa1", seed)["outcomes"]
    assert run(made, "full-ft@shots=0", "qa1@qb1")["steps"] == 0


def test_a_training_has_as_many_steps_as_its_examples_ask_for(made: Path) -> None:
    assert [run(made, f"full-ft@examples={n}", "qa1")["steps"] for n in (8, 16)] == [4, 8]
    assert run(made, "full-ft@shots=8", "qa1@qb1")["steps"] == 4
    assert run(made, "full-ft@shots=all", "qa1@qb1")["steps"] == run(made, "full-ft", "qa1")["steps"]


def test_an_exhibit_has_a_point_for_each_number_and_no_other_mixes_them(made: Path) -> None:
    curve, shots, whole = (pd.read_csv(made / f"exhibits/{name}.csv") for name in ("of-source", "of-target", "whole"))
    assert list(curve["examples"].astype(str)) == ["8", "16", "all"]
    assert list(shots["shots"].astype(str)) == ["0", "8", "all"]
    assert (shots["n_seeds"] == 2).all() and (curve["n_seeds"] == 2).all()
    assert list(whole["method"]) == ["full-ft"]
    mean = sum(cell(made, "full-ft", "qa1", seed)["scores"]["f1"] for seed in (1, 2)) / 2
    assert whole["mean"].item() == pytest.approx(mean)
    assert shots["mean"].iloc[0] == pytest.approx(mean)
