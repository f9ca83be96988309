"""A table of tasks, and of their average: the score of a benchmark such as XTREME (Hu et al. 2020)."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from xlgrid.exhibits.exhibit import AXES, Compared, Rendering, StudyView
from xlgrid.languages.sources import NONE
from xlgrid.results.naming import SEVERAL

if TYPE_CHECKING:
    import pandas as pd


class Benchmark(Compared):
    """A column for each task and one for their average.

    The score of a cell is the mean of the metrics of its task that `select` names, or of all: of XTREME's tasks of answers, the mean of
    F1 and exact match. A task's score is the mean over its targets, the average is the mean over the tasks, each within a seed and then
    over seeds. Scores of encoders without training have no seed and count for each seed of the other tasks. A row that lacks a
    task of another row has no average.
    """

    kind: Literal["benchmark"] = "benchmark"
    rows: tuple[str, ...] = Field(("encoder",), min_length=1, description="axes, or facts of encoders")
    statistic: Literal["mean-sd", "mean", "min-max"] = "mean-sd"

    @property
    def named_axes(self) -> dict[str, tuple[Sequence[str], Sequence[str]]]:
        known = tuple(axis for axis in AXES if axis not in ("task", "metric", "seed"))
        return super().named_axes | {"rows": (self.rows, known)}

    @property
    def names_metric(self) -> bool:
        """All metrics of a task count."""
        return True

    @property
    def coined_names(self) -> dict[str, list[str]]:
        # An average over tasks has no single one of these.
        return {axis: [SEVERAL] for axis in ("task", "metric", "method")}

    def of_scores(self, study: StudyView, cells: "pd.DataFrame", runs: Iterable[str | Path] = ()) -> Rendering:
        import pandas as pd

        from xlgrid.exhibits.drawing import sheet as printing
        from xlgrid.results import stats, units

        chosen = stats.select(cells, self.select)
        if units.unit(chosen["metric"]) != "%" or not units.higher_is_better(chosen["metric"]):
            names = ", ".join(each.name for each in units.metrics_of(chosen["metric"]))
            raise ValueError(
                f"a benchmark averages over metrics in percent of which more is better, got {names}: select other tasks"
            )
        rows = list(self.rows)
        scores = stats.mean_over_metrics(chosen).assign(column=lambda scores: scores["task"])
        entries = stats.entries(scores, rows, "column")
        average = stats.entries(
            stats.in_every_seed(scores, rows, scores["source"] == NONE), rows, "column", average=True
        )
        average = average[average["column"] == stats.AVERAGE]
        counts = entries.groupby(rows, sort=False)
        tasks = counts["column"].nunique().reset_index(name="tasks")
        # An untrained cell counts once, however many seeds it stands for.
        once = counts[["n_cells", "n_cells_expected"]].sum().reset_index()
        average = average.drop(columns=["n_cells", "n_cells_expected"]).merge(once, on=rows).merge(tasks, on=rows)
        average = average[average.pop("tasks") == scores["task"].nunique()]
        notes = printing.about(chosen)
        if (chosen.groupby("task")["metric"].nunique() > 1).any():
            notes.append("Of a task with several metrics, the score is their mean.")
        if len(average) < len(tasks):
            notes.append("A row without all tasks has no average.")
        order = {axis: stats.in_order(chosen, axis, self.select) for axis in self.rows}
        order["column"] = [*stats.in_order(chosen, "task", self.select), stats.AVERAGE]
        sheet = printing.sheet(
            pd.concat([entries, average], ignore_index=True),
            title=self.title,
            caption=self.caption,
            notes=notes,
            rows=self.rows,
            axes=("column",),
            order=order,
            statistic=self.statistic,
            digits=self.digits,
        )
        behind = [chosen.assign(column=chosen["task"]), chosen.assign(column=stats.AVERAGE)]
        return Rendering(sheet, behind=pd.concat(behind))
