"""A bar chart of means over seeds."""

from typing import TYPE_CHECKING, Any, Literal

from xlgrid.exhibits.grouped import Grouped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HATCHES = ("", "////", "....", "xxxx", "----", "\\\\\\\\", "oo")


class Bars(Grouped):
    """A bar chart: the mean over seeds, with a line of one standard deviation on each side.

    Bars begin at 0. Differences that are small beside the scores are easier to see in a figure of kind `seeds`.
    """

    kind: Literal["bars"] = "bars"

    def mark(self, ax: "Axes", up: float, thick: float, number: int, scores: Any, planned: int) -> Any:
        from xlgrid.exhibits.drawing import plots

        colour, hatch = plots.COLOURS[number % len(plots.COLOURS)], HATCHES[number % len(HATCHES)]
        short = 0 < len(scores) < planned
        look: Any = {"facecolor": "white" if short else colour, "hatch": hatch, "linewidth": 0.8}
        look["edgecolor"] = colour if short else "white"
        mean = scores.mean() if len(scores) else float("nan")
        drawn = ax.barh(up, mean, 0.9 * thick, **look)
        if len(scores) > 1:
            sd = scores.std(ddof=1)
            ax.errorbar(mean, up, xerr=sd, color=plots.INK, linewidth=0.9, capsize=1.8, capthick=0.9)
        return drawn
