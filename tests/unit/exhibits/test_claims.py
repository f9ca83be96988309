"""The verdicts of a study as files: a table and a forest plot."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from xlgrid import heads
from xlgrid.evaluation.cell import pack
from xlgrid.exhibits import claims
from xlgrid.plan.grid import cells
from xlgrid.plan.load import load_study
from xlgrid.products.evaluate import Cell
from xlgrid.results import verdicts
from xlgrid.results.population import TOO_FEW
from xlgrid.study.schema import Study

STUDY = """\
title: a <study>
languages: [en, fr]
encoders: {mini: {scratch: {kind: bert, languages: [en, fr]}}}
tasks: {t: {kind: ruletaker, options: {n: 100}}}
methods: {full-ft: {}, bitfit: {}}
grids:
  main: {task: [t], encoder: [mini], method: [full-ft, bitfit], source: [en], target: [mono], seed: [1, 2, 3]}
claims:
  better: {says: BitFit is better., compare: [{method: bitfit}, {method: full-ft}], expect: greater}
  chance: {says: No better than guessing., select: {method: full-ft}, against: 50, expect: none, margin: 5}
"""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(STUDY)
    return load_study("s.yaml")


def write(cell: Cell, outcomes: list[Any], metric: str = "accuracy") -> None:
    head = {"accuracy": "embed", "mining-f1": "embed-mining"}.get(metric, "surprisal")
    named = {
        "head": head,
        "labels": [],
        "metric": {"name": metric, "implementation": "i"},
        "n": len(outcomes),
        "outcomes": pack(outcomes),
    }
    scores = {metric: heads.metric(metric).score(outcomes)}
    path = Path(cell.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**cell._asdict(), **named, "scores": scores}))


def write_all(study: Study) -> None:
    rng = np.random.default_rng(9)
    for cell in cells(study):
        rate = {"full-ft": 0.5, "bitfit": 0.9}[cell.method] + rng.normal(0, 0.01)
        write(cell, (rng.random(200) < rate).astype(int).tolist())


def test_the_files_say_what_is_known_and_are_the_same_every_time(study: Study) -> None:
    write_all(study)
    Path(cells(study)[0].path).unlink()
    for folder in ("first", "second"):
        claims.render(study, cells(study), folder)
    names = ("claims.csv", "claims.html", "claims.md", "claims.svg")
    assert [name for name in names if Path("first", name).read_bytes() != Path("second", name).read_bytes()] == []
    text = Path("first/claims.md").read_text()
    assert "not enough runs (2 of 3 seeds, 11 of 12 cells)" in text
    assert "not enough runs (2 of 3 seeds, 5 of 6 cells)" in text
    assert "A verdict needs 3 seeds and every planned cell" in text
    assert "BitFit is better." in Path("first/claims.html").read_text()


def test_effects_are_in_points_of_a_metric_in_percent(study: Study) -> None:
    write_all(study)
    claims.render(study, cells(study), "out")
    text = Path("out/claims.md").read_text()
    assert (
        "The effect is in points, with its paired 95 % interval" in text and "2 claims. Over these languages: " in text
    )
    assert ">effect (points), 95 % interval</text>" in Path("out/claims.svg").read_text()


def test_each_verdict_says_over_which_languages_it_is(study: Study) -> None:
    """A source and two targets are no sample of languages."""
    write_all(study)
    claims.render(study, cells(study), "out")
    judged = pd.read_csv("out/claims.csv").set_index("claim")
    assert judged.loc["better", ["verdict", "like_verdict"]].tolist() == [verdicts.HOLDS, TOO_FEW]
    assert judged.loc["better", ["n_sources", "n_targets"]].tolist() == [1, 2]
    text = Path("out/claims.md").read_text()
    assert (
        "2 claims. Over these languages: holds " in text and "Over languages like these: too few languages 2." in text
    )
    assert text.count("languages like these verdict") == 1


def test_the_numbers_that_would_be_enough_are_those_of_a_claim_that_does_not_hold() -> None:
    counts = {"n_seeds": 3, "n_sources": 1, "n_targets": 9}
    row = {"verdict": verdicts.HOLDS, "like_verdict": verdicts.DOES_NOT, "seeds_needed": 4.0, "languages_needed": 12.0}
    assert claims.needed(SimpleNamespace(**row, **counts)) == (
        "with this effect and noise, it would take 12 languages on each axis"
    )
    for other in ({"like_verdict": TOO_FEW}, {"languages_needed": 8.0}, {"languages_needed": float("nan")}):
        assert claims.needed(SimpleNamespace(**row | other, **counts)) == ""


def test_a_study_without_results_has_its_claims_all_the_same(study: Study) -> None:
    claims.render(study, cells(study), "out")
    assert list(pd.read_csv("out/claims.csv")["verdict"]) == [verdicts.NOT_ENOUGH] * 2


def test_a_study_without_claims_is_told_so(study: Study) -> None:
    with pytest.raises(ValueError, match="s has no claims"):
        claims.render(study.model_copy(update={"claims": {}}), [], "out")
