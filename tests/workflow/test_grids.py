"""The miniatures of grids of others run, cut down once more, from generated data to an exhibit of each kind."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from project import FEW, SIZES, make, project

STEPS = [{"set": {"steps": 4, "batch_tokens": 256, "evaluations": 1}}]
TWO = ["qa1", "qb1"]
# Miniature -> what is cut down, and the exhibits that are made.
CUT: dict[str, tuple[dict[str, Any], list[str]]] = {
    "masakhanews-mini": (
        {
            "encoders": {
                "mini-afro": {"scratch": SIZES, "training": FEW},
                "mini-xlmr": {"scratch": SIZES, "training": FEW},
            },
            "tasks": {"news": {"options": {"n": 90}}},
            "groups": {"targets": TWO},
            "grids": {
                **dict.fromkeys(["en", "yo"]),
                **{name: {"encoder": ["mini-xlmr"], "seed": [1]} for name in ("ha", "sw")},
                "zero-shot": {"source": ["qa2"], "seed": [1]},
            },
        },
        ["supervised", "zero-shot"],
    ),
    "nn-rank-mini": (
        {
            "encoders": {"mini-xlmr": {"scratch": SIZES, "training": FEW}},
            "tasks": {"pos": {"options": {"n": 90}}},
            "groups": {"sources": [*TWO, "qa2"], "targets": [*TWO, "qk1"]},
        },
        ["transfer-xlmr", "sources", "choice-xlmr", "distance"],
    ),
    "language-arithmetic-mini": (
        {
            "encoders": {"mini-xlmr": {"scratch": SIZES, "training": FEW}},
            "tasks": {"wikiann": {"options": {"n": 90}}, "mlm": {"options": {"dev_rows": 20}}},
            "groups": {"targets": ["qa2", "qb1"]},
            "grids": {"ner": {"method": ["la-75", "madx"], "seed": [1]}},
            "claims": dict.fromkeys(["arithmetic-improves-on-the-target", "arithmetic-improves-on-english"]),
        },
        ["arithmetic", "gain"],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CUT)
def test_a_miniature_of_a_grid_runs_to_its_exhibits(tmp_path: Path, name: str) -> None:
    cut, exhibits = CUT[name]
    folder = project(tmp_path, {"extends": name, "text": {"sentences": 200}, "training": STEPS, **cut})
    make(folder, *(f"results/demo/exhibits/{exhibit}.csv" for exhibit in exhibits))
    cells = [json.loads(path.read_text()) for path in folder.glob("results/demo/cells/**/*.json")]
    assert cells and all(0 <= score <= 100 for cell in cells for score in cell["scores"].values())
    for exhibit in exhibits:
        assert len(pd.read_csv(folder / f"results/demo/exhibits/{exhibit}.csv"))
