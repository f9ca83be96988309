"""An exhibit of a study from whatever cells exist."""

from pathlib import Path

from xlgrid import exhibits, grid
from xlgrid.names import unknown
from xlgrid.study import Study


def render_exhibit(study: Study, name: str, folder: str | Path) -> None:
    """Write the files of one of a study's exhibits to `folder`.

    Raises:
        ValueError: the study has no such exhibit, there is nothing to show, or a cell's file is damaged.
    """
    from xlgrid import records

    if name not in study.exhibits:
        raise ValueError(f"study {study.name}: {unknown('exhibit', name, study.exhibits)}")
    exhibit = study.exhibits[name]
    needed = exhibits.needed(exhibit, grid.cells(study))
    cells = records.read_cells((cell.path, cell._asdict()) for cell in needed)
    curves = records.read_curves(dict.fromkeys(cell.run.folder for cell in needed))
    exhibits.render(name, exhibit, cells, curves, study.languages_used(), study.belongs, folder)
