"""The variance of effects over languages like those of a study."""

import math
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from xlgrid.results.claims import Term
from xlgrid.results.crossed import fit
from xlgrid.results.population import NO_SAMPLE, TOO_FEW, Pair, Population, over_languages
from xlgrid.results.verdicts import Noise

SEEDS = (1, 2, 3)


def grid(sources: int, targets: int) -> list[Pair]:
    return [(f"s{i}", f"t{j}") for i in range(sources) for j in range(targets)]


def terms(pairs: Iterable[Pair], weights: dict[int, float], seeds: Iterable[int] = SEEDS) -> list[Term]:
    """For each pair and seed, a cell of each side, with the weight of the side."""
    cell: Any = SimpleNamespace
    return [
        Term(cell(seed=seed), weight, side, pair)
        for pair in pairs
        for seed in seeds
        for side, weight in weights.items()
    ]


def difference(pairs: list[Pair]) -> list[Term]:
    return terms(pairs, {0: 1 / len(pairs), 1: -1 / len(pairs)})


def contributed(pairs: list[Pair], values: np.ndarray) -> dict[tuple[Pair, int], float]:
    """The contributions of values, [pairs, seeds], with equal weights."""
    return {
        (pair, seed): float(value) / len(pairs)
        for pair, of_pair in zip(pairs, values, strict=True)
        for seed, value in zip(SEEDS, of_pair, strict=True)
    }


def test_the_variance_is_that_of_the_model_without_what_differs_between_seeds() -> None:
    """By hand: the variance of the mean in the model, minus the noise of the runs of each source over its targets."""
    rng = np.random.default_rng(1)
    pairs = grid(6, 7)
    values = rng.normal(0, 2, (6, 1, 1)) + rng.normal(0, 1, (7, 1)) + rng.normal(0, 0.5, (6, 7, 3))
    fitted = fit(values.mean(2).ravel().tolist(), list(zip(*pairs, strict=True)))
    of_model, df = fitted.variance([1 / 42] * 42)
    of_runs = values.mean(1).var(1, ddof=1).sum() / 36
    ours = over_languages(difference(pairs), contributed(pairs, values.reshape(42, 3)))
    assert ours.variance == pytest.approx(of_model - of_runs / 3)
    assert (ours.df, ours.sources, ours.targets, ours.reason) == (pytest.approx(df), 6, 7, "")


def test_with_one_source_only_targets_are_a_sample() -> None:
    """The variance over targets is that of a t interval; the noise of the runs is the same in all targets."""
    rng = np.random.default_rng(2)
    pairs = [("en", f"t{j}") for j in range(8)]
    values = rng.normal(0, 1, (8, 1)) + rng.normal(0, 5, 3)
    ours = over_languages(difference(pairs), contributed(pairs, values))
    of_cells = values.var(1, ddof=1).sum() / 64 / 3
    assert ours.variance == pytest.approx(max(0, values.mean(1).var(ddof=1) / 8 - of_cells))
    assert (ours.df, ours.sources, ours.targets) == (pytest.approx(7), 1, 8)


@pytest.mark.parametrize(("sources", "targets"), [(3, 4), (4, 16), (1, 4), (1, 1), (5, 4)])
def test_an_axis_that_varies_needs_five_languages(sources: int, targets: int) -> None:
    pairs = grid(sources, targets)
    values = np.random.default_rng(3).normal(0, 1, (len(pairs), 3))
    ours = over_languages(difference(pairs), contributed(pairs, values))
    assert ours.reason == TOO_FEW and math.isnan(ours.variance)
    assert (ours.sources, ours.targets) == (sources, targets)


def test_each_group_of_languages_needs_five_languages() -> None:
    """A gain in some targets minus the gain in others, four sides: two methods in each of the groups."""
    for of_first, reason in ((5, ""), (4, TOO_FEW)):
        first, second = grid(1, 11)[:of_first], grid(1, 11)[of_first:]
        each = terms(first, {0: 1 / of_first, 1: -1 / of_first})
        each += terms(second, {2: -1 / len(second), 3: 1 / len(second)})
        values = np.random.default_rng(4).normal(0, 1, (11, 3))
        values[:of_first] += 100
        parts = contributed(first, values[:of_first]) | contributed(second, -values[of_first:])
        ours = over_languages(each, parts)
        assert ours.reason == reason
    # Without a model of groups, the difference of 100 between the groups would be variance between languages.
    assert over_languages(*_two_groups()).variance < 2


def _two_groups() -> tuple[list[Term], dict[tuple[Pair, int], float]]:
    first, second = grid(1, 12)[:6], grid(1, 12)[6:]
    values = np.random.default_rng(5).normal(0, 1, (12, 3)) + np.repeat([100, 0], 6)[:, None]
    each = terms(first, {0: 1 / 6, 1: -1 / 6}) + terms(second, {2: -1 / 6, 3: 1 / 6})
    return each, contributed(first, values[:6]) | contributed(second, -values[6:])


def test_scores_of_two_groups_of_targets_vary_in_each_group() -> None:
    """A claim that compares languages: Welch's variance with a pooled standard deviation."""
    first, second = grid(1, 12)[:6], grid(1, 12)[6:]
    values = np.repeat(np.random.default_rng(6).normal(50, 4, (12, 1)), 3, axis=1)
    each = terms(first, {0: 1 / 6}) + terms(second, {1: -1 / 6})
    ours = over_languages(each, contributed(first, values[:6]) | contributed(second, -values[6:]))
    pooled = (values[:6, 0].var(ddof=1) + values[6:, 0].var(ddof=1)) / 2
    assert (ours.variance, ours.df) == (pytest.approx(pooled / 3), pytest.approx(10))


def test_sides_that_share_some_languages_only_are_no_sample() -> None:
    pairs = grid(1, 15)
    each = terms(pairs[:5], {0: 0.1}) + terms(pairs[5:10], {0: 0.1, 1: -0.1}) + terms(pairs[10:], {1: -0.1})
    values = np.random.default_rng(7).normal(0, 1, (15, 3))
    assert over_languages(each, contributed(pairs, values)).reason == NO_SAMPLE


def test_the_interval_is_never_narrower_than_that_over_these_languages() -> None:
    rng = np.random.default_rng(8)
    for _ in range(200):
        of_seeds, of_examples, variance = rng.exponential(1, 3) * rng.integers(0, 2, 3)
        these = Noise(of_seeds, of_examples, int(rng.integers(2, 6)))
        like = these._replace(
            of_shared=rng.random() * of_examples, population=Population(variance, rng.uniform(3, 30), 5, 5)
        )
        assert like.half_width(0.025) >= these.half_width(0.025)
        if half := like.half_width(0.025):
            assert like.tail_beyond(half) == pytest.approx(0.025, rel=1e-4)
            assert like.tail_beyond(-half) == pytest.approx(0.975, rel=1e-4)


def test_more_languages_make_the_variance_smaller() -> None:
    population = Population(6.0, 8.0, 5, 10)
    assert population.with_languages(15) == Population(2.0, 24.0, 5, 10)


@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("size", [5, 8])
def test_the_interval_has_the_truth_in_nearly_95_of_a_hundred_grids(seeds: int, size: int) -> None:
    """Of 400 grids, whose languages differ as much as their runs; `benchmarks/uncertainty.py` has 10,000 of many kinds."""
    rng = np.random.default_rng([9, seeds, size])
    pairs, covered, times = grid(size, size), 0, 400
    each = terms(pairs, {0: 1 / len(pairs), 1: -1 / len(pairs)}, range(seeds))
    keys = [(pair, seed) for pair in pairs for seed in range(seeds)]
    for _ in range(times):
        values = rng.normal(0, 1, (size, 1, 1)) + rng.normal(0, 1, (size, 1)) + rng.normal(0, 1, (size, 1, seeds))
        values = values + rng.normal(0, 0.5, (size, size, seeds))
        parts = dict(zip(keys, (values / len(pairs)).ravel().tolist(), strict=True))
        effects = values.mean((0, 1))
        noise = Noise(effects.var(ddof=1) / seeds, 0.0, seeds, 0.0, over_languages(each, parts))
        covered += abs(effects.mean()) < noise.half_width(0.025)
    assert covered / times == pytest.approx(0.95, abs=0.035)
