"""What exhibits over pairs share: the tables that they name, and the mean score of each pair of a source and a target."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from xlgrid.base.names import among
from xlgrid.exhibits.exhibit import OfCells
from xlgrid.languages.sources import NONE, Source
from xlgrid.pairs.built_in import BUILT_IN
from xlgrid.pairs.table import PairsFile

if TYPE_CHECKING:
    import pandas as pd

    from xlgrid.exhibits.drawing.sheet import Sheet
    from xlgrid.study.schema import Study


class Line(NamedTuple):
    """A line of a table: its name, column -> text, and of how many of the planned `things` it is."""

    name: str
    texts: Mapping[str, str]
    number: int
    total: int
    things: str


class OverTables(OfCells):
    """An exhibit of scores that names tables of pairs.

    Attributes:
        other_names: what a key may name instead of a table.
    """

    other_names: ClassVar[tuple[str, ...]] = ()

    @property
    def tables(self) -> Mapping[str, Sequence[str]]:
        """Key of the exhibit -> the tables of pairs that it names."""
        return {}

    def _of_study(self, study: "Study") -> list[PairsFile]:
        return [study.pairs[name] for names in self.tables.values() for name in names if name in study.pairs]

    def files(self, study: "Study", compare: bool = False) -> list[str]:
        return [*super().files(study, compare), *(table.file for table in self._of_study(study))]

    def settings(self, study: "Study") -> list[str]:
        # The built-in tables follow from the facts about languages, and codes of a file from the study's languages.
        facts = [study.group_facts([])] if self.tables else []
        return [*super().settings(study), *(table.model_dump_json() for table in self._of_study(study)), *facts]

    def problems(self, study: "Study", axes: Mapping[str, Sequence[object]]) -> Iterator[str]:
        yield from super().problems(study, axes)
        for key, names in self.tables.items():
            yield from among(key, "table of pairs", names, [*self.other_names, *study.pairs, *BUILT_IN])
        for name in study.pairs.keys() & {*self.other_names}:
            yield f"`{name}` has a meaning of its own here, so a table of `pairs` needs another name"


class OverPairs(OverTables):
    """An exhibit of the scores of pairs of a source and a target.

    A cell whose target is a training language of its source says how hard the target is, and not how well the source
    transfers. Such cells are left out.
    """

    def transfers(self, cells: "pd.DataFrame", *, untrained: bool = False) -> "pd.DataFrame":
        """The selected cells whose target is no training language of their source.

        Args:
            untrained: whether cells without training count, which have no source.

        Raises:
            ValueError: there are none.
        """
        from xlgrid.results import stats

        chosen = stats.select(cells, self.select)
        chosen = chosen if untrained else chosen[chosen["source"] != NONE]
        pairs = zip(chosen["source"], chosen["target"], strict=True)
        chosen = chosen[[target not in Source(source).parts for source, target in pairs]]
        if chosen.empty:
            raise ValueError(
                "every selected target is a training language of its source, or has no source: select others"
            )
        return chosen

    def about(self, cells: "pd.DataFrame") -> list[str]:
        """Sentences about the cells of the exhibit."""
        from xlgrid.exhibits.drawing import sheet as printing

        return [*printing.about(cells), "Cells whose target is a training language of their source are left out."]

    def table(self, axis: str, lines: Iterable[Line], notes: Iterable[str]) -> "Sheet":
        """A table with some lines, whose names are of an axis."""
        import pandas as pd

        from xlgrid.exhibits.drawing.sheet import PRINTED, Sheet

        rows = []
        for name, texts, number, total, things in lines:
            state = "complete" if number == total else "incomplete" if number else "missing"
            hover = f"{number} of {total} {things}"
            rows += [(name, column, text, state, hover) for column, text in texts.items()]
        entries = pd.DataFrame(rows, columns=[axis, "column", *PRINTED])
        heads = [(column,) for column in entries["column"].unique()]
        return Sheet(self.title, self.caption, " ".join(notes), (axis,), heads, entries)


def shown(value: float, digits: int) -> str:
    """A number as text, with a dash for NaN."""
    from xlgrid.exhibits.drawing.sheet import number

    return number(value, digits) if value == value else "–"


def without(what: str, number: int, total: int, examples: Sequence[Any] = ()) -> list[str]:
    """A sentence about what is left out: `3 of 12 pairs have no value (en-qu, ...)`; none if nothing is."""
    named = ", ".join(map(str, examples[:3])) + ", ..." * (len(examples) > 3)
    return [f"{number} of {total} {what}{f' ({named})' if named else ''}."] if number else []
