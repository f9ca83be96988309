"""Values of pairs of a source and a target, such as distances: the tables that studies name, and built-in ones.

A mix (`en+de`) or a pair of languages (`en-de`) has the value that a table gives it under this name, and no value
otherwise: a mean over its languages would be a decision that the table has to make.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from xlgrid.base.names import unknown
from xlgrid.languages import Language
from xlgrid.pairs.built_in import BUILT_IN
from xlgrid.pairs.table import PairsFile, read


class PairValues(NamedTuple):
    """The values of a table.

    Attributes:
        quantity: what the values are, for the label of an axis.
        lowest_is_nearest: whether the lowest value makes a source the nearest to a target, as for distances.
        values: (source, target) -> value. A pair without a value is missing.
    """

    quantity: str
    lowest_is_nearest: bool
    values: Mapping[tuple[str, str], float]

    def of(self, sources: Iterable[str], targets: Iterable[str]) -> list[float]:
        """The value of each pair of a source and a target; NaN for pairs without a value."""
        return [self.values.get(pair, float("nan")) for pair in zip(sources, targets, strict=True)]


def pair_values(name: str, tables: Mapping[str, PairsFile], languages: Mapping[str, Language]) -> PairValues:
    """The values of a table of a study, or of a built-in one.

    Args:
        tables: the tables that the study names.
        languages: code -> language, for the languages of the study.

    Raises:
        FileNotFoundError: the file of the table does not exist.
        ValueError: there is no such table, or its file has mistakes.
    """
    if entry := tables.get(name):
        return PairValues(entry.quantity or name, entry.nearest == "lowest", read(entry, languages))
    if name not in BUILT_IN:
        raise ValueError(unknown("table of pairs", name, [*tables, *BUILT_IN]))
    known = BUILT_IN[name]
    values = {
        (source, target): value
        for source in languages
        for target in languages
        if (value := known.value(languages[source], languages[target])) is not None
    }
    return PairValues(known.quantity, known.lowest_is_nearest, values)
