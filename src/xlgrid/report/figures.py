"""The figures of a report: the spread over seeds, learning curves, and pictures of exhibits in the page."""

import html
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from xlgrid import heads
from xlgrid.exhibits.drawing import plots
from xlgrid.exhibits.drawing.sheet import number
from xlgrid.results import units

# The sizes of the smallest letters of a picture on a narrow and on a wide screen, in points, and whether the picture grows to that size.
LETTERS = (5.5, False), (8, True)
ENTRY = ["task", "encoder", "method", "source", "target", "metric"]


def having(frame: pd.DataFrame, names: Sequence[str], *others: str) -> list[str]:
    """The columns `names`, and those of `others` that the frame has."""
    return [*names, *(name for name in others if name in frame)]


def seed_deviations(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells with at least two seeds, and the column `deviation` from the mean over seeds of the same cell."""
    scored = cells.dropna(subset="score")
    seeds = scored.groupby(having(scored, ENTRY, "checkpoint"), sort=False, dropna=False)["score"]
    return scored.assign(deviation=scored["score"] - seeds.transform("mean"))[seeds.transform("size") > 1]


def spread(deviations: pd.DataFrame) -> Figure:
    """A figure with a panel per task and metric, a line per encoder and method, and a mark per cell and seed.

    A bar spans ± one standard deviation.

    Args:
        deviations: the result of `seed_deviations`, not empty.
    """
    # A line is named after what differs between the lines of the figure.
    names = [key for key in ("encoder", "method") if deviations[key].nunique() > 1] or ["method"]
    deviations = deviations.assign(line=deviations[names].agg(", ".join, axis=1))
    panels = list(deviations.groupby(["task", "metric"], sort=False))
    heights = [0.9 + 0.34 * panel["line"].nunique() for _, panel in panels]
    figure = Figure(figsize=(7.2, sum(heights)), layout="constrained")
    seeds = sorted(set(deviations["seed"]))
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
    # Panels with the same unit have the same scale.
    unit_of = {metric: units.unit_of_difference([metric]) or metric for metric in set(deviations["metric"])}
    sizes = deviations["deviation"].abs().groupby(deviations["metric"].map(unit_of)).max()
    for ax, ((task, metric), panel) in zip(axes, panels, strict=True):
        reach = 1.08 * max(0.5 if unit_of[metric] == "points" else 1e-9, float(sizes[unit_of[metric]]))
        _spread_of(ax, panel, seeds)
        ax.set(xlim=(-reach, reach), ylim=(panel["line"].nunique() - 0.5, -0.5))
        several = deviations["metric"].nunique() > 1
        ax.set_title(
            f"{task}" + f", {heads.metric(str(metric)).title}" * several, loc="left", fontsize=9.5, fontweight="bold"
        )
        ax.set_title("sd", loc="right", fontsize=8)
        plots.bare(ax, "both")
    unit = units.unit_of_difference(deviations["metric"])
    axes[-1].set_xlabel(units.with_unit("deviation from the mean over seeds", unit))
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, title="seed", loc="outside right upper", frameon=False)
    return figure


def _spread_of(ax: Axes, panel: pd.DataFrame, seeds: Sequence[int]) -> None:
    lines = list(dict.fromkeys(panel["line"]))
    for i, seed in enumerate(seeds):
        # Seeds have fixed vertical offsets instead of random ones.
        aside = 0.26 * (2 * (i + 0.5) / len(seeds) - 1)
        of_seed = panel[panel["seed"] == seed]
        ax.plot(
            of_seed["deviation"],
            [lines.index(line) + aside for line in of_seed["line"]],
            plots.MARKERS[i % len(plots.MARKERS)],
            color=plots.COLOURS[i % len(plots.COLOURS)],
            markersize=3.5,
            alpha=0.65,
            markeredgewidth=0,
            label=str(seed),
        )
    for y, line in enumerate(lines):
        of_line = panel[panel["line"] == line]
        free = len(of_line) - of_line.drop_duplicates(having(of_line, ENTRY, "checkpoint")).shape[0]
        sd = float(np.sqrt((of_line["deviation"] ** 2).sum() / free))
        ax.plot([-sd, sd], [y, y], color=plots.INK, linewidth=1.2, solid_capstyle="butt", zorder=0.5)
        ax.annotate(number(sd, 1), (1, y), (4, 0), ax.get_yaxis_transform(), "offset points", va="center", fontsize=8)
    ax.set_yticks(range(len(lines)), lines)
    ax.axvline(0, color=plots.FAINT, linewidth=0.7, zorder=0)


def curves(points: pd.DataFrame, quantity: str = "score (%)") -> Figure:
    """A figure with a panel per task, encoder and method, and a thin line per run, coloured and dashed by source.

    Args:
        points: the points of learning curves, not empty.
        quantity: the label of the axis of scores, which all panels share.
    """
    panels = list(points.groupby(["task", "encoder", "method"], sort=False))
    across = 2 if len(panels) == 4 else min(3, len(panels))
    down = -(-len(panels) // across)
    figure = Figure(figsize=(max(4.6, 2.5 * across), 0.5 + 1.9 * down), layout="constrained")
    sources = list(dict.fromkeys(points["source"]))
    axes = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
    handles: dict[str, Any] = {}
    for ax, ((task, encoder, method), panel) in zip(axes, panels, strict=False):
        for (source, *_), run in panel.groupby(having(panel, ["source", "seed"], "target", "run"), sort=False):
            i = sources.index(source)
            look: Any = {
                "color": plots.COLOURS[i % len(plots.COLOURS)],
                "linestyle": plots.DASHES[i // len(plots.COLOURS) % 4],
                "marker": plots.MARKERS[i % len(plots.MARKERS)],
            }
            run = run.sort_values("step")
            (handles[str(source)],) = ax.plot(
                run["step"], run["score"], **look, linewidth=1, markersize=3, markevery=max(1, len(run) // 4), alpha=0.8
            )
        ax.set_title(f"{method}\n", loc="left", fontsize=9, fontweight="bold")
        ax.text(0, 1.04, f"{task}, {encoder}", transform=ax.transAxes, fontsize=8)
        plots.bare(ax, "both")
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    figure.supxlabel("step", fontsize=9)
    figure.supylabel(f"dev {quantity}", fontsize=9)
    labels = [_short(source) for source in handles]
    figure.legend(handles.values(), labels, title="source", loc="outside right upper", frameon=False)
    return figure


def _short(source: str) -> str:
    """The short name of a source for a legend. A list of 40 languages would leave no room for the panels."""
    parts = source.split("+")
    return source if len(parts) <= 6 else f"{parts[0]}+{parts[1]}+…\n({len(parts)} parts)"


def inlined(svg: str, name: str, title: str) -> str:
    """A picture for a page, large enough to be read. Its ids begin with a name, so that no other picture of the page has them."""
    body = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    body = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", body.replace('id="entries"', 'class="entries"'))
    width = re.search(r'width="([\d.]+)pt"', body)
    letters = [float(size) for size in re.findall(r"font(?:-size)?:[^;\"]*?([\d.]+)px", body)]
    style = ""
    if width and letters:
        least, wanted = (
            f"{float(width[1]) * max(1 if grows else 0, size / min(letters)):.0f}pt" for size, grows in LETTERS
        )
        style = f"min-width: {least}; width: {wanted}"
    return re.sub(r"<svg\b", f'<svg role="img" aria-label="{html.escape(title)}" style="{style}"', body, count=1)


def numbers(markdown: str) -> tuple[int, list[str], list[list[str]]]:
    """The number of columns that name a row, the head, and the rows of the table in the Markdown of an exhibit."""
    lines = [line for line in markdown.splitlines() if line.startswith("| ")]
    head, rule, *rows = [
        [re.sub(r"\\(.)", r"\1", text).strip() for text in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines
    ]
    return sum(not text.endswith(":") for text in rule), head, rows
