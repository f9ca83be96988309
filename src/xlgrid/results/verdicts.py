"""The verdict of each claim of a study, from its cells.

**Effect.** Within each seed, the weighted sum of scores that `xlgrid.results.claims` describes; over seeds, their mean, in points.

**Interval.** 95 %, for what other seeds and other test examples would give: effect ± t · √(s² / S + v). s is the standard deviation
of the effect over the S seeds. v is the variance of the effect over draws of test examples, all cells of a claim drawn
together: example i is the same in both methods and all seeds, so it is paired, and in all languages of a generated or
parallel test set, so it counts once (`metrics.influences`; what a bootstrap over examples tends to with many draws). t is Student's
with the degrees of freedom of Satterthwaite (1946), (s² / S + v)² · (S - 1) / (s² / S)², at most 1000. Resampling three seeds could not
do this: under no effect at all, one triple in eight lies on the claimed side. A seed counts once however many runs it has, because
runs of one seed share the order of their examples, dropout and the initial head. Noise of single examples in single runs is in both s and
v, so that the interval is rather too wide. Tasks, languages, encoders and what methods start with count as given, not as a sample.

**p.** Of an effect no greater than the margin (`expect: greater`), no less than its negative (`less`), or of the worse of both
bounds (`none`), doubled: it is below 0.05 where the interval lies on the claimed side, or within ± the margin.

**Corrected p.** Holm (1979) over all claims of the study; a claim without a p counts as p = 1, so that verdicts do not weaken
as runs come in.

**Verdict.** "not enough runs" below two seeds, or if any planned cell of the claim lacks a result; effect and interval, over the
seeds that are complete, are then provisional, and there is no p. Otherwise "holds" if the corrected p is below 0.05, and
"does not hold" if it is not: these runs do not show it. Only an interval on the other side says that the opposite is true.
"""

from collections.abc import Mapping, Sequence
from math import copysign, inf, isnan, nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from xlgrid.base.files import write_text
from xlgrid.exhibits.tables import PRINTED, Sheet, markdown, number, to_html
from xlgrid.heads import metrics
from xlgrid.plan.grid import cells
from xlgrid.results import records
from xlgrid.results.claims import Claim, Term, terms
from xlgrid.study.schema import Study

LEVEL = 0.05
HOLDS, DOES_NOT, NOT_ENOUGH = "holds", "does not hold", "not enough runs"
# The page has a colour for each state.
STATES = {HOLDS: "within", DOES_NOT: "beyond", NOT_ENOUGH: "incomplete"}


def render_claims(study: Study, folder: str | Path) -> None:
    """Write claims.csv, .md, .html and .svg to `folder`: the verdicts of all claims of a study, from whatever cells exist.

    Raises:
        ValueError: the study has no claims, a claim pairs what is not planned or mixes metrics, or a cell is damaged.
    """
    from xlgrid.exhibits import plots

    if not study.claims:
        raise ValueError(f"study {study.name} has no claims: add some under `claims`, see src/xlgrid/claims.py")
    planned = cells(study)
    about = {name: terms(name, claim, planned, study.belongs) for name, claim in study.claims.items()}
    asked = {name: claim.metric for name, claim in study.claims.items() if claim.metric}
    found = judge(study.claims, measure(about, asked))
    made = sheet(study, found)
    folder = Path(folder)
    write_text(folder / "claims.csv", found.to_csv(index=False, lineterminator="\n"))
    write_text(folder / "claims.md", markdown(made))
    write_text(folder / "claims.html", to_html(made))
    with plots.style():
        claimed = [claim.range for claim in study.claims.values()]
        ax = plots.forest(found, claimed=claimed, mark={HOLDS: "full", DOES_NOT: "none"})
        plots.save(ax, folder / "claims.svg")


def measure(about: Mapping[str, Sequence[Term]], asked: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Effects and their noise, each cell read once.

    Args:
        about: claim -> its terms.
        asked: claim -> its metric, where that is not the main one of its cells.

    Returns:
        A row per claim: `claim`, `effect` (points; without what `against` subtracts), `seed_variance` (s² / S), `example_variance` (v),
        `n_seeds` (complete), `n_seeds_expected`, `n_cells` (with a result), `n_cells_expected`. All are over complete seeds; `effect`
        and `example_variance` are NaN without one, `seed_variance` without two.

    Raises:
        ValueError: a cell is damaged, a claim's cells have different metrics, or a test set different numbers of examples.
    """
    paths = {term.cell: Path(term.cell.path) for its in about.values() for term in its}
    have = {cell for cell, path in paths.items() if path.exists()}
    # Cell -> the claims it enters, and its weight in each.
    enters: dict[Any, list[tuple[str, float]]] = {}
    effects: dict[str, dict[int, float]] = {}
    for name, its in about.items():
        complete = {term.cell.seed for term in its} - {term.cell.seed for term in its if term.cell not in have}
        effects[name] = dict.fromkeys(sorted(complete), 0.0)
        for term in its:
            if term.cell.seed in complete:
                enters.setdefault(term.cell, []).append((name, term.weight))
    # Claim -> examples of a test set -> by how much each of them moves the effect.
    moved: dict[str, dict[int, np.ndarray]] = {name: {} for name in about}
    metric_of: dict[str, str] = {}
    size_of: dict[tuple[str, str], int] = {}
    for cell, uses in enters.items():
        record = records.read_expected(paths[cell], cell._asdict())
        n = record["n"]
        if size_of.setdefault((cell.task, cell.target), n) != n:
            raise ValueError(
                f"{cell.path} has {n} examples, other cells of task {cell.task} on {cell.target} have "
                f"{size_of[cell.task, cell.target]}: delete the cells of one test set and run the study again"
            )
        found = records.outcomes(record)
        moves: dict[str, np.ndarray] = {}
        for name, weight in uses:
            metric = (asked or {}).get(name, record["metric"]["name"])
            if metric_of.setdefault(name, metric) != metric:
                raise ValueError(
                    f"claims.{name}: its cells have {metric_of[name]} and {metric}: narrow `select` to one metric"
                )
            effects[name][cell.seed] += weight * records.score(paths[cell], record, metric)
            if metric not in moves:
                moves[metric] = metrics.metric(metric).influences(found)
            total = moved[name].setdefault(n, np.zeros(n))
            total += weight / len(effects[name]) * moves[metric]
    rows = []
    for name, its in about.items():
        each = list(effects[name].values())
        rows.append(
            {
                "claim": name,
                "effect": float(np.mean(each)) if each else nan,
                "seed_variance": float(np.var(each, ddof=1)) / len(each) if len(each) > 1 else nan,
                "example_variance": sum(float((m**2).mean()) / len(m) for m in moved[name].values()) if each else nan,
                "n_seeds": len(each),
                "n_seeds_expected": len({term.cell.seed for term in its}),
                "n_cells": sum(term.cell in have for term in its),
                "n_cells_expected": len(its),
            }
        )
    return pd.DataFrame(rows)


def judge(claims: Mapping[str, Claim], measured: pd.DataFrame) -> pd.DataFrame:
    """The verdicts, as the top of this file describes them.

    Args:
        claims: name -> claim.
        measured: as `measure` returns it.

    Returns:
        A row per claim: `claim`, `says`, `measured` (in words), `expected` (an inequality, points), `effect`, `low`, `high` (the
        interval), `se`, `df`, `p`, `p_corrected`, `verdict`, then the counts of `measured`.
    """
    from scipy.stats import t

    rows = []
    counts = [str(name) for name in measured if str(name).startswith("n_")]
    for row in measured.to_dict("records"):
        claim = claims[str(row["claim"])]
        effect = row["effect"] - (claim.against or 0)
        seeds, examples, n = row["seed_variance"], row["example_variance"], row["n_seeds"]
        se = sqrt(seeds + examples)
        df = nan if isnan(se) else 1000.0 if not seeds else min(1000.0, (seeds + examples) ** 2 * (n - 1) / seeds**2)
        half = nan if isnan(se) else float(t.isf(LEVEL / 2, df)) * se
        enough = n >= 2 and row["n_cells"] == row["n_cells_expected"]
        p = min(1.0, 2 * _p(claim, effect, se, df)) if enough else nan
        told = {"effect": effect, "low": effect - half, "high": effect + half, "se": se, "df": df, "p": p}
        words = {"says": claim.says, "measured": claim.measured, "expected": claim.expected}
        rows.append({"claim": row["claim"], **words, **told, "p_corrected": nan, "verdict": NOT_ENOUGH})
    found = pd.concat([pd.DataFrame(rows), measured[counts]], axis=1)
    decided = found["p"].notna()
    found["p_corrected"] = pd.Series(holm(list(found["p"].fillna(1.0))), found.index).where(decided)
    found.loc[decided, "verdict"] = np.where(found.loc[decided, "p_corrected"] < LEVEL, HOLDS, DOES_NOT)
    return found


def _p(claim: Claim, effect: float, se: float, df: float) -> float:
    """One-sided."""
    from scipy.stats import t

    def above(bound: float) -> float:
        """p of an effect of at most `bound`."""
        far = effect - bound
        return float(t.sf(far / se if se else copysign(inf, far) if far else 0.0, df))

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


def sheet(study: Study, found: pd.DataFrame) -> Sheet:
    """The verdicts as a table: a row per claim; each entry tells what was measured on what when pointed at."""
    lines = []
    row: Any
    for row in found.itertuples():
        counts = f"{row.n_seeds} of {row.n_seeds_expected} seeds, {row.n_cells} of {row.n_cells_expected} cells"
        uncorrected = f"p {_p_text(row.p)} before the correction"
        texts = {
            "effect [95 %]": (_interval(row), f"{row.measured}; {counts}"),
            "expected": (row.expected, row.measured),
            "p": (_p_text(row.p_corrected), "" if isnan(row.p) else uncorrected),
            "verdict": (str(row.verdict) + (f" ({counts})" if row.verdict == NOT_ENOUGH else ""), counts),
        }
        for column, (text, hover) in texts.items():
            state = STATES[str(row.verdict)] if column == "verdict" else "undecided"
            printed = dict(zip(PRINTED, (text, state, hover), strict=True))
            lines.append({"claim": row.claim, "says": row.says, "column": column, **printed})
    entries = pd.DataFrame(lines)
    counts = ", ".join(f"{verdict} {count}" for verdict, count in found["verdict"].value_counts(sort=False).items())
    notes = (
        f"{_claims(len(found))}: {counts}. Effect in points of the metric, with its 95 % interval over seeds and test examples, paired. "
        f"A claim holds if the effect is as expected with p below {LEVEL}, corrected by Holm over {_claims(len(found))}. A "
        "verdict needs two seeds and every planned cell. Effects without one are over the complete seeds. "
        "A claim that does not hold is not shown by these runs, which is not to say that the opposite is. claims.csv says what each "
        "effect measures."
    )
    title = f"{study.title}: its claims, and what these runs say of them"
    rows = ("claim", "says")
    return Sheet(title, "", notes, rows, [(column,) for column in dict.fromkeys(entries["column"])], entries)


def _claims(count: int) -> str:
    return f"{count} claim{'s' * (count != 1)}"


def _interval(row: Any) -> str:
    if isnan(row.effect):
        return "–"
    sign = "+" if round(row.effect, 1) > 0 else ""
    interval = "" if isnan(row.low) else f" [{number(row.low, 1)}, {number(row.high, 1)}]"
    return f"{sign}{number(row.effect, 1)}{interval}"


def _p_text(p: float) -> str:
    return "" if isnan(p) else "< 0.001" if p < 0.001 else number(p, 3)
