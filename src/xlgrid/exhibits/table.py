"""A table of means over seeds."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from xlgrid.base.names import among, unknown
from xlgrid.exhibits.exhibit import AXES, Compared, Rendering, wrong_groups
from xlgrid.exhibits.latex import LatexOfScores
from xlgrid.results.naming import as_tuple

if TYPE_CHECKING:
    import pandas as pd

    from xlgrid.study.schema import Study


class Table(Compared):
    """A table of means over seeds.

    `columns: group` gives a column per group; `columns: [task, group]` gives a block of such columns per task, under
    its name. If neither rows nor columns name the axis `source` or `target`, an entry averages over it within each
    seed; every other axis must be named, or have a single selected value. Facts of the encoders (`facts`) are axes,
    too. With two axes of columns, the CSV has both under their names instead of `column`.
    """

    kind: Literal["table"] = "table"
    rows: tuple[str, ...] = Field(
        min_length=1, description="axes, facts of encoders, or settings of variants, whose values name the rows"
    )
    columns: Annotated[tuple[str, ...], BeforeValidator(as_tuple, json_schema_input_type=str | tuple[str, ...])] = (
        Field(min_length=1, max_length=2, description="one axis, or a list of two, the outer first")
    )
    groups: tuple[str, ...] = Field((), description="the groups that are columns, with `columns: group`")
    average: bool = Field(False, description="true: a further column has the mean over the others")
    latex: LatexOfScores = Field(
        LatexOfScores(),
        description="the form of the table in a LaTeX document, and which entries are bold",
    )
    difference: tuple[str, str] | None = Field(
        None,
        description="two of the columns; a further column has the first minus the second, within each seed, or of "
        "their means if the two have different seeds",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        axes = [*self.rows, *self.columns]
        if twice := [axis for axis in dict.fromkeys(axes) if axes.count(axis) > 1]:
            named = f"rows {list(self.rows)}, columns {list(self.columns)}"
            raise ValueError(f"rows and columns name {' and '.join(map(repr, twice))} twice: {named}")
        if ("group" in self.columns) != bool(self.groups):
            raise ValueError("`groups` goes with `columns: group` or `group` among them: give both, or neither")
        if self.groups and "target" in axes:
            where = "rows" if "target" in self.rows else "columns"
            raise ValueError(
                f"{where} name 'target', but a group averages over its targets: remove 'target' from the {where}"
            )
        if self.average and len(self.columns) > 1:
            raise ValueError(f"`average` goes with one axis of columns, got {list(self.columns)}: set it to false")
        if self.average and self.columns[0] in ("group", "metric", "seed"):
            raise ValueError(f"`average` cannot average over columns that are {self.columns[0]}s: set it to false")
        if self.difference:
            self._check_difference(*self.difference)
        self.latex.check(axes)
        return self

    def _check_difference(self, first: str, second: str) -> None:
        if len(self.columns) > 1:
            raise ValueError(f"`difference` goes with one axis of columns, got {list(self.columns)}: leave it out")
        if first == second:
            raise ValueError(f"`difference` needs two columns, got {first!r} twice")
        for name in (first, second) if self.groups else ():
            if name not in self.groups:
                raise ValueError(f"`difference`: {unknown('group', name, self.groups)}")

    @property
    def named_axes(self) -> dict[str, tuple[Sequence[str], Sequence[str]]]:
        return super().named_axes | {"rows": (self.rows, AXES), "columns": (self.columns, (*AXES, "group"))}

    @property
    def names_metric(self) -> bool:
        return "metric" in (*self.select, *self.rows, *self.columns)

    @property
    def coined_names(self) -> dict[str, list[str]]:
        return {"group": list(self.groups)}

    @property
    def groups_shown(self) -> tuple[str, ...]:
        return self.groups

    def problems(self, study: "Study", axes: Mapping[str, Sequence[object]]) -> Iterator[str]:
        yield from wrong_groups(self.groups, study, axes)
        if self.difference and not self.groups:
            axis = self.columns[0]
            yield from among("difference", axis, self.difference, map(str, axes[axis]))

    def of_scores(self, study: "Study", cells: "pd.DataFrame", runs: Iterable[str | Path] = ()) -> Rendering:
        import pandas as pd

        from xlgrid.exhibits.drawing import sheet as printing
        from xlgrid.results import stats, units

        chosen = stats.select(cells, self.select)
        metrics = units.metrics_of(chosen["metric"]) if self.average else []
        if len({(each.unit, each.higher_is_better) for each in metrics}) > 1:
            names = ", ".join(each.name for each in metrics)
            raise ValueError(
                f"`average` would average over metrics of different units or directions ({names}): select some of the "
                "tasks, or set it to false"
            )
        if self.groups:
            chosen = stats.in_groups(chosen, self.groups, study.belongs)
        axes: tuple[str, ...] = self.columns
        order = {axis: stats.in_order(chosen, axis, self.select) for axis in (*self.rows, *axes)}
        if len(axes) == 1:
            subtracted = [stats.minus(*self.difference)] if self.difference else []
            order["column"] = order[axes[0]] + [stats.AVERAGE] * self.average + subtracted
            chosen, axes = chosen.assign(column=chosen[axes[0]]), ("column",)
        entries = stats.entries(chosen, self.rows, axes, average=self.average, difference=self.difference)
        behind, notes = [chosen], printing.about(chosen)
        if self.average:
            behind.append(chosen.assign(column=stats.AVERAGE))
        if self.difference:
            both = chosen[chosen["column"].isin(self.difference)]
            behind.append(both.assign(column=stats.minus(*self.difference)))
            notes += stats.note_on_seeds(both, "column", *self.difference, self.rows)
        entries = printing.with_learning(entries, pd.concat(behind), [*self.rows, *axes])
        printed = partial(self.printed, rows=self.rows, axes=axes, column_axes=self.columns, order=order)
        in_latex = None
        if self.latex.bold or not self.latex.deviation:
            bold, note = self._bold(behind, entries, axes)
            in_latex = printed(bold, notes=notes, deviation=self.latex.deviation)
            in_latex = replace(in_latex, bold=note)
        return Rendering(printed(entries, notes=notes), behind=pd.concat(behind), in_latex=in_latex)

    def _bold(
        self, behind: "Sequence[pd.DataFrame]", entries: "pd.DataFrame", axes: Sequence[str]
    ) -> "tuple[pd.DataFrame, str]":
        """The entries with the column `is_best`, and a sentence about bold entries. LaTeX prints the best ones
        in bold.

        Args:
            behind: the cells of the columns, and the cells of the average if the table has an average.
            axes: the columns of `entries` that name a column.
        """
        import pandas as pd

        from xlgrid.results.verdicts import LEAST_SEEDS, LEVEL
        from xlgrid.results.winners import weighted, winners

        if not self.latex.bold:
            return entries.assign(is_best=False), ""
        by = [*self.rows, *axes]
        competing = [axis if axis in self.rows or len(axes) > 1 else "column" for axis in self.latex.bold]
        cells = [weighted(behind[0], by)]
        # An average over the columns competes only with other rows.
        if self.average and "column" not in competing:
            cells.append(weighted(behind[1], by, self.columns))
        won = winners(pd.concat(cells), by, competing, self.latex.bold)
        is_best = [key in won.keys for key in entries[by].itertuples(index=False, name=None)]
        if not won.tested:
            note = f"No entry is bold: a test needs {LEAST_SEEDS} complete seeds of all entries that it compares."
        elif not any(is_best):
            note = "No entry is bold: no best one is better than the runner-up by the test."
        else:
            others = [axis for axis in (*self.rows, *self.columns) if axis not in self.latex.bold]
            each = f" for each {' and '.join(others)}" if others else ""
            note = (
                f"Bold: the best {' and '.join(self.latex.bold)}{each}, where it is better than the runner-up with p "
                f"below {LEVEL}, paired over seeds, targets and test examples, corrected by Holm over {won.groups} "
                "comparisons."
            )
        return entries.assign(is_best=is_best), note
