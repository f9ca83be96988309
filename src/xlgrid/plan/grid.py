"""The cells and runs that follow from a study."""

from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING

from xlgrid.products.evaluate import Cell
from xlgrid.products.train import Run

if TYPE_CHECKING:
    from xlgrid.study.schema import Study


def cells(study: "Study") -> list[Cell]:
    """Every cell of the study, in the order of its grids.

    Raises:
        ValueError: two grids of the study have the same cell.
    """
    grids: dict[Cell, str] = {}
    for name, grid in study.grids.items():
        sources, targets = study.sources(grid), study.targets(grid)
        if grid.checkpoints:
            targets = [target.at(step) for target, step in product(targets, grid.checkpoints)]
        aimed = {method for method in grid.methods if grid.is_for_target or study.methods[method].is_aimed(study)}
        for axes in product(grid.task, grid.encoder, grid.methods, sources, targets, grid.seed):
            cell = Cell(study.name, *axes)
            if cell.method in aimed:
                cell = cell._replace(source=cell.source.aimed_at(cell.target))
            if cell in grids:
                raise ValueError(
                    f"grids.{name}: the cell {cell.path} is made twice, by grids {grids[cell]!r} and {name!r}: "
                    "remove one of the two, or the repeated value"
                )
            grids[cell] = name
    # Studies have hundreds of thousands of cells, and most have no sweep.
    varied = ((cell, study.choice(cell.run)) if study.sweep else (cell, None) for cell in grids)
    return list(
        dict.fromkeys(
            each for cell, choice in varied for each in (cell, *(choice.cells(study, cell) if choice else ()))
        )
    )


def runs(study: "Study", planned: Iterable[Cell] | None = None) -> list[Run]:
    """Every run that the cells `planned`, or all cells of the study, need.

    A run comes after the runs with which it begins. Cells of methods without training need no run.
    """
    planned = cells(study) if planned is None else list(planned)
    needed = list(dict.fromkeys(cell.run for cell in planned if study.methods[cell.method].is_trained))
    following: list[Run | Cell] = [*planned, *needed]
    while earlier := dict.fromkeys(start for each in following for start in each.starting_runs(study)):
        needed = [*earlier, *needed]
        following = [*earlier]
    return list(dict.fromkeys(needed))
