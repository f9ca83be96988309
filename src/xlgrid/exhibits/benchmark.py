"""A table of tasks and of their average, the score of a benchmark such as XTREME (Hu et al. 2020)."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from xlgrid.exhibits.exhibit import AXES, Compared, Rendering
from xlgrid.languages.sources import NONE
from xlgrid.results.naming import SEVERAL

if TYPE_CHECKING:
    import pandas as pd

    from xlgrid.study.schema import Study

# The axes on which a cell without training differs from the cells of the runs of its encoder.
LEARNT = ("method", "source")


class Benchmark(Compared):
    """A table with a column for each task and a column for their average.

    The score of a cell is the mean over the metrics of its task that `select` names, or over all metrics. For XTREME's
    question answering, this is the mean of F1 and exact match. The score of a task is the mean over its targets, and
    the average is the mean over the tasks. Both are means within each seed first, and then over seeds. A row that lacks
    a task of another row has no average.

    Tasks such as retrieval evaluate encoders without training. Their scores have no seed, and count for each seed of
    the other tasks. If the method or the source names a row, `untrained` determines which rows of the encoder show
    these scores. A method that reads each sentence with its translation cannot do retrieval, because retrieval searches
    for this translation. By default, the rows of such a method lack these tasks and thus have no average. (Luo et al.
    2021, table 2, prints such numbers and does not name the model.)
    """

    kind: Literal["benchmark"] = "benchmark"
    rows: tuple[str, ...] = Field(
        ("encoder",),
        min_length=1,
        description="axes, facts of encoders, or settings of variants, whose values name the rows",
    )
    untrained: Literal["shared", "all", "own"] = Field(
        "shared",
        description="the rows that show the scores of an encoder without training. shared: each row of the encoder "
        "whose method reads sentences without their translations; all: each row of the encoder; own: a separate row",
    )
    shows_all_published: ClassVar[bool] = True

    @property
    def named_axes(self) -> dict[str, tuple[Sequence[str], Sequence[str]]]:
        known = tuple(axis for axis in AXES if axis not in ("task", "metric", "seed"))
        return super().named_axes | {"rows": (self.rows, known)}

    @property
    def names_metric(self) -> bool:
        """Whether the exhibit names its metrics: always, since all metrics of a task count."""
        return True

    @property
    def coined_names(self) -> dict[str, list[str]]:
        # An average over tasks has no single value on these axes.
        return {axis: [SEVERAL] for axis in ("task", "metric", "method")}

    def of_scores(self, study: "Study", cells: "pd.DataFrame", runs: Iterable[str | Path] = ()) -> Rendering:
        import pandas as pd

        from xlgrid.exhibits.drawing import sheet as printing
        from xlgrid.results import stats, units

        def reads_alone(method: str) -> bool:
            return self.untrained == "all" or study.methods[method].method.parallel_language is None

        chosen = stats.select(cells, self.select)
        if units.unit(chosen["metric"]) != "%" or not units.higher_is_better(chosen["metric"]):
            names = ", ".join(each.name for each in units.metrics_of(chosen["metric"]))
            raise ValueError(
                f"a benchmark averages over metrics in percent for which higher is better, got {names}: select other "
                "tasks"
            )
        rows, notes = list(self.rows), printing.about(chosen)
        chosen = chosen.assign(untrained=chosen["source"] == NONE)
        if self.untrained != "own" and {*rows} & {*LEARNT}:
            chosen = shared(chosen, rows, reads_alone)
            tasks_without = ", ".join(dict.fromkeys(chosen.loc[chosen["untrained"], "task"]))
            notes += (
                [f"Encoders without training have one score of {tasks_without} for all of their rows."]
                if tasks_without
                else []
            )
        scores = stats.mean_over_metrics(chosen).assign(column=lambda scores: scores["task"])
        entries = stats.entries(scores, rows, "column")
        average = stats.entries(stats.in_every_seed(scores, rows, scores["untrained"]), rows, "column", average=True)
        average = average[average["column"] == stats.AVERAGE]
        counts = entries.groupby(rows, sort=False)
        tasks = counts["column"].nunique().reset_index(name="tasks")
        # An untrained cell counts once, for any number of seeds.
        once = counts[["n_cells", "n_cells_expected"]].sum().reset_index()
        average = average.drop(columns=["n_cells", "n_cells_expected"]).merge(once, on=rows).merge(tasks, on=rows)
        average = average[average.pop("tasks") == scores["task"].nunique()]
        if (chosen.groupby("task")["metric"].nunique() > 1).any():
            notes.append("The score of a task with several metrics is their mean.")
        if len(average) < len(tasks):
            notes.append("A row without all tasks has no average.")
        order = {axis: stats.in_order(chosen, axis, self.select) for axis in self.rows}
        order["column"] = [*stats.in_order(chosen, "task", self.select), stats.AVERAGE]
        behind = pd.concat([chosen.assign(column=chosen["task"]), chosen.assign(column=stats.AVERAGE)])
        entries = pd.concat([entries, average], ignore_index=True)
        entries = printing.with_learning(entries, behind, [*rows, "column"])
        sheet = self.printed(entries, notes=notes, rows=self.rows, column_axes=["task"], order=order)
        return Rendering(sheet, behind=behind)


def shared(cells: "pd.DataFrame", rows: Sequence[str], takes: Callable[[str], bool]) -> "pd.DataFrame":
    """The cells, with each cell without training copied into the rows of its encoder that show such cells.

    If no row shows them, they keep a separate row.

    Args:
        cells: the cells of the benchmark, with the column `untrained`.
        rows: the columns that name a row.
        takes: whether the rows of a method show the cells without training.
    """
    import pandas as pd

    place = list(dict.fromkeys(["encoder", *(name for name in rows if name not in LEARNT)]))
    learnt = [name for name in LEARNT if name in rows]
    trained, bare = cells[~cells["untrained"]], cells[cells["untrained"]]
    takers = trained[trained["method"].map(takes)]
    placed = bare.drop(columns=learnt).merge(takers[[*place, *learnt]].drop_duplicates(), on=place)
    alone = bare.merge(takers[place].drop_duplicates(), on=place, how="left", indicator="is_trained")
    alone = alone[alone["is_trained"] == "left_only"]
    return pd.concat([trained, *(part[list(cells)] for part in (placed, alone) if len(part))], ignore_index=True)
