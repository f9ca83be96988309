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
from xlgrid.results.verdicts import DOES_NOT, HOLDS, LEAST_SEEDS, LEVEL, NOT_ENOUGH, NOTHING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from xlgrid.study.schema import Study

# Verdict -> its state, which has a colour on the page.
STATES = {HOLDS: "within", DOES_NOT: "beyond", NOT_ENOUGH: "incomplete", NOTHING: "incomplete"}
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
        counts = f"{row.n_seeds} of {row.n_seeds_expected} seeds, {row.n_cells} of {row.n_cells_expected} cells"
        metric = units.sentence([row.metric])
        aside = {NOT_ENOUGH: f" ({counts})", NOTHING: f" ({row.learnt_nothing})"}.get(str(row.verdict), "")
        texts = {
            "effect [95 %]": (_interval(row), "; ".join(filter(None, (row.measured, metric, counts)))),
            "expected": (row.expected, row.measured),
            "p": (_p_text(row.p_corrected), "" if isnan(row.p) else f"p {_p_text(row.p)} before the correction"),
            "verdict": (f"{row.verdict}{aside}", counts),
        }
        for column, (text, hover) in texts.items():
            state = STATES[str(row.verdict)] if column == "verdict" else "undecided"
            printed = dict(zip(PRINTED, (text, state, hover), strict=True))
            lines.append({"claim": row.claim, "says": row.says, "column": column, **printed})
    entries = pd.DataFrame(lines)
    counted = ", ".join(f"{verdict} {n}" for verdict, n in judged["verdict"].value_counts(sort=False).items())
    number_of_claims = f"{len(judged)} claim{'s' * (len(judged) != 1)}"
    notes = (
        f"{number_of_claims}: {counted}. The effect is in {_unit(judged)}, with its paired 95 % interval over seeds "
        "and test examples. Tasks, languages and encoders are fixed, so that a verdict is about these languages. A "
        f"claim holds if the effect is as expected with p below {LEVEL}, corrected by Holm over {number_of_claims}. A "
        f"verdict needs {LEAST_SEEDS} seeds and every planned cell; otherwise, the effect is over the complete seeds. "
        "These runs do not show a claim that does not hold, but they do not show its opposite either. claims.csv "
        "describes each effect."
    ) + (WITHOUT_LEARNING if (judged["verdict"] == NOTHING).any() else "")
    columns = [(column,) for column in dict.fromkeys(entries["column"])]
    return Sheet(f"{title}: claims and their verdicts", "", notes, ("claim", "says"), columns, entries)


def _unit(judged: pd.DataFrame) -> str:
    """The unit of the effects, in words."""
    return units.unit_of_difference(judged["metric"]) or "the unit of its metric"


def _interval(row: Any) -> str:
    if isnan(row.effect):
        return "–"
    sign = "+" if round(row.effect, 1) > 0 else ""
    interval = "" if isnan(row.low) else f" [{number(row.low, 1)}, {number(row.high, 1)}]"
    return f"{sign}{number(row.effect, 1)}{interval}"


def _p_text(p: float) -> str:
    return "" if isnan(p) else "< 0.001" if p < 0.001 else number(p, 3)


def forest(judged: pd.DataFrame, *, claimed: Sequence[tuple[float, float]]) -> "Axes":
    """The effects with their intervals, from top to bottom, drawn over the claimed ranges.

    Args:
        judged: the columns `claim`, `metric`, `effect`, `low`, `high`, `verdict`; NaN are left out.
        claimed: the claimed range of each effect; a bound may be infinite.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    ax = Figure(figsize=(4.6, 0.6 + 0.26 * len(judged)), dpi=plots.DPI).add_axes((0, 0, 1, 1))
    ax.axvline(0, color=plots.FAINT, linewidth=0.8, zorder=0)
    handles: dict[str, Any] = {}
    numbers = judged[["low", "effect", "high"]].to_numpy(float)
    for at, (verdict, (low, effect, high)) in enumerate(zip(map(str, judged["verdict"]), numbers, strict=True)):
        colour = plots.COLOURS[[*MARKERS, ""].index(verdict if verdict in MARKERS else "")]
        ax.plot([low, high], [at, at], color=colour, linewidth=1.4, solid_capstyle="butt")
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
