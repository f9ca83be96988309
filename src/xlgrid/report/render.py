"""An exhibit of a study from whatever results exist."""

from pathlib import Path

from xlgrid.exhibits import schema as exhibits
from xlgrid.plan import grid
from xlgrid.study.schema import Study


def render_exhibit(study: Study, name: str, folder: str | Path) -> None:
    """Write the files of one of a study's exhibits to `folder`.

    Raises:
        ValueError: the study has no such exhibit, there is nothing to show, or a result's file is damaged.
        FileNotFoundError: there are no such published numbers.
    """
    from xlgrid.results import records

    exhibit = study.exhibit(name)
    if isinstance(exhibit, exhibits.Parameters):
        from xlgrid.exhibits import added

        return added.render(name, exhibit, study, folder)
    if isinstance(exhibit, exhibits.Masks):
        from xlgrid.exhibits import masks

        return masks.render(name, exhibit, study.methods, folder)
    if isinstance(exhibit, exhibits.Attention):
        from xlgrid.exhibits import contrasts

        return contrasts.render(name, exhibit, grid.cells(study), folder)
    needed = exhibits.needed(exhibit, grid.cells(study))
    # Of several metrics, those that the exhibit names, or each task's main one.
    asked = study.metrics if exhibits.names_metric(exhibit) else {name: its[:1] for name, its in study.metrics.items()}
    cells = records.read_cells(((cell.path, cell._asdict()) for cell in needed), asked)
    curves = records.read_curves(dict.fromkeys(cell.run.folder for cell in needed))
    exhibits.render(name, exhibit, cells, curves, study.languages_used(), study.belongs, folder)
