"""Small heatmaps of source × target beside each other, with one scale."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from xlgrid.exhibits.drawing.blocks import Block, by_family, codes_of
from xlgrid.exhibits.exhibit import AXES, OfCells, Rendering
from xlgrid.exhibits.heatmap import CELL as NUMBERED
from xlgrid.exhibits.heatmap import LARGEST, SEQUENTIAL, colour_bar, key, language_axis, letters, limits, matrix

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from xlgrid.exhibits.drawing.plots import Look
    from xlgrid.study.schema import Study

# The least side of a cell, and the space between panels across and down, in inches.
CELL, BETWEEN = 0.1, (0.12, 0.75)


class Multiples(OfCells):
    """A figure with a small matrix of source × target for each value of an axis, such as each task or method.

    All matrices have the same scale, sources and targets. A cell that does not exist in one of them is blank there.
    """

    kind: Literal["heatmaps"] = "heatmaps"
    panels: str = Field(description="an axis, fact of encoders or setting of variants; each of its values has a matrix")
    is_table: ClassVar[bool] = False

    @property
    def named_axes(self) -> dict[str, tuple[Sequence[str], Sequence[str]]]:
        known = tuple(axis for axis in AXES if axis not in ("source", "target"))
        return super().named_axes | {"panels": ([self.panels], known)}

    @property
    def names_metric(self) -> bool:
        return "metric" in (*self.select, self.panels)

    def of_scores(self, study: "Study", cells: "pd.DataFrame", runs: Iterable[str | Path] = ()) -> Rendering:
        from xlgrid.exhibits.drawing import sheet as printing
        from xlgrid.results import stats, units

        chosen = stats.select(cells, self.select)
        metrics = list(dict.fromkeys(chosen["metric"]))
        entries = stats.entries(chosen, [self.panels, "source"], "target")
        behind = chosen.assign(column=chosen["target"])
        entries = printing.with_learning(entries, behind, [self.panels, "source", "column"])
        shown = {axis: stats.in_order(chosen, axis, self.select) for axis in ("source", "target", self.panels)}
        used, among = study.languages_used, [*shown["target"], *shown["source"]]
        sources, targets = (codes_of(by_family(shown[axis], used, among)) for axis in ("source", "target"))
        order = {self.panels: shown[self.panels], "source": sources, "column": targets}
        shades = SEQUENTIAL + "_r" * (not units.higher_is_better(metrics))
        ends = limits(entries["mean"], diverging=False, percent=units.unit(metrics) == "%")
        rows = [self.panels, "source"]
        sheet = self.printed(entries, notes=printing.about(chosen), rows=rows, column_axes=["target"], order=order)
        draw = partial(self._draw, entries, order, shades, ends, units.quantity(metrics))
        room = min(3, len(order[self.panels])) * NUMBERED * len(targets)
        return Rendering(sheet, draw=draw, behind=behind, room=room)

    def _draw(
        self,
        entries: "pd.DataFrame",
        order: dict[str, list[Any]],
        shades: str,
        ends: tuple[float, float],
        quantity: str,
        look: "Look",
    ) -> "Axes":
        """The panels from left to right, with the sources at the left ones, and a colour bar at the last of the first line."""
        from matplotlib.figure import Figure

        from xlgrid.exhibits.drawing import plots

        names, sources, targets = order.values()
        figure, least = Figure(figsize=(1, 1), dpi=plots.DPI), max(0.6, CELL * len(targets))
        widest = look._replace(room=min(look.room, len(names) * (LARGEST * len(targets) + BETWEEN[0]) - BETWEEN[0]))
        axes = plots.panels(figure, widest, len(names), least, BETWEEN, high=len(sources) / len(targets), highest=7)
        inch = axes[0].get_window_extent().width / figure.dpi / len(targets)
        marks = set[str]()
        for name, ax in zip(names, axes, strict=True):
            own = entries[entries[self.panels] == name]
            numbers = letters(entries, inch, self.digits)
            mesh, found = matrix(ax, own, sources, targets, shades, ends, numbers)
            marks |= found
            language_axis(ax, "x", [Block("", "", tuple(targets))], inch, look)
            if ax.get_position().x0 == 0:
                language_axis(ax, "y", [Block("", "", tuple(sources))], inch, look)
            ax.set_title(look.label(name), loc="left")
        first = [ax for ax in axes if ax.get_position().y1 == axes[0].get_position().y1]
        colour_bar(first[-1], mesh, look.label(quantity), 0)
        key(axes[0], marks)
        return axes[0]
