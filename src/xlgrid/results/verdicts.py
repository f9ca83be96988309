"""The verdict of each claim of a study, from its cells.

**Effect.** Within each seed, the weighted sum of scores that `xlgrid.results.claims` describes; over seeds, their mean,
in the unit of the metric.

**Interval over these languages.** The 95 % interval covers other seeds and other test examples: effect ± √(t² · s² / S
+ z² · v). s is the standard deviation of the effect over the S seeds, and t is the quantile of Student's distribution
with S - 1 degrees of freedom. v is the variance of the effect over draws of test examples that is common to all seeds:
the covariance between two seeds of the effects of an example. The noise of single examples in single runs is in s only,
so that it counts once. z is the quantile of the normal distribution. A draw of an example draws it in all cells of a
claim: example i is the same in both methods and all seeds, so that it is paired, and the same in all languages of a
generated or parallel test set, so that it counts once (`Ratio.moves`; a bootstrap over examples converges to the same
value with many draws). For a metric of all outcomes at once, such as BLEU, v is the covariance over the draws of a
bootstrap, which are the same in all cells (`OfAll.moves`).

If the noise is normal, the interval covers the true effect with a probability of at least 95 %, for every division of
the noise between seeds and examples; `benchmarks/uncertainty.py` measures the level on simulated studies without an
effect. The reason: the probability of covering it, given s, is F(w · t² · s² / σ² + (1 - w) · z²), where F is the
distribution of χ² with one degree of freedom, σ² the true variance over seeds, and w its share of the total variance. F
is concave, so the probability is at least w times the coverage of a t interval plus 1 - w times the coverage of a
normal interval. Degrees of freedom according to Satterthwaite (1946), as in Welch's test, do not keep the level here:
with two or three seeds, s is often small by chance, and the degrees of freedom then approach infinity.

A seed counts once, for any number of runs, because runs with the same seed share the order of their examples, dropout
and the initial head. Tasks, languages, encoders and the runs with which methods start are fixed, not a sample. Replicas
of an encoder, which differ only in their seeds, are a sample.

**Interval over languages like these.** A reader who carries a claim over to other languages needs an interval that
covers them: if a method gains nothing on average over all languages, and its gain varies over languages as much as over
runs, a claim on 16 × 16 languages holds over these languages in 16 % of all grids with five seeds, instead of 2.5 %.
The second interval adds the variance over sources and targets as crossed random effects (`xlgrid.results.population`).
It is never narrower than the first one. In 10,000 simulated grids with 5 × 5, 6 × 6 and 16 × 16 languages and three or
five seeds, it covers the truth in 94 to 97 % (`benchmarks/uncertainty.py`). An axis that varies needs five languages.

**p.** The null hypothesis is an effect of at most the margin (`expect: greater`), of at least its negative (`less`), or
the worse of both bounds (`none`). p is twice the tail for which an interval of this level ends at the bound. Hence, p
is below 0.05 exactly if the 95 % interval is on the claimed side, or within ± the margin.

**Corrected p.** p is corrected by Holm (1979) over all claims of the study. A claim without a p counts as p = 1, so
that verdicts do not weaken when runs finish.

**Verdict.** There are four verdicts:

- "a side has learnt nothing": the claim has a cell whose model has learnt nothing (`xlgrid.results.learning`). Such a
  model loses by any margin, and guesses in every language, which is no evidence about its method. There is no p. A claim
  with one side whose own cells show whether the models have learnt something gets a verdict: that they guess, for instance.
- "not enough runs": there are fewer than three seeds, or a planned cell of the claim lacks a result. The effect and
  interval are over the complete seeds, and provisional. There is no p.
- "holds": the corrected p is below 0.05.
- "does not hold": the corrected p is not below 0.05, so these runs do not show the claim. Only an interval on the other
  side shows that the opposite is true.

The verdict for languages like these has its own p, corrected over the same claims. It is "too few languages" without a
second interval. It holds only if the verdict over these languages holds before the correction.

**More seeds and languages.** The number of seeds is the smallest with which the first interval would be within the
claimed range, for the same effect and the same noise. The number of languages is the smallest on each axis that varies
with which the second interval would be within it, if the variance over languages falls with their number and the seeds
stay as many.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from math import inf, isnan, log, nan, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from xlgrid.results import records
from xlgrid.results.claims import Claim, Term
from xlgrid.results.learning import Learning, decides, training_of
from xlgrid.results.population import LEAST_LANGUAGES, Pair, Population, over_languages

LEVEL = 0.05
# The minimum number of seeds for a verdict. Fewer seeds do not estimate the variance between seeds well enough.
LEAST_SEEDS = 3
# The largest numbers of seeds and languages that are reported as needed.
MOST = 1000
HOLDS, DOES_NOT, NOT_ENOUGH, NOTHING = "holds", "does not hold", "not enough runs", "a side has learnt nothing"


def measure(
    terms: Mapping[str, Sequence[Term]],
    asked: Mapping[str, str] | None = None,
    main: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """The effects of claims and their variances. Each cell is read once.

    Args:
        terms: claim -> its cells with their weights.
        asked: claim -> its metric, if it is not the main metric of its tasks.
        main: task -> its main metric; for other tasks, it is the metric by which their cells' runs were chosen.

    Returns:
        A row per claim: `claim`, `metric` ("" without any result), `effect` (in the unit of the metric, before
        `against` is subtracted), `seed_variance` (s² / S), `example_variance` (v), `shared_variance` (its part that all
        targets share), `population` (a `Population`), `n_seeds` (complete), `n_seeds_expected`, `n_cells` (with a
        result), `n_cells_expected`. All are over complete seeds; `effect` and the variances over examples are NaN
        without a complete seed, and `seed_variance` is NaN below two. `learnt_nothing` has
        the number of the models of these cells that have learnt nothing, and the reason for the first of them; "" if
        all have learnt something. `is_about_learning` is whether the score of one of these cells shows it.

    Raises:
        ValueError: a cell is damaged, the cells of a claim have different metrics, or cells of the same test set have
            different numbers of examples.
    """
    paths = {term.cell: Path(term.cell.path) for each in terms.values() for term in each}
    present = {cell for cell, path in paths.items() if path.exists()}
    # Cell -> the claims that use it, and its weight and pair in each.
    enters: dict[Any, list[tuple[str, float, Pair]]] = {}
    effects: dict[str, dict[int, float]] = {}
    for name, each in terms.items():
        complete = {term.cell.seed for term in each} - {term.cell.seed for term in each if term.cell not in present}
        effects[name] = dict.fromkeys(sorted(complete), 0.0)
        for term in each:
            if term.cell.seed in complete:
                enters.setdefault(term.cell, []).append((name, term.weight, term.pair))
    pairs: dict[str, dict[tuple[Pair, int], float]] = {name: defaultdict(float) for name in terms}
    # Claim -> (number of examples of a test set, seed) -> the effect of each example, or of each draw, on the effect of
    # the seed.
    moved: dict[str, dict[tuple[int, int], np.ndarray]] = {name: {} for name in terms}
    # Claim -> the part of v that is not shared between targets.
    own = dict.fromkeys(terms, 0.0)
    metric_of: dict[str, str] = {}
    size_of: dict[tuple[str, str, str], int] = {}
    learning, models = Learning(), dict[Any, dict[str, Any]]()
    for _, of_target in groupby(sorted(enters.items(), key=_target), key=_target):
        here: dict[str, dict[tuple[int, int], np.ndarray]] = defaultdict(dict)
        for cell, uses in of_target:
            record = records.read_expected(paths[cell], cell._asdict())
            n = record["n"]
            learning.add(record)
            models[cell] = {"run": record.get("run"), **cell._asdict()}
            # Encoders with different tokenizers may divide a text into different inputs, so sizes are compared in a claim.
            for name, *_ in uses:
                if (other := size_of.setdefault((name, cell.task, cell.target), n)) != n:
                    raise ValueError(
                        f"{cell.path} has {n} examples, but other cells of task {cell.task} on {cell.target} in claim "
                        f"{name} have {other}: delete the cells of this test set and run the study again"
                    )
            outcomes = records.outcomes(paths[cell], record)
            moves: dict[str, np.ndarray] = {}
            for name, weight, pair in uses:
                metric = (asked or {}).get(name) or (main or {}).get(cell.task, record["metric"]["name"])
                if metric_of.setdefault(name, metric) != metric:
                    raise ValueError(
                        f"claims.{name}: its cells have {metric_of[name]} and {metric}: narrow `select` to one metric"
                    )
                part = weight * records.score(paths[cell], record, metric)
                effects[name][cell.seed] += part
                pairs[name][pair, cell.seed] += part
                if metric not in moves:
                    moves[metric] = records.metric_of(paths[cell], record, metric).moves(outcomes)
                total = here[name].setdefault((n, cell.seed), np.zeros(len(moves[metric])))
                total += weight * moves[metric]
        for name, each_moved in here.items():
            own[name] += _common(each_moved)
            for key, total in each_moved.items():
                moved[name][key] = moved[name].get(key, 0) + total
    rows = []
    for name, each in terms.items():
        of_seeds = list(effects[name].values())
        seed_variance = float(np.var(of_seeds, ddof=1)) / len(of_seeds) if len(of_seeds) > 1 else nan
        example_variance = max(0.0, _common(moved[name]))
        known = [models[term.cell] for term in each if term.cell in models]
        rows.append(
            {
                "claim": name,
                "metric": metric_of.get(name, ""),
                "effect": float(np.mean(of_seeds)) if of_seeds else nan,
                "seed_variance": seed_variance,
                "example_variance": example_variance if of_seeds else nan,
                "shared_variance": max(0.0, example_variance - max(0.0, own[name])) if of_seeds else nan,
                "population": over_languages(each, pairs[name]),
                "n_seeds": len(of_seeds),
                "n_seeds_expected": len({term.cell.seed for term in each}),
                "n_cells": sum(term.cell in present for term in each),
                "n_cells_expected": len(each),
                "learnt_nothing": _without_learning(learning, known),
                "is_about_learning": any(map(decides, known)),
            }
        )
    return pd.DataFrame(rows)


def _target(item: tuple[Any, Any]) -> str:
    return str(item[0].target)


def _common(moved: Mapping[tuple[int, int], np.ndarray]) -> float:
    """The variance over draws of test examples that is common to all seeds: the mean over pairs of seeds of the
    covariance of their effects. With one seed, it is the variance of its effect.

    Args:
        moved: (number of examples, seed) -> the effect of each example, or of each draw, on the effect of the seed.
    """
    sizes = defaultdict[int, list[np.ndarray]](list)
    for (n, _), moves in moved.items():
        sizes[n].append(moves)
    variance = 0.0
    for each in sizes.values():
        seeds, draws = len(each), len(each[0])
        products = float((np.sum(each, axis=0) ** 2).sum())
        if seeds > 1:
            products = (products - sum(float((moves**2).sum()) for moves in each)) / (seeds * (seeds - 1))
        variance += products / draws**2
    return variance


def _without_learning(learning: Learning, cells: Sequence[Mapping[str, Any]]) -> str:
    """A phrase with the number of models of some cells that have learnt nothing, and the reason for the first of them;
    "" if all have learnt something."""
    reasons = {training_of(cell): (cell, learning.nothing(cell)) for cell in cells}
    empty = [(cell, reason) for cell, reason in reasons.values() if reason]
    if not empty:
        return ""
    first, reason = empty[0]
    name = " ".join(str(first[axis]) for axis in ("task", "encoder", "method", "source"))
    return f"{len(empty)} of {len(reasons)} models, such as {name} seed {first['seed']}: {reason}"


def judge(claims: Mapping[str, Claim], measured: pd.DataFrame) -> pd.DataFrame:
    """The verdicts of claims, see the docstring of the module.

    Args:
        claims: name -> claim.
        measured: the result of `measure`.

    Returns:
        A row per claim: `claim`, `says`, `measured` (in words), `metric`, `expected` (an inequality), `effect`, `low`,
        `high` (the interval), `se`, `p`, `p_corrected`, `verdict`, `seeds_needed`; for languages like these `like_low`,
        `like_high`, `like_p`, `like_p_corrected`, `like_verdict`, `languages_needed`, `n_sources`, `n_targets`; the
        counts of `measured`, and `learnt_nothing`, which is "" for a claim with one side about learning. The numbers that are
        needed are NaN if the effect is not in the claimed range, or no number up to `MOST` is enough.
    """
    rows = []
    for row in measured.to_dict("records"):
        claim = claims[str(row["claim"])]
        effect = row["effect"] - (claim.against or 0)
        these = Noise(row["seed_variance"], row["example_variance"], row["n_seeds"])
        population = row["population"]
        # With one target, the noise of its examples is in all values alike, and therefore not in the variance over languages.
        shared = row["shared_variance"] if population.targets > 1 else row["example_variance"]
        like = these._replace(of_shared=shared, population=population)
        nothing = "" if len(claim.sides) == 1 and row["is_about_learning"] else row["learnt_nothing"]
        enough = row["n_seeds"] >= LEAST_SEEDS and row["n_cells"] == row["n_cells_expected"] and not nothing
        without = "" if enough else NOTHING if nothing else NOT_ENOUGH
        # How far the effect is inside the claimed range.
        inside = min(effect - claim.range[0], claim.range[1] - effect)
        numbers: dict[str, Any] = {"effect": effect}
        for prefix, noise, reason in (("", these, without), ("like_", like, without or population.reason)):
            half = noise.half_width(LEVEL / 2)
            numbers[f"{prefix}low"], numbers[f"{prefix}high"] = effect - half, effect + half
            numbers |= {f"{prefix}se": noise.se, f"{prefix}p": nan if reason else _p(claim, effect, noise)}
            numbers |= {f"{prefix}p_corrected": nan, f"{prefix}verdict": reason}
        needed: dict[str, Any] = {
            "seeds_needed": _least(LEAST_SEEDS, these.with_seeds, inside),
            "languages_needed": _least(LEAST_LANGUAGES, like.with_languages, inside),
        }
        words = {"says": claim.says, "measured": claim.measured, "metric": row["metric"], "expected": claim.expected}
        counts = {str(name): row[name] for name in row if str(name).startswith("n_")}
        languages = {"n_sources": population.sources, "n_targets": population.targets}
        rows.append(
            {"claim": row["claim"], **words, **numbers, **needed, **counts, **languages, "learnt_nothing": nothing}
        )
    judged = pd.DataFrame(rows)
    for prefix in ("", "like_"):
        decided = judged[f"{prefix}p"].notna()
        corrected = pd.Series(holm(list(judged[f"{prefix}p"].fillna(1.0))), judged.index).where(decided)
        judged[f"{prefix}p_corrected"] = corrected
        judged.loc[decided, f"{prefix}verdict"] = np.where(corrected[decided] < LEVEL, HOLDS, DOES_NOT)
    return judged


class Noise(NamedTuple):
    """The noise of an effect over these languages or, with a `population`, over languages like these.

    Over languages like these, the degrees of freedom are those of Satterthwaite for the sum of the variances over seeds
    and over languages, and the interval is at least as wide as that over these languages.

    Attributes:
        of_seeds: s² / S.
        of_examples: v.
        seeds: S.
        of_shared: the part of v that all targets share.
        population: the variance over languages.
    """

    of_seeds: float
    of_examples: float
    seeds: int
    of_shared: float = 0.0
    population: Population | None = None

    @property
    def se(self) -> float:
        further = self.of_shared + self.population.variance if self.population else self.of_examples
        return sqrt(self.of_seeds + further)

    def _df(self, population: Population) -> float:
        parts = ((self.of_seeds, self.seeds - 1), (population.variance, population.df))
        inverse = sum(part**2 / df for part, df in parts if part) / self.se**4 if self.se else 0.0
        return 1 / inverse if inverse else inf

    def with_seeds(self, number: int) -> "Noise":
        """The noise with another number of seeds, if they vary as much."""
        return self._replace(of_seeds=self.of_seeds * self.seeds / number, seeds=number)

    def with_languages(self, number: int) -> "Noise":
        """The noise with another number of languages, if they vary as much."""
        return self._replace(population=self.population and self.population.with_languages(number))

    def half_width(self, tail: float) -> float:
        """Half of the width of the interval with `tail` on each side; NaN without a variance."""
        from scipy.special import stdtrit

        width = half_width(tail, self.of_seeds, self.of_examples, self.seeds)
        if self.population is None or isnan(self.se):
            return width if self.population is None else nan
        return max(width, float(-stdtrit(self._df(self.population), tail)) * self.se)

    def tail_beyond(self, distance: float) -> float:
        """The tail of the interval that has this half width."""
        from scipy.special import stdtr

        if distance < 0:
            return 1 - self.tail_beyond(-distance)
        tail = tail_beyond(distance, self.of_seeds, self.of_examples, self.seeds)
        if self.population is None or not self.se:
            return tail
        return max(tail, float(stdtr(self._df(self.population), -distance / self.se)))


def _least(start: int, noise: Callable[[int], Noise], inside: float) -> float:
    """The smallest number from `start` to `MOST` with whose noise the interval is narrower than `inside` on each side;
    NaN if none is."""
    numbers = range(start, MOST + 1) if inside > 0 else ()
    return next((float(n) for n in numbers if noise(n).half_width(LEVEL / 2) < inside), nan)


def half_width(tail: float, seed_variance: float, example_variance: float, seeds: int) -> float:
    """Half of the width of the interval with `tail` on each side: √(t² · s² / S + z² · v); NaN below two seeds.

    Args:
        seed_variance: s² / S.
        example_variance: v.
        seeds: S.
    """
    from scipy.special import ndtri, stdtrit

    if isnan(seed_variance):
        return nan
    return sqrt(stdtrit(seeds - 1, tail) ** 2 * seed_variance + ndtri(tail) ** 2 * example_variance)


def smallest_effect(seeds: int, claims: int) -> float:
    """The smallest observed effect above the margin with which the first claim in the order of Holm holds.

    The unit is the standard deviation of the effect over seeds. Test examples are assumed to add no noise; with their
    noise, the smallest effect is larger. In somewhat more than half of all studies (63 % with three seeds, 59 % with
    five), the observed effect is at least as large as a true effect of this size. The margin of a claim of no effect
    must be wider than this.

    Args:
        seeds: the number of seeds of the claim.
        claims: the number of claims that do not hold yet: all at Holm's first step, 1 at the last if all others hold.
    """
    return half_width(LEVEL / 2 / claims, 1 / seeds, 0.0, seeds)


def tail_beyond(distance: float, seed_variance: float, example_variance: float, seeds: int) -> float:
    """The probability of an effect this far above a bound if the true effect is at the bound: the tail of the interval
    that ends at the bound."""
    from scipy.optimize import brentq

    if distance == 0:
        return 0.5
    if distance < 0:
        return 1 - tail_beyond(-distance, seed_variance, example_variance, seeds)
    noise = seed_variance, example_variance, seeds
    least = 1e-12
    if half_width(least, *noise) <= distance:
        return least
    return float(np.exp(brentq(lambda x: half_width(float(np.exp(x)), *noise) - distance, log(least), log(0.5))))


def _p(claim: Claim, effect: float, noise: Noise) -> float:
    """The p of a claim."""

    def above(bound: float) -> float:
        """The p of the null hypothesis that the effect is at most `bound`, one-sided."""
        return noise.tail_beyond(effect - bound)

    low, high = claim.range
    return min(1.0, 2 * max(above(low) if low > -inf else 0.0, 1 - above(high) if high < inf else 0.0))


def holm(p: Sequence[float]) -> list[float]:
    """The p-values after the correction for their number (Holm 1979), in the same order."""
    corrected = [1.0] * len(p)
    worst = 0.0
    for rank, at in enumerate(sorted(range(len(p)), key=lambda at: p[at])):
        worst = max(worst, min(1.0, (len(p) - rank) * p[at]))
        corrected[at] = worst
    return corrected
