"""Attention on two targets: a table of the divergence, and pictures of one example (Foroutan et al. 2023, figures 4,
5)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from xlgrid.base.names import among
from xlgrid.exhibits.exhibit import Exhibit, Facts, Rendering
from xlgrid.languages.sources import NONE, Target
from xlgrid.papers.foroutan2023.contrast import Contrast
from xlgrid.results.naming import Values

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from xlgrid.exhibits.drawing.plots import Look
    from xlgrid.exhibits.drawing.sheet import Sheet
    from xlgrid.plan.plan import Plan
    from xlgrid.products.evaluate import Cell
    from xlgrid.study.schema import Study

# The axes whose values distinguish the lines of the table. A line averages over seeds.
AXES = ("task", "encoder", "method", "source")
COLUMNS = {"context": "context tokens", "first": "first token"}
# The room for texts beside and below a matrix, the least room of two matrices, and the smallest matrix, in inches.
ASIDE, BELOW, ROOM, SMALLEST = 0.95, 1.1, 3.5, 0.5
HEADS_IN_A_ROW = 6
SEAM = "#D55E00"
# The colour black means at least this weight, so that nearly uniform attention does not look strong.
LEAST = 0.2
# The maximum number of letters of a token. Longer tokens are cut.
LETTERS = 12


class Attention(Exhibit):
    """The attention of the last layer on one example in two targets with the same context, and its mean divergence over
    many examples.

    Every selected combination of task, encoder, method and source that is planned for both targets has a line in the
    table, with the mean over seeds, and a pair of pictures for its first run with a result.
    """

    kind: Literal["attention"] = "attention"
    select: dict[Literal["task", "encoder", "method", "source", "seed"], Values] = Field(
        {}, description="axis -> the values that are shown"
    )
    targets: tuple[str, str] = Field(description="the two targets whose attention is compared")
    digits: int = Field(default=3, ge=0, le=6, description="digits after the decimal point")
    is_table: ClassVar[bool] = False

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.targets[0] == self.targets[1]:
            raise ValueError(f"`targets` needs two targets, got {self.targets[0]!r} twice")
        return self

    def products(self, planned: Iterable["Cell"]) -> list[Contrast]:
        target, other = self.targets
        chosen = [
            cell
            for cell in planned
            if cell.target in self.targets
            # A cell without training has no run whose attention could be compared.
            and cell.source != NONE
            and all(getattr(cell, axis) in v for axis, v in self.select.items())
        ]
        # The two cells of a run may belong to different studies.
        both = {cell.run[1:] for cell in chosen if cell.target == other}
        first = (cell for cell in chosen if cell.target == target and cell.run[1:] in both)
        return [Contrast(*cell[:-1], other, cell.seed) for cell in first]

    @property
    def named_values(self) -> Mapping[Any, Sequence[object]]:
        return self.select

    def problems(self, study: "Study", axes: Mapping[str, Sequence[object]]) -> Iterator[str]:
        if wrong := list(among("targets", "target", self.targets, axes["target"])):
            yield from wrong
            return
        contexts = [Target(target).languages[0] for target in self.targets]
        if contexts[0] != contexts[1]:
            yield (
                "targets: attention is compared over the tokens of one context, got contexts in "
                f"{' and '.join(contexts)}: name pairs such as {contexts[0]}-X"
            )

    def problems_of_plan(self, planned: Sequence["Cell"], facts: Facts) -> Iterator[str]:
        if not self.products(planned):
            yield f"select: no selected run has both targets, {' and '.join(self.targets)}, in the grids"

    def rendering(self, plan: "Plan") -> Rendering:
        from xlgrid.papers.foroutan2023 import compare

        contrasts = [plan.owned(contrast) for contrast in self.products(plan.cells)]
        if not contrasts:
            raise ValueError(f"no run that the exhibit selects is planned for both {' and '.join(self.targets)}")
        results = {contrast: compare.read(contrast.path) for contrast in contrasts if Path(contrast.path).exists()}
        sheet = self.sheet(contrasts, results)
        return Rendering(sheet, draw=partial(draw, _examples(contrasts, results, sheet), self.targets), room=ROOM)

    def sheet(self, contrasts: Sequence[Contrast], results: Mapping[Contrast, dict[str, Any]]) -> "Sheet":
        """A table of the divergences of the planned contrasts over seeds, from the existing results."""
        from xlgrid.exhibits.drawing import sheet as printing
        from xlgrid.results import stats

        table = divergences(contrasts, results)
        rows = [axis for axis in AXES if table[axis].nunique() > 1] or ["method"]
        return printing.sheet(
            stats.entries(table, rows, "rows"),
            title=self.title,
            caption=self.caption,
            notes=_notes(self.targets, contrasts, results),
            rows=rows,
            order={row: stats.in_order(table, row, self.select) for row in rows} | {"column": list(COLUMNS.values())},
            digits=self.digits,
        )


def divergences(contrasts: Sequence[Contrast], results: Mapping[Contrast, dict[str, Any]]) -> "pd.DataFrame":
    """A frame with two rows per planned run: `AXES`, `seed`, `rows` (a value of `COLUMNS`), and `score` (in bits, NaN
    without a result)."""
    import pandas as pd

    return pd.DataFrame(
        [
            {axis: getattr(contrast, axis) for axis in (*AXES, "seed")}
            | {"rows": label, "score": results[contrast]["divergence"][key] if contrast in results else float("nan")}
            for contrast in contrasts
            for key, label in COLUMNS.items()
        ]
    )


def _examples(
    contrasts: Sequence[Contrast], results: Mapping[Contrast, dict[str, Any]], sheet: "Sheet"
) -> dict[str, dict[str, Any] | None]:
    """For each line of the table, the text above its pictures, and its first run with a result; None without a
    result."""
    first: dict[tuple[str, ...], dict[str, Any] | None] = {}
    for contrast in contrasts:
        keys = tuple(getattr(contrast, axis) for axis in AXES)
        first[keys] = first.get(keys) or results.get(contrast)
    entries = sheet.entries[sheet.entries["column"] == COLUMNS["context"]]
    texts = dict(zip(entries[list(sheet.rows)].itertuples(index=False, name=None), entries["text"], strict=True))
    examples = {}
    for keys, result in first.items():
        line = dict(zip(AXES, keys, strict=True))
        title = f"{line['method']}, trained on {line['source']}: {line['encoder']}, {line['task']}"
        if result:
            title += f", divergence {texts[tuple(line[row] for row in sheet.rows)]} bits"
        examples[title] = result
    return examples


def _notes(
    targets: tuple[str, str], contrasts: Sequence[Contrast], results: Mapping[Contrast, dict[str, Any]]
) -> list[str]:
    from xlgrid.exhibits.drawing.sheet import number

    target, other = targets
    notes = [
        f"Jensen–Shannon divergence in bits between the attention of the last layer in {target} and in {other}: for "
        "each head, the rows of the context's tokens, or of the first token only, are distributions over these tokens "
        "and the question as a whole; 0: the same.",
        f"Runs with a result: {len(results)} of {len(contrasts)}.",
    ]
    if results:
        n, left_out = ([result[key] for result in results.values()] for key in ("n", "left_out"))
        examples = number(min(n), 0) if min(n) == max(n) else f"{min(n)} to {max(n)}"
        notes.append(f"Mean over {examples} examples.")
        if max(left_out):
            notes.append(f"Up to {max(left_out)} examples are left out because their contexts were cut differently.")
    return notes


def draw(examples: Mapping[str, dict[str, Any] | None], targets: Sequence[str], look: "Look") -> "Axes":
    """For each example, the attention of the last layer in each target: the mean over the heads, and each head.

    Args:
        examples: text above the pictures -> the result of `xlgrid.papers.foroutan2023.compare.read`; None without a
            result.
        targets: the targets of the pictures, from left to right.

    Returns:
        The first panel.
    """
    from matplotlib.figure import Figure

    from xlgrid.exhibits.drawing import plots

    side = max(SMALLEST, (look.room - ASIDE) / 2)
    figure = Figure(figsize=(1, 1), dpi=plots.DPI)
    top = 0.0
    for text, result in examples.items():
        if result is None:
            ax = plots.axes_at(figure, 0, top, look.room, 0.6)
            ax.text(0.5, 0.5, "no run with a result", transform=ax.transAxes, ha="center", va="center")
            ax.set(xticks=[], yticks=[])
        else:
            ax = _example(figure, result["drawn"], [look.label(target) for target in targets], top, side)
        ax.annotate(text, (0, 1), (0, 18), "axes fraction", "offset points", fontweight="bold")
        top += _height(result, side)
    return figure.axes[0]


def _example(
    figure: "Figure", drawn: Sequence[dict[str, Any]], targets: Sequence[str], top: float, side: float
) -> "Axes":
    """Draw both targets side by side on the same scale: a large matrix of the mean over heads, and each head below."""
    import numpy as np
    from matplotlib.colors import PowerNorm

    from xlgrid.exhibits.drawing import plots

    longest = max(len(example["tokens"]) for example in drawn)
    large = PowerNorm(0.5, 0, max(LEAST, *(float(example["weights"].mean(0).max()) for example in drawn)))
    small = PowerNorm(0.5, 0, max(LEAST, *(float(example["weights"].max()) for example in drawn)))
    large_panels = []
    for column, (example, target) in enumerate(zip(drawn, targets, strict=True)):
        left, length = column * (side + ASIDE), len(example["tokens"])
        ax = plots.axes_at(figure, left, top, side * length / longest, side * length / longest)
        image = _matrix(ax, example["weights"].mean(0), example["context"], large)
        large_panels.append(ax)
        tokens = [token if len(token) <= LETTERS else f"{token[: LETTERS - 1]}…" for token in example["tokens"]]
        plots.name_tokens(ax, tokens, example["context"], float(np.clip(side / longest * 72 * 0.75, 2, 7)))
        ax.set_title(f"{target}: mean of {len(example['weights'])} heads", loc="left")
        step = side / HEADS_IN_A_ROW
        for head, weights in enumerate(example["weights"]):
            down, across = divmod(head, HEADS_IN_A_ROW)
            below = top + side + BELOW + down * (step + 0.12)
            panel = plots.axes_at(figure, left + across * step, below, 0.82 * step, 0.82 * step)
            _matrix(panel, weights, example["context"], small)
            panel.set(xticks=[], yticks=[])
            panel.set_title(f"head {head + 1}", fontsize=5.5, pad=2)
    bar = figure.colorbar(image, cax=ax.inset_axes((1.04, 0, 0.03, 1)))
    bar.set_label("mean weight", fontsize=8)
    bar.ax.tick_params(labelsize=7, length=2)
    return large_panels[0]


def _height(result: dict[str, Any] | None, side: float) -> float:
    """The height of the pictures of a run in inches."""
    if result is None:
        return 1.3
    rows = -(-len(result["drawn"][0]["weights"]) // HEADS_IN_A_ROW)
    return side + BELOW + rows * (side / HEADS_IN_A_ROW + 0.12) + 0.6


def _matrix(ax: "Axes", weights: "NDArray[np.float32]", context: int, norm: "Normalize") -> Any:
    """Draw a matrix of weights, where black is the largest, with lines between context and question."""
    length = len(weights)
    image = ax.imshow(weights, cmap="Greys", norm=norm, interpolation="nearest", extent=(0, length, length, 0))
    for seam in (ax.axvline, ax.axhline):
        seam(context, color=SEAM, linewidth=0.7, linestyle=(0, (4, 2)))
    return image
