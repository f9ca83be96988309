"""The cost of pre-training with cross-attention."""

from pathlib import Path

import pytest
from plan_fixture import COSTED
from study_fixture import write

from xlgrid.plan.estimate import Estimate
from xlgrid.plan.load import load_plan


@pytest.mark.usefixtures("queries")
def test_an_objective_that_passes_an_encoder_more_often_takes_more_operations(tmp_path: Path) -> None:
    """VECO also trains cross-attention between the languages of bitext."""
    tasks = "tasks:\n  opus: {kind: mlm, inputs: [a, b], data: {local: x.jsonl, languages: [en-fr]}, examples: {train: 100, dev: 10}}\n"
    text = COSTED.replace("tasks:\n", tasks).replace("languages: [en], vocab", "languages: [en, fr], vocab")
    plain = text.replace(
        "kind: bert", "kind: xlmr, architecture: plain, bitext: [[en, fr]], bitext_task: opus, objective: mlm+tlm"
    )
    veco = plain.replace("architecture: plain", "architecture: veco").replace("mlm+tlm", "ca-mlm+tlm")
    estimates = [Estimate(load_plan(write(tmp_path, study))).pretraining("tiny") for study in (veco, plain)]
    assert estimates[0].operations > estimates[1].operations
