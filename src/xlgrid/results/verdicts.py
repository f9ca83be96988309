"""The verdict of each claim of a study, from its cells.

**Effect.** Within each seed, the weighted sum of scores that `xlgrid.results.claims` describes; over seeds, their mean,
in the unit of the metric.

**Interval.** The 95 % interval covers other seeds and other test examples: effect ± √(t² · s² / S + z² · v). s is the
standard deviation of the effect over the S seeds, and t is the quantile of Student's distribution with S - 1 degrees of
freedom. v is the variance of the effect over draws of test examples, and z is the quantile of the normal distribution.
A draw of an example draws it in all cells of a claim: example i is the same in both methods and all seeds, so that it
is paired, and the same in all languages of a generated or parallel test set, so that it counts once (`Ratio.moves`; the
variance of a bootstrap over examples converges to the same value with many draws). For a metric of all outcomes at
once, such as BLEU, v is the variance over the draws of a bootstrap, which are the same in all cells (`OfAll.moves`).

If the noise is normal, the interval covers the true effect with a probability of at least 95 %, for every division of
the noise between seeds and examples; `benchmarks/verdicts.py` measures the level on simulated studies without an
effect. The reason: the probability of covering it, given s, is F(w · t² · s² / σ² + (1 - w) · z²), where F is the
distribution of χ² with one degree of freedom, σ² the true variance over seeds, and w its share of the total variance. F
is concave, so the probability is at least w times the coverage of a t interval plus 1 - w times the coverage of a
normal interval. Degrees of freedom according to Satterthwaite (1946), as in Welch's test, do not keep the level here:
with two or three seeds, s is often small by chance, and the degrees of freedom then approach infinity.

A seed counts once, for any number of runs, because runs with the same seed share the order of their examples, dropout
and the initial head. The noise of single examples in single runs is in both s and v, so that the interval is rather too
wide. Tasks, languages, encoders and the runs with which methods start are fixed, not a sample. Replicas of an encoder,
which differ only in their seeds, are a sample. A verdict is therefore about the languages of the study. Generalizing it
to other languages is wrong more often than the verdict states: if a method gains nothing on average over all languages,
and its gain varies over languages as much as over runs, a claim on 16 × 16 languages holds in 8 % of all grids with
three seeds and in 16 % with five, instead of 2.5 % (`benchmarks/verdicts.py`).

**p.** The null hypothesis is an effect of at most the margin (`expect: greater`), of at least its negative (`less`), or
the worse of both bounds (`none`). p is twice the tail for which an interval of this level ends at the bound. Hence, p
is below 0.05 exactly if the 95 % interval is on the claimed side, or within ± the margin.

**Corrected p.** p is corrected by Holm (1979) over all claims of the study. A claim without a p counts as p = 1, so
that verdicts do not weaken when runs finish.

**Verdict.** There are four verdicts:

- "a side has learnt nothing": a comparison has a cell whose model has learnt nothing (`xlgrid.results.learning`). Such
  a model loses by any margin, which is no evidence about its method. There is no p.
- "not enough runs": there are fewer than three seeds, or a planned cell of the claim lacks a result. The effect and
  interval are over the complete seeds, and provisional. There is no p.
- "holds": the corrected p is below 0.05.
- "does not hold": the corrected p is not below 0.05, so these runs do not show the claim. Only an interval on the other
  side shows that the opposite is true.
"""

from collections.abc import Mapping, Sequence
from math import isnan, log, nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from xlgrid.results import records
from xlgrid.results.claims import Claim, Term
from xlgrid.results.learning import Learning, training_of

LEVEL = 0.05
# The minimum number of seeds for a verdict. Fewer seeds do not estimate the variance between seeds well enough.
LEAST_SEEDS = 3
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
        `against` is subtracted), `seed_variance` (s² / S), `example_variance` (v), `n_seeds` (complete),
        `n_seeds_expected`, `n_cells` (with a result), `n_cells_expected`. All are over complete seeds; `effect` and
        `example_variance` are NaN without a complete seed, and `seed_variance` is NaN below two. `learnt_nothing` has
        the number of the models of these cells that have learnt nothing, and the reason for the first of them; "" if
        all have learnt something.

    Raises:
        ValueError: a cell is damaged, the cells of a claim have different metrics, or cells of the same test set have
            different numbers of examples.
    """
    paths = {term.cell: Path(term.cell.path) for each in terms.values() for term in each}
    present = {cell for cell, path in paths.items() if path.exists()}
    # Cell -> the claims that use it, and its weight in each.
    enters: dict[Any, list[tuple[str, float]]] = {}
    effects: dict[str, dict[int, float]] = {}
    for name, each in terms.items():
        complete = {term.cell.seed for term in each} - {term.cell.seed for term in each if term.cell not in present}
        effects[name] = dict.fromkeys(sorted(complete), 0.0)
        for term in each:
            if term.cell.seed in complete:
                enters.setdefault(term.cell, []).append((name, term.weight))
    # Claim -> number of examples of a test set -> the effect of each example, or of each draw, on the claim's effect.
    moved: dict[str, dict[int, np.ndarray]] = {name: {} for name in terms}
    metric_of: dict[str, str] = {}
    size_of: dict[tuple[str, str, str], int] = {}
    learning, models = Learning(), dict[Any, dict[str, Any]]()
    for cell, uses in enters.items():
        record = records.read_expected(paths[cell], cell._asdict())
        n = record["n"]
        learning.add(record)
        models[cell] = {"run": record.get("run"), **cell._asdict()}
        # Encoders with different tokenizers may divide a text into different inputs, so sizes are compared in a claim.
        for name, _ in uses:
            if (other := size_of.setdefault((name, cell.task, cell.target), n)) != n:
                raise ValueError(
                    f"{cell.path} has {n} examples, but other cells of task {cell.task} on {cell.target} in claim "
                    f"{name} have {other}: delete the cells of this test set and run the study again"
                )
        outcomes = records.outcomes(paths[cell], record)
        moves: dict[str, np.ndarray] = {}
        for name, weight in uses:
            metric = (asked or {}).get(name) or (main or {}).get(cell.task, record["metric"]["name"])
            if metric_of.setdefault(name, metric) != metric:
                raise ValueError(
                    f"claims.{name}: its cells have {metric_of[name]} and {metric}: narrow `select` to one metric"
                )
            effects[name][cell.seed] += weight * records.score(paths[cell], record, metric)
            if metric not in moves:
                moves[metric] = records.metric_of(paths[cell], record, metric).moves(outcomes)
            total = moved[name].setdefault(n, np.zeros(len(moves[metric])))
            total += weight / len(effects[name]) * moves[metric]
    rows = []
    for name, each in terms.items():
        of_seeds = list(effects[name].values())
        seed_variance = float(np.var(of_seeds, ddof=1)) / len(of_seeds) if len(of_seeds) > 1 else nan
        example_variance = sum(float((moves**2).mean()) / len(moves) for moves in moved[name].values())
        rows.append(
            {
                "claim": name,
                "metric": metric_of.get(name, ""),
                "effect": float(np.mean(of_seeds)) if of_seeds else nan,
                "seed_variance": seed_variance,
                "example_variance": example_variance if of_seeds else nan,
                "n_seeds": len(of_seeds),
                "n_seeds_expected": len({term.cell.seed for term in each}),
                "n_cells": sum(term.cell in present for term in each),
                "n_cells_expected": len(each),
                "learnt_nothing": _without_learning(
                    learning, [models[term.cell] for term in each if term.cell in models]
                ),
            }
        )
    return pd.DataFrame(rows)


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
        `high` (the interval), `se`, `p`, `p_corrected`, `verdict`, the counts of `measured`, and `learnt_nothing`,
        which is "" for a claim without a comparison.
    """
    rows = []
    further = [str(name) for name in measured if str(name).startswith("n_")]
    for row in measured.to_dict("records"):
        claim = claims[str(row["claim"])]
        effect = row["effect"] - (claim.against or 0)
        noise = row["seed_variance"], row["example_variance"], row["n_seeds"]
        half = half_width(LEVEL / 2, *noise)
        # `against` compares a single side with a number, for instance to claim that a model guesses.
        nothing = row["learnt_nothing"] if len(claim.sides) > 1 else ""
        enough = row["n_seeds"] >= LEAST_SEEDS and row["n_cells"] == row["n_cells_expected"]
        p = min(1.0, 2 * _p(claim, effect, *noise)) if enough and not nothing else nan
        words = {"says": claim.says, "measured": claim.measured, "metric": row["metric"], "expected": claim.expected}
        numbers = {
            "effect": effect,
            "low": effect - half,
            "high": effect + half,
            "se": sqrt(noise[0] + noise[1]),
            "p": p,
        }
        verdict = {"p_corrected": nan, "verdict": NOTHING if nothing else NOT_ENOUGH}
        counts = {name: row[name] for name in further}
        rows.append({"claim": row["claim"], **words, **numbers, **verdict, **counts, "learnt_nothing": nothing})
    judged = pd.DataFrame(rows)
    decided = judged["p"].notna()
    judged["p_corrected"] = pd.Series(holm(list(judged["p"].fillna(1.0))), judged.index).where(decided)
    judged.loc[decided, "verdict"] = np.where(judged.loc[decided, "p_corrected"] < LEVEL, HOLDS, DOES_NOT)
    return judged


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


def _p(claim: Claim, effect: float, seed_variance: float, example_variance: float, seeds: int) -> float:
    """The p of a claim, from its effect and the variances of `half_width`."""

    def above(bound: float) -> float:
        """The p of the null hypothesis that the effect is at most `bound`."""
        return tail_beyond(effect - bound, seed_variance, example_variance, seeds)

    if claim.expect == "none":
        return max(above(-claim.margin), 1 - above(claim.margin))
    return above(claim.margin) if claim.expect == "greater" else 1 - above(-claim.margin)


def holm(p: Sequence[float]) -> list[float]:
    """The p-values after the correction for their number (Holm 1979), in the same order."""
    corrected = [1.0] * len(p)
    worst = 0.0
    for rank, at in enumerate(sorted(range(len(p)), key=lambda at: p[at])):
        worst = max(worst, min(1.0, (len(p) - rank) * p[at]))
        corrected[at] = worst
    return corrected
