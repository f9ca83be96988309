"""Test whether the best entry of a table is better than the entries with which it competes.

Entries compete if they differ only in the competing axes. In each such group, the entry with the best mean is compared
with the runner-up. The test uses the difference of their scores within each seed, paired over tasks, sources, targets
and test examples, and the interval and p of the verdicts of claims (`xlgrid.results.verdicts`). p is two-sided, which
also accounts for the choice of the two entries by their scores: for an exponential family, such as the normal
distribution, the two-sided test of the best against the runner-up is a valid test that the best is the best of all
(Hung and Fithian 2019, "Rank verification for exponential families"). p is corrected by Holm (1979) over all groups of
the table.

A group has no test, and counts as p = 1, if a cell of one of its entries has no result, an entry has fewer than three
seeds, the entries have several metrics, or the two best differ in their seeds, tasks, sources or targets.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from xlgrid.products.evaluate import Cell
from xlgrid.results import units, verdicts
from xlgrid.results.claims import PAIRED, Term

Key = tuple[Any, ...]


class Winners(NamedTuple):
    """The winning entries of a table.

    Attributes:
        keys: the keys of the winning entries: the values of the columns that name an entry.
        groups: the number of groups with at least two entries.
        tested: the number of groups with a test.
    """

    keys: frozenset[Key]
    groups: int
    tested: int


def weighted(cells: pd.DataFrame, by: Sequence[str], averaged: Sequence[str] = ()) -> pd.DataFrame:
    """The cells of entries with the column `weight`, the weight of each score in the mean of its seed.

    Args:
        by: the columns that name an entry.
        averaged: columns whose values all have the same weight in the mean, for any number of cells.
    """
    seed = cells.groupby([*by, "seed"], sort=False)
    if not averaged:
        return cells.assign(weight=1 / seed["score"].transform("size"))
    part = cells.groupby([*by, *averaged, "seed"], sort=False)
    number = seed[list(averaged)].transform("nunique").prod(axis=1)
    return cells.assign(weight=1 / part["score"].transform("size") / number)


def winners(cells: pd.DataFrame, by: Sequence[str], competing: Sequence[str], axes: Sequence[str]) -> Winners:
    """The entries that are better than all entries with which they compete.

    Args:
        cells: a row per planned cell of each entry, with the columns `by`, `PAIRED`, `seed`, `metric`, `score` (NaN
            without a result), `path`, and `weight` from `weighted`.
        by: the columns that name an entry.
        competing: the columns of `by` in which competing entries differ.
        axes: the axes, or facts of encoders, of the competing columns.

    Raises:
        ValueError: the file of a cell is damaged, or cells of the same task and target have different numbers of
            examples.
    """
    others = [name for name in by if name not in competing]
    # If a fact of encoders differs, the encoder differs, too.
    of_fact = any(axis not in PAIRED for axis in axes)
    paired = [axis for axis in PAIRED if axis not in axes and not (axis == "encoder" and of_fact)]
    comparisons: dict[str, tuple[Key, list[Term], str]] = {}
    groups = 0
    for _, group in _groups(cells, others):
        entries = {key: entry for key, entry in _groups(group, by)}
        if len(entries) < 2:
            continue
        groups += 1
        if (compared := _best_two(entries, paired)) is not None:
            comparisons[str(groups)] = compared
    terms = {name: terms for name, (_, terms, _) in comparisons.items()}
    metrics = {name: metric for name, (_, _, metric) in comparisons.items()}
    p = {str(row["claim"]): _p(row) for row in verdicts.measure(terms, metrics).to_dict("records")} if terms else {}
    corrected = verdicts.holm([*p.values(), *[1.0] * (groups - len(p))])
    won = (name for name, value in zip(p, corrected, strict=False) if value < verdicts.LEVEL)
    return Winners(frozenset(comparisons[name][0] for name in won), groups, len(p))


def _groups(cells: pd.DataFrame, by: Sequence[str]) -> Iterable[tuple[Key, pd.DataFrame]]:
    grouped: Any = cells.groupby(list(by), sort=False) if by else [((), cells)]
    return grouped


def _best_two(entries: Mapping[Key, pd.DataFrame], paired: Sequence[str]) -> tuple[Key, list[Term], str] | None:
    """The key of the best entry, the cells of the best and of the runner-up with their weights in the difference, and
    their metric; None if there is no test.

    The difference is positive if the best entry is better.
    """
    metrics = {metric for entry in entries.values() for metric in entry["metric"]}
    if len(metrics) > 1 or not all(map(_is_complete, entries.values())):
        return None
    [metric] = metrics
    sign = 1.0 if units.higher_is_better([metric]) else -1.0
    means = {key: sign * _mean(entry) for key, entry in entries.items()}
    best, second = sorted(entries, key=lambda key: means[key], reverse=True)[:2]
    sides = [entries[best], entries[second]]
    if _pairs(sides[0], paired) != _pairs(sides[1], paired):
        return None
    return best, [*_terms(sides[0], sign), *_terms(sides[1], -sign)], metric


def _is_complete(entry: pd.DataFrame) -> bool:
    """Whether an entry has at least three seeds, each with a result for each cell."""
    seeds, cells = entry["seed"].nunique(), len(entry[[*PAIRED]].drop_duplicates())
    return seeds >= verdicts.LEAST_SEEDS and len(entry) == seeds * cells and bool(entry["score"].notna().all())


def _mean(entry: pd.DataFrame) -> float:
    """The mean over seeds of the weighted mean within each seed."""
    return float((entry["score"] * entry["weight"]).sum()) / entry["seed"].nunique()


def _pairs(entry: pd.DataFrame, paired: Sequence[str]) -> set[Key]:
    return {*entry[["seed", *paired]].itertuples(index=False, name=None)}


def _terms(entry: pd.DataFrame, sign: float) -> list[Term]:
    """The cells of an entry with their weights, times `sign`."""
    cells = zip(map(Cell.parse, entry["path"]), entry["weight"], strict=True)
    return [Term(cell, sign * weight) for cell, weight in cells if cell]


def _p(row: Mapping[Any, Any]) -> float:
    """The two-sided p of a difference that is not negative, from a row of `verdicts.measure`."""
    noise = row["seed_variance"], row["example_variance"], row["n_seeds"]
    return min(1.0, 2 * verdicts.tail_beyond(row["effect"], *noise))
