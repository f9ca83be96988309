"""Exhibits: the tables and figures that a study asks for, as a schema, and `render`, which makes their files.

Importing this module is cheap; pandas and matplotlib load when an exhibit is rendered.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from xlgrid.files import write_text
from xlgrid.recipe import Strict

if TYPE_CHECKING:
    import pandas as pd

    from xlgrid.grid import Cell
    from xlgrid.tables import Sheet

Identity = Literal["task", "encoder", "method", "source", "target", "seed", "metric"]


def _not_a_truth_value(value: Any) -> Any:
    if value is True or value is False:
        raise ValueError(f"got {value}: YAML reads a bare no, yes, on or off as a truth value; quote it, as in 'no'")
    return value


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


Value = Annotated[str | int, BeforeValidator(_not_a_truth_value)]
Values = Annotated[tuple[Value, ...], BeforeValidator(_as_tuple), Field(min_length=1)]


class _Exhibit(Strict):
    title: str
    caption: str = ""
    select: dict[Identity, Values] = {}
    digits: int = Field(default=1, ge=0, le=6)


class Table(_Exhibit):
    """Rows and columns of means over seeds.

    Source and target, where neither rows nor columns name them, are averaged over within each seed; every other identity
    column must be selected down to one value, or be named.
    """

    kind: Literal["table"] = "table"
    rows: tuple[Identity, ...] = Field(min_length=1)
    columns: Identity | Literal["group"]
    groups: tuple[str, ...] = ()
    statistic: Literal["mean-sd", "mean", "min-max"] = "mean-sd"
    average: bool = False

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len({*self.rows, self.columns}) <= len(self.rows):
            raise ValueError(f"rows and columns name a column twice: rows {list(self.rows)}, columns {self.columns!r}")
        if (self.columns == "group") != bool(self.groups):
            raise ValueError("`groups` goes with `columns: group`: give both, or neither")
        if self.columns == "group" and "target" in self.rows:
            raise ValueError("rows name 'target', but a group averages over its targets: take 'target' out of the rows")
        if self.average and self.columns in ("group", "metric", "seed"):
            raise ValueError(f"`average` cannot average over columns that are {self.columns}s: set it to false")
        return self


class Heatmap(_Exhibit):
    """Source × target of one method, or of the difference of two (the first minus the second)."""

    kind: Literal["heatmap"] = "heatmap"
    method: str | None = None
    difference: tuple[str, str] | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.method is None) == (self.difference is None):
            raise ValueError("a heatmap shows either `method: name` or `difference: [first, second]`: give exactly one")
        if self.difference and self.difference[0] == self.difference[1]:
            raise ValueError(f"`difference` needs two methods, got {self.difference[0]!r} twice")
        if "method" in self.select:
            raise ValueError("`select` names 'method'; a heatmap names it in `method` or `difference`")
        return self


class Curve(_Exhibit):
    """Mean score and standard deviation over seeds against `x`: a numeric column of the cells, or `step` of training."""

    kind: Literal["curve"] = "curve"
    x: str
    lines: Identity

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.x == "step" and (wrong := {self.lines, *self.select} & {"target", "metric"}):
            raise ValueError(
                f"learning curves (`x: step`) belong to runs, which have no {' and no '.join(sorted(wrong))}"
            )
        if self.lines == self.x:
            raise ValueError(f"`x` and `lines` are both {self.x!r}")
        return self


Exhibit = Annotated[Table | Heatmap | Curve, Field(discriminator="kind")]


def needed(exhibit: Table | Heatmap | Curve, cells: Iterable["Cell"]) -> list["Cell"]:
    """The cells that an exhibit shows."""
    select = {axis: values for axis, values in exhibit.select.items() if axis != "metric"}
    if isinstance(exhibit, Heatmap):
        select["method"] = exhibit.difference or (str(exhibit.method),)
    return [cell for cell in cells if all(getattr(cell, axis) in values for axis, values in select.items())]


def suffixes(exhibit: Table | Heatmap | Curve) -> tuple[str, ...]:
    """The suffixes of the files that `render` makes."""
    return (".csv", ".md", ".tex", ".html") if isinstance(exhibit, Table) else (".csv", ".md", ".tex", ".png", ".svg")


def render(
    name: str,
    exhibit: Table | Heatmap | Curve,
    cells: "pd.DataFrame",
    curves: "pd.DataFrame",
    languages: Mapping[str, Any],
    belongs: Callable[[str, str, str], bool],
    folder: str | Path,
) -> list[Path]:
    """Make the files of an exhibit, each atomically, from whatever results exist.

    Args:
        name: the exhibit's name, and the stem of its files.
        cells: one row per *planned* cell: `task`, `encoder`, `method`, `source`, `target`, `seed`, `metric`, `score` (percent,
            NaN without a result), `n` (examples), and numeric columns for the x of curves.
        curves: learning curves: `task`, `encoder`, `method`, `source`, `seed`, `step`, `score`.
        languages: code -> object with `family` and `script`.
        belongs: whether the target (3rd) belongs to the group (1st) for the source (2nd).
        folder: where the files go.

    Returns:
        The paths, in the order of `suffixes`. The CSV has a line per entry: the row's keys, `column`, then `mean`, `sd`, `min`,
        `max`, `n_seeds`, `n_seeds_expected`, `n_cells`, `n_cells_expected`.

    Raises:
        ValueError: the selection is empty, an entry would mix tasks, encoders, methods or metrics, or a column is unknown.
    """
    from xlgrid import tables

    paths = {suffix: Path(folder) / f"{name}{suffix}" for suffix in suffixes(exhibit)}
    if isinstance(exhibit, Table):
        sheet = _table(exhibit, cells, belongs)
        write_text(paths[".html"], tables.to_html(sheet))
    elif isinstance(exhibit, Heatmap):
        sheet = _heatmap(exhibit, cells, languages, paths)
    else:
        sheet = _curve(exhibit, cells, curves, paths)
    write_text(paths[".csv"], sheet.entries.drop(columns="text").to_csv(index=False, lineterminator="\n"))
    write_text(paths[".md"], tables.markdown(sheet))
    write_text(paths[".tex"], tables.latex(sheet, name))
    return list(paths.values())


def _table(exhibit: Table, cells: "pd.DataFrame", belongs: Callable[[str, str, str], bool]) -> "Sheet":
    from xlgrid import stats, tables

    chosen = stats.select(cells, exhibit.select)
    if exhibit.columns == "group":
        chosen = stats.in_groups(chosen, exhibit.groups, belongs)
    columns = stats.in_order(chosen, exhibit.columns, exhibit.select)
    found = stats.entries(chosen, exhibit.rows, exhibit.columns, average=exhibit.average)
    return tables.sheet(
        found,
        title=exhibit.title,
        caption=exhibit.caption,
        notes=tables.about(chosen),
        rows=exhibit.rows,
        order={row: stats.in_order(chosen, row, exhibit.select) for row in exhibit.rows},
        columns=[*columns, stats.AVERAGE] if exhibit.average else columns,
        statistic=exhibit.statistic,
        digits=exhibit.digits,
    )


def _heatmap(
    exhibit: Heatmap, cells: "pd.DataFrame", languages: Mapping[str, Any], paths: Mapping[str, Path]
) -> "Sheet":
    from xlgrid import plots, stats, tables

    methods = exhibit.difference or [exhibit.method]
    chosen = stats.select(cells, {**exhibit.select, "method": methods})
    quantity, notes = _quantity(chosen), tables.about(chosen)
    if exhibit.difference:
        chosen = stats.paired_difference(chosen, *exhibit.difference)
        quantity = " − ".join(exhibit.difference) + " (points)"
        notes.append(f"{' minus '.join(exhibit.difference)}, paired by seed, over the cells and seeds that both have.")
    found = stats.entries(chosen, ["source"], "target")
    sources, targets = (stats.in_order(chosen, axis, exhibit.select) for axis in ("source", "target"))
    rows = plots.blocks(sources, languages, among=[*targets, *sources])
    columns = plots.blocks(targets, languages, among=[*targets, *sources])
    with plots.style():
        ax = plots.heatmap(
            found,
            rows=rows,
            columns=columns,
            diverging=exhibit.difference is not None,
            digits=exhibit.digits,
            quantity=quantity,
            title=exhibit.title,
        )
        plots.save(ax, paths[".png"], paths[".svg"])
    return tables.sheet(
        found,
        title=exhibit.title,
        caption=exhibit.caption,
        notes=notes,
        rows=["source"],
        order={"source": [code for block in rows for code in block.codes]},
        columns=[code for block in columns for code in block.codes],
        digits=exhibit.digits,
    )


def _curve(exhibit: Curve, cells: "pd.DataFrame", curves: "pd.DataFrame", paths: Mapping[str, Path]) -> "Sheet":
    from xlgrid import plots, stats, tables

    chosen = stats.select(cells, exhibit.select)
    if exhibit.x == "step":
        chosen = stats.learning_curves(stats.select(curves, exhibit.select, "learning curves"), chosen, exhibit.lines)
        quantity, notes = "score (%)", []
    else:
        chosen = stats.with_x(chosen, exhibit.x)
        quantity, notes = _quantity(chosen), tables.about(chosen)
    found = stats.entries(chosen, [exhibit.x], exhibit.lines)
    lines = stats.in_order(chosen, exhibit.lines, exhibit.select)
    with plots.style():
        ax = plots.curve(found, x=exhibit.x, lines=exhibit.lines, order=lines, quantity=quantity, title=exhibit.title)
        plots.save(ax, paths[".png"], paths[".svg"])
    return tables.sheet(
        found,
        title=exhibit.title,
        caption=exhibit.caption,
        notes=notes,
        rows=[exhibit.x],
        order={exhibit.x: sorted(set(chosen[exhibit.x]))},
        columns=lines,
        digits=exhibit.digits,
    )


def _quantity(cells: "pd.DataFrame") -> str:
    metrics = list(dict.fromkeys(cells["metric"]))
    return f"{metrics[0] if len(metrics) == 1 else 'score'} (%)"
