"""From scores of cells to numbers of an exhibit: means that never hide a missing cell.

A frame of cells has one row per *planned* cell; a cell without a result has score NaN. An entry of an exhibit is made from
the cells of one group, in two steps: the mean over the group's cells within each seed, then mean and standard deviation over
seeds. A seed enters only if all of its cells have a result, so a mean never runs over whatever happens to exist.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from xlgrid.base.names import unknown

# An entry may average over languages, never over these: such a number would mean nothing.
FIXED = ("task", "encoder", "method", "metric")
LANGUAGES = ("source", "target")
AVERAGE = "average"

# What an exhibit selects: column -> the values it may have.
Where = Mapping[Any, Sequence[Any]]


def complete(frame: pd.DataFrame, by: Sequence[str], cell: Sequence[str]) -> pd.DataFrame:
    """Give every seed of a group every cell of that group; what was not in the frame gets score NaN.

    Args:
        frame: columns `by`, `cell`, `seed`, `score`.
        by: the columns that name a group.
        cell: the columns that tell the cells of one group and seed apart.
    """
    cells = frame[_once(*by, *cell)].drop_duplicates()
    seeds = frame[_once(*by, "seed")].drop_duplicates()
    grid = cells.merge(seeds, on=[name for name in cells if name in seeds], sort=False)
    return grid.merge(frame, on=list(grid), how="left", sort=False)


def _once(*names: str) -> list[str]:
    return list(dict.fromkeys(names))


def seed_means(frame: pd.DataFrame, by: Sequence[str], cell: Sequence[str]) -> pd.DataFrame:
    """Mean over the cells of each group within each seed; NaN for a seed that lacks any of them.

    Args:
        frame: columns `by`, `cell`, `seed`, `score`; with `n_cells` and `n_cells_expected`, what each row already stands for.
        by: the columns that name a group.
        cell: the columns that tell the cells of one group and seed apart.

    Returns:
        Columns `by`, `seed`, `score`, `n_cells` (with a result), `n_cells_expected`; groups in order of first appearance.
    """
    frame = complete(frame, by, cell)
    if "n_cells" not in frame:
        frame = frame.assign(n_cells=frame["score"].notna().astype(int), n_cells_expected=1)
    means = (
        frame.groupby(_once(*by, "seed"), sort=False)
        .agg(
            score=("score", "mean"),
            scores=("score", "count"),
            rows=("score", "size"),
            n_cells=("n_cells", "sum"),
            n_cells_expected=("n_cells_expected", "sum"),
        )
        .reset_index()
    )
    means["score"] = means["score"].where(means.pop("scores") == means.pop("rows"))
    return means


def over_seeds(means: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Statistics of each group over its complete seeds.

    Args:
        means: as `seed_means` returns them.
        by: the columns that name a group.

    Returns:
        One row per group: `by`, `mean`, `sd` (ddof=1; NaN below two seeds), `min`, `max`, `n_seeds` (complete),
        `n_seeds_expected`, `n_cells`, `n_cells_expected`.
    """
    return (
        means.groupby(list(by), sort=False)
        .agg(
            mean=("score", "mean"),
            sd=("score", "std"),
            min=("score", "min"),
            max=("score", "max"),
            n_seeds=("score", "count"),
            n_seeds_expected=("score", "size"),
            n_cells=("n_cells", "sum"),
            n_cells_expected=("n_cells_expected", "sum"),
        )
        .reset_index()
    )


def paired_difference(cells: pd.DataFrame, first: str, second: str) -> pd.DataFrame:
    """Score of method `first` minus method `second`, cell by cell, over the cells that were planned for both.

    Returns:
        The cells of `first` that `second` has too, with the difference as `score` (NaN where either lacks a result).

    Raises:
        ValueError: no cell was planned for both.
    """
    on = ["task", "encoder", "source", "target", "seed", "metric"]
    other = cells.loc[cells["method"] == second, [*on, "score"]]
    both = cells[cells["method"] == first].merge(other, on=on, suffixes=("", "_second"), sort=False)
    if both.empty:
        raise ValueError(f"no cell is planned for both {first!r} and {second!r}: there is nothing to subtract")
    both["score"] = both["score"] - both.pop("score_second")
    return both


def select(frame: pd.DataFrame, where: Where, what: str = "cells") -> pd.DataFrame:
    """The rows whose columns have one of the values that `where` lists for them.

    Raises:
        ValueError: there is no row at all, a value occurs nowhere in its column, or the values never occur together.
    """
    if frame.empty:
        raise ValueError(f"there are no {what} to show yet")
    chosen = frame
    so_far: list[str] = []
    for column, values in where.items():
        known = list(dict.fromkeys(frame[column]))
        for value in values:
            if value not in known:
                raise ValueError(f"select: no {what} with {column} {value!r}: {unknown(column, value, known)}")
        kept = chosen[chosen[column].isin(list(values))]
        if kept.empty:
            raise ValueError(
                f"select: {column} {_some(values)} matches nothing in the {what} with {' and '.join(so_far)}, "
                f"where {column} is {_some(list(dict.fromkeys(chosen[column])))}"
            )
        chosen = kept
        so_far.append(f"{column} {_some(values)}")
    return chosen


def _some(values: Sequence[Any], most: int = 12) -> str:
    return ", ".join(str(value) for value in list(values)[:most]) + (", ..." if len(values) > most else "")


def in_order(frame: pd.DataFrame, column: str, where: Where) -> list[Any]:
    """The values of a column as an exhibit shows them: as `where` lists them, or else as the study does."""
    present = list(dict.fromkeys(frame[column]))
    return [value for value in where.get(column, present) if value in present]


def in_groups(cells: pd.DataFrame, groups: Sequence[str], belongs: Callable[[str, str, str], bool]) -> pd.DataFrame:
    """The cells of each group, one group after the other, with the group's name in column `group`.

    Raises:
        ValueError: no cell belongs to one of the groups.
    """
    runs_on = cells[["source", "target"]].drop_duplicates()
    parts = []
    for group in groups:
        member = [belongs(group, source, target) for source, target in runs_on.itertuples(index=False)]
        part = cells.merge(runs_on[member], on=["source", "target"], sort=False).assign(group=group)
        if part.empty:
            raise ValueError(
                f"group {group!r} is empty: none of the selected targets ({_some(sorted(set(cells['target'])))}) belongs "
                f"to it for source {_some(sorted(set(cells['source'])))}. Drop the group or select other cells"
            )
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def with_x(cells: pd.DataFrame, x: str) -> pd.DataFrame:
    """The cells that have a value in the numeric column `x`.

    Raises:
        ValueError: there is no such column, or none of the cells has a value in it.
    """
    numeric = [str(name) for name in cells.select_dtypes("number") if name not in ("score", "seed", "n", "seconds")]
    if x not in numeric:
        raise ValueError(f"x: {unknown('numeric column', x, [*numeric, 'step'])}")
    kept = cells[cells[x].notna()]
    if kept.empty:
        raise ValueError(f"x: none of the {len(cells)} selected cells has a {x}: select others, or another x")
    return kept


def learning_curves(curves: pd.DataFrame, cells: pd.DataFrame, lines: str) -> pd.DataFrame:
    """Learning curves with a row, of score NaN, also for every run of `cells` and every step that has no score yet.

    Args:
        curves: `task`, `encoder`, `method`, `source`, `seed`, `step`, `score`; `target` of runs for one target each.
        cells: cells of the planned runs.
        lines: the column whose values are the lines of the figure; a line has the steps that any of its runs has.
    """
    run = ["task", "encoder", "method", "source", "seed"]
    # Runs for one target each have the rest in common.
    run += ["run"] if "run" in curves and "run" in cells else []
    runs = pd.concat([curves[run], cells[run]]).drop_duplicates()
    steps = curves[list(dict.fromkeys([lines, "step"]))].drop_duplicates()
    found = runs.merge(steps, on=lines, sort=False).merge(curves, on=[*run, "step"], how="left", sort=False)
    # Of runs for one target each; a gap is no group.
    return found.fillna({"target": ""}) if "target" in found else found


def minus(first: str, second: str) -> str:
    """What the column of a difference is called."""
    return f"{first} \N{MINUS SIGN} {second}"


def _subtracted(means: pd.DataFrame, rows: Sequence[str], first: str, second: str) -> pd.DataFrame:
    """Column `first` minus column `second` of each row, within each seed that both have; as `seed_means` returns it.

    Raises:
        ValueError: there is no such column, or no row has both.
    """
    for name in (first, second):
        if name not in set(means["column"]):
            raise ValueError(f"difference: {unknown('column', name, means['column'])}")
    one, other = (means[means["column"] == name].drop(columns="column") for name in (first, second))
    both = one.merge(other, on=[*rows, "seed"], suffixes=("", "_second"), sort=False)
    if both.empty:
        raise ValueError(f"difference: no row has both {first!r} and {second!r}: there is nothing to subtract")
    both["score"] -= both["score_second"]
    for count in ("n_cells", "n_cells_expected"):
        both[count] += both[f"{count}_second"]
    return both[list(one)]


def entries(
    cells: pd.DataFrame,
    rows: Sequence[str],
    columns: str | Sequence[str],
    *,
    average: bool = False,
    difference: tuple[str, str] | None = None,
) -> pd.DataFrame:
    """The entries of a table, with guarded means (see the top of this file).

    Args:
        cells: one row per planned cell.
        rows: the columns of `cells` that name a row of the table.
        columns: the column of `cells` whose values are the columns of the table, in the result called `column`; or a list of
            such columns, which keep their names.
        average: add a column `average`, the mean over the row's columns, within each seed and then over seeds; needs `column`.
        difference: add a column, the first of these two minus the second, likewise; see `minus` for what it is called.

    Returns:
        Columns `rows`, `column` or `columns`, then the statistics of `over_seeds`.

    Raises:
        ValueError: an entry would average over several tasks, encoders, methods or metrics, a cell occurs twice, or there is
            nothing to subtract.
    """
    if isinstance(columns, str):
        cells, columns = cells.assign(column=cells[columns]), ["column"]
    by = [*rows, *columns]
    # Without any result yet the scores may be None, of type object.
    cells = cells.assign(score=cells["score"].astype(float))
    for name in FIXED:
        if name in cells and name not in by:
            several = cells[cells.groupby(by, sort=False)[name].transform("nunique") > 1]
            if len(several):
                here = several.merge(several[by].iloc[[0]], on=by, sort=False)
                raise ValueError(
                    f"an entry would average over several {name}s ({_some(list(dict.fromkeys(here[name])))}): select one "
                    f"of them, or add {name!r} to the rows, columns or lines"
                )
    within = [name for name in LANGUAGES if name in cells and name not in by]
    if cells.duplicated([*by, *within, "seed"]).any():
        twice = cells[cells.duplicated([*by, *within, "seed"])].iloc[0]
        raise ValueError(
            f"a cell occurs twice: {', '.join(f'{name} {twice[name]}' for name in [*by, *within, 'seed'])}"
        )
    means = seed_means(cells, by, within)
    found = over_seeds(means, by)
    if average:
        mean = over_seeds(seed_means(means, rows, ["column"]), rows)
        found = pd.concat([found, mean.assign(column=AVERAGE)], ignore_index=True)
    if difference:
        less = over_seeds(_subtracted(means, rows, *difference), rows)
        found = pd.concat([found, less.assign(column=minus(*difference))], ignore_index=True)
    return found
