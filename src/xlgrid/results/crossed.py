"""Crossed random effects of sources and targets, estimated by restricted maximum likelihood (REML).

The model of a value for each pair of a source i and a target j, some of which may be missing, is

    y_ij = β_g + a_i + b_j + e_ij,   a_i ~ N(0, σ_a²),   b_j ~ N(0, σ_b²),   e_ij ~ N(0, σ_e²),

where g is the group of the pair, and all effects are independent. Sälevä, Ataman and Lignos (2025, arXiv 2509.22612)
resample languages beside runs and examples, because scores vary with all three; here, languages are random effects on two
crossed axes, as in Baayen, Davidson and Bates (2008). A value is a mean over seeds: noise that all cells of a source share, such as that of its
runs, is in a_i, noise that all cells of a target share, such as that of its test examples, is in b_j, and all other
noise is in e_ij. An axis has no random effect if it has a single value, or as many values as there are pairs, because
its effect is then the same as β or e.

The likelihood is computed from the equations of Henderson (1975), whose size is the number of languages rather than of
pairs, and maximised over θ = (σ_a / σ_e, σ_b / σ_e). A variance may be estimated as 0.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# A smaller ratio of variances is 0. Values without a residual have this share of their variance as residual.
LEAST = 1e-8


class Fit(NamedTuple):
    """The estimates of the model.

    Attributes:
        variances: the variance of each axis with a random effect, by its position, and of the residual, under -1.
        random: axis -> level -> the best linear unbiased prediction of its effect, and the standard error of this
            prediction.
        members: axis -> the level of each value, [values, levels].
        covariance: the asymptotic covariance of the variances that are not 0, in their order.
    """

    variances: Mapping[int, float]
    random: Mapping[int, Mapping[Hashable, tuple[float, float]]]
    members: Mapping[int, Floats]
    covariance: Floats

    def variance(self, weights: Sequence[float]) -> tuple[float, float]:
        """The variance of the weighted sum of the values, and its degrees of freedom after Satterthwaite (1946)."""
        w = np.array(weights)
        of_each = {axis: float(((w @ z) ** 2).sum()) for axis, z in self.members.items()} | {-1: float(w @ w)}
        variance = sum(of_each[axis] * self.variances[axis] for axis in of_each)
        slope = np.array([of_each[axis] for axis in of_each if self.variances[axis] > 0])
        spread = float(slope @ self.covariance @ slope) if len(slope) else 0.0
        return variance, 2 * variance**2 / spread if spread > 0 else np.inf


def fit(values: Sequence[float], axes: Sequence[Sequence[Hashable]], groups: Sequence[Hashable] | None = None) -> Fit:
    """Estimate the model by REML.

    Args:
        values: a value for each pair.
        axes: the level of each value on each axis, such as its source and its target.
        groups: the group of each value; absent: all values are in one group.

    Raises:
        ValueError: there are no more values than groups.
    """
    from scipy.optimize import minimize

    y = np.array(values, dtype=float)
    of_group = [None] * len(y) if groups is None else groups
    levels = {axis: list(dict.fromkeys(names)) for axis, names in enumerate(axes)}
    levels = {axis: names for axis, names in levels.items() if 1 < len(names) < len(y)}
    fixed_levels = list(dict.fromkeys(of_group))
    if len(y) <= len(fixed_levels):
        raise ValueError(f"{len(y)} values in {len(fixed_levels)} groups have no residual: use fewer groups")
    x = _indicators(of_group, fixed_levels)
    members = {axis: _indicators(axes[axis], names) for axis, names in levels.items()}
    every = np.hstack([x, *members.values()])
    n, p = x.shape
    residual = y - x @ np.linalg.solve(x.T @ x, x.T @ y)
    scale = float(np.sqrt((residual**2).sum() / (n - p)))
    if scale <= 1e-12 * max(1.0, float(np.abs(y).max())):
        none = {axis: dict.fromkeys(names, (0.0, 0.0)) for axis, names in levels.items()}
        return Fit(dict.fromkeys([*levels, -1], 0.0), none, members, np.zeros((0, 0)))
    # A shift of all values changes only β.
    products, of_values, squares = every.T @ every, every.T @ residual / scale, float(residual @ residual) / scale**2
    owner = np.repeat([-1, *levels], [p, *map(len, levels.values())])
    unit = np.diag((owner >= 0).astype(float))

    def solved(ratios: Floats) -> tuple[Floats, float, float]:
        """The inverse of Henderson's equations, in the unit of the residual's variance; the logarithm of their
        determinant; and the estimate of the residual's variance."""
        factor = np.ones(len(owner))
        for axis, ratio in zip(levels, ratios, strict=True):
            factor[owner == axis] = ratio
        equations = factor[:, None] * products * factor + unit
        inverse = factor[:, None] * np.linalg.inv(equations) * factor
        variance = max(LEAST, (squares - of_values @ inverse @ of_values) / (n - p))
        return inverse, np.linalg.slogdet(equations)[1], variance

    def deviance(ratios: Floats) -> tuple[float, Floats]:
        inverse, determinant, variance = solved(ratios)
        projected = products - products @ inverse @ products
        left = of_values - products @ inverse @ of_values
        at = [owner == axis for axis in levels]
        slope = [np.trace(projected[np.ix_(i, i)]) - (left[i] ** 2).sum() / variance for i in at]
        return (n - p) * np.log(variance) + determinant, 2 * ratios * slope

    ratios = np.full(len(levels), 0.7)
    if levels:
        ratios = minimize(deviance, ratios, jac=True, method="BFGS", options={"gtol": 1e-6}).x
    ratios[ratios**2 < LEAST] = 0
    inverse, _, variance = solved(ratios)
    variance *= scale**2
    variances = {axis: float(ratio) ** 2 * variance for axis, ratio in zip(levels, ratios, strict=True)} | {
        -1: variance
    }
    # The expected information of the variances: half of tr(P V_r P V_s).
    once = products @ inverse
    projected = products - once @ products
    twice = projected - once @ projected
    active = [axis for axis in variances if variances[axis] > 0]
    information = np.empty((len(active), len(active)))
    for at, row in enumerate(active):
        for other, column in enumerate(active):
            both = max(row, column)
            if row >= 0 and column >= 0:
                information[at, other] = (projected[np.ix_(owner == row, owner == column)] ** 2).sum()
            elif both >= 0:
                information[at, other] = np.trace(twice[np.ix_(owner == both, owner == both)])
            else:
                information[at, other] = n - 2 * np.trace(once) + np.trace(once @ once)
    estimates = inverse @ of_values * scale
    errors = np.sqrt(np.maximum(0, np.diag(inverse)) * variance)
    both_of = list(zip(estimates.tolist(), errors.tolist(), strict=True))
    random = {axis: dict(zip(levels[axis], both_of[np.argmax(owner == axis) :], strict=False)) for axis in levels}
    try:
        inverted = np.linalg.inv(information)
    except np.linalg.LinAlgError:
        # Few values, which depend on one axis alone, do not tell the other variances apart.
        inverted = np.linalg.pinv(information)
    return Fit(variances, random, members, np.asarray(2 * variance**2 * inverted, dtype=float))


def _indicators(names: Sequence[Hashable], levels: Sequence[Hashable]) -> Floats:
    """[values, levels], 1 where a value has the level."""
    at = {level: place for place, level in enumerate(levels)}
    return np.eye(len(levels))[[at[name] for name in names]]
