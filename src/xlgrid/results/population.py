"""The variance of an effect over languages like those of a study: other sources and other targets.

A claim has a value y_ijk for each source i, target j and seed k: a difference of methods, or a score if the claim
compares languages. Its effect is Σ_ij w_ij · ȳ_ij, where ȳ_ij is the mean over the S seeds, and the weights add up to
the factor of each side. Over languages like these, the variance of the effect is

    s² / S + v + λ,   λ = max(0, w' V w - τ² / S).

- s² is the variance of the effect over seeds, as in `xlgrid.results.verdicts`. It has all noise of runs.
- w' V w is the variance of the effect in the model of `xlgrid.results.crossed`, fitted to ȳ_ij. It has the differences
  between languages, the noise of runs and the noise of test examples, except what all cells of a seed share.
- τ² = Σ_i var_k(Σ_j w_ij · y_ijk) is the noise of runs in w' V w, which s² has already. It adds up over the targets
  instead if the claim has one source.
- v is the variance over draws of test examples that all targets share, such as a parallel test set; the noise of the
  examples of single targets is in w' V w. With one target, v has the noise of its examples.

Languages are not a random sample of all languages, and related languages are not independent. The interval is about
languages that differ as those of the study do.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import nan
from typing import NamedTuple

import numpy as np

from xlgrid.results.claims import Term
from xlgrid.results.crossed import fit

# The minimum number of languages on an axis that varies. Fewer languages do not estimate their variance well enough.
LEAST_LANGUAGES = 5
TOO_FEW, NO_SAMPLE = "too few languages", "sides differ in languages"
Pair = tuple[str, str]


class Population(NamedTuple):
    """The variance of an effect over languages like those of a study.

    Attributes:
        variance: λ; NaN with a reason.
        df: the degrees of freedom of w' V w after Satterthwaite (1946).
        sources, targets: the numbers of languages; 1 if the claim compares this axis.
        reason: the reason for the lack of a variance: `TOO_FEW`, `NO_SAMPLE`, or "" if there is one.
    """

    variance: float
    df: float
    sources: int
    targets: int
    reason: str = ""

    @property
    def languages(self) -> int:
        """The smallest number of languages on an axis that varies."""
        return min((count for count in (self.sources, self.targets) if count > 1), default=1)

    def with_languages(self, number: int) -> "Population":
        """The population if so many languages were on this axis, and as many times more on the other one."""
        factor = number / self.languages
        return self._replace(variance=self.variance / factor, df=self.df * factor)


def over_languages(terms: Sequence[Term], contributed: Mapping[tuple[Pair, int], float]) -> Population:
    """The variance over languages, from the cells of a claim.

    The group of a pair is the set of the sides with cells of the pair. In each group, an axis that varies needs
    `LEAST_LANGUAGES` languages. A pair belongs either to a single side, or to sides whose weights add up to 0, such as
    two methods.

    Args:
        terms: the cells of a claim with their weights.
        contributed: (pair, seed) -> the weighted sum of the scores of its cells, for the complete seeds.
    """
    seeds = sorted({seed for _, seed in contributed})
    # All seeds have the same pairs and weights.
    of_seed = [term for term in terms if not seeds or term.cell.seed == seeds[0]]
    sides, weights = defaultdict[Pair, set[int]](set), defaultdict[Pair, list[float]](list)
    for term in sorted(of_seed, key=lambda term: term.side):
        sides[term.pair].add(term.side)
        weights[term.pair].append(term.weight)
    pairs = [pair for pair in sides if any(weights[pair])]
    sources, targets = (len({pair[axis] for pair in sides}) for axis in (0, 1))
    members = defaultdict[frozenset[int], list[Pair]](list)
    for pair in sides:
        members[frozenset(sides[pair])].append(pair)
    fewest = [
        min(len({pair[axis] for pair in group}) for group in members.values())
        for axis, count in enumerate((sources, targets))
        if count > 1
    ]
    if len(seeds) < 2 or min(fewest, default=1) < LEAST_LANGUAGES:
        return Population(nan, nan, sources, targets, TOO_FEW)
    is_contrast = {len(sides[pair]) > 1 for pair in pairs}
    if len(is_contrast) > 1 or any(abs(sum(weights[pair])) > 1e-9 for pair in pairs if len(sides[pair]) > 1):
        return Population(nan, nan, sources, targets, NO_SAMPLE)
    # The weight of a difference has the sign of the first side of its pair.
    half = 0.5 if True in is_contrast else 1.0
    w = [np.sign(weights[pair][0]) * half * sum(map(abs, weights[pair])) for pair in pairs]
    effects = np.array([[contributed[pair, seed] for seed in seeds] for pair in pairs])
    axes = list(zip(*pairs, strict=True))
    fitted = fit(effects.mean(1) / w, axes, [frozenset(sides[pair]) for pair in pairs])
    variance, df = fitted.variance(w)
    parts = np.array(axes[0 if sources > 1 else 1])
    of_runs = sum(effects[parts == part].sum(0).var(ddof=1) for part in set(parts.tolist()))
    return Population(max(0.0, variance - float(of_runs) / len(seeds)), df, sources, targets)
