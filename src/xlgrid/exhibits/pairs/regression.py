"""The slope of scores on a value of their pairs, with an interval that respects that languages recur.

The scores y of the pairs of sources i and targets j are not independent: a language that is hard is hard from every
source. The model therefore has an effect of each source and of each target,

    y_ij = slope * x_ij + a_i + b_j + e_ij,

and the slope is that of ordinary least squares on x and these effects. If there is only one source or only one target,
no language recurs on the other axis, and the model has an intercept alone.

The errors of a pair and of its reverse may correlate, and languages may differ in their slopes. The variance is

    V = V2 + max(0, L - 2 P).

V2 is the variance with clusters of a pair and its reverse (CR2; Bell and McCaffrey 2002), P the jackknife that leaves
out one such cluster at a time (CR3), and L the jackknife that leaves out one language at a time, as a source and as a
target (Snijders and Borgatti 1999). Each pair has two languages, so L is about 2 P unless languages differ in their
slopes. The interval is that of t with Satterthwaite's degrees of freedom: those of V2 are the number of clusters minus
that of coefficients, and those of the rest are the number of sources or targets, whichever is smaller, minus one.
`benchmarks/pairs.py` measures how often the interval has the true slope.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Eigenvalues and singular values below this share of the largest are zero.
TINY = 1e-9


class Slope(NamedTuple):
    """A slope with its interval. Each is a number, or an array with one for each column of y.

    Attributes:
        low, high: the ends of the interval; NaN if there are no more clusters of a pair and its reverse than
            coefficients, as in a grid of five languages.
        variance, freedom: the variance of the slope, and the degrees of freedom of its t.
        effects: whether the model has effects of the sources and targets, instead of an intercept alone.
    """

    slope: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    variance: NDArray[np.float64]
    freedom: NDArray[np.float64]
    effects: bool


def slope(sources: Sequence[str], targets: Sequence[str], x: ArrayLike, y: ArrayLike) -> Slope | None:
    """The slope of y on x, with its 95 % interval: see the docstring of the module.

    Args:
        sources, targets: the languages of each pair, each pair once.
        x: the value of each pair.
        y: the score of each pair, or a column of scores for each of several data sets.

    Returns:
        None if x does not vary within sources and targets, or there are no more pairs than coefficients.
    """
    from scipy.linalg import orth
    from scipy.stats import t as student

    across, y = np.asarray(x, float), np.asarray(y, float)
    if len(across) < 2:
        return None
    names = sorted({*sources, *targets})
    i, j = (np.searchsorted(names, list(side)) for side in (sources, targets))
    n_sources, n_targets = len(np.unique(i)), len(np.unique(j))
    effects = min(n_sources, n_targets) > 1
    others = np.concatenate([np.eye(len(names))[i], np.eye(len(names))[j]], 1) if effects else np.ones((len(across), 1))
    basis = orth(others, rcond=TINY)
    within = across - basis @ (basis.T @ across)
    if within @ within <= TINY * ((across - across.mean()) ** 2).sum():
        return None
    weights = within / (within @ within)
    # An orthonormal basis of all regressors, whose rows give the leverages.
    basis = np.concatenate([basis, within[:, None] / np.sqrt(within @ within)], 1)
    pair = np.minimum(i, j) * len(names) + np.maximum(i, j)
    pairs = [np.flatnonzero(pair == key) for key in np.unique(pair)]
    freedom = len(pairs) - basis.shape[1]
    if len(across) <= basis.shape[1]:
        return None
    value, residuals = weights @ y, y - basis @ (basis.T @ y)
    if freedom < 1:
        unknown = np.full_like(value, np.nan)
        return Slope(value, unknown, unknown, unknown, unknown, effects)

    def clustered(clusters: Iterable[NDArray[np.intp]], power: float) -> NDArray[np.float64]:
        total = np.zeros(y.shape[1:])
        for rows in clusters:
            inner = _power(np.eye(len(rows)) - basis[rows] @ basis[rows].T, power)
            total = total + (weights[rows] @ inner @ residuals[rows]) ** 2
        return total

    of_languages = [np.flatnonzero((i == one) | (j == one)) for one in range(len(names))]
    languages = clustered(of_languages, -1) * (len(names) - 1) / len(names)
    own = clustered(pairs, -0.5)
    rest = np.maximum(0, languages - 2 * clustered(pairs, -1) * (len(pairs) - 1) / len(pairs)) if effects else 0 * own
    variance = own + rest
    with np.errstate(invalid="ignore", divide="ignore"):
        together = variance**2 / (own**2 / freedom + rest**2 / max(1, min(n_sources, n_targets) - 1))
    # Without residuals, there is nothing to weigh.
    together = np.where(variance > 0, together, float(freedom))
    half = student.isf(0.025, together) * np.sqrt(variance)
    return Slope(value, value - half, value + half, variance, together, effects)


def _power(matrix: NDArray[np.float64], power: float) -> NDArray[np.float64]:
    """A power of a symmetric matrix; the directions of zero eigenvalues stay zero."""
    values, vectors = np.linalg.eigh(matrix)
    known = values > 1e-8
    return (vectors[:, known] * values[known] ** power) @ vectors[:, known].T
