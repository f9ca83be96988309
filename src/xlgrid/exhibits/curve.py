"""Curves of scores over a numeric column of the cells, or over steps of training."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import model_validator

from xlgrid.exhibits.exhibit import AXES, Facts, OfCells, Rendering, StudyView

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from xlgrid.results.identity import Cell


class Curve(OfCells):
    """Mean score and standard deviation over seeds against `x`.

    `x` is `step`, for learning curves on the dev set; `snapshot`, the step of the target's run on text whose weights evaluate
    (`Grid.snapshots`); or a fact of the encoders that is a number (`facts`). Lines may be told apart by a fact, too.
    """

    kind: Literal["curve"] = "curve"
    x: str
    lines: str
    is_table: ClassVar[bool] = False

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.x == "step" and (wrong := {self.lines, *self.select} & {"target", "metric"}):
            raise ValueError(
                f"learning curves (`x: step`) belong to runs, which have no {' and no '.join(sorted(wrong))}"
            )
        if self.lines == self.x:
            raise ValueError(f"`x` and `lines` are both {self.x!r}")
        return self

    @property
    def names_metric(self) -> bool:
        return "metric" in (*self.select, self.lines)

    @property
    def shows_snapshots(self) -> bool:
        return self.x == "snapshot"

    @property
    def named_axes(self) -> dict[str, tuple[Sequence[str], Sequence[str]]]:
        return super().named_axes | {"x": ([self.x], ("step", "snapshot")), "lines": ([self.lines], AXES)}

    def problems_of_plan(self, planned: Sequence["Cell"], facts: Facts) -> Iterator[str]:
        yield from super().problems_of_plan(planned, facts)
        for encoder in dict.fromkeys(cell.encoder for cell in self.cells(planned, facts)):
            if isinstance(value := facts[encoder].get(self.x), str):
                yield f"x: {self.x} of encoder {encoder} is the text {value!r}, and should be a number"

    def of_scores(self, study: StudyView, cells: "pd.DataFrame", runs: Iterable[str | Path] = ()) -> Rendering:
        from xlgrid.exhibits.drawing import sheet as printing
        from xlgrid.results import records, stats, units

        chosen = stats.select(cells, self.select)
        quantity, percent = units.quantity(chosen["metric"]), units.unit(chosen["metric"]) == "%"
        if self.x == "step":
            curves = records.read_curves(runs)
            # A run has the facts of its encoder.
            known = cells[["encoder", *(fact for fact in self.facts if fact in cells)]].drop_duplicates()
            curves = stats.select(curves.merge(known, on="encoder"), self.select, "learning curves")
            chosen = stats.learning_curves(curves, chosen, self.lines)
            quantity, notes = f"dev {quantity}", []
        else:
            chosen = stats.with_x(chosen, self.x)
            notes = printing.about(chosen)
        entries = stats.entries(chosen, [self.x], self.lines)
        lines = stats.in_order(chosen, self.lines, self.select)
        draw = partial(
            curve,
            entries,
            x=self.x,
            lines=self.lines,
            order=lines,
            quantity=quantity,
            title=self.title,
            ends=(0, 100) if percent else (0, 1),
        )
        sheet = printing.sheet(
            entries,
            title=self.title,
            caption=self.caption,
            notes=notes,
            rows=[self.x],
            order={self.x: sorted(set(chosen[self.x])), "column": lines},
            digits=self.digits,
        )
        return Rendering(sheet, draw=draw)


def curve(
    entries: "pd.DataFrame",
    *,
    x: str,
    lines: str,
    order: Sequence[Any],
    quantity: str = "score (%)",
    title: str = "",
    ends: tuple[float, float] = (0, 100),
) -> "Axes":
    """Means against `x`, one line per value of `lines`, with a band of one standard deviation over seeds on either side.

    A point from fewer seeds than planned is hollow; a point without a complete seed leaves a gap in its line.

    Args:
        entries: columns `x`, `column` (the line), `mean`, `sd`, `n_seeds`, `n_seeds_expected`.
        order: the lines in the order of the legend.
        quantity: the label of the axis of scores.
        ends: the ends of that axis where there is no score to show.
    """
    import pandas as pd
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator

    from xlgrid.exhibits.drawing import plots
    from xlgrid.exhibits.drawing.sheet import label

    ax = Figure(figsize=(3.8, 2.6), dpi=plots.DPI).add_axes((0, 0, 1, 1))
    hollow = False
    for i, name in enumerate(order):
        line = entries[entries["column"] == name].sort_values(x)
        colour, marker = plots.COLOURS[i % len(plots.COLOURS)], plots.MARKERS[i % len(plots.MARKERS)]
        dash = plots.DASHES[i // len(plots.COLOURS) % 4]
        short = line["n_seeds"].between(1, line["n_seeds_expected"], inclusive="left").to_numpy()
        across, mean, sd = (line[column].to_numpy(float) for column in (x, "mean", "sd"))
        ax.fill_between(across, mean - sd, mean + sd, color=colour, alpha=0.18, linewidth=0, zorder=1)
        # Enough markers to tell the lines apart without colour, not so many that they hide a long curve.
        every = max(1, len(line) // 12)
        ax.plot(across, mean, dash, color=colour, marker=marker, markersize=5, markevery=every, label=label(name))
        if short.any():
            hollow = True
            ax.plot(
                across[short],
                mean[short],
                linestyle="",
                marker=marker,
                markersize=5,
                markerfacecolor="white",
                markeredgecolor=colour,
                zorder=3,
            )
    if pd.api.types.is_integer_dtype(entries[x]) or (entries[x] % 1 == 0).all():
        ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 2.5, 5, 10]))
    ax.xaxis.set_major_formatter(lambda value, _: label(value).replace("-", "\N{MINUS SIGN}"))
    # Without a result the axes still show what is planned.
    low, high = float(entries[x].min()), float(entries[x].max())
    spare = 0.04 * (high - low) or 0.5
    ax.set(
        xlabel="steps of training on text" if x == "snapshot" else x, ylabel=quantity, xlim=(low - spare, high + spare)
    )
    if entries["mean"].isna().all():
        ax.set(ylim=ends)
        ax.text(0.5, 0.5, "no complete seed", transform=ax.transAxes, ha="center", va="center")
    ax.grid(axis="y", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    handles, names = ax.get_legend_handles_labels()
    if hollow:
        handles.append(Line2D([], [], linestyle="", marker="o", markerfacecolor="white", markeredgecolor=plots.INK))
        names.append("fewer seeds than planned")
    ax.legend(handles, names, title=lines, loc="upper left", bbox_to_anchor=(1.02, 1), frameon=False, alignment="left")
    if title:
        ax.set_title(title, loc="left", fontsize=10, fontweight="bold")
    return ax
