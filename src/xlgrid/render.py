"""Exhibits of a study from whatever cells exist."""

from collections.abc import Iterable
from pathlib import Path

from xlgrid import grid
from xlgrid.names import unknown
from xlgrid.study import Study


def render_exhibits(study: Study, names: Iterable[str], folder: str | Path) -> None:
    """Write the files of some of a study's exhibits to `folder`.

    Raises:
        ValueError: the study has no such exhibit, or a cell's file is damaged.
    """
    from xlgrid import exhibits, records

    names = list(names)
    for name in names:
        if name not in study.exhibits:
            raise ValueError(f"study {study.name}: {unknown('exhibit', name, study.exhibits)}")
    cells = records.read_cells((cell.path, cell._asdict()) for cell in grid.cells(study))
    curves = records.read_curves(run.folder for run in grid.runs(study))
    for name in names:
        languages = study.languages_used()
        exhibits.render(name, study.exhibits[name], cells, curves, languages, study.belongs, folder)
