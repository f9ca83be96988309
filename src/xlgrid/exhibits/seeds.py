"""A strip plot of the scores of seeds, with or without boxes."""

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from xlgrid.exhibits.grouped import Grouped

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Seeds(Grouped):
    """A strip plot: a point for each complete seed, and a line at their mean.

    If an entry averages over sources or targets, the point of a seed is the mean over them.
    """

    kind: Literal["seeds"] = "seeds"
    box: bool = Field(
        False,
        description="true: a box from the first to the third quartile, with a line at the median instead of the mean",
    )

    def mark(self, ax: "Axes", up: float, thick: float, number: int, scores: Any, planned: int) -> Any:
        from xlgrid.exhibits.drawing import plots

        colour = plots.COLOURS[number % len(plots.COLOURS)]
        if self.box and len(scores):
            line: Any = {"color": plots.INK, "linewidth": 0.9}
            parts = dict.fromkeys(("boxprops", "whiskerprops", "capprops", "medianprops"), line)
            ax.boxplot(
                [scores],
                positions=[up],
                widths=0.8 * thick,
                orientation="horizontal",
                manage_ticks=False,
                sym="",
                **parts,
            )
        elif len(scores):
            ax.plot(
                [scores.mean()] * 2, [up - 0.45 * thick, up + 0.45 * thick], color=plots.INK, linewidth=1.2, zorder=3
            )
        hollow = "none" if 0 < len(scores) < planned else colour
        marker = plots.MARKERS[number % len(plots.MARKERS)]
        [drawn] = ax.plot(
            scores,
            [up] * len(scores),
            marker,
            color=colour,
            markersize=3.5,
            markerfacecolor=hollow,
            markeredgewidth=0.8,
        )
        return drawn
