"""Figures of the masks of structured attention, computed by the code of the methods (Foroutan et al. 2023, figures 2,
3)."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from xlgrid.base.names import among
from xlgrid.exhibits.exhibit import Exhibit, Rendering
from xlgrid.papers.foroutan2023.methods import Structured

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from xlgrid.exhibits.drawing.plots import Look
    from xlgrid.exhibits.drawing.sheet import Sheet
    from xlgrid.plan.plan import Plan
    from xlgrid.study.schema import Study

FIRST = "first"
# The parts of a matrix. The row and the column of the first token belong to neither of the other two.
PARTS = ("within a segment", "between the two", "first token")
# The numbers of tokens of the context, including [CLS], and of the question; and the seed that decides which cells are
# masked.
CONTEXT, QUESTION, SEED = 7, 5, 1
# The largest side of a token, and the space between masks, in inches.
LARGEST, BETWEEN = 0.17, 0.85


class Masks(Exhibit):
    """The masks M1 and M2 of methods with structured attention in one training step. The exhibit needs no results."""

    kind: Literal["masks"] = "masks"
    methods: tuple[str, ...] = Field(min_length=1, description="methods of the study with structured attention")
    is_table: ClassVar[bool] = False

    def settings(self, study: "Study") -> list[str]:
        return [*super().settings(study), *(study.methods[name].model_dump_json() for name in self.methods)]

    def problems(self, study: "Study", axes: Mapping[str, Sequence[object]]) -> Iterator[str]:
        masked = [name for name, entry in study.methods.items() if isinstance(entry.method, Structured)]
        yield from among("methods", "method with masks", self.methods, masked)

    def rendering(self, plan: "Plan") -> Rendering:
        weights = self.weights(plan.study.methods)
        across = int(weights.groupby("method")["mask"].nunique().max())
        return Rendering(self.sheet(weights), weights, partial(draw, weights), room=1.6 * across)

    def weights(self, methods: Mapping[str, Any]) -> "pd.DataFrame":
        """The weights of the masks of one input in two languages in one training step.

        Args:
            methods: name -> method of the study.

        Returns:
            A row per weight, with the columns `method`, `mask` (M1, M2), `query` and `key` (the tokens `first`, c2, c3,
            ... of the context, and q1, q2, ... of the question), and `kept` (1, or 0 if the weight is masked).
        """
        import numpy as np
        import pandas as pd
        import torch

        from xlgrid.base.arrays import Segments

        length = CONTEXT + QUESTION
        tokens = [FIRST, *(f"c{n}" for n in range(2, CONTEXT + 1))]
        tokens += [f"q{n}" for n in range(1, QUESTION + 1)]
        rows: list[dict[str, Any]] = []
        for name in self.methods:
            method = methods[name].method
            segments = Segments(np.array([CONTEXT]), ("a", "b"), np.array([[0, 1]], np.int16), length)
            # A figure must not change the state of torch's global generator.
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(SEED)
                masks = method.arrange(segments, torch.device("cpu"), training=True)["layout"].masks(length)
            for which, mask in zip(method.masks, masks, strict=False):
                rows += [
                    {"method": name, "mask": which, "query": query, "key": key, "kept": int(mask[0, i, j])}
                    for i, query in enumerate(tokens)
                    for j, key in enumerate(tokens)
                ]
        return pd.DataFrame(rows)

    def sheet(self, weights: "pd.DataFrame") -> "Sheet":
        """A table of the share of weights that each mask keeps, in percent, from the result of `weights`."""
        from xlgrid.exhibits.drawing.sheet import Sheet, number

        questions = weights[["query", "key"]].map(lambda token: token[0] == "q")
        part = (questions["query"] == questions["key"]).map({True: PARTS[0], False: PARTS[1]})
        part = part.mask((weights[["query", "key"]] == FIRST).any(axis=1), PARTS[2])
        kept = weights.assign(column=part).groupby(["method", "mask", "column"], sort=False)["kept"]
        entries = kept.agg(["sum", "size"]).reset_index()
        texts = [number(100 * n / of, 0) for n, of in zip(entries["sum"], entries["size"], strict=True)]
        hover = [f"{n} of {of} cells" for n, of in zip(entries["sum"], entries["size"], strict=True)]
        notes = (
            f"Cells that are not masked, in percent, for a context of {CONTEXT} tokens, a question of {QUESTION}, "
            f"and seed {SEED}; first token: its row and its column."
        )
        entries = entries.assign(text=texts, state="complete", hover=hover)
        return Sheet(self.title, self.caption, notes, ("method", "mask"), [(part,) for part in PARTS], entries)


def draw(weights: "pd.DataFrame", look: "Look") -> "Axes":
    """Draw a panel for each mask, with queries as rows and keys as columns. Cells with attention are black, masked
    cells are white.

    Args:
        weights: the result of `Masks.weights`.

    Returns:
        The first panel.
    """
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    from xlgrid.exhibits.drawing import plots

    panels = list(weights.groupby(["method", "mask"], sort=False))
    tokens = list(dict.fromkeys(weights["query"]))
    rows = list(dict.fromkeys(method for (method, _), _ in panels))
    across = max(sum(method == row for (method, _), _ in panels) for row in rows)
    side = min(max(0.5, (look.room + BETWEEN) / across - BETWEEN), LARGEST * len(tokens))
    size = min(7.0, 65 * side / len(tokens))
    figure = Figure(figsize=(1, 1), dpi=plots.DPI)
    position = dict.fromkeys(rows, 0)
    shades = ListedColormap(["white", "black"])
    for (method, mask), panel in panels:
        left, top = position[method] * (side + BETWEEN), rows.index(method) * (side + BETWEEN + 0.2)
        position[method] += 1
        ax = plots.axes_at(figure, left, top, side, side)
        kept = panel.pivot(index="query", columns="key", values="kept").reindex(index=tokens, columns=tokens)
        ax.pcolormesh(kept.to_numpy(), cmap=shades, vmin=0, vmax=1, edgecolors=plots.FAINT, linewidth=0.4)
        ax.set(xlim=(0, len(tokens)), ylim=(len(tokens), 0))
        plots.name_tokens(ax, tokens, CONTEXT, size)
        ax.set_title(f"{look.label(method)}: {mask}", loc="left")
    handles = [Patch(facecolor=colour, edgecolor=plots.INK, linewidth=0.8) for colour in ("black", "white")]
    plots.legend(figure.axes[0], handles, ["attends", "masked: weight 0"], above=True)
    return figure.axes[0]
