"""A slice of a paper's miniature, cut down once more: its study file and its exhibits."""

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from project import FEW, SIZES, project, shell
from shipped import STUDIES

BASE, PAPER = (yaml.safe_load((STUDIES[name]).read_text()) for name in ("foroutan2023-mini", "foroutan2023"))
RESULTS = "results/demo"
TABLES = ["table11", "table12"]
EXHIBITS = [*TABLES, "figure03", "figure05"]


def study() -> dict[str, Any]:
    """The miniature with everything smaller, and one seed."""
    steps = {"steps": 4, "batch_tokens": 256, "evaluations": 2}
    return {
        "extends": "foroutan2023-mini",
        "text": {"sentences": 200},
        "encoders": {name: {"scratch": SIZES, "training": FEW} for name in BASE["encoders"] if BASE["encoders"][name]},
        "tasks": {"ruletaker-d0": {"options": {"n": 200}}},
        "training": [{"set": steps}],
        "grids": {name: {"seed": [1]} for name in PAPER["grids"] | BASE["grids"]},
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = project(tmp_path_factory.mktemp("miniature"), study())
    for name in ("foroutan2023", "foroutan2023-mini"):
        shutil.copy(STUDIES[name], folder / "studies")
    targets = [f"{RESULTS}/exhibits/{name}.csv" for name in (*EXHIBITS, *(f"{name}-published" for name in TABLES))]
    process = shell(folder, f"snakemake --profile laptop {' '.join(targets)}")
    assert process.returncode == 0, process.stderr[-4000:]
    return folder


def test_no_entry_of_an_exhibit_is_missing(built: Path) -> None:
    for name in TABLES:
        table = pd.read_csv(built / RESULTS / "exhibits" / f"{name}.csv")
        assert not table.empty and (table["n_cells"] == table["n_cells_expected"]).all(), name
        assert (table["n_seeds"] == table["n_seeds_expected"]).all(), name


def test_the_published_numbers_stand_beside_ours(built: Path) -> None:
    for name in TABLES:
        beside = pd.read_csv(built / RESULTS / "exhibits" / f"{name}-published.csv")
        assert beside["published"].notna().all() and beside["mean"].notna().all(), name
