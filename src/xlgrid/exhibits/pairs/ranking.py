"""Which source for which target: how well values of pairs, such as distances, choose a source; donors and recipients."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from xlgrid.exhibits.exhibit import Compared, Rendering
from xlgrid.exhibits.pairs.over import Line, OverPairs, shown, without

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from xlgrid.exhibits.drawing.plots import Look
    from xlgrid.study.schema import Study

# The row that chooses a source at random: the expectation over all orders of the sources.
RANDOM = "random"
# The relevance of the best source; the next one has one less, and so on to 0 (Lin et al. 2019).
TOP = 10


class Ranking(OverPairs, Compared):
    """A figure and a table of how well tables of pairs choose sources, and of sources that give and targets that receive.

    For each target, a table of pairs ranks the sources that are not trained on it. NDCG@k is that of LangRank (Lin et
    al. 2019), in percent: 100 if the k nearest sources are the k best in order. Regret is what is lost, in points, by
    the nearest source in place of the best. Sources with equal values count as if in random order. Both are means over
    targets; `random` is a random order. All tables rank the same sources: those that have a score and all values.

    The effect of a donor is how much better it is as a source than the mean source, and that of a recipient how much
    better it is as a target, by least squares on effects of sources and targets, so that missing cells favour nobody.
    """

    kind: Literal["ranking"] = "ranking"
    by: tuple[str, ...] = Field(min_length=1, description="tables of `pairs`, or built-in ones, which choose sources")
    k: int = Field(3, ge=1, description="the length of the ranking that NDCG@k looks at")
    is_table: ClassVar[bool] = False

    @property
    def tables(self) -> Mapping[str, Sequence[str]]:
        return {"by": self.by}

    @property
    def coined_names(self) -> dict[str, list[str]]:
        return {"method": [*self.by, RANDOM]}

    def problems(self, study: "Study", axes: Mapping[str, Sequence[object]]) -> Iterator[str]:
        yield from super().problems(study, axes)
        if RANDOM in self.by:
            yield f"by: {RANDOM} is a random order in rankings: give the table another name"

    def of_scores(self, study: "Study", cells: "pd.DataFrame", runs: Iterable[str | Path] = ()) -> Rendering:
        import pandas as pd

        from xlgrid.results import stats, units

        chosen, order = self.transfers(cells), [*self.by, RANDOM]
        entries = stats.entries(chosen, ["source"], "target").rename(columns={"column": "target"})
        metrics = list(dict.fromkeys(chosen["metric"]))
        near = pd.DataFrame(index=entries.index)
        for name in self.by:
            table = study.pair_values(name)
            values = np.array(table.of(entries["source"], entries["target"]))
            near[name] = -values if table.lowest_is_nearest else values
        near[RANDOM] = 0.0
        entries["good"] = entries["mean"] if units.higher_is_better(metrics) else -entries["mean"]
        ranked = entries[entries["good"].notna() & near.notna().all(axis=1)]
        found = [
            {"what": "choice", "by": name, "target": target} | self._choice(sources, near.loc[sources.index, name])
            for name in order
            for target, sources in ranked.groupby("target", sort=False)
            if len(sources) > 1
        ]
        of_choice = ["what", "by", "target", "sources", "nearest", "best", "ndcg", "regret"]
        choices = pd.DataFrame(found, columns=of_choice)
        donors, recipients = _effects(entries, "source", "target"), _effects(entries, "target", "source")
        targets, judged = entries["target"].nunique(), choices["target"].nunique()
        means = choices.groupby("by")[["ndcg", "regret"]].mean().reindex(order).astype(float)
        means = means.rename(columns={"ndcg": f"ndcg@{self.k}"})
        lines = []
        for name, row in zip(order, means.to_dict("records"), strict=True):
            texts = {str(head): shown(value, self.digits) for head, value in row.items()}
            lines.append(Line(name, texts, judged, targets, "targets"))
        unranked, valueless = int(entries["good"].isna().sum()), int(near.isna().any(axis=1).sum())
        notes = [
            *self.about(chosen),
            f"Means over {judged} targets. NDCG@{self.k} in percent, with the relevance {TOP} for the best source; "
            "regret: the score of the best source minus that of the nearest one.",
            *without("targets have fewer than two sources with a score and all values", targets - judged, targets),
            *without("means lack all of their seeds", unranked, len(entries)),
            *without("pairs have no value in a table", valueless, len(entries)),
            _listed("Donors", donors["source"], donors["effect"]),
            _listed("Recipients", recipients["target"], recipients["effect"]),
        ]
        sheet = self.table("by", lines, notes)
        # Published numbers are compared with the means, which are numbers of one seed.
        mean = means.to_numpy().ravel()
        seeds = {"n_seeds": (~np.isnan(mean)).astype(int), "n_seeds_expected": 1}
        sheet = replace(sheet, entries=sheet.entries.assign(mean=mean, sd=np.nan, **seeds))
        identity = {axis: chosen[axis].iloc[0] for axis in ("task", "encoder")}
        behind = entries[["source", "target"]].assign(**identity)
        behind = behind.merge(pd.DataFrame({"by": order}), how="cross").assign(method=lambda each: each["by"])
        behind = behind.merge(pd.DataFrame({"metric": means.columns, "column": means.columns}), how="cross")
        data = pd.concat([choices, donors, recipients], ignore_index=True)
        data = data[["what", "by", "target", "source", *of_choice[3:], "effect", "pairs"]]
        draw = partial(self._draw, choices, donors, recipients, units.unit_of_difference(metrics))
        return Rendering(sheet, data, draw, behind)

    def _choice(self, sources: "pd.DataFrame", values: "pd.Series[float]") -> dict[str, Any]:
        """NDCG and regret of one table and target: the columns `source` and `good`, and the values (higher is nearer)."""
        good, near, names = sources["good"].to_numpy(float), values.to_numpy(float), sources["source"].to_numpy()
        rank = (good[:, None] < good[None]).sum(axis=1)
        gains = 2.0 ** np.maximum(0, TOP - rank) - 1
        nearest = near == near.max()
        return {
            "sources": len(sources),
            "nearest": " ".join(names[nearest]) if values.name != RANDOM else "",
            "best": " ".join(names[good == good.max()]),
            "ndcg": 100 * ndcg(gains, near, self.k),
            "regret": float(good.max() - good[nearest].mean()),
        }

    def _draw(
        self, choices: "pd.DataFrame", donors: "pd.DataFrame", recipients: "pd.DataFrame", unit: str, look: "Look"
    ) -> "Axes":
        """The regret of each table, with a dot for each target and a line for the mean; below it, donors and recipients."""
        from matplotlib.figure import Figure

        from xlgrid.exhibits.drawing import plots
        from xlgrid.results.units import with_unit

        order = [*self.by, RANDOM]
        above, line = 0.22 * len(order), 0.14
        figure = Figure(figsize=(1, 1), dpi=plots.DPI)
        ax = plots.axes_at(figure, 0, 0, look.room, above)
        at_table = choices["by"].map({name: at for at, name in enumerate(order)})
        ax.scatter(choices["regret"], at_table, s=12, color=plots.COLOURS[0], alpha=0.45, linewidths=0)
        for at, name in enumerate(order):
            mean = choices.loc[choices["by"] == name, "regret"].mean()
            ax.plot([mean, mean], [at - 0.35, at + 0.35], color=plots.INK)
        ax.set_yticks(range(len(order)), [look.label(name) for name in order])
        ax.set(ylim=(len(order) - 0.5, -0.5), xlabel=with_unit("regret of the nearest source", unit))
        axes, between = [ax], 0.45
        width = (look.room - between) / 2
        for what, of, axis, left in (("donors", donors, "source", 0), ("recipients", recipients, "target", 1)):
            panel = plots.axes_at(figure, left * (width + between), above + 0.75, width, line * max(1, len(of)))
            panel.barh(range(len(of)), of["effect"], color=plots.COLOURS[0], height=0.7)
            panel.set_yticks(range(len(of)), [look.label(name) for name in of[axis]])
            panel.axvline(0, color=plots.INK, linewidth=0.8)
            panel.set_ylim(max(1, len(of)) - 0.5, -0.5)
            panel.set_title(what, loc="left")
            panel.set_xlabel(with_unit("effect", unit))
            panel.tick_params(labelsize=7)
            panel.tick_params(axis="y", length=0)
            axes.append(panel)
        for each in axes:
            plots.bare(each, "x")
        return ax


def ndcg(gains: ArrayLike, values: ArrayLike, k: int) -> float:
    """NDCG@k of items in the order of their values, the highest first (Järvelin and Kekäläinen 2002).

    Items with equal values each get the mean gain of their positions (McSherry and Najork 2008), as in scikit-learn.
    NaN if no item has a gain.
    """
    gained, valued = np.asarray(gains, float), np.asarray(values, float)
    discounts = np.where(np.arange(len(gained)) < k, 1 / np.log2(np.arange(len(gained)) + 2), 0)
    # The number of items before each group of equal values.
    distinct, group, size = np.unique(-valued, return_inverse=True, return_counts=True)
    means = np.bincount(group, gained, len(distinct)) / size
    ideal = float(np.sort(gained)[::-1] @ discounts)
    return float(np.repeat(means, size) @ discounts) / ideal if ideal else float("nan")


def _effects(entries: "pd.DataFrame", axis: str, other: str) -> "pd.DataFrame":
    """The effect of each source (donor) or target (recipient), centred; NaN if the cells do not connect all languages."""
    import pandas as pd

    known = entries.dropna(subset=["good"])
    names, rows = np.unique(known[axis], return_inverse=True)
    others, columns = np.unique(known[other], return_inverse=True)
    design = np.concatenate([np.eye(len(names))[rows], np.eye(len(others))[columns]], axis=1)
    fit, _, rank, _ = np.linalg.lstsq(design, known["good"].to_numpy(float), rcond=None)
    effects = fit[: len(names)] - fit[: len(names)].mean() if rank == len(names) + len(others) - 1 else np.nan
    what = {"source": "donor", "target": "recipient"}[axis]
    found = pd.DataFrame({"what": what, axis: names, "effect": effects, "pairs": np.bincount(rows)})
    return found.sort_values("effect", ascending=False, kind="stable")


def _listed(what: str, names: "pd.Series[str]", effects: "pd.Series[float]") -> str:
    """A sentence with the first donors or recipients and the last one."""
    named = [f"{name} {shown(effect, 1)}" for name, effect in zip(names, effects, strict=True) if effect == effect]
    some = [*named[:3], "...", named[-1]] if len(named) > 4 else named
    return f"{what}, the best first: {', '.join(some) or 'none is known'}."
