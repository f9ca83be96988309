"""An exhibit of a study from whatever cells exist."""

from pathlib import Path

from xlgrid import exhibits, grid
from xlgrid.study import Study


def render_exhibit(study: Study, name: str, folder: str | Path) -> None:
    """Write the files of one of a study's exhibits to `folder`.

    Raises:
        ValueError: the study has no such exhibit, there is nothing to show, or a cell's file is damaged.
        FileNotFoundError: there are no such published numbers.
    """
    from xlgrid import records

    exhibit = study.exhibit(name)
    needed = exhibits.needed(exhibit, grid.cells(study))
    cells = records.read_cells((cell.path, cell._asdict()) for cell in needed)
    curves = records.read_curves(dict.fromkeys(cell.run.folder for cell in needed))
    exhibits.render(name, exhibit, cells, curves, study.languages_used(), study.belongs, folder)
