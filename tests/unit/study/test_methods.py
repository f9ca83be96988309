"""The runs with which others begin exist, and there is one of each."""

from pathlib import Path

import pytest
from study_fixture import STARTED, write

from xlgrid.plan.load import load_study


@pytest.mark.usefixtures("queries")
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("method: query, pairs", "method: qurey, pairs", "methods.pair.start.method: .*did you mean 'query'"),
        ("pairs: [en-fr]}", "pairs: [en-it]}", "methods.pair.start: .*'it'"),
        (
            "pairs: [en-fr]}",
            "pairs: [en-fr], source: en-fr}",
            "methods.pair.start: a start has at most one of source and pairs",
        ),
        ("method: query, pairs: [en-fr]}", "method: query}", "grids.main.source: method pair: .* en and en-fr"),
        ("pairs: [en-fr]}", "at: target}", "grids.main: .* method pair begin with .*: leave out en.en-fr, en-fr"),
        ("{n: 100}}", "{n: 100}, start: rtt}", "tasks.rt.start: unknown task 'rtt', did you mean 'rt'"),
        ("{n: 100}}", "{n: 100}, start: rt}", "tasks.rt.start: .* in a circle: rt -> rt"),
        ("bitfit, pair]", "bitfit, query]", r"grids.main.method: query, with its options .*, is for MLM runs"),
        (
            "seed: [1]}",
            "seed: [1], checkpoints: [5]}",
            "grids.main.checkpoints: cells of method full-ft are not evaluated",
        ),
        ("full-ft: {}", "full-ft: {read: {folder: x}}", "methods.full-ft.read: only queries can be read"),
        ("full-ft: {}", "full-ft: {raed: {folder: x}}", "unknown key 'raed', did you mean 'read'"),
        ("full-ft: {}", "full-ft: {read: {}}", "methods.full-ft.read: `folder` is missing"),
        ("task: mlm,", "task: rt,", "methods.pair.start.task: unknown task of kind `mlm` 'rt' .there are: mlm."),
        ("  mlm: {kind: mlm}\n", "", "add `mlm: {kind: mlm}` to `tasks`"),
        (
            "{kind: mlm}",
            "{kind: mlm, start: rt}",
            "runs of a task of kind mlm begin with the encoder, .* leave out `start`",
        ),
        ("task: [rt]", "task: [rt, mlm]", "grids.main.task: mlm is of kind mlm"),
        ("bitfit: {}", "bitfit: {start: {task: mlm, method: bitfit}}", "in a circle, bitfit -> bitfit"),
    ],
)
def test_a_start_that_cannot_be_is_told_before_any_job(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in STARTED
    with pytest.raises(ValueError, match=message):
        load_study(write(tmp_path, STARTED.replace(old, new)))
