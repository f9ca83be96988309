"""The verdict of each claim of a study, from its cells.

**Effect.** Within each seed, the weighted sum of scores that `xlgrid.results.claims` describes; over seeds, their mean,
in the unit of the metric.

**Interval.** 95 %, for what other seeds and other test examples would give: effect ± √(t² · s² / S + z² · v). s is the
standard deviation of the effect over the S seeds, and t is Student's with S - 1 degrees of freedom. v is the variance
of the effect over draws of test examples, and z is the normal distribution's. Drawing an example draws it in all cells
of a claim: example i is the same in both methods and all seeds, so it is paired, and in all languages of a generated or
parallel test set, so it counts once (`Ratio.moves`; a bootstrap over examples tends to the same variance with many
draws). For a metric of all outcomes at once, such as BLEU, v is the variance over draws of a bootstrap, which are the
same in all cells (`OfAll.moves`).

If the noise is normal, the interval covers the true effect with at least 95 %, however the noise divides between seeds
and examples; `benchmarks/verdicts.py` measures the level on simulated studies without an effect. The reason: the chance
of covering it, given s, is F(w · t² · s² / σ² + (1 - w) · z²), where F is the distribution of χ² with one degree of
freedom, σ² the true variance over seeds, and w its part in the whole; F is concave, so this is at least w times what a
t interval covers plus 1 - w times what a normal interval covers. Degrees of freedom after Satterthwaite (1946), as for
Welch's test, do not keep the level here: with two or three seeds, s is often small by chance, and they then come near
infinity.

A seed counts once however many runs it has, because runs of one seed share the order of their examples, dropout and the
initial head. Noise of single examples in single runs is in both s and v, so that the interval is rather too wide.
Tasks, languages, encoders and the runs that methods start with count as fixed, and not as a sample. Replicas of an encoder, which
differ by their seeds, are a sample. So a verdict is about the languages of the study. A reader who takes it for languages in
general is wrong more often than the verdict says: if a method gains nothing on average over all languages, and its gain varies
over languages as much as over runs, a claim on 16 × 16 languages holds in 8 % of all grids with three seeds and in 16 % with
five, instead of 2.5 % (`benchmarks/verdicts.py`).

**p.** For an effect no greater than the margin (`expect: greater`), no less than its negative (`less`), or the worse of
both bounds (`none`): twice the tail for which an interval of that level ends at the bound. So p is below 0.05 exactly
where the 95 % interval lies on the claimed side, or within ± the margin.

**Corrected p.** Holm (1979) over all claims of the study; a claim without a p counts as p = 1, so that verdicts do not
weaken as runs come in.

**Verdict.** "a side has learnt nothing" if a comparison has a cell whose model has learnt nothing
(`xlgrid.results.learning`): such a model loses by any margin, which says nothing about what its method can do. "not
enough runs" below three seeds, or if any planned cell of the claim lacks a result; effect and interval, over the seeds
that are complete, are then provisional. In both cases there is no p. Otherwise "holds" if the corrected p is below 0.05,
and "does not hold" if it is not: these runs do not show it. Only an interval on the other side says that the opposite is
true.
"""

from collections.abc import Mapping, Sequence
from math import isnan, log, nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from xlgrid import heads
from xlgrid.results import records
from xlgrid.results.claims import Claim, Term
from xlgrid.results.learning import Learning, training_of

LEVEL = 0.05
# Fewer seeds say too little about the spread between seeds for a verdict.
LEAST_SEEDS = 3
HOLDS, DOES_NOT, NOT_ENOUGH, NOTHING = "holds", "does not hold", "not enough runs", "a side has learnt nothing"


def measure(terms: Mapping[str, Sequence[Term]], asked: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Effects and their noise, each cell read once.

    Args:
        terms: claim -> its cells with their weights.
        asked: claim -> its metric, where that is not the main one of its cells.

    Returns:
        A row per claim: `claim`, `metric` ("" without any result), `effect` (in its unit; without what `against`
        subtracts), `seed_variance` (s² / S), `example_variance` (v), `n_seeds` (complete), `n_seeds_expected`,
        `n_cells` (with a result), `n_cells_expected`. All are over complete seeds; `effect` and `example_variance` are
        NaN without one, `seed_variance` without two. `learnt_nothing` says how many of the models of these cells have
        learnt nothing, and why the first of them; "" if all have learnt something.

    Raises:
        ValueError: a cell is damaged, a claim's cells have different metrics, or a test set different numbers of
            examples.
    """
    paths = {term.cell: Path(term.cell.path) for each in terms.values() for term in each}
    present = {cell for cell, path in paths.items() if path.exists()}
    # Cell -> the claims that it enters, and its weight in each.
    enters: dict[Any, list[tuple[str, float]]] = {}
    effects: dict[str, dict[int, float]] = {}
    for name, each in terms.items():
        complete = {term.cell.seed for term in each} - {term.cell.seed for term in each if term.cell not in present}
        effects[name] = dict.fromkeys(sorted(complete), 0.0)
        for term in each:
            if term.cell.seed in complete:
                enters.setdefault(term.cell, []).append((name, term.weight))
    # Claim -> number of examples of a test set -> by how much each of them, or each draw of them, moves the effect.
    moved: dict[str, dict[int, np.ndarray]] = {name: {} for name in terms}
    metric_of: dict[str, str] = {}
    size_of: dict[tuple[str, str, str], int] = {}
    learning, models = Learning(), dict[Any, dict[str, Any]]()
    for cell, uses in enters.items():
        record = records.read_expected(paths[cell], cell._asdict())
        n = record["n"]
        learning.add(record)
        models[cell] = {"run": record.get("run"), **cell._asdict()}
        # Encoders of two tokenizers may cut a text into other inputs, which different claims may be about.
        for name, _ in uses:
            if (other := size_of.setdefault((name, cell.task, cell.target), n)) != n:
                raise ValueError(
                    f"{cell.path} has {n} examples, other cells of task {cell.task} on {cell.target} in claim {name} have {other}: "
                    "delete the cells of one test set and run the study again"
                )
        outcomes = records.outcomes(paths[cell], record)
        moves: dict[str, np.ndarray] = {}
        for name, weight in uses:
            metric = (asked or {}).get(name, record["metric"]["name"])
            if metric_of.setdefault(name, metric) != metric:
                raise ValueError(
                    f"claims.{name}: its cells have {metric_of[name]} and {metric}: narrow `select` to one metric"
                )
            effects[name][cell.seed] += weight * records.score(paths[cell], record, metric)
            if metric not in moves:
                moves[metric] = heads.metric(metric).moves(outcomes)
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
    """How many of the models of some cells have learnt nothing, and why the first of them; "" if all have learnt something."""
    reasons = {training_of(cell): (cell, learning.nothing(cell)) for cell in cells}
    empty = [(cell, reason) for cell, reason in reasons.values() if reason]
    if not empty:
        return ""
    first, reason = empty[0]
    name = " ".join(str(first[axis]) for axis in ("task", "encoder", "method", "source"))
    return f"{len(empty)} of {len(reasons)} models, such as {name} seed {first['seed']}: {reason}"


def judge(claims: Mapping[str, Claim], measured: pd.DataFrame) -> pd.DataFrame:
    """The verdicts, as the top of this file describes them.

    Args:
        claims: name -> claim.
        measured: as `measure` returns it.

    Returns:
        A row per claim: `claim`, `says`, `measured` (in words), `metric`, `expected` (an inequality), `effect`, `low`,
        `high` (the interval), `se`, `p`, `p_corrected`, `verdict`, then the counts of `measured` and `learnt_nothing`, which
        is "" for a claim that compares nothing.
    """
    rows = []
    further = [str(name) for name in measured if str(name).startswith("n_")]
    for row in measured.to_dict("records"):
        claim = claims[str(row["claim"])]
        effect = row["effect"] - (claim.against or 0)
        noise = row["seed_variance"], row["example_variance"], row["n_seeds"]
        half = half_width(LEVEL / 2, *noise)
        # A claim that a model guesses is about a side alone, and compares it with a number.
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
    """Half of the interval that leaves `tail` on either side: √(t² · s² / S + z² · v); NaN below two seeds.

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
    """The smallest effect that can show: how far above its margin the first of so many claims must be, in the order of Holm, so
    that it holds.

    It is the observed effect, in standard deviations of the effect over seeds, where test examples add no noise; with their
    noise, it is larger. A true effect of this size is observed to be as large in somewhat more than half of all studies
    (63 % with three seeds, 59 % with five). The margin of a claim of no effect must be wider than this.

    Args:
        seeds: those of the claim.
        claims: the claims that have not yet held: all at Holm's first step, 1 at the last if all others hold.
    """
    return half_width(LEVEL / 2 / claims, 1 / seeds, 0.0, seeds)


def tail_beyond(distance: float, seed_variance: float, example_variance: float, seeds: int) -> float:
    """The chance of an effect this far above a bound, if the truth is at the bound: the tail of the interval that ends
    there."""
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
    """One-sided."""

    def above(bound: float) -> float:
        """p of an effect of at most `bound`."""
        return tail_beyond(effect - bound, seed_variance, example_variance, seeds)

    if claim.expect == "none":
        return max(above(-claim.margin), 1 - above(claim.margin))
    return above(claim.margin) if claim.expect == "greater" else 1 - above(-claim.margin)


def holm(p: Sequence[float]) -> list[float]:
    """p-values corrected for their number (Holm 1979), in the same order."""
    corrected = [1.0] * len(p)
    worst = 0.0
    for rank, at in enumerate(sorted(range(len(p)), key=lambda at: p[at])):
        worst = max(worst, min(1.0, (len(p) - rank) * p[at]))
        corrected[at] = worst
    return corrected
