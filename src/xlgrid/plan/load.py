"""Reads a study, checks all of it, and plans the cells and runs that follow from it."""

from pathlib import Path

from xlgrid.base.files import write_text
from xlgrid.base.papers import study_file
from xlgrid.plan.checks import plan_problems
from xlgrid.plan.plan import Plan
from xlgrid.products.report import Report, StudyCopy
from xlgrid.study.checks import problems
from xlgrid.study.load import StudyFile, located, read_lineage
from xlgrid.study.schema import Study

_YAML = (".yaml", ".yml")


def load_plan(study: str | Path) -> Plan:
    """Read a study and the studies that it extends, check them, and plan them.

    Args:
        study: a name, such as `demo`, or a path, such as `studies/demo.yaml`.

    Raises:
        FileNotFoundError: there is no such study; the message names the studies that exist.
        ValueError: a study has mistakes; the message names each with its file and line.
    """
    plan, files = _read(study)
    # A mistake of an extended study counts only if this study has it, too; the message names the extended file.
    if plan_problems(plan):
        for each, file in zip((*plan.ancestors, plan), files, strict=True):
            _refuse(plan_problems(each), file)
    return plan


def read_plan(study: str | Path) -> Plan:
    """Read and plan a study like `load_plan`, but without the checks that need all cells and runs.

    Commands that show results use this, because Snakemake has made these checks before.

    Raises:
        FileNotFoundError: there is no such study; the message names the studies that exist.
        ValueError: the file of a study has mistakes; the message names each with its file and line.
    """
    return _read(study)[0]


def _read(study: str | Path) -> tuple[Plan, list[StudyFile]]:
    """The plan of a study, its file, and the files of the studies that it extends."""
    files = list(reversed(read_lineage(study_path(study))))
    plans: list[Plan] = []
    for file in files:
        _refuse(problems(file.study), file)
        plans.append(Plan(file.study, tuple(plans), path=file.path))
    return plans[-1], files


def _refuse(mistakes: list[str], file: StudyFile) -> None:
    if mistakes:
        raise ValueError("\n".join(located(mistake, file.lines, file.path) for mistake in mistakes))


def load_study(study: str | Path) -> Study:
    """The study of `load_plan`."""
    return load_plan(study).study


def study_path(study: str | Path) -> Path:
    """The file of a study, given its path or its name; the file of a name is in studies/, or comes with xlgrid."""
    return _or_shipped(_in_project(study))


def study_named(name: str) -> Path:
    """The file of a study, given its name; the file is in studies/, or comes with xlgrid."""
    return study_file(name)


def named(plan: Plan) -> str:
    """The study of a plan as an argument of a command: its name, or its path if the name does not find its file."""
    is_found = plan.path is None or plan.path.resolve() == study_named(plan.study.name).resolve()
    return plan.study.name if is_found else str(plan.path)


def options_of(study: str) -> list[str]:
    """The options that Snakemake needs to find the study of a result; empty for a study that is found by its name.

    Args:
        study: the result of `named`.
    """
    return ["--config", f"study={study}"] if is_path(study) else []


def is_path(study: str | Path) -> bool:
    """Whether `study` is a path, and not a name. Names may contain dots."""
    return Path(study).suffix in _YAML or len(Path(study).parts) > 1


def _in_project(study: str | Path) -> Path:
    path = Path(study).expanduser()
    if not is_path(path):
        return _in_studies(study)
    if path.suffix not in _YAML:
        path = path.with_name(f"{path.name}.yaml")
    # A file name without a folder is a file in the working directory, or else in studies/.
    return path if path.is_file() or len(path.parts) > 1 else _in_studies(path.stem)


def _in_studies(name: str | Path) -> Path:
    return Path("studies") / f"{name}.yaml"


def _or_shipped(path: Path) -> Path:
    """The path itself; if it is in studies/ and does not exist, the path of xlgrid's own study with this name."""
    return study_file(path.stem) if path == _in_studies(path.stem) else path


def project_of(study: str | Path) -> Path:
    """The folder of the project with a study or its results: the working directory, or else the nearest one above it."""
    path = _in_project(study)
    here = Path.cwd()
    parts = path, Path(Report(path.stem).folder)
    nearest = next(
        (folder for folder in (here, *here.parents) if any((folder / part).exists() for part in parts)), here
    )
    return Path() if nearest == here else nearest


def file_in(root: Path, study: str | Path) -> Path:
    """The file of a study of another project.

    The results may have been moved without the file; then this is the copy that `copy_study` has left with the results.

    Args:
        root: the folder that contains results/.
        study: a name or path, as for `study_path`; a relative path starts at `root`.
    """
    path = _in_project(study)
    candidates = root / path, root / StudyCopy(path.stem, path.stem).path
    return next((file for file in candidates if file.is_file()), _or_shipped(path))


def copy_study(plan: Plan) -> None:
    """Copy the file of a study, and the files of the studies that it extends, to its results."""
    for each in (*plan.ancestors, plan):
        if each.path:
            write_text(StudyCopy(plan.study.name, each.study.name).path, each.path.read_text(encoding="utf-8"))
