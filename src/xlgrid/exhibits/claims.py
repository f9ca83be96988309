"""The verdicts of a study's claims as a table and as a forest plot."""

from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from xlgrid.base.files import write_text
from xlgrid.exhibits.drawing import plots
from xlgrid.exhibits.drawing.sheet import PRINTED, Sheet, html, markdown, number
from xlgrid.exhibits.exhibit import ORACLE
from xlgrid.products.evaluate import Cell
from xlgrid.results import units, verdicts
from xlgrid.results.claims import terms
from xlgrid.results.population import LEAST_LANGUAGES, NO_SAMPLE, TOO_FEW
from xlgrid.results.verdicts import DOES_NOT, HOLDS, LEAST_SEEDS, LEVEL, NOT_ENOUGH, NOTHING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from xlgrid.study.schema import Study

# Verdict -> its state, which has a colour on the page.
STATES = {HOLDS: "within", DOES_NOT: "beyond"} | dict.fromkeys((NOT_ENOUGH, NOTHING, TOO_FEW, NO_SAMPLE), "incomplete")
# The languages of each interval -> the prefix of its columns.
THESE, LIKE_THESE = "these languages", "languages like these"
INTERVALS = {THESE: "", LIKE_THESE: "like_"}
WITHOUT_LEARNING = (
    " A comparison has no verdict if a model of one side has learnt nothing: it is no better than a guess in the "
    "languages that it was trained on, or its loss clearly rose. Train it longer or with another learning rate, or "
    "leave it out."
)
# Verdict -> the filling of its marker. A claim without a verdict has a cross.
MARKERS = {HOLDS: "full", DOES_NOT: "none"}


def render(study: "Study", planned: Sequence[Cell], folder: str | Path) -> None:
    """Write claims.csv, .md, .html and .svg to `folder`: the verdicts of all claims of a study, from the existing
    cells.

    Args:
        planned: the cells of the study.

    Raises:
        ValueError: the study has no claims, a claim compares cells that are not planned or mixes metrics, or a cell is
            damaged.
    """
    if not study.claims:
        raise ValueError(
            f"study {study.name} has no claims: add some under `claims`, see src/xlgrid/results/claims.py for their "
            "keys"
        )
    of_claims = {name: terms(name, claim, planned, study.belongs) for name, claim in study.claims.items()}
    metrics = {name: claim.metric for name, claim in study.claims.items() if claim.metric}
    main = {task: names[0] for task, names in study.metrics.items()}
    judged = verdicts.judge(study.claims, verdicts.measure(of_claims, metrics, main))
    oracles = {name for name, each in of_claims.items() if any(study.is_oracle(term.cell.run) for term in each)}
    marks = [
        f" {ORACLE} oracle: some settings were chosen on the dev sets of targets" * (name in oracles)
        for name in judged["claim"]
    ]
    judged["says"] += pd.Series(marks, index=judged.index, dtype=str)
    table = sheet(study.title, judged)
    folder = Path(folder)
    write_text(folder / "claims.csv", judged.to_csv(index=False, lineterminator="\n"))
    write_text(folder / "claims.md", markdown(table))
    with plots.style():
        ax = forest(judged, claimed=[claim.range for claim in study.claims.values()])
        plots.save(ax, folder / "claims.svg")
    # This file is written last, because it marks the claims as complete.
    write_text(folder / "claims.html", html(table))


def sheet(title: str, judged: pd.DataFrame) -> Sheet:
    """The verdicts as a table with a row per claim. The hover text of an entry has the measurement and its cells.

    Args:
        title: the title of the study.
        judged: the result of `xlgrid.results.verdicts.judge`.
    """
    lines = []
    row: Any
    for row in judged.itertuples():
        behind = counts(row)
        metric = units.sentence([row.metric])
        aside = {NOT_ENOUGH: f" ({behind})", NOTHING: f" ({row.learnt_nothing})"}
        described = "; ".join(filter(None, (row.measured, metric, behind)))
        of_languages = "; ".join(filter(None, (f"sources {row.n_sources}, targets {row.n_targets}", needed(row))))
        for (languages, prefix), hover in zip(INTERVALS.items(), (described, of_languages), strict=True):
            p, verdict = getattr(row, f"{prefix}p"), str(getattr(row, f"{prefix}verdict"))
            texts = {
                "effect [95 %]": (interval(row, prefix), hover),
                "p": (
                    _p_text(getattr(row, f"{prefix}p_corrected")),
                    "" if isnan(p) else f"p {_p_text(p)} before the correction",
                ),
                # Only the verdict over these languages says why a claim has no verdict.
                "verdict": (verdict + ("" if prefix else aside.get(verdict, "")), hover),
            }
            for column, (text, over) in texts.items():
                state = STATES[verdict] if column == "verdict" else "undecided"
                printed = dict(zip(PRINTED, (text, state, over), strict=True))
                keys = {"claim": row.claim, "says": row.says, "expected": row.expected}
                lines.append({**keys, "languages": languages, "column": column, **printed})
    entries = pd.DataFrame(lines)
    number_of_claims = f"{len(judged)} claim{'s' * (len(judged) != 1)}"
    notes = (
        f"{number_of_claims}. {'. '.join(counted(judged, prefix) for prefix in INTERVALS.values())}. The effect is in "
        f"{_unit(judged)}, with its paired 95 % interval over seeds and test examples. Over {THESE}, tasks, languages "
        f"and encoders are fixed; the interval over {LIKE_THESE} also covers other sources and targets that differ as "
        f"these do, and needs {LEAST_LANGUAGES} on an axis that varies. A claim holds if the effect is as expected with "
        f"p below {LEVEL}, corrected by Holm over {number_of_claims}. A verdict needs {LEAST_SEEDS} seeds and every "
        "planned cell; otherwise, the effect is over the complete seeds. These runs do not show a claim that does not "
        "hold, but they do not show its opposite either. claims.csv describes each effect."
    ) + (WITHOUT_LEARNING if (judged["verdict"] == NOTHING).any() else "")
    columns = [(languages, column) for languages in INTERVALS for column in ("effect [95 %]", "p", "verdict")]
    rows, axes = ("claim", "says", "expected"), ("languages", "column")
    return Sheet(f"{title}: claims and their verdicts", "", notes, rows, columns, entries, axes)


def counted(judged: pd.DataFrame, prefix: str) -> str:
    """The number of claims with each verdict, such as `Over these languages: holds 3, does not hold 1`.

    Args:
        prefix: that of the columns of these verdicts in `judged`.
    """
    counts = judged[f"{prefix}verdict"].value_counts(sort=False).items()
    languages = next(languages for languages, other in INTERVALS.items() if other == prefix)
    return f"Over {languages}: {', '.join(f'{verdict} {n}' for verdict, n in counts)}"


def counts(row: Any) -> str:
    """The seeds and cells behind a verdict, and how many seeds a verdict needs if the study plans fewer."""
    few = f", and a verdict needs {LEAST_SEEDS} seeds" * (row.n_seeds_expected < LEAST_SEEDS)
    return f"{row.n_seeds} of {row.n_seeds_expected} seeds, {row.n_cells} of {row.n_cells_expected} cells{few}"


def needed(row: Any) -> str:
    """The numbers of seeds and languages that would be enough for a claim that does not hold; "" for other claims, and
    if no number is, or if there are as many already.

    Args:
        row: a row of `xlgrid.results.verdicts.judge`.
    """
    fewest = min((count for count in (row.n_sources, row.n_targets) if count > 1), default=1)
    seeds = row.verdict == DOES_NOT and row.seeds_needed > row.n_seeds
    languages = row.like_verdict == DOES_NOT and row.languages_needed > fewest
    parts = [f"{row.seeds_needed:.0f} seeds"] * seeds + [
        f"{row.languages_needed:.0f} languages on each axis"
    ] * languages
    return f"with this effect and noise, it would take {' or '.join(parts)}" if parts else ""


def _unit(judged: pd.DataFrame) -> str:
    """The unit of the effects, in words."""
    return units.unit_of_difference(judged["metric"]) or "the unit of its metric"


def interval(row: Any, prefix: str) -> str:
    """The effect with its interval. Without an interval over languages like these, it is a dash."""
    low, high = (getattr(row, f"{prefix}{end}") for end in ("low", "high"))
    if isnan(row.effect) or (prefix and isnan(low)):
        return "–"
    sign = "+" if round(row.effect, 1) > 0 else ""
    return f"{sign}{number(row.effect, 1)}" + ("" if isnan(low) else f" [{number(low, 1)}, {number(high, 1)}]")


def _p_text(p: float) -> str:
    return "" if isnan(p) else "< 0.001" if p < 0.001 else number(p, 3)


def forest(judged: pd.DataFrame, *, claimed: Sequence[tuple[float, float]]) -> "Axes":
    """The effects with their intervals, from top to bottom, drawn over the claimed ranges.

    Args:
        judged: the columns `claim`, `metric`, `effect`, `low`, `high`, `like_low`, `like_high`, `verdict`; NaN are left
            out. The interval over languages like these is the thin line.
        claimed: the claimed range of each effect; a bound may be infinite.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    ax = Figure(figsize=(4.6, 0.6 + 0.26 * len(judged)), dpi=plots.DPI).add_axes((0, 0, 1, 1))
    ax.axvline(0, color=plots.FAINT, linewidth=0.8, zorder=0)
    handles: dict[str, Any] = {}
    numbers = judged[["low", "effect", "high", "like_low", "like_high"]].to_numpy(float)
    for at, (verdict, (low, effect, high, *like)) in enumerate(zip(map(str, judged["verdict"]), numbers, strict=True)):
        colour = plots.COLOURS[[*MARKERS, ""].index(verdict if verdict in MARKERS else "")]
        ax.plot(like, [at, at], color=colour, linewidth=0.7, marker="|", markersize=5)
        ax.plot([low, high], [at, at], color=colour, linewidth=2.2, solid_capstyle="butt")
        handles[verdict] = ax.plot(
            [effect],
            [at],
            linestyle="",
            color=colour,
            marker="o" if verdict in MARKERS else "x",
            fillstyle=MARKERS.get(verdict, "full"),
            markersize=5,
        )[0]
    ax.set_yticks(range(len(judged)), [str(name) for name in judged["claim"]])
    ax.set(ylim=(len(judged) - 0.5, -0.5), xlabel=f"effect ({_unit(judged)}), 95 % interval")
    # The finite bounds are always visible.
    ax.update_datalim([(bound, 0) for bounds in claimed for bound in bounds if np.isfinite(bound)])
    ax.autoscale_view(scaley=False)
    for at, bounds in enumerate(claimed):
        low, high = np.clip(bounds, *ax.get_xlim())
        band = Rectangle((low, at - 0.4), high - low, 0.8, facecolor="#e9f0f6", linewidth=0, zorder=0)
        ax.add_patch(band)
        handles["claimed"] = band
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.legend(
        handles.values(),
        handles,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=len(handles),
        frameon=False,
        fontsize=8,
    )
    return ax
