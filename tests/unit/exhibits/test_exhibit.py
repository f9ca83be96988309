"""What all kinds of exhibit have in common."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from exhibit_fixture import EXHIBIT, grid

from xlgrid.plan.load import load_plan


def test_importing_every_kind_is_cheap() -> None:
    code = "import sys, xlgrid.exhibits; print({'pandas', 'matplotlib', 'torch'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_a_metric_that_one_of_the_tasks_lacks_is_refused(tmp_path: Path) -> None:
    table = "{kind: table, title: Scores, rows: [task], columns: target, select: {metric: mcc%s}}"
    text = """\
title: Two tasks
languages: [en]
encoders: {e: {path: e}}
tasks: {nli: {kind: xnli}, ner: {kind: wikiann, data: {local: "ner/{language}/{split}.jsonl"}}}
methods: {full-ft: {}}
grids: {g: {task: [nli, ner], encoder: [e], method: [full-ft], source: [en], target: [en], seed: [1]}}
exhibits: {t: TABLE}
"""
    study = tmp_path / "s.yaml"
    study.write_text(text.replace("TABLE", table % ""))
    with pytest.raises(
        ValueError, match=r"exhibits\.t.*select.metric: task ner has no metric mcc .*leave the task out"
    ):
        load_plan(study)
    study.write_text(text.replace("TABLE", table % ", task: nli"))
    assert load_plan(study).cells


WITH_ROWS = {"rows": ["source"], "columns": "target"}


@pytest.mark.parametrize(
    "spec",
    [
        {"kind": "table", **WITH_ROWS, "select": {"method": "bitfit"}, "average": True},
        {"kind": "table", "rows": ["source"], "columns": "method", "difference": ["bitfit", "adapters"]},
        {"kind": "table", "rows": ["source"], "columns": ["method", "target"]},
        {"kind": "heatmap", "method": "bitfit"},
        {"kind": "heatmap", "difference": ["bitfit", "adapters"]},
        {"kind": "curve", "x": "distance", "lines": "method"},
        {"kind": "benchmark", "rows": ["method", "source"], "untrained": "all"},
    ],
    ids=lambda spec: " ".join(map(str, spec.values())),
)
def test_the_scores_behind_an_entry_have_its_mean(spec: dict[str, Any]) -> None:
    """A difference has both of its sides behind it, with a path each, and nothing else."""
    cells = grid(["en", "fr"], ["en", "sw", "qu"], methods=("adapters", "bitfit"))
    cells["path"] = [f"{row.method}/{row.source}/{row.target}/{row.seed}" for row in cells.itertuples()]
    read = cells.set_index("path")
    study = SimpleNamespace(belongs=lambda *_: True, languages_used={}, methods={})
    rendering = EXHIBIT.validate_python({"title": "Some scores"} | spec).of_scores(study, cells)
    for entry in rendering.sheet.entries.to_dict("records"):
        behind = rendering.behind_entry(entry)
        assert behind is not None and behind["path"].is_unique
        of_method = read.loc[behind["path"]].groupby("method")["score"].mean()
        is_difference = spec.get("difference") and entry["column"] not in ("adapters", "bitfit")
        mean = of_method["bitfit"] - of_method["adapters"] if is_difference else of_method.mean()
        assert entry["mean"] == pytest.approx(mean, abs=1e-12)
