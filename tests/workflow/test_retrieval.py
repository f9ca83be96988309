"""Retrieval and mining of an encoder without training, from generated sentences."""

import json
from pathlib import Path
from typing import Any

import pytest
from project import planned, project, shell, small

CELLS = "results/demo/cells"
TATOEBA, BUCC = (f"{CELLS}/{task}/mini-xlmr/as-is/none/qa1-qb1/seed1.json" for task in ("tatoeba", "bucc"))


def with_retrieval() -> dict[str, Any]:
    """The demo with both tasks."""
    study = small()
    for task in ("tatoeba", "bucc"):
        study["tasks"][task] = {"kind": task, "max_length": 64, "options": {"n": 100, "layer": 1}}
    study["methods"]["as-is"] = {}
    axes = {"encoder": ["mini-xlmr"], "method": ["as-is"], "source": ["none"], "seed": [1]}
    study["grids"]["retrieval"] = axes | {"task": ["tatoeba", "bucc"], "target": ["qa1-qb1"]}
    return study


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project(tmp_path_factory.mktemp("retrieval"), with_retrieval())


def test_cells_of_pairs_take_no_training_and_another_layer_makes_the_tokens_again(folder: Path) -> None:
    # Two splits of three languages and of a pair for the pre-training, and the test set of each task.
    tokens = 2 * (3 + 1) + 2
    jobs = {"text": 3, "vocabulary": 1, "pretrain": 1, "meanings": 2, "data": 2, "tokens": tokens, "evaluate": 2}
    assert planned(folder, TATOEBA, BUCC) == jobs
    process = shell(folder, f"snakemake --profile laptop {TATOEBA} {BUCC}")
    assert process.returncode == 0, process.stderr[-4000:]
    tatoeba, bucc = (json.loads((folder / path).read_text()) for path in (TATOEBA, BUCC))
    assert (tatoeba["n"], bucc["n"]) == (20, 10)
    assert tatoeba["options"]["layer"] == bucc["options"]["layer"] == 1
    assert planned(folder, TATOEBA, BUCC) == {}
    path = folder / "studies" / "demo.yaml"
    path.write_text(path.read_text().replace("layer: 1", "layer: 0"))
    assert planned(folder, TATOEBA, BUCC) == {"tokens": 2, "evaluate": 2}
