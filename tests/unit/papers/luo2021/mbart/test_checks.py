"""What an mBART from scratch is for: mistakes in the grids that use it, and in the encoders that would begin with it."""

from typing import Any

import pytest

from xlgrid.study.checks import problems
from xlgrid.study.schema import Study


def of_mbart(begun: dict[str, Any] | None = None, **axes: Any) -> Study:
    scratch = {"kind": "xlmr", "architecture": "mbart", "languages": ["qa1", "qb1"]}
    grid = {
        "task": ["nli"],
        "encoder": ["mbart"],
        "method": ["full-ft"],
        "source": ["qa1"],
        "target": ["qb1"],
        "seed": [1],
    }
    return Study(
        name="s",
        title="s",
        languages=["qa1", "qb1", "qc1"],
        encoders={
            "mbart": {"scratch": scratch, "training": {"steps": 4, "checkpoints": [2]}},
            "early": {"of": "mbart", "step": 2},
            **(begun or {}),
        },
        tasks={
            "nli": {"kind": "xnli", "data": {"local": "{language}-{split}.jsonl"}},
            "mt": {"kind": "translation", "options": {"n": 100}},
            "ner": {"kind": "wikiann"},
            "text": {"kind": "mlm"},
        },
        methods={
            "full-ft": {},
            "bitfit": {},
            "started": {"base": "full-ft", "start": {"task": "text", "method": "full-ft", "source": "qa1"}},
        },
        grids={"g": grid | axes},
    )


def test_an_mbart_is_fine_tuned_for_labels_and_translations() -> None:
    assert problems(of_mbart()) == []
    assert problems(of_mbart(task=["mt"], encoder=["early"], source=["qa1-qb1"], target=["qa1-qb1"])) == []


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        (
            {"method": ["full-ft", "bitfit"]},
            "needs full-ft without `start`, got method bitfit, of base bitfit: put the encoder into a separate grid",
        ),
        ({"method": ["started"]}, "needs full-ft without `start`, got method started, which begins with an MLM run"),
        (
            {"task": ["ner"]},
            "task ner, encoder mbart: an mBART supports the heads sequence and seq2seq, got token: put the encoder into a separate grid",
        ),
        ({"target": ["qb1", "qc1"]}, "mBART has a token for each of qa1, qb1, but not for qc1: leave these out"),
        ({"source": ["qc1"]}, "but not for qc1"),
        ({"encoder": ["early"], "method": ["bitfit"]}, "encoder early: an mBART"),
    ],
)
def test_a_mistake_about_an_mbart_is_named(axes: dict[str, list[str]], message: str) -> None:
    [problem] = problems(of_mbart(**axes))
    assert problem.startswith("grids.g") and message in problem


def test_no_encoder_begins_with_an_mbart() -> None:
    scratch = {"kind": "xlmr", "languages": ["qa1"], "begin": "early"}
    [problem] = problems(of_mbart({"other": {"scratch": scratch, "tokenizer": "mbart"}}))
    assert problem.startswith(
        "encoders.other.scratch.begin: early is of type mbart, and this one of type xlm-roberta: name"
    )
