"""Scores, or gains over a baseline, against a value of their pairs, such as the distance of the target."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import floor, isnan, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from xlgrid.base.names import among
from xlgrid.exhibits.exhibit import Rendering
from xlgrid.exhibits.pairs.over import Line, OverPairs, shown, without

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from xlgrid.exhibits.drawing.plots import Look
    from xlgrid.study.schema import Study


class Scatter(OverPairs):
    """A figure of the mean score of each source and target against a value of this pair, such as a distance. With
    `baseline`, the score is the gain over a method or an encoder.

    Each value of `lines` has points and a line. The slope of the line is that of the score on the value after an effect
    of each source and of each target has been taken out, since some languages are hard from any source. Its interval
    respects that languages recur, and is about pairs of languages as alike as those of the study
    (`src/xlgrid/exhibits/pairs/regression.py`). The text of the figure has the slopes, and the CSV has the points.
    """

    kind: Literal["scatter"] = "scatter"
    against: str = Field(description="a table of `pairs`, or same-family, same-script or great-circle: the x axis")
    lines: str = Field(
        "method",
        description="task, encoder or method, a fact of the encoders, or a setting of variants; each of its values has a line",
    )
    baseline: dict[Literal["encoder", "method"], str] = Field(
        {}, max_length=1, description="an axis and its baseline, {method: full-ft}: the score is the gain over it"
    )
    is_table: ClassVar[bool] = False

    @property
    def named_axes(self) -> dict[str, tuple[Sequence[str], Sequence[str]]]:
        return super().named_axes | {"lines": ([self.lines], ("task", "encoder", "method"))}

    @property
    def tables(self) -> Mapping[str, Sequence[str]]:
        return {"against": [self.against]}

    @property
    def selected(self) -> dict[str, tuple[Any, ...]]:
        selected = super().selected
        return selected | {axis: (*selected[axis], name) for axis, name in self.baseline.items() if axis in selected}

    def problems(self, study: "Study", axes: Mapping[str, Sequence[object]]) -> Iterator[str]:
        yield from super().problems(study, axes)
        for axis, name in self.baseline.items():
            yield from among(f"baseline.{axis}", axis, [name], axes[axis], study.defined_names[axis])
            if name in self.select.get(axis, ()):
                yield f"baseline.{axis}: `select` has {name}, too: leave it out there"

    def of_scores(self, study: "Study", cells: "pd.DataFrame", runs: Iterable[str | Path] = ()) -> Rendering:
        import pandas as pd

        from xlgrid.results import units

        points, chosen, behind = self._points(cells)
        values = study.pair_values(self.against)
        points = points.assign(value=values.of(points["source"], points["target"]))
        if points["value"].isna().all():
            raise ValueError(f"against: {self.against} has no value for any source and target of the exhibit: add rows")
        metrics = list(dict.fromkeys(chosen["metric"]))
        unit, quantity = units.unit_of_difference(metrics), units.quantity(metrics)
        for axis, name in self.baseline.items():
            quantity = units.with_unit(f"gain over {name}", unit)
            chosen = chosen[chosen[axis] != name]
        # A difference of the value that pairs do have: 1,000 km, or from another family to the same.
        spread = points["value"].max() - points["value"].min()
        per = 1.0 if spread in (0, 1) else 10.0 ** floor(log10(spread / 2))
        fits = pd.DataFrame([_fit(name, of_line, per) for name, of_line in points.groupby("line", sort=False)])
        head = f"slope ({f'{unit} ' * bool(unit)}per {per:,g})"
        lines = []
        fit: Any
        for fit in fits.itertuples():
            counts = {name: str(getattr(fit, name)) for name in ("pairs", "sources", "targets")}
            texts = {head: self._slope(fit), "r": shown(fit.r, 2)} | counts
            lines.append(Line(fit.line, texts, fit.pairs, fit.planned, "pairs"))
        data = points.merge(fits[["line", "slope", "low", "high"]].assign(per=per), on="line", sort=False)
        of_point = ["line", "source", "target", "value", "mean", "sd", "n_seeds", "n_seeds_expected"]
        data = data[[*of_point, "slope", "low", "high", "per"]].rename(columns={"line": self.lines})
        draw = partial(self._draw, points, fits, per, values.quantity, quantity)
        return Rendering(self.table(self.lines, lines, self._notes(points, chosen, fits)), data, draw, behind)

    def _slope(self, fit: Any) -> str:
        if isnan(fit.low):
            return f"{shown(fit.slope, self.digits)}{' (no interval)' * (not isnan(fit.slope))}"
        return "{} [{}, {}]".format(*(shown(value, self.digits) for value in (fit.slope, fit.low, fit.high)))

    def _points(self, cells: "pd.DataFrame") -> tuple["pd.DataFrame", "pd.DataFrame", "pd.DataFrame"]:
        """A row for each line, source and target with the statistics of `stats.over_seeds`; the selected cells; and the cells
        behind each line, to which those of the baseline belong."""
        import pandas as pd

        from xlgrid.results import stats

        both = {axis: (*self.select[axis], name) for axis, name in self.baseline.items() if axis in self.select}
        chosen = self.model_copy(update={"select": {**self.select, **both}}).transfers(cells)
        if not self.baseline:
            entries = stats.entries(chosen, [self.lines, "source"], "target")
            return entries.rename(columns={"column": "target", self.lines: "line"}), chosen, chosen
        [(axis, baseline)] = self.baseline.items()
        parts, behind = [], []
        for name, of_line in chosen[chosen[axis] != baseline].groupby(self.lines, sort=False):
            other = chosen[chosen[axis] == baseline]
            other = other if axis == self.lines else other[other[self.lines] == name]
            first, *more = dict.fromkeys(of_line[axis])
            if more:
                raise ValueError(f"lines: line {name} has several {axis}s ({first}, {more[0]}): select one of them")
            sides, entries = stats.method_differences(pd.concat([of_line, other]), str(first), baseline, axis)
            behind.append(sides.drop(columns="column").assign(**{self.lines: name}))
            parts.append(entries.assign(line=name))
        if not parts:
            raise ValueError(f"baseline: every selected cell is one of {baseline}: select others to compare with it")
        points = pd.concat(parts, ignore_index=True).rename(columns={"column": "target"})
        return points, chosen, pd.concat(behind)

    def _notes(self, points: "pd.DataFrame", cells: "pd.DataFrame", fits: "pd.DataFrame") -> Iterator[str]:
        yield from self.about(cells)
        for axis, name in self.baseline.items():
            yield f"The gain is the score minus that of {axis} {name}, over the cells and seeds that both have."
        pairs = points.drop_duplicates(["source", "target"])
        unknown = pairs[pairs["value"].isna()]
        named = [*(unknown["source"] + " to " + unknown["target"])]
        yield from without(f"pairs have no value in {self.against} and are left out", len(unknown), len(pairs), named)
        missing = int(points["mean"].isna().sum())
        yield from without("means lack all of their seeds and are left out", missing, len(points))
        short = int(points["n_seeds"].between(1, points["n_seeds_expected"], inclusive="left").sum())
        yield from without("points are of fewer seeds than planned", short, len(points))
        known = fits["slope"].notna()
        if known.any():
            effects = bool(fits["effects"].any())
            model = " with an effect of each source and target" if effects else ", since one side has a single language"
            recur = ", which respects that languages recur" * effects
            yield f"Slope: ordinary least squares{model}; in brackets, its 95 % interval{recur}."
            yield "r: Pearson's correlation of the points, without effects."
        if (known & fits["low"].isna()).any():
            yield "No interval: the pairs are too few; six languages as both sources and targets are enough."
        if (~known & (fits["pairs"] > 0)).any():
            yield "–: the pairs are too few for a slope, or the value does not vary within sources and targets."

    def _draw(self, points: "pd.DataFrame", fits: "pd.DataFrame", per: float, x: str, y: str, look: "Look") -> "Axes":
        """A point for each pair, hollow if it is of fewer seeds than planned; and for each fit a line through the mean of its
        points, with a band for its interval. `x` and `y` are the labels of the axes."""
        import numpy as np
        from matplotlib.figure import Figure

        from xlgrid.exhibits.drawing import plots

        [ax] = plots.panels(Figure(figsize=(1, 1), dpi=plots.DPI), look, 1, 1, (0, 0), high=0.8)
        known = points["value"].dropna()
        # Where the value is a yes or no, the points of each line are beside those of the others.
        apart = 0.05 if {*known} <= {0.0, 1.0} else 0.0
        if self.baseline:
            ax.axhline(0, color=plots.INK, linewidth=0.8, zorder=1)
        fit: Any
        for at, fit in enumerate(fits.itertuples()):
            colour, marker = plots.COLOURS[at % len(plots.COLOURS)], plots.MARKERS[at % len(plots.MARKERS)]
            of_line = points[points["line"] == fit.line].dropna(subset=["value", "mean"])
            across, up = of_line["value"].to_numpy(float), of_line["mean"].to_numpy(float)
            full = (of_line["n_seeds"] >= of_line["n_seeds_expected"]).to_numpy()
            mark: Any = {"marker": marker, "s": 14, "linewidths": 0.7, "edgecolors": colour, "zorder": 2}
            beside = across + apart * (at - (len(fits) - 1) / 2)
            ax.scatter(beside[full], up[full], facecolors=colour, alpha=0.55, **mark)
            ax.scatter(beside[~full], up[~full], facecolors="none", **mark)
            # Without a slope, the line is only in the legend.
            ends = np.array([] if isnan(fit.slope) else [across.min(), across.max()])
            drawn, low, high = (
                up.mean() + (ends - across.mean()) / per * value if len(ends) else ends
                for value in (fit.slope, fit.low, fit.high)
            )
            # The line has a pale edge, which sets it off from the points.
            ax.plot(ends, drawn, "-", color="white", linewidth=3, zorder=3)
            dash: Any = {"linestyle": plots.DASHES[at % len(plots.DASHES)], "marker": marker, "markersize": 4}
            ax.plot(ends, drawn, color=colour, linewidth=1.6, zorder=4, label=look.label(fit.line), **dash)
            ax.fill_between(ends, low, high, color=colour, alpha=0.15, linewidth=0, zorder=1)
        # A band that is wider than the points is cut.
        if len(scores := [*points["mean"].dropna(), *[0.0] * bool(self.baseline)]):
            above = 0.08 * (max(scores) - min(scores)) or 0.5
            ax.set_ylim(min(scores) - above, max(scores) + above)
        spare = 0.04 * (known.max() - known.min()) or 0.5
        spare += apart * len(fits) / 2
        ax.set(xlabel=look.label(x), ylabel=look.label(y), xlim=(known.min() - spare, known.max() + spare))
        if apart:
            ax.set_xticks([0, 1], ["0", "1"])
        elif known.max() >= 1000:
            ax.xaxis.set_major_formatter("{x:,.0f}")
            ax.locator_params(axis="x", nbins=5)
        if points["mean"].isna().all():
            ax.text(0.5, 0.5, "no complete seed", transform=ax.transAxes, ha="center", va="center")
        plots.bare(ax, "y")
        plots.legend(ax, *ax.get_legend_handles_labels(), look.label(self.lines))
        return ax


def _fit(name: Any, points: "pd.DataFrame", per: float) -> dict[str, Any]:
    """The slope of one line and its interval, for a difference `per` of the value, and what it is computed from."""
    from xlgrid.exhibits.pairs.regression import slope

    known = points.dropna(subset=["mean", "value"])
    fit = slope(list(known["source"]), list(known["target"]), known["value"], known["mean"])
    # Values or means that do not vary have no correlation.
    varied = known[["value", "mean"]].std().gt(0).all()
    return {
        "line": name,
        "r": known["value"].corr(known["mean"]) if varied else float("nan"),
        "effects": bool(fit and fit.effects),
        **{key: per * float(getattr(fit, key)) if fit else float("nan") for key in ("slope", "low", "high")},
        "pairs": len(known),
        "planned": len(points),
        "sources": known["source"].nunique(),
        "targets": known["target"].nunique(),
    }
