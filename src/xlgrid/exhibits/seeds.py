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
            lines = ("boxprops", "whiskerprops", "capprops", "medianprops")
            look: Any = {key: {"color": plots.INK, "linewidth": 0.9} for key in lines}
            look |= {"orientation": "horizontal", "manage_ticks": False, "sym": ""}
            ax.boxplot([scores], positions=[up], widths=0.8 * thick, **look)
        elif len(scores):
            half = 0.45 * thick
            ax.plot([scores.mean()] * 2, [up - half, up + half], color=plots.INK, linewidth=1.2, zorder=3)
        is_short = 0 < len(scores) < planned
        # A white edge keeps marks apart that lie on each other.
        faces = {"markerfacecolor": "none" if is_short else colour, "markeredgecolor": colour if is_short else "white"}
        look = {"markersize": 4, "markeredgewidth": 0.8 if is_short else 0.4, "color": colour, **faces}
        [drawn] = ax.plot(scores, [up] * len(scores), plots.MARKERS[number % len(plots.MARKERS)], **look)
        return drawn
