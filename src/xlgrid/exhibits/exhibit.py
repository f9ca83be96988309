"""The base class of all kinds of exhibits: the keys in a study, the cells that an exhibit shows, and its files.

Rules and commands import all kinds, so importing them is cheap: pandas and matplotlib load when an exhibit is drawn.
"""

import json
import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, get_args

from pydantic import Field

from xlgrid.base.files import write_text
from xlgrid.base.names import among
from xlgrid.base.settings import Strict
from xlgrid.exhibits.latex import WIDTHS, Latex, Place
from xlgrid.methods.variants import plain, settings_of
from xlgrid.products.evaluate import with_values
from xlgrid.products.exhibits import COMPARISON, FIGURE, TABLE
from xlgrid.results.naming import Published, Values

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from xlgrid.exhibits.drawing.plots import Look
    from xlgrid.exhibits.drawing.sheet import Sheet
    from xlgrid.plan.plan import Plan
    from xlgrid.products.encode import Encoder
    from xlgrid.products.evaluate import Cell
    from xlgrid.products.product import Product
    from xlgrid.study.schema import Study

# Encoder -> the names and values of its facts, which exhibits use as axes.
Facts = Mapping[str, Mapping[str, Any]]
Identity = Literal["task", "encoder", "method", "source", "target", "seed", "metric"]
AXES: tuple[str, ...] = get_args(Identity)
PICTURES = (".png", ".svg", ".pdf")
# The mark of a method whose settings are chosen on the dev sets of targets.
ORACLE = "‡"

_LOG = logging.getLogger(__name__)


class Rendering(NamedTuple):
    """The contents of an exhibit's files.

    Attributes:
        sheet: the table.
        data: the contents of the CSV; None: the entries of the sheet without their printed texts.
        draw: draws the figure, with panels that are together as wide as asked for; None for a table.
        behind: the results behind the entries of the sheet, with the `path` of each file. Those of an entry have its
            values in each column that names an entry; a column that is absent here does not distinguish them. None, or
            without `path`: each entry depends on all results that the exhibit reads.
        in_latex: the table for LaTeX; None: the same as for the other formats.
        room: the width of the panels of a figure, in inches, that a column must have for the figure to be in it.
        labels: name in the study -> what is printed for it. The CSV has the names.
    """

    sheet: "Sheet"
    data: "pd.DataFrame | None" = None
    draw: "Callable[[Look], Axes] | None" = None
    behind: "pd.DataFrame | None" = None
    in_latex: "Sheet | None" = None
    room: float = 0
    labels: Mapping[str, str] = {}

    def behind_entry(self, entry: Mapping[Any, Any]) -> "pd.DataFrame | None":
        """The rows of `behind` for an entry of the sheet; None if it depends on all results that the exhibit reads."""
        if self.behind is None or "path" not in self.behind:
            return None
        behind = self.behind
        for name in (*self.sheet.rows, *self.sheet.axes):
            behind = behind[behind[name] == entry[name]] if name in behind else behind
        return behind

    @property
    def csv(self) -> str:
        """The contents of the CSV."""
        from xlgrid.exhibits.drawing.sheet import PRINTED

        data = self.sheet.entries.drop(columns=list(PRINTED)) if self.data is None else self.data
        return str(data.to_csv(index=False, lineterminator="\n"))


class Exhibit(Strict):
    """A table or a figure of a study. A kind of exhibit is a subclass, with a literal field `kind`."""

    title: str = Field(description="the heading above the exhibit")
    caption: str = Field("", description="a text below the exhibit, such as what its groups mean")
    width: Place | None = Field(
        None,
        description="where the exhibit is for: the column or the page of a paper in two columns; absent: a column if it reads "
        "well there, and otherwise a page",
    )
    latex: Latex = Field(Latex(), description="the form of the table in a LaTeX document")
    # A table has a file of HTML, and a figure has pictures.
    is_table: ClassVar[bool] = True

    @property
    def published_numbers(self) -> Published | None:
        """The published numbers with which the exhibit is shown, if any."""
        return None

    @property
    def is_compared(self) -> bool:
        """Whether the exhibit has files that compare it with published numbers."""
        return False

    def files(self, study: "Study", compare: bool = False) -> list[str]:
        """The files that the exhibit reads, without results. A change of one of them renders the exhibit again.

        Args:
            study: the study, which may name files that its exhibits share, such as tables of pairs.
            compare: whether to return the files of the comparison with published numbers instead.

        Returns:
            Paths relative to the project's folder.
        """
        return []

    @property
    def shows_runs(self) -> bool:
        """Whether the exhibit shows runs, so that it has no contents before the first run."""
        return False

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The suffixes of the exhibit's files."""
        return (*(TABLE if self.is_table else FIGURE), *(COMPARISON if self.is_compared else ()))

    @property
    def coined_names(self) -> dict[str, list[str]]:
        """Axis -> the names that the exhibit adds to the names of the study. A paper may have other names for them."""
        return {}

    def cells(self, planned: Iterable["Cell"], facts: Facts) -> list["Cell"]:
        """The planned cells that the exhibit shows.

        Args:
            planned: all planned cells.
            facts: the facts of the study's encoders, by which the exhibit may select cells.
        """
        return []

    def products(self, planned: Iterable["Cell"]) -> "Sequence[Product]":
        """The results that the exhibit shows in addition to cells, such as comparisons of attention."""
        return []

    def encoders_read(self, study: "Study") -> list["Encoder"]:
        """The encoders whose files the exhibit reads."""
        return []

    def settings(self, study: "Study") -> list[str]:
        """Everything in the study on which the exhibit's files depend, without results, as JSON. A change renders the
        exhibit again."""
        named = {encoder: {fact: known.get(fact) for fact in self.facts} for encoder, known in study.facts.items()}
        return [
            self.model_dump_json(),
            *([json.dumps(named)] if self.facts else []),
            *([study.group_facts(self.groups_shown)] if self.groups_shown else []),
            *([json.dumps(study.labels)] if study.labels else []),
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
        """Key -> the axes that it names, and the axes that it may name in addition to facts of encoders and settings of variants."""
        return {}

    @property
    def facts(self) -> list[str]:
        """The names of facts of encoders, and of settings of variants, among the named axes, each once."""
        named = (axis for axes, known in self.named_axes.values() for axis in axes if axis not in known)
        return list(dict.fromkeys(named))

    def unknown_names(self, study: "Study", axes: Mapping[str, Sequence[object]]) -> Iterator[str]:
        """The axes, facts and values that the exhibit names and the study lacks, each as `key: problem`.

        Args:
            axes: the values of each axis of the study's grids, of its metrics, and of each fact of its encoders.
        """
        for key, (used, allowed) in self.named_axes.items():
            facts = [name for name in axes if name not in AXES]
            yield from among(key, "axis, fact of encoders or setting of variants", used, [*allowed, *facts])
        for axis, values in self.named_values.items():
            if axis in axes:
                yield from among(f"select.{axis}", axis, values, axes[axis], study.defined_names.get(axis, ()))

    def problems(self, study: "Study", axes: Mapping[str, Sequence[object]]) -> Iterator[str]:
        """The mistakes in the exhibit, each as `key: problem`. Callers have checked `unknown_names` before.

        Args:
            axes: see `unknown_names`.
        """
        yield from ()

    def problems_of_plan(self, planned: Sequence["Cell"], facts: Facts) -> Iterator[str]:
        """The mistakes that only the planned cells and the facts of their encoders show, each as `key: problem`."""
        yield from ()

    @abstractmethod
    def rendering(self, plan: "Plan") -> Rendering:
        """The contents of the exhibit, from the existing results of the planned cells."""

    def render(self, name: str, plan: "Plan", folder: str | Path, *, compare: bool = False) -> None:
        """Write the files of the exhibit, each atomically, from the existing results.

        Args:
            name: the name of the exhibit, which is the stem of its files.
            plan: the plan of the study.
            folder: the folder for the files.
            compare: whether to write the files that compare the exhibit with published numbers instead.

        Raises:
            FileNotFoundError: a file of published numbers does not exist.
            ValueError: there are no results to show, or no published numbers for the comparison; an entry would mix
                tasks, encoders, methods or metrics; or a file of results or of published numbers is damaged.
        """
        rendering = self.rendering(plan)._replace(labels=plan.study.printed)
        (self.write_published if compare else self.write)(name, folder, rendering)

    def misfit(self, rendering: Rendering) -> str:
        """Why the table will probably not fit its place in a paper, and what to do; "" if it fits, or for a figure.

        Args:
            rendering: the contents. An entry that lacks a result will be about as wide as a mean with a deviation.
        """
        from xlgrid.exhibits.drawing.latex import too_wide

        if rendering.draw is not None:
            return ""
        sheet = rendering.in_latex or rendering.sheet
        entries = sheet.entries
        wide = "88.8 ± 8.8" if "±" in sheet.numbers else "88.8"
        entries = entries.assign(text=entries["text"].mask(entries["state"] == "missing", wide))
        return too_wide(replace(sheet, entries=entries, labels=rendering.labels), self.latex, self.width)

    def write(self, name: str, folder: str | Path, rendering: Rendering) -> None:
        """Write the files of the exhibit: CSV, Markdown, LaTeX, and the HTML of a table or the pictures of a figure.

        What does not fit its place in a paper is logged.
        """
        from xlgrid.exhibits.drawing import sheet as printing
        from xlgrid.exhibits.drawing.latex import latex

        labels, place = rendering.labels, self.width
        sheet = replace(rendering.sheet, labels=labels)
        stem, drawn = Path(folder) / name, None
        if rendering.draw is None:
            problem = self.misfit(rendering)
            write_text(f"{stem}.html", printing.html(sheet))
        else:
            from xlgrid.exhibits.drawing import plots

            with plots.style():
                ax, drawn, fits = plots.in_place(rendering.draw, rendering.room, place, labels)
                plots.save(ax, *(Path(f"{stem}{suffix}") for suffix in PICTURES), width=WIDTHS[drawn])
            do = "select less" if drawn == "page" else "write `width: page`"
            problem = "" if fits else f"the figure is wider than a {drawn}, which has {WIDTHS[drawn]:g} in: {do}"
        if problem:
            _LOG.warning("%s: %s", name, problem)
        write_text(f"{stem}.md", printing.markdown(sheet))
        in_latex = replace(rendering.in_latex or sheet, labels=labels)
        write_text(f"{stem}.tex", latex(in_latex, name, self.latex, None if drawn else place, picture=drawn))
        # This file is written last, because it marks the exhibit as complete.
        write_text(f"{stem}.csv", rendering.csv)

    def write_published(self, name: str, folder: str | Path, rendering: Rendering) -> None:
        """Write the files that compare the exhibit with published numbers.

        Raises:
            ValueError: the study names no published numbers for the exhibit.
        """
        raise ValueError(
            f"exhibit {name} has no published numbers to compare with: name a file of published numbers as its "
            "`published`"
        )


class OfCells(Exhibit):
    """An exhibit of scores.

    For a task with several metrics, the exhibit shows the main metric, unless `select` or an axis names `metric`. The
    CSV has a line per entry: the keys of the row, `column`, and the statistics of `xlgrid.results.stats.over_seeds`.
    """

    select: dict[str, Values] = Field(
        {}, description="axis, fact of the encoders, or setting of variants -> the values that are shown"
    )
    digits: int = Field(default=1, ge=0, le=6, description="digits after the decimal point")

    @property
    def names_metric(self) -> bool:
        """Whether the exhibit names the metrics that it shows."""
        return "metric" in self.select

    @property
    def selected(self) -> dict[str, tuple[Any, ...]]:
        """The axes of cells, without facts of encoders -> the values that the exhibit shows."""
        return {axis: values for axis, values in self.select.items() if axis in AXES and axis != "metric"}

    @property
    def named_axes(self) -> dict[str, tuple[Sequence[str], Sequence[str]]]:
        return {"select": ([*self.select], AXES)}

    def settings(self, study: "Study") -> list[str]:
        # Rows and columns have the order of the grids, which Snakemake does not see in the inputs, because they are
        # sorted.
        order = {
            axis: [str(value) for value in values if value in self.selected.get(axis, values)]
            for axis, values in study.order.items()
        }
        main = {task: name for task, name in study.main_metrics.items() if task in order.get("task", ())}
        return [*super().settings(study), json.dumps(order), *([json.dumps(main)] if main else [])]

    def unknown_names(self, study: "Study", axes: Mapping[str, Sequence[object]]) -> Iterator[str]:
        yield from super().unknown_names(study, axes)
        chosen = self.select.get("metric", ())
        for task in map(str, self.select.get("task", axes["task"])) if chosen else ():
            if task in study.tasks and {*chosen}.isdisjoint(study.tasks[task].task.all_metrics):
                has = ", ".join(name for name in study.tasks[task].task.all_metrics if ":" not in name)
                yield (
                    f"select.metric: task {task} has no metric {' or '.join(map(str, chosen))} (it has: {has}): leave the task out with `task` in `select`, or name one of its metrics, too"
                )

    @property
    def shows_checkpoints(self) -> bool:
        """Whether the exhibit shows cells with the weights of a step of their target's MLM run (`Grid.checkpoints`)."""
        return False

    def cells(self, planned: Iterable["Cell"], facts: Facts) -> list["Cell"]:
        return [*self._shown(planned, facts)]

    def _shown(self, planned: Iterable["Cell"], facts: Facts) -> Iterator["Cell"]:
        selected = {fact: self.select[fact] for fact in self.facts if fact in self.select}
        return (
            cell
            for cell in self._of_any_encoder(planned)
            if all(known_of(cell, facts).get(fact) in values for fact, values in selected.items())
        )

    def _of_any_encoder(self, planned: Iterable["Cell"]) -> Iterator["Cell"]:
        """The planned cells that the exhibit selects by axes other than facts of their encoders."""
        planned = [*planned] if self.facts else planned
        return (
            cell
            for cell in with_values(planned, self.selected, self._varied(planned))
            if (cell.target.step is not None) == self.shows_checkpoints
        )

    def _varied(self, cells: Iterable["Cell"]) -> set[str]:
        """The settings of the variants of some cells that the exhibit names. If it names some, it shows no other cells than those
        of the variants with just these settings, under the names of their methods."""
        methods = {cell.method for cell in cells} if self.facts else ()
        return {setting for method in methods for setting in settings_of(method)}.intersection(self.facts)

    def problems_of_plan(self, planned: Sequence["Cell"], facts: Facts) -> Iterator[str]:
        if self.selected and next(self._of_any_encoder(planned), None) is None:
            named = " and ".join(f"{axis} {'/'.join(map(str, values))}" for axis, values in self.selected.items())
            yield f"select: no grid has a cell with all of {named}: name other values, or leave the exhibit out"
            return
        varied = self._varied(planned)
        if varied and next(self._of_any_encoder(planned), None) is None:
            differ = {" and ".join(own) for cell in planned if varied <= (own := settings_of(cell.method)).keys()}
            yield (
                f"select: variants differ in {', or in '.join(sorted(differ)) or 'only one of these settings'}, and the exhibit names "
                f"{' and '.join(sorted(varied))}: name all settings of a variant in rows, columns or `select`"
            )
            return
        encoders = (cell.encoder for cell in self._of_any_encoder(planned)) if self.facts else ()
        of_encoders = [fact for fact in self.facts if fact not in varied]
        incomplete = [
            (encoder, fact) for encoder in dict.fromkeys(encoders) for fact in of_encoders if fact not in facts[encoder]
        ]
        for encoder, fact in incomplete:
            key = next(key for key, (axes, _) in self.named_axes.items() if fact in axes)
            yield (
                f"{key}: encoder {encoder} has no fact {fact!r} (it has: {', '.join(facts[encoder]) or 'no facts'}): "
                f"write it under encoders.{encoder}.facts, or leave the encoder out with `encoder` in `select`"
            )
        if incomplete:
            return
        # If an axis has a single selected value, every shown cell has this value.
        together = self.select if self.facts or len(self.selected) > 1 else {}
        missing: dict[str, dict[Any, None]] = {
            axis: dict.fromkeys(together[axis]) for axis in together if axis != "metric" and len(together[axis]) > 1
        }
        for cell in self._shown(planned, facts) if missing else ():
            shown = cell.shown._replace(method=plain(cell.method)) if varied else cell.shown
            for axis, values in missing.items():
                if values:
                    values.pop(getattr(shown, axis) if axis in AXES else known_of(cell, facts).get(axis), None)
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
        """Whether means treat replicas, encoders that differ only in their seeds, as seeds of one encoder."""
        return all("encoder" not in axes for key, (axes, _) in self.named_axes.items() if key != "select")

    def rendering(self, plan: "Plan") -> Rendering:
        from xlgrid.results import records

        metrics = plan.study.metrics
        if not self.names_metric:
            metrics = {task: names[:1] for task, names in metrics.items()}
        elif chosen := self.select.get("metric"):
            known = {name: {*entry.task.all_metrics} for name, entry in plan.study.tasks.items()}
            metrics = {task: tuple(str(name) for name in chosen if name in known[task]) for task in metrics}
        facts = plan.study.facts
        cells = self.cells(plan.cells, facts)
        named = {
            (encoder, method): {fact: known_of(cell, facts)[fact] for fact in self.facts}
            for (encoder, method), cell in {(cell.encoder, cell.method): cell for cell in cells}.items()
        }
        expected = (
            (cell.path, cell._asdict() | named[cell.encoder, cell.method] | {"path": cell.path}) for cell in cells
        )
        scores = records.read_cells(expected, metrics)
        if self._varied(cells):
            scores = scores.assign(run_method=scores["method"], method=scores["method"].map(plain))
        if oracles := sorted({cell.method for cell in cells if plan.study.is_oracle(cell.run)}):
            marked = self.model_copy(update=self._as_oracle(oracles))
            rendering = marked._rendering_of(plan, cells, scores)
            if rendering.draw is None:
                return rendering
            from xlgrid.exhibits.drawing.plots import mark_above

            mark = f"{ORACLE} oracle: {', '.join(oracles)}"
            return rendering._replace(draw=partial(mark_above, rendering.draw, mark))
        return self._rendering_of(plan, cells, scores)

    def _as_oracle(self, methods: Sequence[str]) -> dict[str, str]:
        """The title and the caption of an exhibit with runs whose settings are chosen on the dev sets of targets."""
        named = " and ".join(methods)
        note = f"{ORACLE} Oracle: the settings of {named} were chosen on the dev sets of targets, so that no score of {named} is zero-shot."
        return {"title": f"{self.title} {ORACLE} oracle: {named}", "caption": f"{self.caption} {note}".strip()}

    def _rendering_of(self, plan: "Plan", cells: Sequence["Cell"], scores: "pd.DataFrame") -> Rendering:
        runs = dict.fromkeys(plan.owned(cell.run).folder for cell in cells)
        first_replica = plan.study.replicas
        replica_of = {(first_replica[cell.encoder], cell.seed, cell.encoder) for cell in cells}
        # Replicas with a common seed are compared with one another, so a mean over them has to name `encoder`.
        if not self.merges_replicas or len(replica_of) > len({(encoder, seed) for encoder, seed, _ in replica_of}):
            return self.of_scores(plan.study, scores, runs)
        scores["encoder"] = scores["encoder"].map(first_replica)
        select = {
            axis: tuple(dict.fromkeys(first_replica[str(value)] for value in values)) if axis == "encoder" else values
            for axis, values in self.select.items()
        }
        return self.model_copy(update={"select": select}).of_scores(plan.study, scores, runs)

    def printed(self, entries: "pd.DataFrame", **how: Any) -> "Sheet":
        """The entries as a table with the title, the caption and the digits of the exhibit.

        Args:
            how: arguments of `xlgrid.exhibits.drawing.sheet.sheet`.
        """
        from xlgrid.exhibits.drawing import sheet as printing

        return printing.sheet(entries, title=self.title, caption=self.caption, digits=self.digits, **how)

    @abstractmethod
    def of_scores(self, study: "Study", cells: "pd.DataFrame", runs: Iterable[str | Path] = ()) -> Rendering:
        """The contents of the exhibit.

        Args:
            cells: one row per *planned* cell, from `xlgrid.results.records.read_cells`, with the `path` of its file.
            runs: the folders of the runs of these cells, for learning curves.
        """


def known_of(cell: "Cell", facts: Facts) -> dict[str, Any]:
    """The facts of the encoder of a cell, and the settings of the variant of which the cell is."""
    return {**facts[cell.encoder], **settings_of(cell.method)}


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

    def files(self, study: "Study", compare: bool = False) -> list[str]:
        own = super().files(study, compare)
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
        both = replace(published_sheet(sheet, compared, self.published, self.digits, further), labels=rendering.labels)
        csv = (pd.concat([compared, further]) if len(further) else compared).to_csv(index=False, lineterminator="\n")
        text = csv, printing.markdown(both), printing.html(both)
        # The first file is written last, because it marks the comparison as complete.
        for suffix, contents in reversed([*zip(COMPARISON, text, strict=True)]):
            write_text(Path(folder) / f"{name}{suffix}", contents)


def wrong_groups(groups: Iterable[str], study: "Study", axes: Mapping[str, Sequence[object]]) -> Iterator[str]:
    """A message for each group that the study does not have."""
    for group in groups:
        try:
            study.belongs(group, str(axes["source"][0]), str(axes["target"][0]))
        except ValueError as error:
            yield f"groups: {error}"
