"""Curves of scores over a numeric column of the cells, or over training steps."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from xlgrid.exhibits.exhibit import AXES, Facts, OfCells, Rendering, wrong_groups
from xlgrid.methods.variants import plain, settings_of
from xlgrid.products.train import Run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from xlgrid.exhibits.drawing.plots import Look
    from xlgrid.products.evaluate import Cell
    from xlgrid.study.schema import Study


# The least width of a panel, and the space between panels across and down, in inches.
PANEL, BETWEEN = 1.1, (0.4, 0.65)
PANELS_ACROSS = 4
FEWER = "fewer seeds than planned"


class Curve(OfCells):
    """A figure with the mean score and standard deviation over seeds against `x`.

    `x` is `step`, for learning curves on the dev set; `checkpoint`, the step of the target's MLM run with whose weights
    the cell is evaluated (`checkpoints` of the grid); a fact of the encoders that is a number (`facts`);
    or a setting of variants, whose values are at equal distances. A fact or setting may also distinguish the lines.

    With `panels` (an axis, a fact or `group`), the figure has a panel for each value. The panel of a group averages
    over the targets of the group.
    """

    kind: Literal["curve"] = "curve"
    x: str = Field(description="step, checkpoint, a fact of the encoders that is a number, or a setting of variants")
    lines: str = Field(description="an axis or fact; each of its values has a line")
    panels: str | None = Field(None, description="an axis or fact, or `group`; each of its values has a panel")
    groups: tuple[str, ...] = Field((), description="with `panels: group`: the groups, each of which has a panel")
    is_table: ClassVar[bool] = False

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.x == "step" and (wrong := {self.lines, *self.select} & {"target", "metric"}):
            raise ValueError(
                f"learning curves (`x: step`) belong to runs, which have no {' and no '.join(sorted(wrong))}: leave it "
                "out"
            )
        if self.x == "step" and self.panels:
            raise ValueError("learning curves (`x: step`) are in one panel: leave out `panels`")
        axes = {"x": self.x, "lines": self.lines, "panels": self.panels}
        for key, other in combinations(axes, 2):
            if axes[key] == axes[other]:
                raise ValueError(f"`{key}` and `{other}` are both {axes[key]!r}")
        if (self.panels == "group") != bool(self.groups):
            raise ValueError("`groups` goes with `panels: group`: give both, or neither")
        if self.groups and self.lines == "target":
            raise ValueError("`lines` are targets, but a group averages over its targets: give `lines` another axis")
        return self

    @property
    def names_metric(self) -> bool:
        return "metric" in (*self.select, self.lines, self.panels)

    @property
    def shows_checkpoints(self) -> bool:
        return self.x == "checkpoint"

    @property
    def shows_runs(self) -> bool:
        return self.x == "step"

    @property
    def merges_replicas(self) -> bool:
        """Whether replicas count as seeds of one encoder: not in learning curves, which belong to one encoder each."""
        return super().merges_replicas and not self.shows_runs

    @property
    def named_axes(self) -> dict[str, tuple[Sequence[str], Sequence[str]]]:
        named = super().named_axes | {"x": ([self.x], ("step", "checkpoint")), "lines": ([self.lines], AXES)}
        return named | ({"panels": ([self.panels], (*AXES, "group"))} if self.panels else {})

    @property
    def groups_shown(self) -> tuple[str, ...]:
        return self.groups

    def problems(self, study: "Study", axes: Mapping[str, Sequence[object]]) -> Iterator[str]:
        yield from wrong_groups(self.groups, study, axes)

    def problems_of_plan(self, planned: Sequence["Cell"], facts: Facts) -> Iterator[str]:
        yield from super().problems_of_plan(planned, facts)
        shown = ((cell.encoder, cell.method) for cell in self.cells(planned, facts)) if self.x in self.facts else ()
        for encoder, method in dict.fromkeys(shown):
            if isinstance(value := facts[encoder].get(self.x), str) and self.x not in settings_of(method):
                yield f"x: {self.x} of encoder {encoder} is the text {value!r}, but must be a number"

    def of_scores(self, study: "Study", cells: "pd.DataFrame", runs: Iterable[str | Path] = ()) -> Rendering:
        from xlgrid.exhibits.drawing import sheet as printing
        from xlgrid.results import records, stats, units

        chosen = stats.select(cells, self.select)
        if self.groups:
            chosen = stats.in_groups(chosen, self.groups, study.belongs)
        # Settings are at equal distances, because they often grow by factors, and end with words such as `all`.
        settings = {key for name in cells.get("run_method", ()) for key in settings_of(name)}
        quantity, percent = units.quantity(chosen["metric"]), units.unit(chosen["metric"]) == "%"
        if self.x == "step":
            learning = records.read_curves(runs)
            # A run has the facts of its encoder, and the settings of its variant.
            varied = {key for name in learning["method"] for key in settings_of(name)}.intersection(self.facts)
            for key in varied:
                learning[key] = [settings_of(name)[key] for name in learning["method"]]
            learning["method"] = learning["method"].map(plain) if varied else learning["method"]
            known = cells[["encoder", *(fact for fact in self.facts if fact in cells and fact not in varied)]]
            learning = learning.merge(known.drop_duplicates(), on="encoder")
            learning = stats.select(learning, self.select, "learning curves")
            chosen = stats.learning_curves(learning, chosen, self.lines)
            chosen["path"] = chosen["run"] + f"/{Run.files[0]}"
            quantity, notes = f"dev {quantity}", []
        else:
            chosen = chosen if self.x in settings else stats.with_x(chosen, self.x)
            notes = printing.about(chosen)
        rows = [self.panels, self.x] if self.panels else [self.x]
        entries = stats.entries(chosen, rows, self.lines)
        lines = stats.in_order(chosen, self.lines, self.select)
        points = sorted(set(chosen[self.x]), key=lambda value: (isinstance(value, str), value))
        order = {self.x: points, "column": lines}
        if self.panels:
            order[self.panels] = stats.in_order(chosen, self.panels, self.select)
        draw = partial(
            curves,
            entries,
            panels=self.panels,
            panel_order=order.get(self.panels or "", ()),
            x=self.x,
            lines=self.lines,
            order=lines,
            quantity=quantity,
            ends=(0, 100) if percent else (0, 1),
            ticks=points if self.x in settings else (),
        )
        across = min(len(order[self.panels]), PANELS_ACROSS) if self.panels else 1
        room = across * (PANEL + BETWEEN[0]) - BETWEEN[0]
        sheet = self.printed(entries, notes=notes, rows=rows, column_axes=[self.lines], order=order)
        return Rendering(sheet, draw=draw, behind=chosen.assign(column=chosen[self.lines]), room=room)


def curves(
    entries: "pd.DataFrame",
    look: "Look",
    *,
    x: str,
    lines: str,
    order: Sequence[Any],
    quantity: str = "score (%)",
    ends: tuple[float, float] = (0, 100),
    panels: str | None = None,
    panel_order: Sequence[Any] = (),
    ticks: Sequence[Any] = (),
) -> "Axes":
    """Means against `x`, with a line per value of `lines` and a band of one standard deviation over seeds on each side.

    A point from fewer seeds than planned is hollow; a point without a complete seed leaves a gap in its line.

    Args:
        entries: the columns `panels` (unless it is None), `x`, `column` (the line), `mean`, `sd`, `n_seeds`,
            `n_seeds_expected`.
        order: the lines in the order of the legend.
        quantity: the label of the axis of scores.
        ends: the ends of the axis of scores if there are no scores.
        panels: the column that names a panel; None: there is a single panel.
        panel_order: the panels from left to right and from top to bottom.
        ticks: the values of `x`, at equal distances; (): `x` has numbers, in proportion.

    Returns:
        The last panel. Its figure has all panels.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from xlgrid.exhibits.drawing import plots

    parts = [(name, entries[entries[panels] == name]) for name in panel_order] if panels else [("", entries)]
    figure = Figure(figsize=(1, 1), dpi=plots.DPI)
    axes = plots.panels(figure, look, len(parts), PANEL, BETWEEN, PANELS_ACROSS)
    handles: dict[str, Artist] = {}
    for (name, part), ax in zip(parts, axes, strict=True):
        handles |= _draw(ax, part, x=x, order=order, ends=ends, ticks=ticks, look=look)
        ax.set_title(look.label(name), loc="left")
        ax.set_xlabel("steps of training on text" if x == "checkpoint" else look.label(x))
        ax.set_ylabel(look.label(quantity) if ax.get_position().x0 == 0 else "")
    hollow = handles.pop(FEWER, None)
    if hollow:
        handles[FEWER] = Line2D([], [], linestyle="", marker="o", markerfacecolor="white", markeredgecolor=plots.INK)
    plots.legend(axes[-1], [*handles.values()], [*handles], look.label(lines))
    return axes[-1]


def _draw(
    ax: "Axes",
    entries: "pd.DataFrame",
    *,
    x: str,
    order: Sequence[Any],
    ends: tuple[float, float],
    ticks: Sequence[Any],
    look: "Look",
) -> dict[str, "Artist"]:
    """Draw the lines of one panel, and return the entries of the legend by name, with `FEWER` if a point is hollow."""
    import pandas as pd
    from matplotlib.ticker import MaxNLocator

    from xlgrid.exhibits.drawing import plots
    from xlgrid.exhibits.drawing.labels import label

    if ticks:
        entries = entries.assign(**{x: entries[x].map(ticks.index)})
    handles: dict[str, Artist] = {}
    for i, name in enumerate(order):
        line = entries[entries["column"] == name].sort_values(x)
        colour, marker = plots.COLOURS[i % len(plots.COLOURS)], plots.MARKERS[i % len(plots.MARKERS)]
        dash = plots.DASHES[i // len(plots.COLOURS) % 4]
        short = line["n_seeds"].between(1, line["n_seeds_expected"], inclusive="left").to_numpy()
        across, mean, sd = (line[column].to_numpy(float) for column in (x, "mean", "sd"))
        ax.fill_between(across, mean - sd, mean + sd, color=colour, alpha=0.18, linewidth=0, zorder=1)
        # There are enough markers to distinguish lines without colour, but not so many that they hide a long curve.
        every = max(1, len(line) // 12)
        [handles[look.label(name)]] = ax.plot(
            across, mean, dash, color=colour, marker=marker, markersize=4, linewidth=1.2, markevery=every
        )
        if short.any():
            [handles[FEWER]] = ax.plot(
                across[short],
                mean[short],
                linestyle="",
                marker=marker,
                markersize=4,
                markerfacecolor="white",
                markeredgecolor=colour,
                zorder=3,
            )
    if ticks:
        ax.set_xticks(range(len(ticks)), [look.label(value) for value in ticks])
    elif pd.api.types.is_integer_dtype(entries[x]) or (entries[x] % 1 == 0).all():
        ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 2.5, 5, 10]))
    if not ticks:
        ax.xaxis.set_major_formatter(lambda value, _: label(value).replace("-", "\N{MINUS SIGN}"))
    # Without results, the axes still show the planned points.
    low, high = float(entries[x].min()), float(entries[x].max())
    spare = 0.04 * (high - low) or 0.5
    ax.set(xlim=(low - spare, high + spare))
    if entries["mean"].isna().all():
        ax.set(ylim=ends)
        ax.text(0.5, 0.5, "no complete seed", transform=ax.transAxes, ha="center", va="center")
    plots.bare(ax, "y")
    return handles
