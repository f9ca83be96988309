"""Which source for which target: how well values of pairs, such as distances, choose a source; donors and recipients."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from xlgrid.exhibits.exhibit import Compared, Rendering
from xlgrid.exhibits.pairs.over import OverPairs, without

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from xlgrid.study.schema import Study

# The row that chooses a source at random: the expectation over all orders of the sources.
RANDOM = "random"


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
    top: int = Field(
        10, ge=1, le=50, description="the best source has this relevance, the next one less, and so on to 0"
    )
    is_table: ClassVar[bool] = False

    @property
    def tables(self) -> Mapping[str, Sequence[str]]:
        return {"by": self.by}

    @property
    def coined_names(self) -> dict[str, list[str]]:
        return {"method": [*self.by, RANDOM]}

    def of_scores(self, study: "Study", cells: "pd.DataFrame", runs: Iterable[str | Path] = ()) -> Rendering:
        import pandas as pd

        from xlgrid.exhibits.drawing.sheet import PRINTED, Sheet, number
        from xlgrid.results import stats, units

        chosen = self.transfers(cells)
        entries = stats.entries(chosen, ["source"], "target").rename(columns={"column": "target"})
        metrics = list(dict.fromkeys(chosen["metric"]))
        sign = 1 if units.higher_is_better(metrics) else -1
        for name in self.by:
            table = self.values(study, name)
            near = np.array(table.of(entries["source"], entries["target"]))
            entries[name] = -near if table.lowest_is_nearest else near
        entries[RANDOM] = 0.0
        entries["good"] = sign * entries["mean"]
        ranked = entries.dropna(subset=["good", *self.by])
        choices = pd.DataFrame(
            [
                {"by": name, "target": target} | self._choice(sources, name)
                for name in (*self.by, RANDOM)
                for target, sources in ranked.groupby("target", sort=False)
                if len(sources) > 1
            ],
            columns=["by", "target", "sources", "nearest", "best", "ndcg", "regret"],
        )
        effects = pd.concat(
            [_effects(entries, axis, other) for axis, other in (("source", "target"), ("target", "source"))]
        )
        heads = {f"ndcg@{self.k}": "ndcg", "regret": "regret"}
        targets, judged = entries["target"].nunique(), choices["target"].nunique()
        state = "complete" if judged == targets else "incomplete" if judged else "missing"
        means = choices.groupby("by", sort=False)[["ndcg", "regret"]].mean().reindex([*self.by, RANDOM])
        rows = []
        for name, row in zip(means.index, means.to_dict("records"), strict=True):
            for head, column in heads.items():
                known = row[column] == row[column]
                text = number(row[column], self.digits) if known else "–"
                counts = {"mean": row[column], "sd": np.nan, "n_seeds": int(known), "n_seeds_expected": 1}
                printed = dict(zip(PRINTED, (text, state, f"{judged} of {targets} targets"), strict=True))
                rows.append({"by": name, "column": head} | counts | printed)
        identity = {axis: chosen[axis].iloc[0] for axis in ("task", "encoder")}
        behind = pd.DataFrame(
            [
                identity
                | {"by": name, "method": name, "source": source, "target": target, "metric": head, "column": head}
                for name in (*self.by, RANDOM)
                for source, target in zip(entries["source"], entries["target"], strict=True)
                for head in heads
            ]
        )
        notes = [
            *self.about(chosen),
            f"Means over {judged} targets. NDCG@{self.k} in percent, with the relevance {self.top} for the best source; "
            "regret: the score of the best source minus that of the nearest one.",
            *without("targets have fewer than two sources with a score and all values", targets - judged, targets),
            *without("means lack all of their seeds", int(entries["mean"].isna().sum()), len(entries)),
            *without("pairs have no value in a table", int(entries[[*self.by]].isna().any(axis=1).sum()), len(entries)),
            *(_listed(effects, what) for what in ("donor", "recipient")),
        ]
        sheet = Sheet(
            self.title, self.caption, " ".join(notes), ("by",), [(head,) for head in heads], pd.DataFrame(rows)
        )
        data = pd.concat([choices.assign(what="choice"), effects], ignore_index=True)
        data = data[["what", "by", "target", "source", *choices.columns[2:], "effect", "pairs"]]
        unit = units.unit_of_difference(metrics)
        draw = partial(ranking, choices, effects, [*self.by, RANDOM], unit=unit, title=self.title)
        return Rendering(sheet, data, draw, behind)

    def _choice(self, sources: "pd.DataFrame", name: str) -> dict[str, Any]:
        """NDCG and regret of one table and target, from the columns `source`, `good`, and `name` (higher is nearer)."""
        good, near = sources["good"].to_numpy(float), sources[name].to_numpy(float)
        rank = (good[:, None] < good[None]).sum(axis=1)
        gains = 2.0 ** np.maximum(0, self.top - rank) - 1
        nearest = near == near.max()
        names = sources["source"].to_numpy()
        return {
            "sources": len(sources),
            "nearest": " ".join(names[nearest]) if name != RANDOM else "",
            "best": " ".join(names[good == good.max()]),
            "ndcg": 100 * ndcg(gains, near, self.k),
            "regret": float(good.max() - good[nearest].mean()),
        }


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
    found = pd.DataFrame(
        {"what": what, axis: names, "effect": effects, "pairs": np.bincount(rows, minlength=len(names))}
    )
    return found.sort_values("effect", ascending=False, kind="stable")


def _listed(effects: "pd.DataFrame", what: str) -> str:
    """A sentence with the first donors or recipients and the last one."""
    from xlgrid.exhibits.drawing.sheet import number

    of = effects[effects["what"] == what].dropna(subset=["effect"])
    axis = {"donor": "source", "recipient": "target"}[what]
    named = [f"{name} {number(effect, 1)}" for name, effect in zip(of[axis], of["effect"], strict=True)]
    shown = [*named[:3], "...", named[-1]] if len(named) > 4 else named
    return f"{what.capitalize()}s, the best first: {', '.join(shown) or 'none is known'}."


def ranking(
    choices: "pd.DataFrame", effects: "pd.DataFrame", order: Sequence[str], *, unit: str = "points", title: str = ""
) -> "Axes":
    """The regret of each table, with a dot for each target and a line for the mean; below it, donors and recipients.

    Returns:
        The axes of the regret.
    """
    from matplotlib.figure import Figure

    from xlgrid.exhibits.drawing import plots
    from xlgrid.results.units import with_unit

    longest = max(int((effects["what"] == what).sum()) for what in ("donor", "recipient"))
    above, line = 0.26 * len(order), 0.16
    figure = Figure(figsize=(2.55, above + 0.85 + line * longest), dpi=plots.DPI)
    ax = plots.axes_at(figure, 0, 0, 2.55, above)
    for at, name in enumerate(order):
        regret = choices.loc[choices["by"] == name, "regret"].to_numpy(float)
        ax.scatter(regret, np.full(len(regret), at), s=14, color=plots.COLOURS[0], alpha=0.45, linewidths=0)
        ax.plot([regret.mean()] * 2 if len(regret) else [], [at - 0.35, at + 0.35][: 2 * len(regret)], color=plots.INK)
    ax.set_yticks(range(len(order)), order)
    ax.set(ylim=(len(order) - 0.5, -0.5), xlabel=with_unit("regret of the nearest source", unit))
    panels = (("donor", "source", 0.0), ("recipient", "target", 1.45))
    lower = []
    for what, axis, left in panels:
        of = effects[effects["what"] == what]
        panel = plots.axes_at(figure, left, above + 0.85, 1.1, line * max(1, len(of)))
        panel.barh(range(len(of)), of["effect"], color=plots.COLOURS[0], height=0.7)
        panel.set_yticks(range(len(of)), of[axis], fontsize=7)
        panel.tick_params(axis="y", length=0)
        panel.axvline(0, color=plots.INK, linewidth=0.8)
        panel.set_ylim(max(1, len(of)) - 0.5, -0.5)
        panel.set_title(f"{what}s", loc="left", fontsize=9)
        panel.set_xlabel(with_unit("effect", unit), fontsize=8)
        lower.append(panel)
    for each in (ax, *lower):
        each.spines[["top", "right"]].set_visible(False)
        each.tick_params(labelsize=7 if each is not ax else 8)
        each.grid(axis="x", color="#dddddd", linewidth=0.6)
        each.set_axisbelow(True)
    if title:
        ax.set_title(title, loc="left", fontsize=10, fontweight="bold")
    return ax
