"""The base class of figures with a row for each value of an axis, and marks in it for each value of another axis."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field, model_validator

from xlgrid.exhibits.exhibit import AXES, OfCells, Rendering

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from xlgrid.exhibits.drawing.plots import Look
    from xlgrid.study.schema import Study

# The height of a mark and of the space between rows, in inches.
MARK, SPACE = 0.11, 0.09
SHORT = "fewer seeds than planned"


class Grouped(OfCells):
    """A figure with a row for each value of an axis. Kinds decide what stands for a mean over seeds.

    Marks of a row have the order of the legend, from top to bottom. A mark of fewer seeds than planned is hollow.
    """

    rows: str = Field(description="an axis, fact of encoders or setting of variants; each of its values has a row")
    within: str | None = Field(
        None,
        description="an axis, fact of encoders or setting of variants; each of its values has a mark of its own in each row",
    )
    is_table: ClassVar[bool] = False

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.rows == self.within:
            raise ValueError(f"`rows` and `within` are both {self.rows!r}: leave `within` out, or name another axis")
        return self

    @property
    def named_axes(self) -> dict[str, tuple[Sequence[str], Sequence[str]]]:
        named = super().named_axes | {"rows": ([self.rows], AXES)}
        return named | ({"within": ([self.within], AXES)} if self.within else {})

    @property
    def names_metric(self) -> bool:
        return "metric" in (*self.select, self.rows, self.within)

    def of_scores(self, study: "Study", cells: "pd.DataFrame", runs: Iterable[str | Path] = ()) -> Rendering:
        from xlgrid.exhibits.drawing import sheet as printing
        from xlgrid.results import stats, units

        chosen = stats.select(cells, self.select)
        quantity = units.quantity(chosen["metric"])
        chosen = chosen.assign(column=chosen[self.within] if self.within else quantity)
        marks = stats.in_order(chosen, self.within, self.select) if self.within else [quantity]
        order = {self.rows: stats.in_order(chosen, self.rows, self.select), "column": marks}
        entries = stats.entries(chosen, [self.rows], "column")
        scores = stats.scores_of_seeds(chosen, [self.rows], "column").dropna(subset="score")
        column_axes = [self.within] if self.within else []
        sheet = self.printed(
            entries, notes=printing.about(chosen), rows=[self.rows], column_axes=column_axes, order=order
        )
        return Rendering(sheet, draw=partial(self._draw, entries, scores, order, quantity), behind=chosen)

    def _draw(
        self,
        entries: "pd.DataFrame",
        scores: "pd.DataFrame",
        order: Mapping[str, Sequence[Any]],
        quantity: str,
        look: "Look",
    ) -> "Axes":
        """The figure: `entries` has the statistics of each mark, and `scores` the score of each complete seed."""
        from matplotlib.figure import Figure

        from xlgrid.exhibits.drawing import plots

        rows, marks = order[self.rows], order["column"]
        high, thick = MARK * len(marks) + SPACE, MARK / (MARK * len(marks) + SPACE)
        ax = plots.axes_at(Figure(figsize=(1, 1), dpi=plots.DPI), 0, 0, look.room, high * len(rows))
        handles: dict[str, Any] = {}
        for entry in entries.to_dict("records"):
            row, mark, n, planned = (entry[name] for name in (self.rows, "column", "n_seeds", "n_seeds_expected"))
            up = rows.index(row) + thick * (marks.index(mark) - (len(marks) - 1) / 2)
            of_entry = scores[(scores[self.rows] == row) & (scores["column"] == mark)]
            drawn = self.mark(ax, up, thick, marks.index(mark), of_entry["score"].to_numpy(float), planned)
            for name in [look.label(mark)] + [SHORT] * (0 < n < planned):
                handles.setdefault(name, drawn)
            if n == 0:
                ax.annotate("–", (0, up), (2, 0), ax.get_yaxis_transform(), "offset points", va="center", fontsize=7)
        ax.set_yticks(range(len(rows)), [look.label(row) for row in rows])
        ax.tick_params(axis="y", length=0)
        ax.set(ylim=(len(rows) - 0.5, -0.5), xlabel=look.label(quantity))
        plots.bare(ax, "x")
        names = [*(look.label(mark) for mark in marks if self.within), SHORT]
        shown = [name for name in names if name in handles]
        if shown:
            plots.legend(ax, [handles[name] for name in shown], shown, look.label(self.within or ""))
        return ax

    @abstractmethod
    def mark(self, ax: "Axes", up: float, thick: float, number: int, scores: Any, planned: int) -> Any:
        """Draw a mark, and return its entry of the legend.

        Args:
            up: the middle of the mark on the axis of rows.
            thick: its height on this axis.
            number: the place of the mark among those of a row.
            scores: the scores of its complete seeds.
            planned: the number of planned seeds.
        """
