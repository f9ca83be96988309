"""A matrix of source × target for one method, or for the difference of two methods."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from xlgrid.base.names import among
from xlgrid.exhibits.drawing.blocks import Block, by_family, by_group, codes_of
from xlgrid.exhibits.exhibit import Compared, Rendering
from xlgrid.languages.sources import Source

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from xlgrid.exhibits.drawing.plots import Look
    from xlgrid.study.schema import Study


# The colour maps of scores and of differences. The better end is dark in the first, and blue in the second.
SEQUENTIAL, DIVERGING = "YlGnBu", "RdBu"
# The sides of cells in inches: one with a number, the largest ones, and the highest matrix.
CELL, LARGEST, HIGHEST = 0.2, 0.6, 7.5
# The smallest letters of numbers, in points.
SMALLEST = 5.0


class Heatmap(Compared):
    """A matrix of source × target for one method, or for the difference of two methods (the first minus the second).

    A difference is paired by seed. If the two methods have different seeds, it is the difference of their means.
    """

    kind: Literal["heatmap"] = "heatmap"
    method: str | None = Field(None, description="the method whose scores are shown")
    difference: tuple[str, str] | None = Field(
        None, description="instead of `method`: two methods; the heatmap shows the first minus the second"
    )
    blocks: tuple[str, ...] = Field(
        (),
        description="groups of the study, [seen, unseen]: the languages of both axes are in the order of these "
        "groups, and within each group in the order of the study; absent: by family",
    )
    is_table: ClassVar[bool] = False

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.method is None) == (self.difference is None):
            raise ValueError("a heatmap shows either `method: name` or `difference: [first, second]`: give exactly one")
        if self.difference and self.difference[0] == self.difference[1]:
            raise ValueError(f"`difference` needs two methods, got {self.difference[0]!r} twice")
        if "method" in self.select:
            raise ValueError("`select` names 'method': name it in `method` or `difference` of the heatmap instead")
        return self

    @property
    def _methods(self) -> tuple[str, ...]:
        return self.difference or (str(self.method),)

    @property
    def selected(self) -> dict[str, tuple[Any, ...]]:
        return super().selected | {"method": self._methods}

    @property
    def coined_names(self) -> dict[str, list[str]]:
        return {"method": ["-minus-".join(self.difference)]} if self.difference else {}

    @property
    def groups_shown(self) -> tuple[str, ...]:
        return self.blocks or ("same-family", "same-script")

    def problems(self, study: "Study", axes: Mapping[str, Sequence[object]]) -> Iterator[str]:
        yield from among(
            "difference" if self.difference else "method", "method", self._methods, axes["method"], study.methods
        )
        yield from among("blocks", "group of the study", self.blocks, study.groups)

    def of_scores(self, study: "Study", cells: "pd.DataFrame", runs: Iterable[str | Path] = ()) -> Rendering:
        from xlgrid.exhibits.drawing import sheet as printing
        from xlgrid.results import stats, units

        chosen = stats.select(cells, {**self.select, "method": self._methods})
        metrics, notes = list(dict.fromkeys(chosen["metric"])), printing.about(chosen)
        both = chosen.assign(column=chosen["target"])
        higher = units.higher_is_better(metrics)
        if self.difference:
            notes.append(f"{' minus '.join(self.difference)}, paired by seed, over the cells and seeds that both have.")
            if differ := stats.note_on_seeds(chosen, "method", *self.difference, ["source", "target"]):
                notes[-1:] = [
                    f"{' minus '.join(self.difference)}, over the cells that both have, paired by seed where the "
                    "seeds are the same.",
                    *differ,
                ]
            chosen, entries = stats.method_differences(chosen, *self.difference)
            named = "-minus-".join(self.difference)
            chosen = chosen.assign(method=named, metric=chosen["metric"] + units.DIFFERENCE)
            quantity = units.with_unit(" − ".join(self.difference), units.unit_of_difference(metrics))
        else:
            entries = stats.entries(chosen, ["source"], "target")
            quantity = units.quantity(metrics)
        entries = printing.with_learning(entries, both, ["source", "column"])
        rows, columns = self._axes(chosen, entries, study)
        draw = partial(
            heatmap,
            entries,
            rows=rows,
            columns=columns,
            diverging=self.difference is not None,
            higher_is_better=higher,
            percent=units.unit(metrics) == "%",
            digits=self.digits,
            quantity=quantity,
        )
        order = {axis: codes_of(blocks) for axis, blocks in (("source", rows), ("column", columns))}
        sheet = self.printed(entries, notes=notes, rows=["source"], column_axes=["target"], order=order)
        room = CELL * len(order["column"])
        return Rendering(sheet, draw=draw, room=room, behind=chosen.assign(column=chosen["target"]))

    def _axes(self, cells: "pd.DataFrame", entries: "pd.DataFrame", study: "Study") -> tuple[list[Block], list[Block]]:
        """The blocks of the sources and of the targets."""
        from xlgrid.results import stats

        sources, targets = (stats.in_order(cells, axis, self.select) for axis in ("source", "target"))
        if self.blocks:
            return by_group(sources, self.blocks, study.belongs), by_group(targets, self.blocks, study.belongs)
        languages, among = study.languages_used, [*targets, *sources]
        return by_family(sources, languages, among), by_family(targets, languages, among)


def limits(values: "pd.Series[float]", *, diverging: bool, percent: bool = True) -> tuple[float, float]:
    """The ends of a colour scale.

    The scale spans at least ten points, or a tenth of the largest score for a metric without percent, so that noise
    between seeds does not look like a result.

    Args:
        values: scores or differences; NaN are ignored.
        diverging: whether the centre is at 0.
        percent: whether the scores are in percent, so that the scale stays between 0 and 100.
    """
    numbers = values.dropna()
    if numbers.empty:
        return (-5.0, 5.0) if diverging else (0.0, 100.0)
    largest = float(numbers.abs().max())
    if diverging:
        reach = max(5.0, largest) if percent else largest or 1.0
        return -reach, reach
    low, high = float(numbers.min()), float(numbers.max())
    spare = max(0.0, (10 if percent else 0.1 * largest or 1.0) - (high - low)) / 2
    low, high = low - spare, high + spare
    shift = max(0.0, -low) - max(0.0, high - 100) if percent else 0.0
    return low + shift, high + shift


def heatmap(
    entries: "pd.DataFrame",
    look: "Look",
    *,
    rows: Sequence[Block],
    columns: Sequence[Block],
    diverging: bool = False,
    higher_is_better: bool = True,
    percent: bool = True,
    digits: int = 1,
    quantity: str = "score (%)",
    margins: tuple[float, float] = (0, 0),
) -> "Axes":
    """A source × target matrix of means, with their numbers.

    Where the numbers do not fit into the cells, they have no decimals, or are left out. A cell without a complete seed is hatched, and a cell that is not planned is blank. A cell from fewer seeds than
    planned is marked with †, and a cell whose model has learnt nothing with §. Cells whose target is a training
    language of the source are outlined.

    Args:
        entries: the columns `source`, `column` (the target), `mean`, `n_seeds`, `n_seeds_expected`, and optionally the
            column of `with_learning`.
        rows: the sources, see `xlgrid.exhibits.drawing.blocks`.
        columns: the targets.
        diverging: whether the values are differences, with colours centred at 0.
        higher_is_better: whether the better end of the scale (dark, or blue for differences) has the higher values.
        percent: see `limits`.
        quantity: the label of the colour bar.
        margins: inches to leave free between the matrix and the colour bar on its right, and the legend above it.
    """
    from matplotlib.figure import Figure

    from xlgrid.exhibits.drawing import plots

    sources, targets = codes_of(rows), codes_of(columns)
    room = look.room - margins[0]
    inch = min(room / len(targets), LARGEST, HIGHEST / len(sources))
    ax = Figure(figsize=(inch * len(targets), inch * len(sources)), dpi=plots.DPI).add_axes((0, 0, 1, 1))
    ends = limits(entries["mean"], diverging=diverging, percent=percent)
    shades = (DIVERGING if diverging else SEQUENTIAL) + ("" if higher_is_better else "_r")
    mesh, marks = matrix(ax, entries, sources, targets, shades, ends, letters(entries, inch, digits))
    language_axis(ax, "x", columns, inch, look)
    language_axis(ax, "y", rows, inch, look)
    colour_bar(ax, mesh, look.label(quantity), margins[0])
    key(ax, marks, margins[1])
    return ax


def matrix(
    ax: "Axes",
    entries: "pd.DataFrame",
    sources: list[str],
    targets: list[str],
    shades: str,
    ends: tuple[float, float],
    numbers: tuple[float, int],
) -> tuple[Any, set[str]]:
    """Draw the cells of a heatmap, and return their mesh, and the marks that occur.

    Args:
        ends: the ends of the scale of the colour map `shades`.
        numbers: the result of `letters`.
    """
    import matplotlib as mpl
    import seaborn as sns
    from matplotlib.patches import Rectangle

    from xlgrid.exhibits.drawing import plots
    from xlgrid.exhibits.drawing.sheet import NOTHING, number

    (low, high), (points, digits), colours = ends, numbers, mpl.colormaps[shades]
    values = entries.pivot(index="source", columns="column", values="mean").reindex(index=sources, columns=targets)
    # Seaborn's texts and ticks do not support missing seeds and families, so they are drawn here.
    plain: Any = {"cbar": False, "xticklabels": False, "yticklabels": False, "linewidths": 1, "square": True}
    sns.heatmap(values.astype(float), ax=ax, cmap=colours, vmin=low, vmax=high, **plain)
    mesh = ax.collections[0]
    # The page of a report finds the entries in the picture by this name.
    mesh.set_gid("entries")
    ax.set(xlabel="", ylabel="")
    ax.apply_aspect()
    marks = set()
    entry: Any
    for entry in entries.itertuples():
        x, y = targets.index(str(entry.column)), sources.index(str(entry.source))
        if entry.n_seeds == 0:
            marks.add("missing")
            ax.add_patch(
                Rectangle((x, y), 1, 1, facecolor=plots.MISSING, edgecolor=plots.FAINT, hatch="////", linewidth=0)
            )
        else:
            short = entry.n_seeds < entry.n_seeds_expected
            marks |= {"short"} if short else set()
            back = mpl.colors.to_rgb(colours((entry.mean - low) / (high - low)))
            ink = max(("white", "black"), key=lambda ink: plots.contrast(back, mpl.colors.to_rgb(ink)))
            nothing = bool(getattr(entry, "learnt_nothing", ""))
            marks |= {"nothing"} if nothing else set()
            text = (number(entry.mean, digits) if digits >= 0 else "") + "†" * short + NOTHING * nothing
            ax.text(x + 0.5, y + 0.5, text, ha="center", va="center", color=ink, fontsize=points)
        if str(entry.column) in Source(entry.source).parts:
            marks.add("trained")
            outline = Rectangle((x + 0.05, y + 0.05), 0.9, 0.9, fill=False, edgecolor="black", linewidth=1.3, zorder=4)
            ax.add_patch(outline)
    if len(entries) < len(sources) * len(targets):
        marks.add("blank")
    return mesh, marks


def letters(entries: "pd.DataFrame", inch: float, digits: int) -> tuple[float, int]:
    """The size of the letters of numbers, in points, and their decimals; -1 if no number fits into a cell."""
    from xlgrid.exhibits.drawing.sheet import number

    short = (entries["n_seeds"] < entries["n_seeds_expected"]) & entries["mean"].notna()
    for decimals in (digits, 0):
        texts = [number(mean, decimals) for mean in entries["mean"].dropna()]
        # A digit is 0.64 em wide, a minus sign 0.84, a point half as wide as a digit, and so is a mark. A third of an em is free.
        wide = max((0.64 * len(text) + 0.2 * (text[0] == "\N{MINUS SIGN}") for text in texts), default=0.64)
        wide += 0.34 - 0.32 * (decimals > 0) + 0.5 * short.any()
        points = min(9.0, (72 * inch - 1.5) / wide)
        if points >= SMALLEST:
            return points, decimals
    return SMALLEST, -1


def language_axis(ax: "Axes", axis: Literal["x", "y"], parts: Sequence[Block], inch: float, look: "Look") -> None:
    """Write the codes along an axis, with lines between blocks and brackets with the names of blocks."""
    import numpy as np

    from xlgrid.exhibits.drawing import plots

    codes = codes_of(parts)
    ends = np.cumsum([len(block.codes) for block in parts]).tolist()
    size = float(np.interp(inch, [0.1, 0.2, 0.4], [5, 6.5, 8]))
    for (before, after), end in zip(pairwise(parts), ends, strict=False):
        family = before.family != after.family
        line: Any = {"linewidth": 1.3 if family else 0.7, "linestyle": "-" if family else (0, (3, 2))}
        (ax.axvline if axis == "x" else ax.axhline)(end, color=plots.INK, zorder=3, **line)

    (ax.set_xticks if axis == "x" else ax.set_yticks)(
        np.arange(len(codes)) + 0.5, [look.label(code) for code in codes], fontsize=size
    )
    ax.tick_params(axis=axis, length=0, pad=3)
    ticks = ax.get_xticklabels() if axis == "x" else ax.get_yticklabels()
    if axis == "x" and max(plots.size_in_points(ax, tick)[0] for tick in ticks) > inch * 72 - 3:
        ax.tick_params(axis="x", rotation=90)
    away = 8 + plots.depth(ax, axis, ticks)

    if len(parts) > 1:
        several = len({block.script for block in parts if block.script}) > 1
        texts = []
        for block, end in zip(parts, ends, strict=True):
            start = end - len(block.codes)
            plots.bracket(ax, axis, start + 0.12, end - 0.12, away)
            script = f"({block.script})" if several and block.script else ""
            name = plots.beside(
                ax, axis, (start + end) / 2, away + 4, f"{look.label(block.family)} {script}".strip(), size
            )
            room = (end - start) * inch * 72 - 4
            if axis == "x" and plots.size_in_points(ax, name)[0] > room:
                written = name.get_text()
                name.set_text(f"{look.label(block.family)}\n{script}".strip())
                if plots.size_in_points(ax, name)[0] > room:
                    name.set(text=written, rotation=90)
            texts.append(name)
        away += 7 + plots.depth(ax, axis, texts)
    side = look.label("target" if axis == "x" else "source")
    title = plots.beside(ax, axis, len(codes) / 2, away + 3, side, 8)
    title.set_rotation(0 if axis == "x" else 90)


def colour_bar(ax: "Axes", mesh: Any, quantity: str, margin: float) -> None:
    from matplotlib.ticker import MaxNLocator

    from xlgrid.exhibits.drawing import plots

    figure = plots.figure_of(ax)
    width = ax.get_window_extent().width / figure.dpi
    height = ax.get_window_extent().height / figure.dpi
    # Next to a low matrix, the bar extends further down, so that its ticks and its label have room.
    tall = max(1.0, 1.3 / height)
    aside = ax.inset_axes((1 + (0.1 + margin) / width, 1 - tall, 0.1 / width, tall))
    bar = figure.colorbar(mesh, cax=aside)
    bar.set_label(quantity, fontsize=7.5)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=7, length=2)
    bar.locator = MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10])
    bar.update_ticks()


def key(ax: "Axes", marks: set[str], margin: float = 0) -> None:
    """Draw the legend of the marks that occur above the matrix."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D

    from xlgrid.exhibits.drawing import plots
    from xlgrid.exhibits.drawing.plots import FAINT, INK, MISSING
    from xlgrid.exhibits.drawing.sheet import NOTHING

    def glyph(mark: str) -> Line2D:
        path = TextPath((0, 0), mark, size=1)
        centred = path.transformed(Affine2D().translate(*-path.get_extents().get_points().mean(axis=0)))
        return Line2D([], [], marker=centred, markersize=7, color=INK, linestyle="")

    handles: dict[str, tuple[Any, str]] = {
        "trained": (Patch(facecolor="white", edgecolor="black", linewidth=1.6), "target seen in training"),
        "missing": (Patch(facecolor=MISSING, edgecolor=FAINT, hatch="////", linewidth=0), "no complete seed"),
        "short": (glyph("†"), "fewer seeds than planned"),
        "nothing": (glyph(NOTHING), "learnt nothing"),
        "blank": (Patch(facecolor="white", edgecolor=FAINT, linewidth=0.6), "not planned"),
    }
    explained = [handles[name] for name in handles if name in marks]
    if explained:
        marked, words = zip(*explained, strict=True)
        # A dendrogram above the matrix is not drawn yet.
        plots.legend(ax, marked, words, above=True, away=margin)
