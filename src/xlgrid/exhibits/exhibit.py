"""What the kinds of exhibit have in common: what a study asks of each, which cells each shows, and the files of each.

Importing a kind is cheap, because rules and commands import all of them: pandas and matplotlib load when an exhibit is drawn.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from pydantic import Field

from xlgrid.base.files import write_text
from xlgrid.base.names import unknown
from xlgrid.base.settings import Strict
from xlgrid.results.naming import Published, Values

if TYPE_CHECKING:
    import pandas as pd

    from xlgrid.exhibits.sheet import Sheet
    from xlgrid.results.identity import Cell, Contrast, Encoder

Identity = Literal["task", "encoder", "method", "source", "target", "seed", "metric"]
# The suffixes of the files that compare an exhibit with published numbers.
COMPARISON = ("-published.csv", "-published.md", "-published.html")


class StudyView(Protocol):
    """What exhibits ask of a study."""

    @property
    def name(self) -> str: ...

    @property
    def methods(self) -> Mapping[str, Any]:
        """Name -> method, which has a `base` and `options`."""

    @property
    def encoders(self) -> Mapping[str, Any]: ...

    @property
    def groups(self) -> Mapping[str, Sequence[str]]: ...

    @property
    def metrics(self) -> Mapping[str, Sequence[str]]:
        """Task -> the metrics of its cells, the main one first."""

    def languages_used(self) -> Mapping[str, Any]:
        """Code -> language, which has a `family` and a `script`."""

    def belongs(self, group: str, source: str, target: str) -> bool:
        """Whether a target belongs to a group, for a source."""


class Exhibit(Strict):
    """A table or a figure of a study. A kind of exhibit is a subclass, with a literal field `kind`."""

    title: str
    caption: str = ""
    # A table has HTML; a figure has pictures.
    is_table: ClassVar[bool] = True

    @property
    def published_numbers(self) -> Published | None:
        """The published numbers that stand in the exhibit or beside it, if any."""
        return None

    @property
    def is_compared(self) -> bool:
        """Whether the exhibit has files that compare it with published numbers."""
        return False

    @property
    def references(self) -> list[str]:
        """The files of published numbers that the exhibit reads."""
        return [str(self.published_numbers.path)] if self.published_numbers else []

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The suffixes of the exhibit's files."""
        pictures = (".html",) if self.is_table else (".png", ".svg")
        return (".csv", ".md", ".tex", *pictures, *(COMPARISON if self.is_compared else ()))

    @property
    def coined_names(self) -> dict[str, list[str]]:
        """Axis -> the names that the exhibit adds to those of the study, for which a paper may have names of its own."""
        return {}

    def cells(self, planned: Iterable["Cell"]) -> list["Cell"]:
        """The planned cells that the exhibit shows."""
        return []

    def contrasts(self, planned: Iterable["Cell"]) -> list["Contrast"]:
        """The comparisons of attention that the exhibit shows."""
        return []

    def encoders_read(self, study: StudyView) -> list["Encoder"]:
        """The encoders whose files the exhibit reads."""
        return []

    def settings(self, study: StudyView) -> list[str]:
        """Everything in the study that the exhibit's files depend on beside results, as JSON: a change renders it again."""
        return [self.model_dump_json()]

    @property
    def named_values(self) -> Mapping[Any, Sequence[object]]:
        """Axis -> the values that the exhibit selects, which the grids of the study must have."""
        return {}

    def problems(self, study: StudyView, axes: Mapping[str, Sequence[object]]) -> Iterator[str]:
        """The exhibit's mistakes beside its `named_values`, each as `key: what is wrong`.

        Args:
            axes: the values of each axis of the study's grids, and its metrics.
        """
        yield from ()

    def problems_of_plan(self, planned: Sequence["Cell"]) -> Iterator[str]:
        """The mistakes that only the planned cells show, each as `key: what is wrong`."""
        yield from ()

    @abstractmethod
    def render(self, name: str, study: StudyView, planned: Sequence["Cell"], folder: str | Path) -> None:
        """Write the files of the exhibit, each atomically, from whatever results exist.

        Args:
            name: the exhibit's name, which is the stem of its files.
            planned: the cells of the study.
            folder: where the files go.

        Raises:
            FileNotFoundError: a file of published numbers does not exist.
            ValueError: there is nothing to show, an entry would mix tasks, encoders, methods or metrics, or a file of results
                or of published numbers is damaged.
        """

    def write(self, name: str, folder: str | Path, sheet: "Sheet", data: "pd.DataFrame | None" = None) -> None:
        """Write the files of the exhibit that are text: CSV, Markdown, LaTeX and, of a table, HTML.

        Args:
            data: the contents of the CSV; the default is the entries of the sheet without their printed texts.
        """
        from xlgrid.exhibits import sheet as printing

        if data is None:
            data = sheet.entries.drop(columns=list(printing.PRINTED))
        stem = Path(folder) / name
        write_text(f"{stem}.csv", data.to_csv(index=False, lineterminator="\n"))
        write_text(f"{stem}.md", printing.markdown(sheet))
        write_text(f"{stem}.tex", printing.latex(sheet, name))
        if self.is_table:
            write_text(f"{stem}.html", printing.html(sheet))


class OfCells(Exhibit):
    """An exhibit of scores.

    Of a task with several metrics, the main one is shown unless `select` or an axis names `metric`. The CSV has a line per entry:
    the keys of the row, `column`, then the statistics of `xlgrid.results.stats.over_seeds`.
    """

    select: dict[Identity, Values] = {}
    digits: int = Field(default=1, ge=0, le=6)

    @property
    def names_metric(self) -> bool:
        """Whether the exhibit says which metrics it shows."""
        return "metric" in self.select

    @property
    def selected(self) -> dict[str, tuple[Any, ...]]:
        """Axis of the cells -> the values that the exhibit shows."""
        return {axis: values for axis, values in self.select.items() if axis != "metric"}

    @property
    def shows_snapshots(self) -> bool:
        """Whether the exhibit shows cells whose target is spoken as of a step of its run on text (`Grid.snapshots`)."""
        return False

    def cells(self, planned: Iterable["Cell"]) -> list["Cell"]:
        chosen = [cell for cell in planned if (cell.target.step is not None) == self.shows_snapshots]
        select = self.selected
        return [cell for cell in chosen if all(getattr(cell.shown, axis) in select[axis] for axis in select)]

    @property
    def named_values(self) -> Mapping[Any, Sequence[object]]:
        return self.select

    def render(self, name: str, study: StudyView, planned: Sequence["Cell"], folder: str | Path) -> None:
        from xlgrid.results import records

        metrics = study.metrics
        if not self.names_metric:
            metrics = {task: names[:1] for task, names in metrics.items()}
        cells = self.cells(planned)
        scores = records.read_cells(((cell.path, cell._asdict()) for cell in cells), metrics)
        self.draw(name, study, scores, folder, dict.fromkeys(cell.run.folder for cell in cells))

    @abstractmethod
    def draw(
        self, name: str, study: StudyView, cells: "pd.DataFrame", folder: str | Path, runs: Iterable[str | Path] = ()
    ) -> None:
        """Write the files of the exhibit from scores.

        Args:
            cells: one row per *planned* cell, as `xlgrid.results.records.read_cells` returns them.
            runs: the folders of the runs of these cells, for their learning curves.
        """


class Compared(OfCells):
    """An exhibit of scores that can be compared with published numbers."""

    published: Published | None = None

    @property
    def published_numbers(self) -> Published | None:
        return self.published

    @property
    def is_compared(self) -> bool:
        return self.published is not None

    @property
    def references(self) -> list[str]:
        if self.published is None:
            return []
        contradictions = self.published.path.with_name("contradictions.csv")
        return [str(self.published.path), *([str(contradictions)] if contradictions.exists() else [])]

    def write_comparison(self, name: str, folder: str | Path, sheet: "Sheet", cells: "pd.DataFrame") -> None:
        """Write the files that compare the exhibit with published numbers, if the study names any.

        Args:
            cells: the cells behind the entries of the sheet, with the columns that name an entry.
        """
        from xlgrid.exhibits import beside
        from xlgrid.exhibits import sheet as printing
        from xlgrid.results import published

        if self.published is None:
            return
        keys = [*sheet.rows, *sheet.axes]
        compared = published.beside(sheet.entries, keys, cells, self.published)
        both = beside.comparison(sheet, compared, self.published, self.digits)
        text = compared.to_csv(index=False, lineterminator="\n"), printing.markdown(both), printing.html(both)
        for suffix, contents in zip(COMPARISON, text, strict=True):
            write_text(Path(folder) / f"{name}{suffix}", contents)


def not_among(key: str, what: str, values: Iterable[object], known: Iterable[object]) -> Iterator[str]:
    """A sentence for each value that is not among the known ones."""
    known = list(known)
    yield from (f"{key}: {unknown(what, value, known)}" for value in values if value not in known)
