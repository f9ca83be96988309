"""Claims of a paper as data: their schema, and the cells of each claim with their weights in the effect of the claim.

Importing this module is cheap. `xlgrid.results.verdicts` measures the effects and judges them.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations
from math import inf
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt, model_validator

from xlgrid.base.names import among
from xlgrid.base.settings import Strict
from xlgrid.products.evaluate import Cell, with_values
from xlgrid.results.naming import Values

# Cells are paired over seeds, and over those of these axes that no side of a claim names.
LANGUAGES = ("source", "target")
PAIRED = ("task", "encoder", "method", *LANGUAGES)
Belongs = Callable[[str, str, str], bool]


class Selection(Strict):
    """A selection of cells: their axes have one of the listed values, and they belong to one of the listed groups."""

    task: Values | None = Field(default=None, description="tasks of the study")
    encoder: Values | None = Field(default=None, description="encoders of the study")
    method: Values | None = Field(default=None, description="methods of the study")
    source: Values | None = Field(default=None, description="sources of the grids, groups expanded")
    target: Values | None = Field(default=None, description="targets of the grids, groups expanded")
    group: Values | None = Field(default=None, description="groups, as in a table: mono, en-X, zero-shot:X-en, ...")
    seed: tuple[NonNegativeInt, ...] | None = Field(
        default=None, description="seeds, if some methods lack some of them; only in `select`"
    )
    checkpoint: PositiveInt | None = Field(
        default=None,
        description="a step among the `checkpoints` of a grid: the cells with the weights of their target's MLM run "
        "after this step; absent: the cells with the weights at its end",
    )

    @property
    def axes(self) -> dict[str, tuple[Any, ...]]:
        """The axes that the selection names, and `group` -> their values. Seeds are numbers.

        `checkpoint` is not an axis: a selection without it uses the weights at the end of the training.
        """
        named = ((axis, getattr(self, axis)) for axis in type(self).model_fields if axis != "checkpoint")
        return {
            axis: tuple(values if axis == "seed" else map(str, values)) for axis, values in named if values is not None
        }

    @property
    def text(self) -> str:
        words = ["/".join(map(str, values)) for values in self.axes.values()]
        return " ".join(words + ([] if self.checkpoint is None else [f"@{self.checkpoint}"]))


class Claim(Strict):
    """A sentence of a paper, and the effect, in the unit of the metric, that would confirm it.

    The effect is one of these:

    - `compare`: the mean over the first selection minus the mean over the second;
    - `compare` with `within`: this difference within the first selection of `within` minus the difference within the
      second, such as a gain on unseen languages minus the gain on others;
    - `trend`: the least-squares slope over the means of at least three selections, per step;
    - `against`: the mean over `select` minus a number, such as the accuracy of guessing.

    All selections of a claim name the same axes and are paired over all other axes: for each value of the other axes
    and each seed, both sides must be planned. The cells of a side of a pair are averaged, and all pairs have the same
    weight. If only methods differ, each pair has two cells that differ only in the method.
    """

    says: str = Field(min_length=1, description="the statement; if it is a paper's, with its section or table")
    select: Selection = Field(Selection(), description="cells that every side of the comparison selects")
    compare: tuple[Selection, Selection] | None = Field(None, description="two selections: the first minus the second")
    within: tuple[Selection, Selection] | None = Field(
        None, description="with `compare`: two selections; the difference within the first minus that within the second"
    )
    trend: Annotated[tuple[Selection, ...], Field(min_length=3)] | None = Field(
        None, description="at least three selections in order: the slope over their means, per step"
    )
    against: float | None = Field(
        None, description="a number, in the unit of the metric, that is subtracted from the mean"
    )
    expect: Literal["greater", "less", "none"] = Field(
        description="greater: the effect is above `margin`; less: below -`margin`; none: between the two"
    )
    margin: NonNegativeFloat = Field(
        0, description="the smallest effect that counts, in the unit of the metric, such as percentage points"
    )
    metric: str | None = Field(None, description="the metric, such as `macro-f1`; absent: the main metric of each task")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        kinds = [name for name in ("compare", "trend", "against") if getattr(self, name) is not None]
        if len(kinds) != 1:
            raise ValueError(
                f"a claim must have one of compare, trend and against, got {' and '.join(kinds) or 'none of them'}"
            )
        if self.expect == "none" and not self.margin:
            raise ValueError("`expect: none` needs a `margin`: the largest effect that counts as no effect")
        if self.within and not self.compare:
            raise ValueError(f"`within` goes with `compare`, got `{kinds[0]}`: leave it out")
        named = {"select": set(self.select.axes)}
        for key in ("compare", "within", "trend"):
            if getattr(self, key):
                named[key] = self._named(key, getattr(self, key))
        for key, other in combinations(named, 2):
            if twice := named[key] & named[other]:
                raise ValueError(f"`{key}` and `{other}` both name {' and '.join(sorted(twice))}: leave one out")
        return self

    @staticmethod
    def _named(key: str, sides: Sequence[Selection]) -> set[str]:
        """The axes that all selections of a key name.

        Raises:
            ValueError: the selections differ in the axes, name no axes, name seeds, or one selection occurs twice.
        """
        named = [set(side.axes) for side in sides]
        if any(axes != named[0] for axes in named):
            got = "; ".join(" and ".join(sorted(axes)) or "nothing" for axes in named)
            raise ValueError(f"the selections of `{key}` must name the same axes, got {got}")
        if not named[0]:
            raise ValueError(f"the selections of `{key}` name nothing: they must differ in some axis")
        if "seed" in named[0]:
            raise ValueError(f"the selections of `{key}` name seeds, over which they are paired: name them in `select`")
        texts = Counter(side.text for side in sides)
        if again := [text for text, count in texts.items() if count > 1]:
            raise ValueError(f"`{key}` has the selection {again[0]!r} twice: name another in one place")
        return named[0]

    @property
    def sides(self) -> tuple[Selection, ...]:
        if self.compare and self.within:
            pairs = [(side, within) for within in self.within for side in self.compare]
            return tuple(
                Selection(**side.axes, **within.axes, checkpoint=side.checkpoint or within.checkpoint)
                for side, within in pairs
            )
        return self.compare or self.trend or (Selection(),)

    def problems(self, study: Any, axes: Mapping[str, Sequence[object]]) -> Iterator[str]:
        """The parts of the study that the claim names and the study lacks, each as `key: problem`.

        Args:
            study: the study of the claim, whose grids have cells.
            axes: the values of each axis of the study's grids.
        """
        stated = self.select.task or {value for side in self.sides for value in side.task or ()}
        tasks = [str(key) for key in axes["task"] if key in (stated or axes["task"])]
        main = list(dict.fromkeys(study.metrics[task][0] for task in tasks))
        if self.metric:
            known = dict.fromkeys(name for task in tasks for name in study.tasks[task].task.all_metrics)
            yield from among("metric", "metric of its tasks", [self.metric], known)
        elif stated and len(main) > 1:
            # If the claim names no task, an encoder or a method may select the cells of a single task.
            yield (
                f"select.task: an effect needs a single metric, but these tasks have {' and '.join(main)}: write a "
                "claim for each"
            )
        # The keys are those of the file: `against` has no separate sides.
        keys = {"compare": self.compare, "within": self.within, "trend": self.trend}
        sides = {f"{key}.{at}": side for key, chosen in keys.items() for at, side in enumerate(chosen or ())}
        for place, selection in {"select": self.select, **sides}.items():
            for axis, values in selection.axes.items():
                if axis != "group":
                    yield from among(f"{place}.{axis}", axis, values, axes[axis], study.defined_names.get(axis, ()))
                    continue
                for group in values:
                    try:
                        study.belongs(group, str(axes["source"][0]), str(axes["target"][0]))
                    except ValueError as error:
                        yield f"{place}.{axis}: {error}"

    @property
    def factors(self) -> list[float]:
        """The factor of the mean of each side. The effect is the sum of the products, before `against` is
        subtracted."""
        if self.trend:
            middle = (len(self.trend) - 1) / 2
            squares = sum((at - middle) ** 2 for at in range(len(self.trend)))
            return [(at - middle) / squares for at in range(len(self.trend))]
        if self.within:
            return [1.0, -1.0, -1.0, 1.0]
        return [1.0, -1.0] if self.compare else [1.0]

    @property
    def measured(self) -> str:
        """The effect in words."""
        named = f" ({self.metric})" if self.metric else ""
        if self.compare:
            minus = " − ".join(side.text for side in self.compare)
            minus = " − ".join(f"({minus} in {side.text})" for side in self.within) if self.within else minus
            return minus + named
        if self.trend:
            return "slope over " + ", ".join(side.text for side in self.trend) + named
        return f"{self.select.text or 'score'} − {self.against:g}{named}"

    @property
    def expected(self) -> str:
        """The expectation as an inequality."""
        margin = f"{self.margin:g}"
        if self.expect == "none":
            return f"within ±{margin}"
        return f"> {margin}" if self.expect == "greater" else f"< {'−' * bool(self.margin)}{margin}"

    @property
    def range(self) -> tuple[float, float]:
        """The claimed range of the effect, in the unit of the metric."""
        if self.expect == "none":
            return -self.margin, self.margin
        return (self.margin, inf) if self.expect == "greater" else (-inf, -self.margin)


class Term(NamedTuple):
    """A cell of a claim.

    Attributes:
        weight: the weight of the cell's score in the effect of its seed.
        side: the position of the cell's side in the claim.
        pair: the source and target for which the cell stands as one of several languages. An axis of which each side
            names a single value is what the claim compares; its value is "".
    """

    cell: Cell
    weight: float
    side: int = 0
    pair: tuple[str, str] = ("", "")


def terms(name: str, claim: Claim, cells: Sequence[Cell], belongs: Belongs) -> list[Term]:
    """The planned cells of a claim with their weights.

    Args:
        name: the name of the claim, for messages.
        cells: all planned cells.
        belongs: whether the target (third argument) belongs to the group (first) for the source (second).

    Raises:
        ValueError: a selection is empty, a side lacks a pair that another side has, or seeds differ in their pairs.
    """
    named = set(claim.sides[0].axes)
    # Groups consist of sources and targets, so sides that name a group differ in targets.
    paired = [axis for axis in PAIRED if axis not in named and not (axis == "target" and "group" in named)]
    if problem := problem_of_plan(claim, cells, belongs):
        raise ValueError(f"claims.{name}: {problem}")
    # (seed, the values of `paired`) -> the cells of each side.
    pairs: dict[tuple[int, tuple[str, ...]], list[list[Cell]]] = defaultdict(lambda: [[] for _ in claim.sides])
    for at, side in enumerate(claim.sides):
        for cell in _of_side(claim, side, cells, belongs):
            pairs[cell.seed, tuple(getattr(cell.shown, axis) for axis in paired)][at].append(cell)
    for (seed, values), sides in pairs.items():
        if missing := [side.text for side, members in zip(claim.sides, sides, strict=True) if not members]:
            present = next(side.text for side, members in zip(claim.sides, sides, strict=True) if members)
            here = ", ".join(f"{axis} {value}" for axis, value in zip(paired, values, strict=True))
            raise ValueError(
                f"claims.{name}: {missing[0]} has no planned cell for {here or 'any'}, seed {seed}, but {present} has "
                "one: narrow `select` to the cells that both have"
            )
    count = Counter(seed for seed, _ in pairs)
    if len({values for _, values in pairs}) * len(count) != len(pairs):
        counts = ", ".join(f"{number} for seed {seed}" for seed, number in count.items())
        raise ValueError(f"claims.{name}: seeds differ in the number of planned pairs ({counts}): narrow `select`")
    compared = [axis for axis in LANGUAGES if all(len(side.axes.get(axis, ())) == 1 for side in claim.sides)]

    def pair(cell: Cell) -> tuple[str, str]:
        source, target = ("" if axis in compared else getattr(cell.shown, axis) for axis in LANGUAGES)
        return source, target

    return [
        Term(cell, factor / len(members) / count[seed], side, pair(cell))
        for (seed, _), sides in pairs.items()
        for side, (factor, members) in enumerate(zip(claim.factors, sides, strict=True))
        for cell in members
    ]


def problem_of_plan(claim: Claim, cells: Sequence[Cell], belongs: Belongs) -> str | None:
    """A message about a selection of a claim without planned cells; None if each selection has planned cells.

    Only `terms` checks whether the cells of both sides are paired, because a study that extends another study by a
    language inherits its claims.

    Args:
        cells, belongs: see `terms`.
    """
    for side in claim.sides:
        if next(_of_side(claim, side, cells, belongs), None) is None:
            return (
                f"no cell is planned for {f'{claim.select.text} {side.text}'.strip()}: select others, or leave the "
                "claim out"
            )
    return None


def _of_side(claim: Claim, side: Selection, cells: Iterable[Cell], belongs: Belongs) -> Iterator[Cell]:
    """The planned cells of a side."""
    # No axis is in both `select` and a side.
    axes = claim.select.axes | side.axes
    step, groups = side.checkpoint or claim.select.checkpoint, axes.pop("group", ())

    @cache
    def is_inside(source: str, target: str) -> bool:
        return not groups or any(belongs(group, source, target) for group in groups)

    for cell in with_values(cells, axes):
        if cell.target.step == step and is_inside(cell.shown.source, cell.shown.target):
            yield cell
