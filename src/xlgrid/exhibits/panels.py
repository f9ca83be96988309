"""Pictures of token × token: masks, and attention on one example; queries are rows, keys columns, as in papers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from xlgrid.exhibits import plots

# Inches: a cell of a mask, and of attention, whose matrices stay within a span; around them texts need room.
CELL, TOKEN, SPAN = 0.17, 0.115, (2.4, 8.0)
ASIDE, BELOW = 1.5, 1.35
HEADS_IN_A_ROW = 6
SEAM = "#D55E00"
# Black is at least this weight, lest attention to nothing in particular look strong.
LEAST = 0.2
# Of a token that is longer.
LETTERS = 12


def masks(found: pd.DataFrame, context: int, title: str = "") -> Axes:
    """A panel for each mask: black where attention is, white where it is masked.

    Args:
        found: `method`, `mask`, `query`, `key`, `kept`, as `xlgrid.exhibits.masks.cells` returns it.
        context: tokens of the context.

    Returns:
        The first panel.
    """
    panels = list(found.groupby(["method", "mask"], sort=False))
    tokens = list(dict.fromkeys(found["query"]))
    side = CELL * len(tokens)
    rows = list(dict.fromkeys(method for (method, _), _ in panels))
    across = max(sum(method == row for (method, _), _ in panels) for row in rows)
    width, height = across * (side + 1), len(rows) * (side + 1.2)
    figure = Figure(figsize=(width, height), dpi=plots.DPI)
    at = dict.fromkeys(rows, 0)
    shades = ListedColormap(["white", "black"])
    for (method, mask), one in panels:
        left, top = at[method] * (side + 1), rows.index(method) * (side + 1.2)
        at[method] += 1
        ax = _axes(figure, left, top, side, side)
        kept = one.pivot(index="query", columns="key", values="kept").reindex(index=tokens, columns=tokens)
        ax.pcolormesh(kept.to_numpy(), cmap=shades, vmin=0, vmax=1, edgecolors=plots.FAINT, linewidth=0.4)
        ax.set(xlim=(0, len(tokens)), ylim=(len(tokens), 0))
        _tokens(ax, tokens, tokens, context, 7)
        ax.set_title(f"{method}: {mask}", loc="left", fontsize=9)
    handles = [Patch(facecolor=colour, edgecolor=plots.INK, linewidth=0.8) for colour in ("black", "white")]
    _above(figure, title, 0.55)
    figure.legend(
        handles,
        ["attends", "masked: weight 0"],
        loc="lower left",
        bbox_to_anchor=(0, 1 + 0.25 / height),
        borderpad=0,
        borderaxespad=0,
        ncols=2,
        frameon=False,
        fontsize=8,
        handlelength=1.1,
        handleheight=1.0,
    )
    return figure.axes[0]


def attention(shown: Mapping[str, dict[str, Any] | None], targets: Sequence[str], title: str = "") -> Axes:
    """For each of `shown`, the attention of the last layer on one example in each target: the mean of its heads, each head.

    Args:
        shown: what to write above, and what `xlgrid.evaluation.attention.read` returned, or None where there is no result.
        targets: what `drawn` is of.

    Returns:
        The first panel.
    """
    sides = [_side(one) for one in shown.values()]
    figure = Figure(figsize=(2 * max(sides) + ASIDE, sum(map(_height, shown.values()))), dpi=plots.DPI)
    top = 0.0
    for (text, one), side in zip(shown.items(), sides, strict=True):
        if one is None:
            ax = _axes(figure, 0, top, 2 * side + ASIDE, 0.6)
            ax.text(0.5, 0.5, "no run with a result", transform=ax.transAxes, ha="center", va="center")
            ax.set(xticks=[], yticks=[])
        else:
            ax = _example(figure, one["drawn"], targets, top, side)
        ax.annotate(text, (0, 1), (0, 20), "axes fraction", "offset points", fontsize=9, fontweight="bold")
        top += _height(one)
    _above(figure, title, 0.6)
    return figure.axes[0]


def _example(figure: Figure, drawn: Sequence[dict[str, Any]], targets: Sequence[str], top: float, side: float) -> Axes:
    """Both targets side by side, on one scale: large the mean of the heads, below it each of them."""
    longest = max(len(one["tokens"]) for one in drawn)
    large = PowerNorm(0.5, 0, max(LEAST, *(float(one["weights"].mean(0).max()) for one in drawn)))
    small = PowerNorm(0.5, 0, max(LEAST, *(float(one["weights"].max()) for one in drawn)))
    large_panels = []
    for number, (one, target) in enumerate(zip(drawn, targets, strict=True)):
        left, length = number * (side + ASIDE), len(one["tokens"])
        ax = _axes(figure, left, top, side * length / longest, side * length / longest)
        image = _matrix(ax, one["weights"].mean(0), one["context"], large)
        large_panels.append(ax)
        tokens = [token if len(token) <= LETTERS else f"{token[: LETTERS - 1]}…" for token in one["tokens"]]
        _tokens(ax, tokens, tokens, one["context"], float(np.clip(side / longest * 72 * 0.75, 2, 7)))
        ax.set_title(f"{target}: mean of {len(one['weights'])} heads", loc="left", fontsize=9)
        step = side / HEADS_IN_A_ROW
        for head, weights in enumerate(one["weights"]):
            down, across = divmod(head, HEADS_IN_A_ROW)
            below = top + side + BELOW + down * (step + 0.08)
            panel = _axes(figure, left + across * step, below, 0.82 * step, 0.82 * step)
            _matrix(panel, weights, one["context"], small)
            panel.set(xticks=[], yticks=[])
            panel.set_title(f"head {head + 1}", fontsize=6, pad=2)
    bar = figure.colorbar(image, cax=ax.inset_axes((1.04, 0, 0.03, 1)))
    bar.set_label("mean weight", fontsize=8)
    bar.ax.tick_params(labelsize=7, length=2)
    return large_panels[0]


def _side(one: dict[str, Any] | None) -> float:
    """Inches of the larger matrix."""
    length = max(len(drawn["tokens"]) for drawn in one["drawn"]) if one else 0
    return float(np.clip(TOKEN * length, *SPAN))


def _height(one: dict[str, Any] | None) -> float:
    """Inches of all that is drawn of one run."""
    if one is None:
        return 1.3
    rows = -(-len(one["drawn"][0]["weights"]) // HEADS_IN_A_ROW)
    return _side(one) + BELOW + rows * (_side(one) / HEADS_IN_A_ROW + 0.08) + 0.6


def _axes(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes at a place in inches from the left and the top of the figure."""
    across, down = figure.get_size_inches()
    return figure.add_axes((left / across, 1 - (top + height) / down, width / across, height / down))


def _above(figure: Figure, title: str, inches: float) -> None:
    height = figure.get_size_inches()[1]
    figure.text(0, 1 + inches / height, title, fontsize=10, fontweight="bold", va="bottom")


def _matrix(ax: Axes, weights: NDArray[np.float32], context: int, norm: Normalize) -> Any:
    """One matrix of weights, black the largest, with the seam between context and question."""
    length = len(weights)
    image = ax.imshow(weights, cmap="Greys", norm=norm, interpolation="nearest", extent=(0, length, length, 0))
    for seam in (ax.axvline, ax.axhline):
        seam(context, color=SEAM, linewidth=0.7, linestyle=(0, (4, 2)))
    return image


def _tokens(ax: Axes, rows: Sequence[str], columns: Sequence[str], context: int, size: float) -> None:
    """Name the tokens on both axes, and bracket what is context and what is question."""
    ax.set_xticks(np.arange(len(columns)) + 0.5, columns, fontsize=size, rotation=90)
    ax.set_yticks(np.arange(len(rows)) + 0.5, rows, fontsize=size)
    ax.tick_params(length=0, pad=2)
    for axis, tokens, ticks in (("x", columns, ax.get_xticklabels()), ("y", rows, ax.get_yticklabels())):
        along: Any = axis
        away = 6 + plots.depth(ax, along, ticks)
        for start, end, segment in ((0, context, "context"), (context, len(tokens), "question")):
            plots.bracket(ax, along, start + 0.1, end - 0.1, away)
            name = plots.beside(ax, along, (start + end) / 2, away + 3, segment, 7.5)
            name.set_rotation(0 if axis == "x" else 90)
        what = plots.beside(ax, along, len(tokens) / 2, away + 14, "key" if axis == "x" else "query", 8)
        what.set_rotation(0 if axis == "x" else 90)
