"""A training has learnt nothing where its cells are at chance in its own language, or its loss has risen."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from xlgrid.results.learning import Learning

RUN = "results/s/runs/t/mini/bitfit/qa1/seed1"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def cell(target: str = "qa1", score: float = 50.0, metric: str = "accuracy", **entries: Any) -> dict[str, Any]:
    identity = {"task": "t", "encoder": "mini", "method": "bitfit", "source": "qa1", "target": target, "seed": 1}
    return {**identity, "run": RUN, "metric": {"name": metric}, "scores": {metric: score}, **entries}


def record(**entries: Any) -> None:
    path = Path(RUN, "run.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(entries))


def nothing(*cells: dict[str, Any]) -> list[bool]:
    learning = Learning()
    for each in cells:
        learning.add(each)
    return [bool(learning.nothing(each)) for each in cells]


def nothing_by_record(**entries: Any) -> bool:
    """What run.json says before there are cells."""
    record(**entries)
    return bool(Learning().nothing({"run": RUN}))


@pytest.mark.parametrize(
    ("metric", "chance", "at_chance", "above"),
    [
        ("accuracy", {"accuracy": 61.5}, 61.5, 61.6),
        ("accuracy", {"accuracy": 61.5}, 50.0, 70.0),
        ("accuracy", {"accuracy": 0.1}, 0.1, 0.3),
        ("f1", {}, 0.0, 1.1),
        ("f1", {}, 0.4, 1.1),
        ("f1", {}, math.nan, 1.1),
        ("bleu", {}, 0.1, 1.1),
        ("perplexity", {"perplexity": 800.0}, 800.0, 799.0),
        ("perplexity", {"perplexity": 800.0}, 5e7, 20.0),
    ],
)
def test_a_score_has_to_be_better_than_chance(
    metric: str, chance: dict[str, float], at_chance: float, above: float
) -> None:
    assert nothing(cell(score=at_chance, metric=metric, chance=chance)) == [True]
    assert nothing(cell(score=above, metric=metric, chance=chance)) == [False]


def test_chance_that_nobody_knows_says_nothing_where_less_is_better() -> None:
    assert nothing(cell(score=5e7, metric="perplexity")) == [False]


ABOVE_CHANCE = {"dev_score": 88.0, "metric": "accuracy", "chance": {"accuracy": 33.3}}


@pytest.mark.parametrize(
    ("first", "last"), [(2.0, 2.6), (1.1, 5e7), (0.01, 0.6), (20.0, 23.0), (2.0, math.inf), (2.0, math.nan)]
)
def test_a_loss_that_clearly_ends_above_its_beginning_is_nothing_learnt(first: float, last: float) -> None:
    """Whatever the scores are: JSON of Python has NaN and infinity."""
    assert nothing_by_record(loss={"first": first, "last": last}, **ABOVE_CHANCE)
    assert nothing(cell(score=88.0, chance={"accuracy": 33.3})) == [True]


@pytest.mark.parametrize(("first", "last"), [(0.300, 0.301), (0.01, 0.03), (0.2, 0.5), (20.0, 21.0), (2.0, 1.9)])
def test_a_rise_of_the_loss_within_the_noise_of_a_batch_leaves_it_to_the_scores(first: float, last: float) -> None:
    loss = {"first": first, "last": last}
    assert not nothing_by_record(loss=loss, **ABOVE_CHANCE)
    assert nothing(cell(score=88.0, chance={"accuracy": 33.3})) == [False]
    assert nothing(cell(score=33.3, chance={"accuracy": 33.3})) == [True]
    assert nothing_by_record(loss=loss, **{**ABOVE_CHANCE, "dev_score": 33.3})


def test_a_score_that_nobody_can_compare_with_chance_leaves_it_to_a_clear_rise_of_the_loss() -> None:
    for scores in ({}, {"dev_score": 20.0, "metric": "perplexity"}):
        assert not nothing_by_record(loss={"first": 2.0, "last": 2.1}, **scores)
        assert nothing_by_record(loss={"first": 2.0, "last": 3.0}, **scores)


def test_a_cell_in_the_language_of_training_decides_for_all_cells_of_its_run() -> None:
    assert nothing(cell(score=0.0, metric="f1"), cell("qb1", 3.0, "f1")) == [True, True]


def test_zero_in_another_language_is_no_transfer_which_is_a_result() -> None:
    assert nothing(cell(score=60.0, metric="f1"), cell("qb1", 0.0, "f1")) == [False, False]


def test_a_mix_has_learnt_something_if_it_has_in_one_of_its_languages() -> None:
    both = [cell(target, score, "f1", source="qa1+qa2") for target, score in (("qa1", 0.0), ("qa2", 40.0))]
    assert nothing(*both) == [False, False]


def test_a_pair_that_was_trained_on_is_its_own_language() -> None:
    pair = {"source": "en+en-fr", "metric": "f1"}
    assert nothing(cell("en-fr", 0.0, **pair)) == [True]
    assert nothing(cell("en-de", 0.0, **pair)) == [False]


def test_without_a_cell_in_its_language_a_run_is_judged_by_its_dev_set() -> None:
    record(dev_score=50.0, metric="accuracy", chance={"accuracy": 50.0})
    assert nothing(cell("qb1", 80.0)) == [True]
    assert nothing(cell("qb1", 80.0), cell("qa1", 80.0, chance={"accuracy": 50.0})) == [False, False]


def test_an_encoder_without_training_has_learnt_nothing_if_no_target_is_above_chance() -> None:
    chance = {"accuracy": 0.1}
    bare = {"run": None, "source": "none", "chance": chance}
    assert nothing(cell("fr-en", 0.1, **bare), cell("de-en", 0.0, **bare)) == [True, True]
    assert nothing(cell("fr-en", 30.0, **bare), cell("tl-en", 0.1, **bare)) == [False, False]
