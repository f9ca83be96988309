"""Crossed random effects, against statsmodels and against the solution by mean squares."""

import math
import warnings
from collections.abc import Callable, Hashable

import numpy as np
import pandas as pd
import pytest

from xlgrid.results.crossed import fit

Pairs = list[tuple[Hashable, Hashable]]


def grid(sources: int, targets: int, diagonal: bool = True) -> Pairs:
    return [(f"s{i}", f"t{j}") for i in range(sources) for j in range(targets) if diagonal or i != j]


def drawn(pairs: Pairs, deviations: tuple[float, float, float], seed: int) -> np.ndarray:
    """Values with the mean 2 and these standard deviations of sources, targets and the residual."""
    rng = np.random.default_rng(seed)
    of_axes = [
        {level: rng.normal(0, deviation) for level in dict.fromkeys(pair[axis] for pair in pairs)}
        for axis, deviation in enumerate(deviations[:2])
    ]
    return np.array([2 + of_axes[0][i] + of_axes[1][j] + rng.normal(0, deviations[2]) for i, j in pairs])


GRIDS = [
    (grid(6, 6), (1.0, 0.5, 0.6), 3),
    (grid(16, 16), (0.3, 0.3, 0.6), 4),
    (grid(5, 9), (0.7, 0.7, 0.3), 5),
    (grid(8, 8, diagonal=False), (0.8, 0.7, 0.6), 6),
    (grid(7, 10)[:-5], (2.0, 1.0, 0.5), 7),
]


@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize(("pairs", "deviations", "seed"), GRIDS)
def test_the_estimates_are_those_of_statsmodels(
    pairs: Pairs, deviations: tuple[float, float, float], seed: int, halves: bool
) -> None:
    """Variances and the predicted effects of languages; complete grids and others."""
    import statsmodels.formula.api as formulas

    y = drawn(pairs, deviations, seed)
    groups = [int(str(pair[1])[1:]) % 2 if halves else 0 for pair in pairs]
    frame = pd.DataFrame(pairs, columns=["s", "t"]).assign(y=y, g=groups)
    variances = {"s": "0+C(s)", "t": "0+C(t)"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = formulas.mixedlm(
            "y ~ 0 + C(g)", frame, groups=np.ones(len(frame)), vc_formula=variances, re_formula="0"
        ).fit(reml=True, method="bfgs", gtol=1e-9)
    ours = fit(list(y), list(zip(*pairs, strict=True)), groups)
    expected = dict(zip(theirs.model.exog_vc.names, theirs.vcomp, strict=True))
    assert ours.variances[0] == pytest.approx(expected["s"], rel=1e-3)
    assert ours.variances[1] == pytest.approx(expected["t"], rel=1e-3)
    assert ours.variances[-1] == pytest.approx(theirs.scale, rel=1e-3)
    effects = next(iter(theirs.random_effects.values()))
    for axis, name in enumerate("st"):
        for level, (effect, _) in ours.random[axis].items():
            assert effect == pytest.approx(effects[f"{name}[C({name})[{level}]]"], abs=1e-3)


def by_mean_squares(y: np.ndarray) -> tuple[float, float, float]:
    """The REML estimates of a complete grid, [sources, targets]: mean squares, pooled where a variance would be negative
    (the maximum of a product of χ² densities under λ_E ≤ λ_A and λ_E ≤ λ_B)."""
    rows, columns = y.shape
    a, b = y.mean(1) - y.mean(), y.mean(0) - y.mean()
    rest = y - y.mean() - a[:, None] - b
    pooled, freedom = (rest**2).sum(), (rows - 1) * (columns - 1)
    parts = sorted(
        [(columns * (a**2).sum(), rows - 1, 0), (rows * (b**2).sum(), columns - 1, 1)], key=lambda p: p[0] / p[1]
    )
    kept = {}
    for squares, df, axis in parts:
        if squares / df <= pooled / freedom:
            pooled, freedom = pooled + squares, freedom + df
        else:
            kept[axis] = squares / df
    residual = pooled / freedom
    a, b = ((kept.get(axis, residual) - residual) / (columns, rows)[axis] for axis in (0, 1))
    return a, b, residual


@pytest.mark.parametrize("seed", range(12))
def test_in_a_complete_grid_the_estimates_are_those_of_mean_squares(seed: int) -> None:
    pairs = grid(5, 6)
    y = drawn(pairs, (0.2, 0.2, 0.6), seed)
    ours = fit(list(y), list(zip(*pairs, strict=True)))
    assert [ours.variances[axis] for axis in (0, 1, -1)] == pytest.approx(by_mean_squares(y.reshape(5, 6)), abs=1e-6)


def test_the_variance_of_the_mean_has_the_degrees_of_freedom_of_satterthwaite() -> None:
    """(MS_A + MS_B - MS_E) / IJ, with a coefficient and degrees of freedom for each mean square."""
    rows, columns = 6, 7
    pairs = grid(rows, columns)
    y = drawn(pairs, (1.0, 0.8, 0.3), 1)
    a, b, e = by_mean_squares(y.reshape(rows, columns))
    squares = (e + columns * a, e + rows * b, e)
    freedom = (rows - 1, columns - 1, (rows - 1) * (columns - 1))
    variance, df = fit(list(y), list(zip(*pairs, strict=True))).variance([1 / len(y)] * len(y))
    combined = squares[0] + squares[1] - squares[2]
    assert variance == pytest.approx(combined / (rows * columns))
    assert df == pytest.approx(combined**2 / sum(s**2 / f for s, f in zip(squares, freedom, strict=True)), rel=1e-4)


@pytest.mark.parametrize(
    "axes", [lambda n: [["en"] * n, range(n)], lambda n: [range(n), ["fr"] * n], lambda n: [range(n)] * 2]
)
def test_with_one_value_for_each_language_the_interval_is_student_s(axes: Callable[[int], list]) -> None:
    """One source, one target, or each source on its own target: n - 1 degrees of freedom."""
    y = np.random.default_rng(2).normal(1, 2, 9)
    fitted = fit(list(y), axes(9))
    assert fitted.variances == {-1: pytest.approx(y.var(ddof=1))}
    assert fitted.variance([1 / 9] * 9) == (pytest.approx(y.var(ddof=1) / 9), pytest.approx(8))


def test_equal_values_have_no_variance() -> None:
    fitted = fit([3.0] * 36, list(zip(*grid(6, 6), strict=True)))
    assert fitted.variance([1 / 36] * 36) == (0.0, math.inf)


def test_values_without_a_residual_have_the_variance_of_their_languages() -> None:
    pairs = grid(6, 6)
    fitted = fit(list(drawn(pairs, (1.0, 0.5, 0.0), 8)), list(zip(*pairs, strict=True)))
    assert fitted.variances[-1] < 1e-4 < fitted.variances[1]
    assert all(math.isfinite(number) for number in fitted.variance([1 / 36] * 36))


def test_few_values_that_depend_on_one_axis_alone_have_finite_degrees_of_freedom() -> None:
    """Their information is singular."""
    pairs = [(row, column) for row in range(4) for column in range(2)]
    variance, freedom = fit([3.0 * column for _, column in pairs], list(zip(*pairs, strict=True))).variance([1 / 8] * 8)
    assert variance > 0 and 0 < freedom < math.inf


def test_as_many_groups_as_values_are_refused() -> None:
    with pytest.raises(ValueError, match="2 values in 2 groups have no residual"):
        fit([1.0, 2.0], [["a", "b"], ["c", "d"]], [1, 2])
