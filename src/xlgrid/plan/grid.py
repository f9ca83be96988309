"""The cells and runs that follow from a study."""

from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING

from xlgrid.results.identity import Cell, Run

if TYPE_CHECKING:
    from xlgrid.data.sources import Teacher
    from xlgrid.study.schema import Study
    from xlgrid.training.recipe import Start


def cells(study: "Study") -> list[Cell]:
    """Every cell of the study, in the order of its grids.

    Raises:
        ValueError: two grids of the study have the same cell.
    """
    grids: dict[Cell, str] = {}
    for name, grid in study.grids.items():
        sources, targets = study.sources(grid), study.targets(grid)
        if grid.snapshots:
            targets = [target.at(step) for target, step in product(targets, grid.snapshots)]
        aimed = {method for method in grid.method if (start := study.methods[method].start) and start.at == "target"}
        for axes in product(grid.task, grid.encoder, grid.method, sources, targets, grid.seed):
            cell = Cell(study.name, *axes)
            if cell.method in aimed:
                cell = cell._replace(source=cell.source.aimed_at(cell.target))
            if cell in grids:
                raise ValueError(
                    f"grids.{name}: the cell {cell.path} is made twice, by grids {grids[cell]!r} and {name!r}: remove one of the two, or "
                    "the repeated value"
                )
            grids[cell] = name
    return list(grids)


def runs(study: "Study", planned: Iterable[Cell] | None = None) -> list[Run]:
    """Every run that the cells `planned` need, or all cells of the study; a run comes after those with which it begins.

    Cells of methods without training need none.
    """
    planned = cells(study) if planned is None else list(planned)
    needed = list(dict.fromkeys(cell.run for cell in planned if study.methods[cell.method].is_trained))
    following: list[Run | Cell] = [*planned, *needed]
    while earlier := dict.fromkeys(start for each in following for start in starting_runs(study, each)):
        needed = [*earlier, *needed]
        following = [*earlier]
    return list(dict.fromkeys(needed))


def teacher(study: "Study", named: "Teacher") -> Run:
    """The run that gives labels to data without labels (`DataSource.labelled`)."""
    return Run(study.name, named.task, named.encoder, named.method, named.source, named.seed)


def starting_runs(study: "Study", user: Run | Cell) -> list[Run]:
    """The runs whose weights a run begins with, in the order in which they are loaded: those on text, and that of a first
    task. For a cell, the runs on text that its run began with, and those of its target."""
    first = first_stage(study.tasks[user.task].start, user) if isinstance(user, Run) else []
    return [*text_runs(study, user), *first]


def text_runs(study: "Study", user: Run | Cell) -> list[Run]:
    """The runs on text among `starting_runs`."""
    start = study.methods[user.method].start
    texts = started_from(start, user)
    if isinstance(user, Cell):
        texts = [*started_from(start, user.run), *texts]
    # A run on text that itself began with another stores what it changed, and no more.
    return list(dict.fromkeys(each for run in texts for each in (*text_runs(study, run), run)))


def started_from(start: "Start | None", user: Run | Cell) -> list[Run]:
    """The run on text that `start` names for a run, or for a cell by its target: none or one."""
    if start is None:
        return []
    if start.at == "both" and isinstance(user, Cell):
        text = start.of_target(user.target.data, user.source.data)
    else:
        text = start.of_run(user.source)
    return [Run(user.study, start.task, user.encoder, start.method, text, start.seed)] if text else []


def first_stage(task: str | None, run: Run) -> list[Run]:
    """The run of another task that `run` begins with, if there is such a task: none or one."""
    return [run._replace(task=task)] if task else []
