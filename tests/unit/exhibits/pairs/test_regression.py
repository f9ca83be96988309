"""The slope of scores on a value of pairs, beside statsmodels and beside its definition."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from scipy.stats import t as student

from xlgrid.exhibits.pairs.regression import Slope, slope


def pairs(
    sources: int = 7, targets: int | None = None, missing: float = 0.0, seed: int = 0
) -> tuple[list[str], list[str], np.ndarray, np.ndarray]:
    """The source, target, value and score of each pair; `targets` are other languages, or the sources if it is None."""
    rng = np.random.default_rng(seed)
    names = [f"s{i}" for i in range(sources)]
    others = names if targets is None else [f"t{i}" for i in range(targets)]
    all_pairs = [(a, b) for a in names for b in others if a != b and rng.random() >= missing]
    i, j = map(list, zip(*all_pairs, strict=True))
    x = rng.normal(size=len(i))
    effect = {name: rng.normal() for name in {*names, *others}}
    return i, j, x, 2 * x + np.array([effect[a] + 2 * effect[b] for a, b in all_pairs]) + rng.normal(size=len(i))


def fit(*how: object, **more: object) -> Slope:
    found = slope(*how, **more)  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.mark.parametrize("shape", [{}, {"missing": 0.3}, {"sources": 3, "targets": 8}, {"targets": 5, "missing": 0.2}])
def test_the_slope_is_that_of_least_squares_with_effects_of_sources_and_targets(shape: dict[str, float]) -> None:
    i, j, x, y = pairs(**shape)  # type: ignore[arg-type]
    expected = smf.ols("y ~ x + C(i) + C(j)", pd.DataFrame({"i": i, "j": j, "x": x, "y": y})).fit()
    assert fit(i, j, x, y).slope == pytest.approx(expected.params["x"], abs=1e-11)


@pytest.mark.parametrize("shape", [{"sources": 1, "targets": 9}, {"sources": 9, "targets": 1}])
def test_with_a_single_source_or_target_the_model_is_a_line(shape: dict[str, int]) -> None:
    i, j, x, y = pairs(**shape)
    expected = sm.OLS(y, sm.add_constant(x)).fit(cov_type="HC2", use_t=True)
    found = fit(i, j, x, y)
    assert not found.effects
    assert found.slope == pytest.approx(expected.params[1], abs=1e-12)
    assert found.variance == pytest.approx(expected.bse[1] ** 2, abs=1e-12)
    assert [found.low, found.high] == pytest.approx(expected.conf_int()[1], abs=1e-12)


def by_hand(i: list[str], j: list[str], x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """V2, P and L of the docstring of the module from its words: (variance, degrees of freedom)."""
    names = sorted({*i, *j})

    def regressors(keep: np.ndarray) -> np.ndarray:
        dummies = [
            [float(a == name) for name in names] + [float(b == name) for name in names]
            for a, b in zip(i, j, strict=True)
        ]
        return np.column_stack([x, dummies])[keep]

    everything = np.ones(len(x), bool)
    full = regressors(everything)
    inverse = np.linalg.pinv(full.T @ full)
    beta = (inverse @ full.T @ y)[0]
    residuals = y - full @ (inverse @ full.T @ y)
    clusters: dict[frozenset[str], list[int]] = {}
    for row, pair in enumerate(zip(i, j, strict=True)):
        clusters.setdefault(frozenset(pair), []).append(row)

    def without(rows: list[int]) -> float:
        keep = everything.copy()
        keep[rows] = False
        return float((np.linalg.pinv(regressors(keep)) @ y[keep])[0])

    v2 = 0.0
    for rows in clusters.values():
        hat = full[rows] @ inverse @ full[rows].T
        values, vectors = np.linalg.eigh(np.eye(len(rows)) - hat)
        root = vectors @ np.diag(values**-0.5) @ vectors.T
        v2 += float((inverse @ full[rows].T @ root @ residuals[rows])[0] ** 2)
    p = (len(clusters) - 1) / len(clusters) * sum((without(rows) - beta) ** 2 for rows in clusters.values())
    of_languages = [[row for row in range(len(x)) if name in (i[row], j[row])] for name in names]
    languages = (len(names) - 1) / len(names) * sum((without(rows) - beta) ** 2 for rows in of_languages)
    rest = max(0.0, languages - 2 * p)
    freedom = len(clusters) - np.linalg.matrix_rank(full)
    fewest = min(len(set(i)), len(set(j)))
    return v2 + rest, (v2 + rest) ** 2 / (v2**2 / freedom + rest**2 / (fewest - 1))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shape", [{}, {"missing": 0.1}, {"sources": 4, "targets": 9}])
def test_the_interval_is_that_of_its_definition(shape: dict[str, float], seed: int) -> None:
    i, j, x, y = pairs(**shape, seed=seed)  # type: ignore[arg-type]
    # Slopes that differ, so that the part of the languages counts in some of the cases.
    y = y + x * np.array([3.0 * (a > "s3") for a in i])
    variance, freedom = by_hand(i, j, x, y)
    found = fit(i, j, x, y)
    assert found.variance == pytest.approx(variance, rel=1e-8)
    assert found.freedom == pytest.approx(freedom, rel=1e-8)
    half = student.ppf(0.975, freedom) * np.sqrt(variance)
    assert [found.low, found.high] == pytest.approx([found.slope - half, found.slope + half], rel=1e-8)


def test_several_columns_of_scores_are_as_many_fits() -> None:
    i, j, x, y = pairs()
    both = fit(i, j, x, np.column_stack([y, 3 * y]))
    single = fit(i, j, x, y)
    assert both.slope == pytest.approx([single.slope, 3 * single.slope])
    assert both.low == pytest.approx([single.low, 3 * single.low])


def test_effects_of_languages_change_nothing() -> None:
    i, j, x, y = pairs()
    shifted = y + np.array([100.0 * int(a[1:]) - 50 * int(b[1:]) for a, b in zip(i, j, strict=True)])
    for got, expected in zip(fit(i, j, x, shifted)[:3], fit(i, j, x, y)[:3], strict=True):
        assert got == pytest.approx(expected, abs=1e-9)


def test_a_perfect_line_has_an_interval_without_width() -> None:
    i, j, x, _ = pairs()
    found = fit(i, j, x, 2 * x)
    assert [found.low, found.slope, found.high] == pytest.approx([2, 2, 2])


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_too_few_pairs_have_no_slope(kept: int) -> None:
    i, j, x, y = pairs()
    assert slope(i[:kept], j[:kept], x[:kept], y[:kept]) is None


def test_five_languages_have_a_slope_without_an_interval() -> None:
    found = fit(*pairs(5))
    assert np.isfinite(found.slope) and np.isnan(found.low)


def test_a_value_of_targets_alone_has_no_slope_beside_their_effects() -> None:
    i, j, _, y = pairs()
    assert slope(i, j, [float(b[1:]) for b in j], y) is None


def test_the_interval_has_the_slope_in_about_95_of_100_grids() -> None:
    """`benchmarks/pairs.py` has the long version."""
    i, j, x, _ = pairs(12)
    rng = np.random.default_rng(3)
    names = sorted(set(i))
    a, b = (np.array([names.index(one) for one in side]) for side in (i, j))
    y = (
        2 * x[:, None]
        + rng.normal(0, 5, (12, 2000))[a]
        + rng.normal(0, 9, (12, 2000))[b]
        + rng.normal(size=(len(x), 2000))
    )
    found = fit(i, j, x, y)
    assert ((found.low <= 2) & (found.high >= 2)).mean() == pytest.approx(0.955, abs=0.02)
