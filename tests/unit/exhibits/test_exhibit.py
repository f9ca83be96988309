"""What all kinds of exhibit have in common."""

import subprocess
import sys
from pathlib import Path

import pytest

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
tasks: {nli: {kind: xnli}, ner: {kind: wikiann}}
methods: {full-ft: {}}
grids: {g: {task: [nli, ner], encoder: [e], method: [full-ft], source: [en], target: [en], seed: [1]}}
exhibits: {t: TABLE}
"""
    study = tmp_path / "s.yaml"
    study.write_text(text.replace("TABLE", table % ""))
    with pytest.raises(ValueError, match=r"exhibits.t: select.metric: task ner has no metric mcc .*leave the task out"):
        load_plan(study)
    study.write_text(text.replace("TABLE", table % ", task: nli"))
    assert load_plan(study).cells
