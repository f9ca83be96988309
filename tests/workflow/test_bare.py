"""The perplexity of an encoder without training, and of a run on the same text."""

import json
from pathlib import Path
from typing import Any

import pytest
from project import planned, project, shell, small

CELLS = "results/demo/cells/perplexity/mini-xlmr"
BARE, TUNED = f"{CELLS}/as-is/none/qb1/seed1.json", f"{CELLS}/full-ft/qa1/qb1/seed1.json"


def study() -> dict[str, Any]:
    """The demo with the task."""
    demo = small()
    demo["tasks"]["perplexity"] = {"kind": "perplexity", "max_length": 64}
    demo["methods"]["as-is"] = {}
    axes = {"task": ["perplexity"], "encoder": ["mini-xlmr"], "target": ["qa1", "qb1"], "seed": [1]}
    demo["grids"] |= {
        "bare": axes | {"method": ["as-is"], "source": ["none"]},
        "tuned": axes | {"method": ["full-ft"], "source": ["qa1"]},
    }
    return demo


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project(tmp_path_factory.mktemp("bare"), study())


def test_a_bare_cell_takes_no_training_and_a_run_comes_beside_it(folder: Path) -> None:
    # Two splits of three languages and of a pair for the pre-training, and the test set.
    tokens = 2 * (3 + 1) + 1
    assert planned(folder, BARE) == {"text": 3, "vocabulary": 1, "pretrain": 1, "tokens": tokens, "evaluate": 1}
    process = shell(folder, f"snakemake --profile laptop {BARE}")
    assert process.returncode == 0, process.stderr[-4000:]
    assert planned(folder, TUNED) == {"tokens": 2, "train": 1, "evaluate": 1}
    process = shell(folder, f"snakemake --profile laptop {TUNED}")
    assert process.returncode == 0, process.stderr[-4000:]
    bare, tuned = (json.loads((folder / path).read_text()) for path in (BARE, TUNED))
    assert (bare["method"], bare["source"], bare["run"]) == ("as-is", "none", None)
    assert tuned["run"] == "results/demo/runs/perplexity/mini-xlmr/full-ft/qa1/seed1"
    # Of 200 sentences, rows 25, 75, 125 and 175.
    assert bare["n"] == tuned["n"] == 4
    assert bare["scores"]["perplexity"] != tuned["scores"]["perplexity"]
