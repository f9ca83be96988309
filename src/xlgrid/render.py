"""Exhibits of a study from whatever cells exist."""

from pathlib import Path

from xlgrid import grid
from xlgrid.names import unknown
from xlgrid.study import load_study


def render_exhibit(study_file: Path, name: str, folder: Path | None = None) -> list[Path]:
    """Write the files of one exhibit to `folder`, `results/{study}/exhibits` by default.

    Raises:
        ValueError: the study has no such exhibit, or a cell's file is damaged.
    """
    from xlgrid import exhibits, records

    study = load_study(study_file)
    if name not in study.exhibits:
        raise ValueError(f"{study_file}: {unknown('exhibit', name, study.exhibits)}")
    planned = grid.cells(study)
    return exhibits.render(
        name,
        study.exhibits[name],
        records.read_cells((cell.path, cell._asdict()) for cell in planned),
        records.read_curves(run.folder for run in dict.fromkeys(cell.run for cell in planned)),
        study.languages_used(),
        study.belongs,
        folder or Path(f"results/{study.name}/exhibits"),
    )
