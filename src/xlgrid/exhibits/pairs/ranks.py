"""The mean ranks of methods over languages and tasks, with the critical difference."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from xlgrid.exhibits.exhibit import Rendering
from xlgrid.exhibits.pairs.over import Line, OverPairs, shown, without
from xlgrid.languages.sources import NONE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from xlgrid.exhibits.drawing.plots import Look
    from xlgrid.study.schema import Study

# With fewer blocks or methods, the tests have no power, and their approximations do not hold.
LEAST_BLOCKS, LEAST_METHODS = 6, 3
# The level of Nemenyi's test.
LEVEL = 0.05


class Ranks(OverPairs):
    """A critical-difference diagram (Demšar 2006): the mean rank of each method over blocks, such as tasks and targets.

    In each block, the method with the best mean over complete seeds has rank 1; equal means share their ranks. Methods
    that a bar joins do not differ, by Nemenyi's test, which follows Friedman's. A block without a result of each method is left
    out. Blocks count as independent, which languages of one family are not: the diagram is a summary of the grid, and
    claims have the verdicts.
    """

    kind: Literal["ranks"] = "ranks"
    of: Literal["method", "encoder"] = Field("method", description="the axis that is ranked")
    blocks: tuple[Literal["task", "source", "target"], ...] = Field(
        ("task", "target"),
        min_length=1,
        description="the axes that name a block; a score is the mean over the others, so that each target counts once",
    )
    digits: int = Field(default=2, ge=0, le=6, description="digits after the decimal point")
    is_table: ClassVar[bool] = False

    def problems(self, study: "Study", axes: Mapping[str, Sequence[object]]) -> Iterator[str]:
        yield from super().problems(study, axes)
        names = self.select.get(self.of, axes[self.of])
        if len(names) < LEAST_METHODS:
            named = ", ".join(map(str, names))
            yield f"of: ranks need {LEAST_METHODS} {self.of}s or more, got {named}: compare two of them by a claim"

    def of_scores(self, study: "Study", cells: "pd.DataFrame", runs: Iterable[str | Path] = ()) -> Rendering:
        import scikit_posthocs as posthocs
        from scipy.stats import friedmanchisquare

        from xlgrid.results import stats, units

        chosen = self.transfers(cells, untrained=True)
        uneven = self._uneven(chosen)
        # A method that is planned from an easier source only would win by its source.
        cells_before, chosen = len(chosen), chosen[~uneven]
        sign = -1 if units.higher_is_better(dict.fromkeys(chosen["metric"])) else 1
        # A block may have a metric of its own, but not several.
        entries = stats.entries(chosen, [*self.blocks], self.of)
        order = stats.in_order(chosen, self.of, self.select)
        scores = sign * entries.pivot(index=[*self.blocks], columns="column", values="mean")[order]
        if len(scores) < LEAST_BLOCKS or len(order) < LEAST_METHODS:
            raise ValueError(
                f"ranks need {LEAST_BLOCKS} blocks and {LEAST_METHODS} {self.of}s or more, got {len(scores)} blocks "
                f"({' × '.join(self.blocks)}) and {len(order)}: select more, or name further axes in `blocks`"
            )
        kept = scores.dropna()
        ranks = kept.rank(axis=1)
        lacking = [
            " ".join(map(str, key if isinstance(key, tuple) else (key,)))
            for key in scores.index.difference(kept.index, sort=False)
        ]
        notes = [
            *self.about(chosen),
            f"Ranks over {len(kept)} blocks ({' × '.join(self.blocks)}), 1 is the best.",
            *without(
                f"cells are of a source that some {self.of} of their block lacks, and are left out",
                int(uneven.sum()),
                cells_before,
            ),
            *without(f"blocks lack a {self.of} and are left out", len(lacking), len(scores), lacking),
        ]
        if len(kept) < LEAST_BLOCKS:
            notes.append(f"There are no ranks below {LEAST_BLOCKS} complete blocks.")
            lines = [Line(name, {"mean rank": "–", "first": "–"}, 0, len(scores), "blocks") for name in order]
            draw = partial(self._draw, ranks.mean(), None, 0)
        else:
            mean = ranks.mean().sort_values(kind="stable")
            p = posthocs.posthoc_nemenyi_friedman(kept.reset_index(drop=True))
            # Scores that are all equal have no statistic.
            equal = kept.nunique(axis=1).max() == 1
            statistic, of_all = (0.0, 1.0) if equal else friedmanchisquare(*(kept[name] for name in order))
            cd = critical(len(order), len(kept))
            notes += [
                f"Friedman's test: χ²({len(order) - 1}) = {statistic:.2f}, p = {of_all:.3g}.",
                f"Critical difference of Nemenyi's test at {LEVEL:g}: {cd:.{self.digits}f}.",
            ]
            if of_all >= LEVEL:
                notes.append("Friedman's test finds no difference at all, so none between two of them counts.")
            lines = []
            for name, rank in mean.items():
                texts = {"mean rank": shown(rank, self.digits), "first": str(int((ranks[name] == 1).sum()))}
                for other in order:
                    found = "< 0.001" if p.loc[name, other] < 0.0005 else f"{p.loc[name, other]:.3f}"
                    texts[f"p against {other}"] = "" if name == other else found
                lines.append(Line(str(name), texts, len(kept), len(scores), "blocks"))
            draw = partial(self._draw, mean, p, cd)
        data = ranks.melt(ignore_index=False, var_name=self.of, value_name="rank").reset_index()
        return Rendering(self.table(self.of, lines, notes), data, draw)

    def _uneven(self, cells: "pd.DataFrame") -> "pd.Series[bool]":
        """Whether a cell has no counterpart of each method that its block has. Cells without training have no source."""
        trained = cells[cells["source"] != NONE]
        others = [axis for axis in ("task", "encoder", "method", "source", "target") if axis != self.of]
        counts = [trained.groupby([*axes])[self.of].transform("nunique") for axes in (others, self.blocks)]
        return (counts[0] < counts[1]).reindex(cells.index, fill_value=False)

    def _draw(self, ranks: "pd.Series[float]", p: "pd.DataFrame | None", cd: float, look: "Look") -> "Axes":
        """The diagram of scikit-posthocs: mean ranks on a line, and bars that join methods which do not differ.

        Args:
            ranks: method -> mean rank.
            p: the p of each pair of methods; None without results.
            cd: the critical difference.
        """
        import scikit_posthocs as posthocs
        from matplotlib.figure import Figure

        from xlgrid.exhibits.drawing import plots

        ax = plots.axes_at(Figure(figsize=(1, 1), dpi=plots.DPI), 0, 0, look.room, 0.5 + 0.16 * len(ranks))
        if p is None:
            ax.axis("off")
            ax.text(0.5, 0.5, "no ranks yet", transform=ax.transAxes, ha="center", va="center")
        else:
            ranks = ranks.rename(look.label)
            posthocs.critical_difference_diagram(
                ranks,
                p.rename(look.label).rename(columns=look.label),
                alpha=LEVEL,
                ax=ax,
                label_fmt_left="{label} {rank:.2f}",
                label_fmt_right="{rank:.2f} {label}",
                label_props={"fontsize": 8},
                elbow_props={"linewidth": 1},
                crossbar_props={"color": plots.INK, "linewidth": 2.5},
                marker_props={"s": 12},
                color_palette=dict.fromkeys(ranks.index, plots.INK),
            )
            # That of scikit-posthocs would be on the numbers of the axis.
            over, best = ax.get_xaxis_transform(), float(ranks.min())
            ax.plot([best, best + cd], [1.3, 1.3], transform=over, color=plots.INK, linewidth=2.5, clip_on=False)
            ax.text(best + cd, 1.3, f"  critical difference {cd:.2f}", transform=over, va="center", fontsize=8)
            ax.text(0.5, 1.5, "mean rank (1 is the best)", transform=ax.transAxes, ha="center", va="center", fontsize=8)
        return ax


def critical(methods: int, blocks: int) -> float:
    """The difference of two mean ranks that Nemenyi's test finds: q sqrt(k (k + 1) / (6 N)) (Demšar 2006)."""
    from scipy.stats import studentized_range

    quantile = float(studentized_range.isf(LEVEL, methods, float("inf"))) / sqrt(2)
    return quantile * sqrt(methods * (methods + 1) / (6 * blocks))
