"""Reading a study, checking all of it, and planning the cells and runs that follow from it."""

from pathlib import Path

from xlgrid.plan.checks import plan_problems
from xlgrid.plan.grid import Plan
from xlgrid.study.checks import problems
from xlgrid.study.load import located, read_study
from xlgrid.study.schema import Study


def load_plan(study: str | Path) -> Plan:
    """Read the study of a name (`demo`) or path (`studies/demo.yaml`), check it, and plan it.

    Raises:
        FileNotFoundError: there is no such study; the message names those that exist.
        ValueError: the study has mistakes; the message names each with its file and line.
    """
    path = study_path(study)
    read, lines = read_study(path)
    plan = Plan(read)
    # The checks of the plan rely on those of the study.
    mistakes = problems(read) or plan_problems(plan)
    if mistakes:
        raise ValueError("\n".join(located(mistake, lines, path) for mistake in mistakes))
    return plan


def load_study(study: str | Path) -> Study:
    """The study of `load_plan`."""
    return load_plan(study).study


def study_path(study: str | Path) -> Path:
    """The file of a study that is named by its name or path."""
    path = Path(study)
    return path if path.suffix or len(path.parts) > 1 else Path("studies") / f"{path}.yaml"
