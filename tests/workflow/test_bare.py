"""Retrieval, mining and the perplexity of an encoder without training, and of a run on the same text."""

import json
from pathlib import Path
from typing import Any

import pytest
from project import make, planned, project, small

CELLS = "results/demo/cells"
BARE = {task: f"{CELLS}/{task}/mini-xlmr/as-is/none/qa1-qb1/seed1.json" for task in ("tatoeba", "bucc")}
BARE["perplexity"] = f"{CELLS}/perplexity/mini-xlmr/as-is/none/qb1/seed1.json"
TUNED = f"{CELLS}/perplexity/mini-xlmr/full-ft/qa1/qb1/seed1.json"


def study() -> dict[str, Any]:
    """The demo with the three tasks."""
    demo = small()
    for task in ("tatoeba", "bucc"):
        demo["tasks"][task] = {"kind": task, "max_length": 64, "options": {"n": 100, "layer": 1}}
    demo["tasks"]["perplexity"] = {"kind": "perplexity", "max_length": 64}
    demo["methods"]["as-is"] = {}
    axes = {"encoder": ["mini-xlmr"], "seed": [1]}
    bare = axes | {"method": ["as-is"], "source": ["none"]}
    demo["grids"] |= {
        "pairs": bare | {"task": ["tatoeba", "bucc"], "target": ["qa1-qb1"]},
        "bare": bare | {"task": ["perplexity"], "target": ["qa1", "qb1"]},
        "tuned": axes | {"task": ["perplexity"], "method": ["full-ft"], "source": ["qa1"], "target": ["qa1", "qb1"]},
    }
    return demo


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project(tmp_path_factory.mktemp("bare"), study())


def test_bare_cells_take_no_training_and_another_layer_makes_the_tokens_again(folder: Path) -> None:
    jobs = planned(folder, *BARE.values())
    assert jobs["evaluate"] == len(BARE) and "train" not in jobs
    make(folder, *BARE.values(), TUNED)
    records = {task: json.loads((folder / path).read_text()) for task, path in BARE.items()}
    tuned = json.loads((folder / TUNED).read_text())
    assert (records["tatoeba"]["n"], records["bucc"]["n"]) == (20, 10)
    assert records["tatoeba"]["options"]["layer"] == records["bucc"]["options"]["layer"] == 1
    assert {(record["method"], record["source"], record["run"]) for record in records.values()} == {
        ("as-is", "none", None)
    }
    assert tuned["run"] == "results/demo/runs/perplexity/mini-xlmr/full-ft/qa1/seed1"
    # Of 200 sentences, rows 25, 75, 125 and 175.
    assert records["perplexity"]["n"] == tuned["n"] == 4
    assert records["perplexity"]["scores"] != tuned["scores"]
    assert planned(folder, *BARE.values(), TUNED) == {}
    path = folder / "studies" / "demo.yaml"
    path.write_text(path.read_text().replace("layer: 1", "layer: 0"))
    assert planned(folder, *BARE.values()) == {"tokens": 2, "evaluate": 2}
