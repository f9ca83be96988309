"""Exhibits: the tables and figures that a study asks for, as a schema, and `render`, which makes their files.

Importing this module is cheap; pandas and matplotlib load when an exhibit is rendered.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, Field, NonNegativeInt, PositiveInt, model_validator

from xlgrid.base.files import write_text
from xlgrid.base.names import unknown
from xlgrid.base.settings import Strict
from xlgrid.results.identity import Contrast

if TYPE_CHECKING:
    import pandas as pd

    from xlgrid.exhibits.tables import Sheet
    from xlgrid.results.identity import Cell

Identity = Literal["task", "encoder", "method", "source", "target", "seed", "metric"]
Column = Literal["task", "encoder", "method", "source", "target", "seed", "metric", "group"]
NamedAxis = Literal["task", "encoder", "method", "source", "target", "metric", "group"]
# What is averaged over several sources or targets, in published numbers.
SEVERAL = "avg"
PublishedColumn = Literal["dataset", "model", "method", "source", "target", "metric"]


def _not_a_truth_value(value: Any) -> Any:
    if value is True or value is False:
        raise ValueError(f"got {value}: YAML reads a bare no, yes, on or off as a truth value; quote it, as in 'no'")
    return value


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _an_axis(axes: Any) -> BeforeValidator:
    def known(value: Any) -> Any:
        if value not in get_args(axes):
            raise ValueError(unknown("axis", value, get_args(axes)))
        return value

    return BeforeValidator(known)


Value = Annotated[str | int, BeforeValidator(_not_a_truth_value)]
Values = Annotated[tuple[Value, ...], BeforeValidator(_as_tuple), Field(min_length=1)]


class Naming(Strict):
    """What a paper calls ours, and how many seeds stand behind its numbers."""

    names: dict[NamedAxis, dict[str, str | dict[PublishedColumn, str]]] = Field(
        default={},
        description="axis -> our name -> the paper's, where they differ; a group `mono` is `avg:mono` unless named here; what is "
        "more than one column of the paper's gives each: {lot-context-only: {dataset: lot, method: context-only}}",
    )
    seeds: PositiveInt = Field(default=1, description="over how many seeds the paper averages; 1 where it does not say")
    seeds_of: dict[NamedAxis, dict[str, PositiveInt]] = Field(
        default={},
        description="axis -> our name -> the same, where it is another number: {method: {mlm-trg: 1}}; the fewest counts "
        "where several do",
    )


class Published(Naming):
    """The published numbers that an exhibit is compared with; what it leaves out is as in the study's `published`."""

    file: str = Field(pattern=r"^[\w.-]+/[\w.-]+$", description="{paper}/{exhibit}: a CSV in reference/")

    @property
    def path(self) -> Path:
        return Path("reference") / f"{self.file}.csv"


class _Exhibit(Strict):
    title: str
    caption: str = ""


class _OfCells(_Exhibit):
    """Of a task with several metrics, the main one is shown unless `select` or an axis names `metric`."""

    select: dict[Identity, Values] = {}
    digits: int = Field(default=1, ge=0, le=6)


class Table(_OfCells):
    """Rows and columns of means over seeds.

    `columns: group` is a column per group; `columns: [task, group]` a block of them per task, under its name. Source and target,
    where neither rows nor columns name them, are averaged over within each seed; every other identity column must be selected
    down to one value, or be named.
    """

    kind: Literal["table"] = "table"
    rows: tuple[Annotated[Identity, _an_axis(Identity)], ...] = Field(min_length=1)
    columns: Annotated[tuple[Annotated[Column, _an_axis(Column)], ...], BeforeValidator(_as_tuple)] = Field(
        min_length=1, max_length=2, description="one axis, or a list of two, the outer first"
    )
    groups: tuple[str, ...] = ()
    statistic: Literal["mean-sd", "mean", "min-max"] = "mean-sd"
    average: bool = False
    difference: tuple[str, str] | None = Field(
        None, description="two of the columns; one more is the first minus the second, within each seed"
    )
    published: Published | None = None

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
                f"{where} name 'target', but a group averages over its targets: take 'target' out of the {where}"
            )
        if self.average and len(self.columns) > 1:
            raise ValueError(f"`average` goes with one axis of columns, got {list(self.columns)}: set it to false")
        if self.average and self.columns[0] in ("group", "metric", "seed"):
            raise ValueError(f"`average` cannot average over columns that are {self.columns[0]}s: set it to false")
        if self.difference:
            self._check_difference(*self.difference)
        return self

    def _check_difference(self, first: str, second: str) -> None:
        if len(self.columns) > 1:
            raise ValueError(f"`difference` goes with one axis of columns, got {list(self.columns)}: leave it out")
        if first == second:
            raise ValueError(f"`difference` needs two columns, got {first!r} twice")
        for name in (first, second) if self.groups else ():
            if name not in self.groups:
                raise ValueError(f"`difference`: {unknown('group', name, self.groups)}")


class Heatmap(_OfCells):
    """Source × target of one method, or of the difference of two (the first minus the second)."""

    kind: Literal["heatmap"] = "heatmap"
    method: str | None = None
    difference: tuple[str, str] | None = None
    blocks: tuple[str, ...] = Field(
        (),
        description="groups of the study, [seen, unseen]: in their order, and within each in the study's, stand the languages "
        "of both axes; absent: by family",
    )
    published: Published | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.method is None) == (self.difference is None):
            raise ValueError("a heatmap shows either `method: name` or `difference: [first, second]`: give exactly one")
        if self.difference and self.difference[0] == self.difference[1]:
            raise ValueError(f"`difference` needs two methods, got {self.difference[0]!r} twice")
        if "method" in self.select:
            raise ValueError("`select` names 'method'; a heatmap names it in `method` or `difference`")
        return self


class Best(_OfCells):
    """For each target the source that transfers best to it, among those not trained on it, by the mean over seeds."""

    kind: Literal["best"] = "best"
    columns: Literal["task", "encoder", "method"] = "method"


class Curve(_OfCells):
    """Mean score and standard deviation over seeds against `x`: `step` of training, or another numeric column of the cells,
    such as `snapshot`, the step of its run on text that a target is spoken as of (`Grid.snapshots`)."""

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


class Parameters(_Exhibit):
    """How many parameters methods add to encoders, counted on the methods' own modules; needs no results."""

    kind: Literal["parameters"] = "parameters"
    encoders: tuple[str, ...] = Field(min_length=1)
    methods: tuple[str, ...] = Field(min_length=1)
    digits: int = Field(default=2, ge=0, le=6)
    published: Published | None = Field(
        None, description="a CSV with the columns model, method, added_params_millions and percent_of_model"
    )


class Masks(_Exhibit):
    """M1 and M2 of methods with structured attention, as a step of training draws them; needs no results."""

    kind: Literal["masks"] = "masks"
    methods: tuple[str, ...] = Field(min_length=1)
    context: PositiveInt = Field(default=7, description="tokens of the context, the first one, [CLS], included")
    question: PositiveInt = Field(default=5, description="tokens of the question")
    seed: NonNegativeInt = 1


class Attention(_Exhibit):
    """Attention of the last layer on one example in two targets of the same context, and how far it differs over many.

    Every task, encoder, method and source selected that is planned for both targets has a line in the table, of its runs
    over seeds, and a pair of pictures, of its first run with a result.
    """

    kind: Literal["attention"] = "attention"
    select: dict[Literal["task", "encoder", "method", "source", "seed"], Values] = {}
    targets: tuple[str, str]
    digits: int = Field(default=3, ge=0, le=6)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.targets[0] == self.targets[1]:
            raise ValueError(f"`targets` needs two targets, got {self.targets[0]!r} twice")
        return self


# The comparison with published numbers.
COMPARED = ("-published.csv", "-published.md", "-published.html")

AnyExhibit = Table | Heatmap | Best | Curve | Parameters | Masks | Attention
Exhibit = Annotated[AnyExhibit, Field(discriminator="kind")]


def needed(exhibit: AnyExhibit, cells: Iterable["Cell"]) -> list["Cell"]:
    """The cells that an exhibit shows: a curve over `snapshot` those that speak as of a step, any other those of the end."""
    if isinstance(exhibit, Parameters | Masks | Attention):
        return []
    select = {axis: values for axis, values in exhibit.select.items() if axis != "metric"}
    if isinstance(exhibit, Heatmap):
        select["method"] = exhibit.difference or (str(exhibit.method),)
    early = isinstance(exhibit, Curve) and exhibit.x == "snapshot"
    chosen = ((cell, cell.shown) for cell in cells if (cell.target.step is not None) == early)
    return [cell for cell, shown in chosen if all(getattr(shown, axis) in values for axis, values in select.items())]


def names_metric(exhibit: Table | Heatmap | Best | Curve) -> bool:
    """Whether an exhibit says which metrics it shows; one that does not shows the main one of each task."""
    axes = [*exhibit.rows, *exhibit.columns] if isinstance(exhibit, Table) else []
    axes += [exhibit.lines] if isinstance(exhibit, Curve) else []
    return "metric" in (*exhibit.select, *axes)


def contrasts(exhibit: AnyExhibit, cells: Iterable["Cell"]) -> list[Contrast]:
    """The runs and targets whose attention an exhibit shows."""
    if not isinstance(exhibit, Attention):
        return []
    target, other = exhibit.targets
    chosen = [
        cell
        for cell in cells
        if cell.target in exhibit.targets and all(getattr(cell, axis) in v for axis, v in exhibit.select.items())
    ]
    both = {cell.run for cell in chosen if cell.target == other}
    return [Contrast(*cell[:-1], other, cell.seed) for cell in chosen if cell.target == target and cell.run in both]


def stands_beside(exhibit: AnyExhibit) -> Published | None:
    """The published numbers that an exhibit stands beside, if any."""
    return exhibit.published if isinstance(exhibit, Table | Heatmap | Parameters) else None


def compared(exhibit: AnyExhibit) -> bool:
    """Whether an exhibit has files that compare it with published numbers."""
    return isinstance(exhibit, Table | Heatmap) and exhibit.published is not None


def references(exhibit: AnyExhibit) -> list[str]:
    """The files of published numbers that an exhibit reads: none, or its own and, to be compared, the paper's contradictions."""
    file = stands_beside(exhibit)
    if file is None:
        return []
    if not compared(exhibit):
        return [str(file.path)]
    contradictions = file.path.with_name("contradictions.csv")
    return [str(file.path), *([str(contradictions)] if contradictions.exists() else [])]


def tabular(exhibit: AnyExhibit) -> bool:
    """Whether an exhibit is a table, and no figure."""
    return isinstance(exhibit, Table | Best | Parameters)


def suffixes(exhibit: AnyExhibit) -> tuple[str, ...]:
    """The suffixes of an exhibit's files."""
    own = (".csv", ".md", ".tex", *((".html",) if tabular(exhibit) else (".png", ".svg")))
    return (*own, *(COMPARED if compared(exhibit) else ()))


def render(
    name: str,
    exhibit: Table | Heatmap | Best | Curve,
    cells: "pd.DataFrame",
    curves: "pd.DataFrame",
    languages: Mapping[str, Any],
    belongs: Callable[[str, str, str], bool],
    folder: str | Path,
) -> list[Path]:
    """Make the files of an exhibit of cells, each atomically, from whatever results exist.

    Args:
        name: the exhibit's name, and the stem of its files.
        cells: one row per *planned* cell: `task`, `encoder`, `method`, `source`, `target`, `seed`, `metric`, `score` (percent,
            NaN without a result), `n` (examples), and numeric columns for the x of curves.
        curves: learning curves: `task`, `encoder`, `method`, `source`, `seed`, `step`, `score`.
        languages: code -> object with `family` and `script`.
        belongs: whether the target (3rd) belongs to the group (1st) for the source (2nd).
        folder: where the files go.

    Returns:
        The paths, in the order of `suffixes`. The CSV has a line per entry: the row's keys, `column` or, where columns have two
        axes, both by name, then `mean`, `sd`, `min`, `max`, `n_seeds`, `n_seeds_expected`, `n_cells`, `n_cells_expected`; of
        best sources it is as `best.sources` says. The comparison's is that of `compare.beside`.

    Raises:
        FileNotFoundError: there are no such published numbers.
        ValueError: the selection is empty, an entry would mix tasks, encoders, methods or metrics, a column is unknown, or the
            published numbers are damaged or about something else.
    """
    from xlgrid.exhibits import tables

    paths = {suffix: Path(folder) / f"{name}{suffix}" for suffix in suffixes(exhibit)}
    if isinstance(exhibit, Table):
        sheet, shown = _table(exhibit, cells, belongs)
    elif isinstance(exhibit, Heatmap):
        sheet, shown = _heatmap(exhibit, cells, languages, belongs, paths)
    elif isinstance(exhibit, Best):
        from xlgrid.exhibits import best

        sheet = best.sources(exhibit, cells)
    else:
        sheet = _curve(exhibit, cells, curves, paths)
    write_text(paths[".csv"], sheet.entries.drop(columns=list(tables.PRINTED)).to_csv(index=False, lineterminator="\n"))
    write_text(paths[".md"], tables.markdown(sheet))
    write_text(paths[".tex"], tables.latex(sheet, name))
    if tabular(exhibit):
        write_text(paths[".html"], tables.to_html(sheet))
    if isinstance(exhibit, Table | Heatmap) and exhibit.published:
        _compare(sheet, shown, exhibit.published, exhibit.digits, paths)
    return list(paths.values())


def _compare(
    sheet: "Sheet", shown: "pd.DataFrame", published: Published, digits: int, paths: Mapping[str, Path]
) -> None:
    from xlgrid.exhibits import tables
    from xlgrid.results import published as compare

    found = compare.beside(sheet, shown, published)
    both = compare.comparison(sheet, found, published, digits)
    for suffix, text in zip(
        COMPARED,
        (found.to_csv(index=False, lineterminator="\n"), tables.markdown(both), tables.to_html(both)),
        strict=True,
    ):
        write_text(paths[suffix], text)


def _table(
    exhibit: Table, cells: "pd.DataFrame", belongs: Callable[[str, str, str], bool]
) -> tuple["Sheet", "pd.DataFrame"]:
    """The table, and the cells behind its entries with the columns where they stand."""
    import pandas as pd

    from xlgrid.exhibits import tables
    from xlgrid.results import stats

    chosen = stats.select(cells, exhibit.select)
    if exhibit.groups:
        chosen = stats.in_groups(chosen, exhibit.groups, belongs)
    axes: tuple[str, ...] = exhibit.columns
    order = {axis: stats.in_order(chosen, axis, exhibit.select) for axis in (*exhibit.rows, *axes)}
    if len(axes) == 1:
        subtracted = [stats.minus(*exhibit.difference)] if exhibit.difference else []
        order["column"] = order[axes[0]] + [stats.AVERAGE] * exhibit.average + subtracted
        chosen, axes = chosen.assign(column=chosen[axes[0]]), ("column",)
    found = stats.entries(chosen, exhibit.rows, axes, average=exhibit.average, difference=exhibit.difference)
    sheet = tables.sheet(
        found,
        title=exhibit.title,
        caption=exhibit.caption,
        notes=tables.about(chosen),
        rows=exhibit.rows,
        axes=axes,
        order=order,
        statistic=exhibit.statistic,
        digits=exhibit.digits,
    )
    behind = [chosen]
    if exhibit.average:
        behind.append(chosen.assign(column=stats.AVERAGE))
    if exhibit.difference:
        both = chosen[chosen["column"].isin(exhibit.difference)]
        behind.append(both.assign(column=stats.minus(*exhibit.difference)))
    return sheet, pd.concat(behind)


def _heatmap(
    exhibit: Heatmap,
    cells: "pd.DataFrame",
    languages: Mapping[str, Any],
    belongs: Callable[[str, str, str], bool],
    paths: Mapping[str, Path],
) -> tuple["Sheet", "pd.DataFrame"]:
    """The heatmap's numbers as a table, and the cells behind its entries with the `column` where they stand."""
    from xlgrid.exhibits import plots, tables
    from xlgrid.results import stats

    methods = exhibit.difference or [exhibit.method]
    chosen = stats.select(cells, {**exhibit.select, "method": methods})
    quantity, notes = _quantity(chosen), tables.about(chosen)
    if exhibit.difference:
        chosen = stats.paired_difference(chosen, *exhibit.difference)
        quantity = " − ".join(exhibit.difference) + " (points)"
        notes.append(f"{' minus '.join(exhibit.difference)}, paired by seed, over the cells and seeds that both have.")
        # Published numbers name a difference so.
        metric = (chosen["metric"] + "-difference").where(chosen["metric"] != "", "")
        chosen = chosen.assign(method="-minus-".join(exhibit.difference), metric=metric)
    found = stats.entries(chosen, ["source"], "target")
    sources, targets = (stats.in_order(chosen, axis, exhibit.select) for axis in ("source", "target"))
    if exhibit.blocks:
        rows, columns = (plots.grouped(codes, exhibit.blocks, belongs) for codes in (sources, targets))
    else:
        rows, columns = (plots.blocks(codes, languages, [*targets, *sources]) for codes in (sources, targets))
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
    sheet = tables.sheet(
        found,
        title=exhibit.title,
        caption=exhibit.caption,
        notes=notes,
        rows=["source"],
        order={
            "source": [code for block in rows for code in block.codes],
            "column": [code for block in columns for code in block.codes],
        },
        digits=exhibit.digits,
    )
    return sheet, chosen.assign(column=chosen["target"])


def _curve(exhibit: Curve, cells: "pd.DataFrame", curves: "pd.DataFrame", paths: Mapping[str, Path]) -> "Sheet":
    from xlgrid.exhibits import plots, tables
    from xlgrid.results import stats

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
        order={exhibit.x: sorted(set(chosen[exhibit.x])), "column": lines},
        digits=exhibit.digits,
    )


def _quantity(cells: "pd.DataFrame") -> str:
    metrics = list(dict.fromkeys(cells["metric"]))
    return f"{metrics[0] if len(metrics) == 1 else 'score'} (%)"
