"""Statistics of the scores of cells for exhibits, with means that never hide a missing cell.

A frame of cells has one row per *planned* cell; a cell without a result has the score NaN. An entry of an exhibit is
computed from the cells of one group in two steps: the mean over the group's cells within each seed, and then the mean
and standard deviation over seeds. A seed counts only if all of its cells have a result, so that a mean is never taken
over an arbitrary part of the cells.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from xlgrid.base.names import unknown
from xlgrid.results.records import IMPLEMENTATION, MEASURED

# An entry may average over languages, but not over these columns, because such a mean would have no meaning.
FIXED = ("task", "encoder", "method", "metric")
LANGUAGES = ("source", "target")
AVERAGE = "average"

# The selection of an exhibit: column -> the selected values.
Where = Mapping[Any, Sequence[Any]]


def complete(frame: pd.DataFrame, by: Sequence[str], cell: Sequence[str]) -> pd.DataFrame:
    """The frame with every cell of a group for every seed of the group. Cells that the frame lacks have the score NaN.

    Args:
        frame: the columns `by`, `cell`, `seed`, `score`.
        by: the columns that name a group.
        cell: the columns that distinguish the cells of a group and seed.
    """
    cells = frame[_once(*by, *cell)].drop_duplicates()
    seeds = frame[_once(*by, "seed")].drop_duplicates()
    grid = cells.merge(seeds, on=[name for name in cells if name in seeds], sort=False)
    return grid.merge(frame, on=list(grid), how="left", sort=False)


def _once(*names: str) -> list[str]:
    return list(dict.fromkeys(names))


def seed_means(frame: pd.DataFrame, by: Sequence[str], cell: Sequence[str]) -> pd.DataFrame:
    """The mean over the cells of each group within each seed; NaN for a seed that lacks one of the cells.

    Args:
        frame: the columns `by`, `cell`, `seed`, `score`. If a row is itself a mean over cells, `n_cells` and
            `n_cells_expected` have the numbers of these cells.
        by: the columns that name a group.
        cell: the columns that distinguish the cells of a group and seed.

    Returns:
        The columns `by`, `seed`, `score`, `n_cells` (with a result), `n_cells_expected`, with groups in the order of
        their first appearance.
    """
    frame = complete(frame, by, cell)
    if "n_cells" in frame:
        # If a seed lacks a row that other seeds have, it is missing as many cells as the row has in other seeds.
        expected = frame.groupby(_once(*by, *cell), sort=False)["n_cells_expected"].transform("max")
        frame = frame.fillna({"n_cells": 0, "n_cells_expected": expected})
        frame = frame.astype({"n_cells": int, "n_cells_expected": int})
    else:
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
    """The statistics of each group over its complete seeds.

    Args:
        means: the result of `seed_means`.
        by: the columns that name a group.

    Returns:
        One row per group, with the columns `by`, `mean`, `sd` (ddof=1; NaN below two seeds), `min`, `max`, `n_seeds`
        (complete), `n_seeds_expected`, `n_cells`, `n_cells_expected`.
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


def differences(first: pd.DataFrame, second: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The statistics of one score minus another over seeds, for each group that has both.

    If both have the same seeds, the difference is taken within each seed, so that common effects of a seed cancel. If
    their seeds differ, it is the difference of the means over the complete seeds of each, and its standard deviation is
    √(sd₁² + sd₂²). The numbers of seeds and cells are then those of the less complete side or, if both are equally
    complete, of the side with fewer seeds.

    Args:
        first, second: results of `seed_means`.
        by: the columns that name a group.

    Returns:
        The columns of `over_seeds`; empty if no group has both.
    """
    by = list(by)
    sets = pd.concat(
        [side.groupby(by, sort=False)["seed"].agg(frozenset) for side in (first, second)], axis=1, join="inner"
    )
    same = sets.iloc[:, 0] == sets.iloc[:, 1]
    within, between = (sets.index[chosen].to_frame(index=False) for chosen in (same, ~same))
    paired = first.merge(within, on=by, sort=False).merge(
        second, on=[*by, "seed"], suffixes=("", "_second"), sort=False
    )
    paired["score"] -= paired["score_second"]
    for count in ("n_cells", "n_cells_expected"):
        paired[count] += paired[f"{count}_second"]
    parts = [over_seeds(paired, by)]
    if len(between):
        sides = [over_seeds(side.merge(between, on=by, sort=False), by) for side in (first, second)]
        parts.append(_of_means(sides[0], sides[1], by))
    return pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)


def _of_means(first: pd.DataFrame, second: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The statistics of the difference of two means, from two results of `over_seeds` for the same groups."""
    both = first.merge(second, on=list(by), suffixes=("", "_second"), sort=False)
    share, other = (both[f"n_seeds{side}"] / both[f"n_seeds_expected{side}"] for side in ("", "_second"))
    fewer = both["n_seeds_expected"] < both["n_seeds_expected_second"]
    of_first = (share < other) | ((share == other) & fewer)
    seeds = {name: both[name].where(of_first, both[f"{name}_second"]) for name in ("n_seeds", "n_seeds_expected")}
    cells = sum(both[f"n_cells_expected{side}"] // both[f"n_seeds_expected{side}"] for side in ("", "_second"))
    return both[list(by)].assign(
        mean=both["mean"] - both["mean_second"],
        sd=(both["sd"] ** 2 + both["sd_second"] ** 2) ** 0.5,
        min=both["min"] - both["max_second"],
        max=both["max"] - both["min_second"],
        **seeds,
        n_cells=cells * seeds["n_seeds"],
        n_cells_expected=cells * seeds["n_seeds_expected"],
    )


def method_differences(
    cells: pd.DataFrame, first: str, second: str, axis: str = "method"
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The score of method `first` minus method `second`, for each source and target that are planned for both.

    Args:
        axis: the axis of `first` and `second`, which may be `encoder` instead.

    Returns:
        The cells behind the entries, those of `first` before those of `second`; and the entries with the columns `source`, `column` (the target), and
        the statistics of `differences`. A pair of cells counts as one cell.

    Raises:
        ValueError: no cell is planned for both, or an entry would mix tasks, encoders or metrics.
    """
    identity = [name for name in ("task", "encoder", "method", "source", "target", "metric") if name != axis]
    sides = [cells[cells[axis] == name] for name in (first, second)]
    common = sides[0][identity].drop_duplicates().merge(sides[1][identity].drop_duplicates(), sort=False)
    if common.empty:
        raise ValueError(f"no cell is planned for both {first!r} and {second!r}: there is nothing to subtract")
    sides = [side.merge(common, on=identity, sort=False).assign(column=lambda side: side["target"]) for side in sides]
    by = ["source", "column"]
    means = [seed_means(_one_of_each(side, by), by, []) for side in sides]
    compared = differences(means[0], means[1], by)
    return pd.concat(sides), compared.assign(n_cells=compared["n_seeds"], n_cells_expected=compared["n_seeds_expected"])


def note_on_seeds(cells: pd.DataFrame, column: str, first: str, second: str, by: Sequence[str]) -> list[str]:
    """A sentence for the caption of a difference if its two sides, values of `column`, have different planned seeds."""
    seeds = [
        cells[cells[column] == side].groupby(list(by), sort=False)["seed"].agg(frozenset) for side in (first, second)
    ]
    both = pd.concat(seeds, axis=1, join="inner")
    numbers = {(len(left), len(right)) for left, right in both.itertuples(index=False) if left != right}
    if not numbers:
        return []
    counted = " or ".join(f"{left} and {right}" for left, right in sorted(numbers))
    return [
        f"{first} and {second} have different seeds ({counted}): the entry is the difference of their means, its "
        "standard deviation is √(sd² + sd²), and n is the smaller number of seeds."
    ]


def select(frame: pd.DataFrame, where: Where, what: str = "cells") -> pd.DataFrame:
    """The rows whose columns have one of the values that `where` lists for them.

    Raises:
        ValueError: the frame has no rows, a value does not occur in its column, or the values never occur together.
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
    """The values of a column in the order of an exhibit: the order in `where`, or else the numerical order for facts of
    encoders that are numbers, and the order of the study for all others."""
    present = list(dict.fromkeys(frame[column]))
    if column != "seed" and pd.api.types.is_numeric_dtype(frame[column]):
        present.sort()
    return [value for value in where.get(column, present) if value in present]


def in_groups(cells: pd.DataFrame, groups: Sequence[str], belongs: Callable[[str, str, str], bool]) -> pd.DataFrame:
    """The cells of each group, one group after another, with the group's name in the column `group`.

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
                f"group {group!r} is empty: none of the selected targets ({_some(sorted(set(cells['target'])))}) "
                f"belongs to it for source {_some(sorted(set(cells['source'])))}. Drop the group or select other cells"
            )
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def mean_over_metrics(cells: pd.DataFrame) -> pd.DataFrame:
    """One row per cell, without `metric`. The score is the mean over the metrics, or NaN if one is missing."""
    identity = [name for name in cells if name not in ("metric", *MEASURED, IMPLEMENTATION)]
    scores = cells.assign(score=cells["score"].astype(float)).groupby(identity, sort=False, dropna=False)["score"]
    return scores.agg(lambda score: score.mean(skipna=False)).reset_index()


def in_every_seed(cells: pd.DataFrame, rows: Sequence[str], untrained: pd.Series) -> pd.DataFrame:
    """The cells, with each `untrained` cell repeated for every seed of the trained cells in its row of a table.

    An untrained cell does not depend on a seed, because nothing in it is random. A row without trained cells is
    unchanged.

    Args:
        rows: the columns that name a row.
        untrained: for each cell, true or false.
    """
    rows = list(rows)
    seeds = cells.loc[~untrained, _once(*rows, "seed")].drop_duplicates()
    repeated = cells[untrained].merge(seeds, on=rows, how="left", suffixes=("_own", ""), sort=False)
    if "seed_own" in repeated:
        repeated["seed"] = repeated["seed"].fillna(repeated.pop("seed_own")).astype(cells["seed"].dtype)
    return pd.concat([cells[~untrained], repeated], ignore_index=True)


def with_x(cells: pd.DataFrame, x: str) -> pd.DataFrame:
    """The cells that have a value in the numeric column `x`.

    Raises:
        ValueError: the column does not exist, or no cell has a value in it.
    """
    numeric = [str(name) for name in cells.select_dtypes("number") if name not in ("seed", *MEASURED)]
    if x not in numeric:
        raise ValueError(f"x: {unknown('numeric column', x, [*numeric, 'step'])}")
    kept = cells[cells[x].notna()]
    if kept.empty:
        raise ValueError(f"x: none of the {len(cells)} selected cells has a {x}: select others, or another x")
    return kept


def learning_curves(curves: pd.DataFrame, cells: pd.DataFrame, lines: str) -> pd.DataFrame:
    """Learning curves with a row for every run of `cells` and every step. Steps without a score have the score NaN.

    Runs of a line that differ only in their seeds may be evaluated at slightly different steps, because the batches of
    an epoch depend on the seed. Such evaluations get the median of their steps.

    Args:
        curves: the columns `task`, `encoder`, `method`, `source`, `seed`, `step`, `score`, and `target` for runs with
            one target each.
        cells: the cells of the planned runs.
        lines: the column whose values are the lines of the figure. A line has the steps of all of its runs.
    """
    run = ["task", "encoder", "method", "source", "seed"]
    # Runs with one target each differ only in this target.
    run += ["run"] if "run" in curves and "run" in cells else []
    # A fact of the encoders.
    run += [lines] if lines not in run and lines in cells else []
    in_run = curves.groupby(run, dropna=False, sort=False)["step"]
    alike = [curves[lines], in_run.transform("size"), in_run.rank("first")]
    curves = curves.assign(step=curves.groupby(alike, dropna=False)["step"].transform("median").round().astype(int))
    runs = pd.concat([curves[run], cells[run]]).drop_duplicates()
    steps = curves[list(dict.fromkeys([lines, "step"]))].drop_duplicates()
    planned = runs.merge(steps, on=lines, sort=False).merge(curves, on=[*run, "step"], how="left", sort=False)
    # `groupby` drops NaN, so planned runs without a curve get an empty target.
    return planned.fillna({"target": ""}) if "target" in planned else planned


def minus(first: str, second: str) -> str:
    """The name of the column of a difference."""
    return f"{first} \N{MINUS SIGN} {second}"


def entries(
    cells: pd.DataFrame,
    rows: Sequence[str],
    columns: str | Sequence[str],
    *,
    average: bool = False,
    difference: tuple[str, str] | None = None,
) -> pd.DataFrame:
    """The entries of a table, as means over complete seeds (see the docstring of the module).

    Args:
        cells: one row per planned cell.
        rows: the columns of `cells` that name a row of the table.
        columns: the column of `cells` whose values are the columns of the table, called `column` in the result; or a
            list of such columns, which keep their names.
        average: add a column `average`, the mean over the row's columns, within each seed and then over seeds. This
            needs `column`.
        difference: add a column with the first of two columns minus the second, see `differences`. Its name is `minus`.

    Returns:
        The columns `rows`, `column` or `columns`, and the statistics of `over_seeds`.

    Raises:
        ValueError: an entry would average over several tasks, encoders, methods or metrics, a cell occurs twice, or no
            row has both columns of `difference`.
    """
    means = scores_of_seeds(cells, rows, columns)
    entries = over_seeds(means, [*rows, *(["column"] if isinstance(columns, str) else columns)])
    if average:
        mean = over_seeds(seed_means(means, rows, ["column"]), rows)
        entries = pd.concat([entries, mean.assign(column=AVERAGE)], ignore_index=True)
    if difference:
        entries = pd.concat([entries, _subtracted(means, rows, *difference)], ignore_index=True)
    return entries


def scores_of_seeds(cells: pd.DataFrame, rows: Sequence[str], columns: str | Sequence[str]) -> pd.DataFrame:
    """The score of each entry of a table in each seed: the result of `seed_means`, from the arguments of `entries`."""
    if isinstance(columns, str):
        cells, columns = cells.assign(column=cells[columns]), ["column"]
    by = [*rows, *columns]
    cells = _one_of_each(cells, by)
    return seed_means(cells, by, [name for name in LANGUAGES if name in cells and name not in by])


def _subtracted(means: pd.DataFrame, rows: Sequence[str], first: str, second: str) -> pd.DataFrame:
    """The entries of the column `first` minus the column `second` of each row."""
    for name in (first, second):
        if name not in set(means["column"]):
            raise ValueError(f"difference: {unknown('column', name, means['column'])}")
    subtracted = differences(means[means["column"] == first], means[means["column"] == second], rows)
    if subtracted.empty:
        raise ValueError(f"difference: no row has both {first!r} and {second!r}: there is nothing to subtract")
    return subtracted.assign(column=minus(first, second))


def _one_of_each(cells: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The cells with scores as numbers, after the check that entries can be averaged.

    Raises:
        ValueError: an entry would average over several tasks, encoders, methods or metrics, or a cell occurs twice.
    """
    # Before the first result, the scores may be None, of type object.
    cells = cells.assign(score=cells["score"].astype(float))
    for name in FIXED:
        if name in cells and name not in by:
            several = cells[cells.groupby(list(by), sort=False)[name].transform("nunique") > 1]
            if len(several):
                here = several.merge(several[list(by)].iloc[[0]], on=list(by), sort=False)
                raise ValueError(
                    f"an entry would average over several {name}s ({_some(list(dict.fromkeys(here[name])))}): select "
                    f"one of them, or add {name!r} to the rows, columns or lines"
                )
    cell = [*by, *(name for name in LANGUAGES if name in cells and name not in by), "seed"]
    if cells.duplicated(cell).any():
        twice = cells[cells.duplicated(cell)].iloc[0]
        raise ValueError(f"a cell occurs twice: {', '.join(f'{name} {twice[name]}' for name in cell)}")
    return cells
