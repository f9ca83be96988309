"""The base of all kinds of exhibit: the keys that a study gives each, the cells that it shows, and its files.

Importing a kind is cheap, because rules and commands import all of them: pandas and matplotlib load when an exhibit is drawn.
"""

import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, get_args

from pydantic import Field

from xlgrid.base.files import write_text
from xlgrid.base.names import among
from xlgrid.base.settings import Strict
from xlgrid.exhibits.latex import Latex
from xlgrid.products.evaluate import with_values
from xlgrid.results.naming import Published, Values

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from xlgrid.exhibits.drawing.sheet import Sheet
    from xlgrid.plan.plan import Plan
    from xlgrid.products.encode import Encoder
    from xlgrid.products.evaluate import Cell
    from xlgrid.products.product import Product
    from xlgrid.study.schema import Study

# Encoder -> the facts of it that exhibits use as axes: name -> value.
Facts = Mapping[str, Mapping[str, Any]]
Identity = Literal["task", "encoder", "method", "source", "target", "seed", "metric"]
AXES: tuple[str, ...] = get_args(Identity)
# The suffixes of the files of a table, of a figure, and of the comparison of an exhibit with published numbers.
TABLE = (".csv", ".md", ".tex", ".html")
FIGURE = (".csv", ".md", ".tex", ".png", ".svg")
COMPARISON = ("-published.csv", "-published.md", "-published.html")


class Rendering(NamedTuple):
    """The contents of an exhibit's files.

    Attributes:
        sheet: the table.
        data: the contents of the CSV; None: the entries of the sheet without their printed texts.
        draw: draws the figure; None for a table.
        behind: the cells behind the entries of the sheet, with the columns that name an entry, where published numbers are compared.
        in_latex: the table as LaTeX prints it; None: as the other formats do.
    """

    sheet: "Sheet"
    data: "pd.DataFrame | None" = None
    draw: "Callable[[], Axes] | None" = None
    behind: "pd.DataFrame | None" = None
    in_latex: "Sheet | None" = None


class Exhibit(Strict):
    """A table or a figure of a study. A kind of exhibit is a subclass, with a literal field `kind`."""

    title: str = Field(description="the heading above the exhibit")
    caption: str = Field("", description="a text below the exhibit, such as what its groups mean")
    latex: Latex = Field(Latex(), description="the place and the width of the table in a LaTeX document")
    # A table has HTML; a figure has pictures.
    is_table: ClassVar[bool] = True

    @property
    def published_numbers(self) -> Published | None:
        """The published numbers with which the exhibit is shown, if any."""
        return None

    @property
    def is_compared(self) -> bool:
        """Whether the exhibit has files that compare it with published numbers."""
        return False

    def files(self, compare: bool = False) -> list[str]:
        """The files, other than results, that the exhibit reads: a change of one of them renders it again.

        Args:
            compare: whether to return the files of the comparison with published numbers instead.

        Returns:
            Paths from the project's folder.
        """
        return []

    @property
    def shows_runs(self) -> bool:
        """Whether the exhibit shows runs that have begun, so that there is nothing to show before."""
        return False

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The suffixes of the exhibit's files."""
        return (*(TABLE if self.is_table else FIGURE), *(COMPARISON if self.is_compared else ()))

    @property
    def coined_names(self) -> dict[str, list[str]]:
        """Axis -> the names that the exhibit adds to those of the study, for which a paper may have names of its own."""
        return {}

    def cells(self, planned: Iterable["Cell"], facts: Facts) -> list["Cell"]:
        """The planned cells that the exhibit shows, by the facts of the study's encoders."""
        return []

    def products(self, planned: Iterable["Cell"]) -> "Sequence[Product]":
        """The results that the exhibit shows beside cells, such as comparisons of attention."""
        return []

    def encoders_read(self, study: "Study") -> list["Encoder"]:
        """The encoders whose files the exhibit reads."""
        return []

    def settings(self, study: "Study") -> list[str]:
        """Everything in the study that the exhibit's files depend on beside results, as JSON: a change renders it again."""
        named = {encoder: {fact: known.get(fact) for fact in self.facts} for encoder, known in study.facts.items()}
        return [
            self.model_dump_json(),
            *([json.dumps(named)] if self.facts else []),
            *([study.group_facts(self.groups_shown)] if self.groups_shown else []),
        ]

    @property
    def groups_shown(self) -> tuple[str, ...]:
        """The groups on whose members the exhibit depends."""
        return ()

    @property
    def named_values(self) -> Mapping[Any, Sequence[object]]:
        """Axis -> the values that the exhibit selects, which the grids of the study must have."""
        return {}

    @property
    def named_axes(self) -> dict[str, tuple[Sequence[str], Sequence[str]]]:
        """Key -> the axes that it names, and the axes that it may name beside facts of encoders."""
        return {}

    @property
    def facts(self) -> list[str]:
        """The names of facts of encoders among the named axes, each once."""
        named = (axis for axes, known in self.named_axes.values() for axis in axes if axis not in known)
        return list(dict.fromkeys(named))

    def unknown_names(self, study: "Study", axes: Mapping[str, Sequence[object]]) -> Iterator[str]:
        """The axes, facts and values that the exhibit names and the study lacks, each as `key: what is wrong`.

        Args:
            axes: the values of each axis of the study's grids, of its metrics, and of each fact of its encoders.
        """
        for key, (used, allowed) in self.named_axes.items():
            facts = [name for name in axes if name not in AXES]
            yield from among(key, "axis or fact of encoders", used, [*allowed, *facts])
        for axis, values in self.named_values.items():
            if axis in axes:
                yield from among(f"select.{axis}", axis, values, axes[axis], study.defined_names.get(axis, ()))

    def problems(self, study: "Study", axes: Mapping[str, Sequence[object]]) -> Iterator[str]:
        """The exhibit's mistakes, each as `key: what is wrong`. The caller has checked that `unknown_names` finds none.

        Args:
            axes: as for `unknown_names`.
        """
        yield from ()

    def problems_of_plan(self, planned: Sequence["Cell"], facts: Facts) -> Iterator[str]:
        """The mistakes that only the planned cells and the facts of their encoders show, each as `key: what is wrong`."""
        yield from ()

    @abstractmethod
    def rendering(self, plan: "Plan") -> Rendering:
        """The contents of the exhibit, from whatever results of the planned cells exist."""

    def render(self, name: str, plan: "Plan", folder: str | Path, *, compare: bool = False) -> None:
        """Write the files of the exhibit, each atomically, from whatever results exist.

        Args:
            name: the exhibit's name, which is the stem of its files.
            plan: of the study.
            folder: where the files go.
            compare: write the files that compare the exhibit with published numbers instead.

        Raises:
            FileNotFoundError: a file of published numbers does not exist.
            ValueError: there is nothing to show, or nothing to compare with, an entry would mix tasks, encoders, methods or
                metrics, or a file of results or of published numbers is damaged.
        """
        (self.write_published if compare else self.write)(name, folder, self.rendering(plan))

    def write(self, name: str, folder: str | Path, rendering: Rendering) -> None:
        """Write the files of the exhibit: CSV, Markdown, LaTeX, and HTML of a table or the pictures of a figure."""
        from xlgrid.exhibits.drawing import sheet as printing
        from xlgrid.exhibits.drawing.latex import latex

        sheet, data = rendering.sheet, rendering.data
        if data is None:
            data = sheet.entries.drop(columns=list(printing.PRINTED))
        stem = Path(folder) / name
        if rendering.draw is None:
            write_text(f"{stem}.html", printing.html(sheet))
        else:
            from xlgrid.exhibits.drawing import plots

            with plots.style():
                plots.save(rendering.draw(), Path(f"{stem}.png"), Path(f"{stem}.svg"))
        write_text(f"{stem}.md", printing.markdown(sheet))
        write_text(f"{stem}.tex", latex(rendering.in_latex or sheet, name, self.latex))
        # An exhibit that has this file is complete.
        write_text(f"{stem}.csv", data.to_csv(index=False, lineterminator="\n"))

    def write_published(self, name: str, folder: str | Path, rendering: Rendering) -> None:
        """Write the files that compare the exhibit with published numbers.

        Raises:
            ValueError: the study names no published numbers to compare the exhibit with.
        """
        raise ValueError(f"exhibit {name} is compared with nothing: its `published` would name published numbers")


class OfCells(Exhibit):
    """An exhibit of scores.

    Of a task with several metrics, the main one is shown unless `select` or an axis names `metric`. The CSV has a line per entry:
    the keys of the row, `column`, then the statistics of `xlgrid.results.stats.over_seeds`.
    """

    select: dict[str, Values] = Field({}, description="axis, or fact of the encoders -> the values that are shown")
    digits: int = Field(default=1, ge=0, le=6, description="digits after the decimal point")

    @property
    def names_metric(self) -> bool:
        """Whether the exhibit says which metrics it shows."""
        return "metric" in self.select

    @property
    def selected(self) -> dict[str, tuple[Any, ...]]:
        """Axis of the cells, without facts of encoders -> the values that the exhibit shows."""
        return {axis: values for axis, values in self.select.items() if axis in AXES and axis != "metric"}

    @property
    def named_axes(self) -> dict[str, tuple[Sequence[str], Sequence[str]]]:
        return {"select": ([*self.select], AXES)}

    def settings(self, study: "Study") -> list[str]:
        # Rows and columns have the order of the grids, which Snakemake does not see in the inputs, because it sorts them.
        order = {
            axis: [str(value) for value in values if value in self.selected.get(axis, values)]
            for axis, values in study.order.items()
        }
        return [*super().settings(study), json.dumps(order)]

    @property
    def shows_checkpoints(self) -> bool:
        """Whether the exhibit shows cells that take the weights of a step of their target's MLM run (`Grid.checkpoints`)."""
        return False

    def cells(self, planned: Iterable["Cell"], facts: Facts) -> list["Cell"]:
        return [*self._shown(planned, facts)]

    def _shown(self, planned: Iterable["Cell"], facts: Facts) -> Iterator["Cell"]:
        selected = {fact: self.select[fact] for fact in self.facts if fact in self.select}
        return (
            cell
            for cell in self._of_any_encoder(planned)
            if all(facts[cell.encoder].get(fact) in values for fact, values in selected.items())
        )

    def _of_any_encoder(self, planned: Iterable["Cell"]) -> Iterator["Cell"]:
        """The planned cells that the exhibit selects by other axes than facts of their encoders."""
        return (
            cell
            for cell in with_values(planned, self.selected)
            if (cell.target.step is not None) == self.shows_checkpoints
        )

    def problems_of_plan(self, planned: Sequence["Cell"], facts: Facts) -> Iterator[str]:
        if self.selected and next(self._of_any_encoder(planned), None) is None:
            named = " and ".join(f"{axis} {'/'.join(map(str, values))}" for axis, values in self.selected.items())
            yield f"select: no grid has a cell with all of {named}: name other values, or leave the exhibit out"
            return
        encoders = (cell.encoder for cell in self._of_any_encoder(planned)) if self.facts else ()
        incomplete = [
            (encoder, fact) for encoder in dict.fromkeys(encoders) for fact in self.facts if fact not in facts[encoder]
        ]
        for encoder, fact in incomplete:
            key = next(key for key, (axes, _) in self.named_axes.items() if fact in axes)
            yield (
                f"{key}: encoder {encoder} has the facts {', '.join(facts[encoder]) or 'none'}, and no {fact!r}: "
                f"write it under encoders.{encoder}.facts, or leave the encoder out by `encoder` in `select`"
            )
        if incomplete:
            return
        # A value that stands alone on its axis is in every cell that is shown.
        together = self.select if self.facts or len(self.selected) > 1 else {}
        missing: dict[str, dict[Any, None]] = {
            axis: dict.fromkeys(together[axis]) for axis in together if axis != "metric" and len(together[axis]) > 1
        }
        of_encoders = frozenset(self.facts)
        for cell in self._shown(planned, facts) if missing else ():
            for axis, values in missing.items():
                if values:
                    values.pop(
                        facts[cell.encoder].get(axis) if axis in of_encoders else getattr(cell.shown, axis), None
                    )
            if not any(missing.values()):
                break
        for axis, value in ((axis, value) for axis, values in missing.items() for value in values):
            yield (
                f"select.{axis}: no cell of {axis} {value!r} has the other values that `select` names: leave {value!r} "
                "out, or name further values"
            )

    @property
    def named_values(self) -> Mapping[Any, Sequence[object]]:
        return self.select

    @property
    def merges_replicas(self) -> bool:
        """Whether means take encoders that differ only by their seeds as seeds of one encoder."""
        return all("encoder" not in axes for key, (axes, _) in self.named_axes.items() if key != "select")

    def rendering(self, plan: "Plan") -> Rendering:
        from xlgrid.results import records

        metrics = plan.study.metrics
        if not self.names_metric:
            metrics = {task: names[:1] for task, names in metrics.items()}
        known = plan.study.facts
        cells = self.cells(plan.cells, known)
        named = {encoder: {fact: known[encoder][fact] for fact in self.facts} for encoder in {c.encoder for c in cells}}
        expected = ((cell.path, cell._asdict() | named[cell.encoder] | {"path": cell.path}) for cell in cells)
        scores = records.read_cells(expected, metrics)
        runs = dict.fromkeys(plan.owned(cell.run).folder for cell in cells)
        first_replica = plan.study.replicas
        replica_of = {(first_replica[cell.encoder], cell.seed, cell.encoder) for cell in cells}
        # Draws with one seed in common are compared with one another: a mean over them has to name `encoder`.
        if not self.merges_replicas or len(replica_of) > len({(encoder, seed) for encoder, seed, _ in replica_of}):
            return self.of_scores(plan.study, scores, runs)
        scores["encoder"] = scores["encoder"].map(first_replica)
        select = {
            axis: tuple(dict.fromkeys(first_replica[str(value)] for value in values)) if axis == "encoder" else values
            for axis, values in self.select.items()
        }
        return self.model_copy(update={"select": select}).of_scores(plan.study, scores, runs)

    def printed(self, entries: "pd.DataFrame", **how: Any) -> "Sheet":
        """The entries as a table with the title, the caption and the digits of the exhibit; `how` is that of
        `xlgrid.exhibits.drawing.sheet.sheet`."""
        from xlgrid.exhibits.drawing import sheet as printing

        return printing.sheet(entries, title=self.title, caption=self.caption, digits=self.digits, **how)

    @abstractmethod
    def of_scores(self, study: "Study", cells: "pd.DataFrame", runs: Iterable[str | Path] = ()) -> Rendering:
        """The contents of the exhibit.

        Args:
            cells: one row per *planned* cell, as `xlgrid.results.records.read_cells` returns them, with the `path` of its file.
            runs: the folders of the runs of these cells, for their learning curves.
        """


class Compared(OfCells):
    """An exhibit of scores that can be compared with published numbers.

    Attributes:
        shows_all_published: whether the comparison also shows rows of the paper for which the study has no cells.
    """

    published: Published | None = Field(None, description="the published numbers with which the exhibit is compared")
    shows_all_published: ClassVar[bool] = False

    @property
    def published_numbers(self) -> Published | None:
        return self.published

    @property
    def is_compared(self) -> bool:
        return self.published is not None

    def files(self, compare: bool = False) -> list[str]:
        own = super().files(compare)
        if self.published is None or not compare:
            return own
        contradictions = self.published.path.with_name("contradictions.csv")
        return [*own, str(self.published.path), *([str(contradictions)] if contradictions.exists() else [])]

    def write_published(self, name: str, folder: str | Path, rendering: Rendering) -> None:
        import pandas as pd

        from xlgrid.exhibits.drawing import sheet as printing
        from xlgrid.exhibits.drawing.published_sheet import published_sheet
        from xlgrid.results import published

        sheet = rendering.sheet
        if self.published is None or rendering.behind is None:
            return super().write_published(name, folder, rendering)
        compared = published.with_published(sheet.entries, [*sheet.rows, *sheet.axes], rendering.behind, self.published)
        further = compared.iloc[:0]
        if self.shows_all_published:
            keys = sheet.entries, sheet.rows, sheet.axes
            further = published.without_cells(*keys, rendering.behind, self.published)
        both = published_sheet(sheet, compared, self.published, self.digits, further)
        csv = (pd.concat([compared, further]) if len(further) else compared).to_csv(index=False, lineterminator="\n")
        text = csv, printing.markdown(both), printing.html(both)
        # A comparison that has the first file is complete.
        for suffix, contents in reversed([*zip(COMPARISON, text, strict=True)]):
            write_text(Path(folder) / f"{name}{suffix}", contents)


def wrong_groups(groups: Iterable[str], study: "Study", axes: Mapping[str, Sequence[object]]) -> Iterator[str]:
    """A sentence for each group that the study does not know."""
    for group in groups:
        try:
            study.belongs(group, str(axes["source"][0]), str(axes["target"][0]))
        except ValueError as error:
            yield f"groups: {error}"
