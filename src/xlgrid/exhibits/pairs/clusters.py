"""A heatmap whose sources and targets are ordered by hierarchical clustering, with dendrograms."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from xlgrid.exhibits.drawing.blocks import Block
from xlgrid.exhibits.exhibit import Rendering
from xlgrid.exhibits.heatmap import Heatmap
from xlgrid.exhibits.pairs.over import OverTables, without
from xlgrid.languages.sources import Source

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from xlgrid.exhibits.drawing.plots import Look
    from xlgrid.study.schema import Study

# The height of a dendrogram in inches, and its distance from the matrix.
TREE, GAP = 0.35, 0.05
SCORES = "scores"


class Tree(NamedTuple):
    """The order of an axis: the labels in clusters, then those left out; and the linkage of the first."""

    order: tuple[str, ...]
    links: NDArray[np.float64] | None
    left_out: tuple[str, ...]


class Clusters(OverTables, Heatmap):
    """A heatmap whose sources and targets are in the order of a hierarchical clustering, with dendrograms at its edges.

    With `by: scores`, two sources are as far from each other as the root of the mean squared difference of their means
    over the targets that both have, and targets likewise; cells whose target is a training language of the source do
    not count. With a table of pairs, languages are as far from each other as the mean of its values in both directions;
    for a single source, the targets are in the order of their values. A language without a distance from another one
    is last, outside the dendrogram.
    """

    kind: Literal["clusters"] = "clusters"  # type: ignore[assignment]
    by: str = Field(SCORES, description="scores, or a table of `pairs` or a built-in one: what the order follows")
    blocks: tuple[str, ...] = Field((), max_length=0, description="not for this kind, which has an order of its own")
    other_names: ClassVar[tuple[str, ...]] = (SCORES,)

    @property
    def tables(self) -> Mapping[str, Sequence[str]]:
        return {} if self.by == SCORES else {"by": [self.by]}

    def of_scores(self, study: "Study", cells: "pd.DataFrame", runs: Iterable[str | Path] = ()) -> Rendering:
        rendering = super().of_scores(study, cells, runs)
        assert rendering.draw is not None
        trees = self._trees(rendering.sheet.entries, study)
        linked = "average linkage by " * any(tree.links is not None for tree in trees)
        notes = [rendering.sheet.notes, f"In the order of {linked}{self.by}."]
        for tree, axis in zip(trees, ("sources", "targets"), strict=True):
            what = f"{axis} lack a distance from another language and are last"
            notes += without(what, len(tree.left_out), len(tree.order), tree.left_out)
        sheet = replace(rendering.sheet, notes=" ".join(notes))
        return rendering._replace(sheet=sheet, draw=partial(_with_trees, rendering.draw, *trees))

    def _axes(self, cells: "pd.DataFrame", entries: "pd.DataFrame", study: "Study") -> tuple[list[Block], list[Block]]:
        sources, targets = self._trees(entries, study)
        return [Block("", "", sources.order)], [Block("", "", targets.order)]

    def _trees(self, entries: "pd.DataFrame", study: "Study") -> tuple[Tree, Tree]:
        """The orders of the sources and of the targets."""
        # Ties are broken by the order of the study.
        sources, targets = (
            [str(each) for each in study.order[axis] if each in set(entries[column])]
            for axis, column in (("source", "source"), ("target", "column"))
        )
        if self.by == SCORES:
            means = entries.pivot(index="source", columns="column", values="mean").loc[sources, targets].astype(float)
            own = [[target in Source(source).parts for target in targets] for source in sources]
            known = means.mask(np.array(own)).to_numpy()
            return tree(sources, rms(known)), tree(targets, rms(known.T))
        table = study.pair_values(self.by)
        sign = 1 if table.lowest_is_nearest else -1
        if len(sources) == 1:
            values = {target: sign * table.of(sources, [target])[0] for target in targets}
            values |= dict.fromkeys(Source(sources[0]).parts, -inf)
            order = sorted(targets, key=lambda target: (isnan(values[target]), values[target]))
            unknown = tuple(target for target in order if isnan(values[target]))
            return Tree(tuple(sources), None, ()), Tree(tuple(order), None, unknown)

        def of_table(axis: Sequence[str]) -> Tree:
            there = sign * np.array([table.of([one] * len(axis), axis) for one in axis])
            back = np.where(np.isnan(there.T), there, there.T)
            both = (np.where(np.isnan(there), back, there) + back) / 2
            # Similarities are distances from the largest one.
            return tree(axis, both - min(0, np.nanmin(both, initial=0)))

        return of_table(sources), of_table(targets)


def rms(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The root of the mean squared difference of each two rows over the columns that both have; NaN if they have none."""
    apart = (rows[:, None] - rows[None]) ** 2
    shared = (~np.isnan(apart)).sum(axis=2)
    return np.sqrt(np.where(shared > 0, np.nansum(apart, axis=2) / np.maximum(shared, 1), np.nan))


def tree(labels: Sequence[str], distances: NDArray[np.float64]) -> Tree:
    """The clusters of some labels. The label that lacks the most distances is left out first, until none is missing."""
    from scipy.cluster import hierarchy
    from scipy.spatial.distance import squareform

    kept = [*range(len(labels))]
    while kept and (lacking := np.isnan(_off_diagonal(distances, kept)).sum(axis=1)).any():
        kept.pop(int(np.argmax(lacking)))
    if len(kept) < 2:
        return Tree(tuple(labels), None, tuple(labels) if len(labels) > 1 else ())
    left_out = [label for at, label in enumerate(labels) if at not in kept]
    near = squareform(_off_diagonal(distances, kept), checks=False)
    links = hierarchy.linkage(near, "average", optimal_ordering=True)
    leaves = [labels[kept[at]] for at in hierarchy.leaves_list(links)]
    return Tree((*leaves, *left_out), links, tuple(left_out))


def _off_diagonal(distances: NDArray[np.float64], kept: Sequence[int]) -> NDArray[np.float64]:
    square = distances[np.ix_(kept, kept)].copy()
    np.fill_diagonal(square, 0)
    return square


def _with_trees(draw: Callable[..., "Axes"], sources: Tree, targets: Tree, look: "Look") -> "Axes":
    """The heatmap with the dendrogram of the targets above it, and that of the sources on its right."""
    from scipy.cluster import hierarchy

    from xlgrid.exhibits.drawing import plots

    margins = tuple((TREE + GAP) * (tree.links is not None) for tree in (sources, targets))
    ax = draw(look, margins=margins)
    size: Any = ax.get_window_extent()
    width, height = size.width / plots.figure_of(ax).dpi, size.height / plots.figure_of(ax).dpi
    places = {
        "x": (targets, (0, 1 + GAP / height, 1, TREE / height)),
        "y": (sources, (1 + GAP / width, 0, TREE / width, 1)),
    }
    for axis, (clusters, place) in places.items():
        if clusters.links is None:
            continue
        inset = ax.inset_axes(place)
        shape = hierarchy.dendrogram(clusters.links, no_plot=True)
        for along, away in zip(shape["icoord"], shape["dcoord"], strict=True):
            # Leaves are at 5, 15, 25 and so on; cells of a heatmap are one wide.
            middle = np.array(along) / 10
            inset.plot(*((middle, away) if axis == "x" else (away, middle)), color=plots.INK, linewidth=0.9)
        inset.set(xlim=ax.get_xlim() if axis == "x" else (0, None), ylim=(0, None) if axis == "x" else ax.get_ylim())
        inset.axis("off")
    return ax
