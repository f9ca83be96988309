"""Entries of a table on synthetic cells of which the truth is known: which of them win, and which comparisons have no test."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from xlgrid import heads
from xlgrid.evaluation.cell import pack
from xlgrid.products.evaluate import Cell
from xlgrid.results.winners import Winners, weighted, winners

N = 300
SEEDS, TARGETS = (1, 2, 3), ("fr", "de")


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def cells(
    rates: Mapping[str, float],
    rng: np.random.Generator,
    *,
    targets: tuple[str, ...] = TARGETS,
    seeds: tuple[int, ...] = SEEDS,
    spread: float = 0.01,
    metric: str = "accuracy",
) -> pd.DataFrame:
    """The cells of some methods, each with its own chance of being right; with files of their outcomes."""
    rows = []
    for method, rate in rates.items():
        for seed in seeds:
            of_run = rate + rng.normal(0, spread)
            rows += [row(Cell("s", "t", "mini", method, "en", target, seed), of_run, rng, metric) for target in targets]
    return pd.DataFrame(rows)


def row(cell: Cell, rate: float, rng: np.random.Generator, metric: str = "accuracy") -> dict[str, Any]:
    right = (rng.random(N) < rate).astype(int).tolist()
    # A perplexity falls where the log-likelihood rises.
    outcomes = [[1.0 + each, 1] for each in right] if metric == "perplexity" else right
    score = heads.metric(metric).score(outcomes)
    head = "perplexity" if metric == "perplexity" else "embed"
    record = {"head": head, "labels": [], "metric": {"name": metric, "implementation": "i"}, "scores": {metric: score}}
    path = Path(cell.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**cell._asdict(), **record, "n": N, "outcomes": pack(outcomes)}))
    return {**cell._asdict(), "path": cell.path, "metric": metric, "score": score}


def of_methods(frame: pd.DataFrame, by: tuple[str, ...] = ("method",)) -> Winners:
    """The winners among methods."""
    return winners(weighted(frame, by), by, ["method"], ["method"])


def test_the_best_wins_if_a_test_says_so_and_not_if_it_could_be_chance() -> None:
    rng = np.random.default_rng([1])
    assert of_methods(cells({"a": 0.5, "b": 0.8, "c": 0.6}, rng)) == Winners(frozenset({("b",)}), groups=1, tested=1)
    assert of_methods(cells({"a": 0.5, "b": 0.7, "c": 0.7}, rng)) == Winners(frozenset(), groups=1, tested=1)


def test_each_group_of_competing_entries_has_a_winner_of_its_own() -> None:
    rng = np.random.default_rng([2])
    frame = pd.concat(
        [cells({"a": 0.5, "b": 0.8}, rng, targets=("fr",)), cells({"a": 0.8, "b": 0.5}, rng, targets=("de",))]
    )
    assert of_methods(frame, ("method", "target")).keys == {("b", "fr"), ("a", "de")}


def test_the_least_perplexity_wins() -> None:
    frame = cells({"a": 0.5, "b": 0.8}, np.random.default_rng([3]), metric="perplexity")
    assert of_methods(frame).keys == {("a",)}


def test_the_test_is_corrected_for_the_number_of_groups() -> None:
    """p of the one difference is between 0.05 / 40 and 0.05."""
    rng = np.random.default_rng([9])
    alone = cells({"a": 0.60, "b": 0.66}, rng, targets=("fr",), spread=0)
    assert of_methods(alone, ("method", "target")).keys == {("b", "fr")}
    codes = tuple(f"qa{number}" for number in range(1, 40))
    more = cells({"a": 0.6, "b": 0.6}, rng, targets=codes)
    among_many = of_methods(pd.concat([alone, more]), ("method", "target"))
    assert (among_many.groups, among_many.tested, among_many.keys) == (40, 40, frozenset())


def untested(frame: pd.DataFrame) -> bool:
    return of_methods(frame) == Winners(frozenset(), groups=1, tested=0)


def test_two_seeds_are_too_few() -> None:
    assert untested(cells({"a": 0.2, "b": 0.9}, np.random.default_rng([5]), seeds=(1, 2)))


def test_without_a_result_of_every_rival_there_is_no_test() -> None:
    """The third may be the best, once it is there."""
    frame = cells({"a": 0.2, "b": 0.9, "c": 0.3}, np.random.default_rng([6]))
    assert not untested(frame)
    last = (frame["method"] == "c") & (frame["seed"] == 3)
    assert untested(frame.assign(score=frame["score"].mask(last)))
    assert untested(frame[~(last & (frame["target"] == "de"))]), "a cell that is not planned in one seed"


def test_entries_over_different_targets_or_seeds_are_not_compared() -> None:
    rng = np.random.default_rng([7])
    frame = cells({"a": 0.2}, rng)
    assert not untested(pd.concat([frame, cells({"b": 0.9}, rng)]))
    assert untested(pd.concat([frame, cells({"b": 0.9}, rng, targets=("fr", "es"))]))
    assert untested(pd.concat([frame, cells({"b": 0.9}, rng, seeds=(4, 5, 6))]))


def test_encoders_compete_by_their_facts() -> None:
    rng = np.random.default_rng([9])
    rows = [
        row(Cell("s", "t", encoder, "m", "en", "fr", seed), rate, rng) | {"languages": languages}
        for encoder, languages, rate in (("x", 13, 0.5), ("y", 60, 0.8))
        for seed in SEEDS
    ]
    frame = weighted(pd.DataFrame(rows), ["languages"])
    assert winners(frame, ["languages"], ["languages"], ["languages"]).keys == {(60,)}


def test_an_average_gives_each_column_one_weight() -> None:
    frame = pd.DataFrame(
        [{"method": "a", "task": task, "seed": seed, "score": 1.0} for task in ("x", "y", "y", "y") for seed in (1, 2)]
    )
    weights = weighted(frame, ["method"], ["task"])
    assert weights.groupby(["seed", "task"])["weight"].sum().tolist() == pytest.approx([0.5] * 4)
    assert weighted(frame, ["method"])["weight"].tolist() == [0.25] * 8


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 6])
def test_equal_methods_rarely_win(number: int) -> None:
    """The chance is at most 5 %; with 60 tables, more than 8 winners have a chance below 1 %."""
    rng = np.random.default_rng([10, number])
    rates = {f"m{at}": 0.6 for at in range(number)}
    won = sum(bool(of_methods(cells(rates, rng, targets=("fr",))).keys) for _ in range(60))
    assert won <= 8
