"""The miniature of MAD-X's paper, cut down once more: from text and data to all of its exhibits and claims."""

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from project import ROOT, SIZES, project, shell

BASE = yaml.safe_load((ROOT / "studies" / "pfeiffer2020-mini.yaml").read_text())
RESULTS = "results/demo"
LANGUAGES = ["qa1", "qa3"]
CELLS = f"{RESULTS}/cells/wikiann/mini-xlmr"


def study() -> dict[str, Any]:
    """The miniature in a seen and an unseen language, with everything smaller, and one seed."""
    steps = {"steps": 4, "batch_tokens": 256, "evaluations": 2}
    grids: dict[str, Any] = {name: {"seed": [1]} for name in BASE["grids"]}
    grids["ner-snapshots"]["snapshots"] = [2, 4]
    relations = ["seen-unseen", "resource", "family", "script", "relation"]
    return {
        "extends": "pfeiffer2020-mini",
        "groups": {
            **{name: LANGUAGES for name in ("ner", "xcopa", "xquad")},
            **{name: ["qa1"] for name in ("seen", "high-resource", "low-resource")},
            **{name: ["qa3"] for name in ("unseen", "unseen-low-resource", "xcopa-unseen")},
        },
        "text": {"sentences": 200},
        "encoders": {name: {"mini": SIZES} for name in BASE["encoders"] if BASE["encoders"][name]},
        "tasks": {name: {"options": {"n": 100}} for name in BASE["tasks"]},
        "training": [{"set": steps}, {"when": {"task": "mlm"}, "set": {"snapshots": [2, 4]}}],
        "grids": grids,
        # Of groups without a language here.
        "exhibits": dict.fromkeys(relations),
        "claims": dict.fromkeys(yaml.safe_load((ROOT / "studies" / "pfeiffer2020.yaml").read_text())["claims"]),
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = project(tmp_path_factory.mktemp("adapters"), study())
    for name in ("pfeiffer2020", "pfeiffer2020-mini"):
        shutil.copy(ROOT / "studies" / f"{name}.yaml", folder / "studies")
    shutil.copytree(ROOT / "reference", folder / "reference")
    done = shell(folder, "snakemake --profile laptop")
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


def cell(folder: Path, path: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / CELLS / path).read_text())
    return read


def test_no_cell_of_any_exhibit_is_missing(built: Path) -> None:
    for path in sorted((built / RESULTS / "exhibits").glob("*.csv")):
        table = pd.read_csv(path)
        assert not table.empty, path.name
        if "n_cells" in table:
            assert (table["n_cells"] == table["n_cells_expected"]).all(), path.name


def test_a_cell_says_which_adapters_are_active(built: Path) -> None:
    for target in LANGUAGES:
        stack = cell(built, f"madx/qa1/{target}/seed1.json")["stack"]
        assert stack == [f"invertible:{target}", f"language:{target}", "task:wikiann"]
    assert cell(built, "madx-noinv/qa1/qa3/seed1.json")["stack"] == ["language:qa3", "task:wikiann"]
    assert cell(built, "madx-task-only/qa1/qa3/seed1.json")["stack"] == ["task:wikiann"]


def test_a_run_made_for_a_target_began_with_text_of_that(built: Path) -> None:
    made = cell(built, "mlm-trg/qa1@qa3/qa3/seed1.json")
    assert made["speaks"] == [f"{RESULTS}/runs/mlm/mini-xlmr/mlm/qa3/seed1"]


def test_a_run_of_adapters_stores_them_and_the_head_alone(built: Path) -> None:
    runs = built / RESULTS / "runs"
    encoder = (built / RESULTS / "encoders/mini-xlmr/model.safetensors").stat().st_size
    for run in ("wikiann/mini-xlmr/madx/qa1", "mlm/mini-xlmr/adapter/qa1"):
        record = json.loads((runs / run / "seed1/run.json").read_text())
        stored = (runs / run / "seed1/delta.safetensors").stat().st_size
        assert record["parameters"]["trained"] * 4 <= stored < encoder, run


def test_language_adapters_are_trained_once_for_all_tasks_and_seeds(built: Path) -> None:
    found = sorted(path.parent.name for path in (built / RESULTS / "runs/mlm/mini-xlmr/adapter").glob("*/seed*"))
    assert found == LANGUAGES
