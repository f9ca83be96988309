"""Reading a study, checking all of it, and planning the cells and runs that follow from it."""

from pathlib import Path

from xlgrid.plan.checks import plan_problems
from xlgrid.plan.plan import Plan
from xlgrid.study.checks import problems
from xlgrid.study.load import located, read_lineage
from xlgrid.study.schema import Study


def load_plan(study: str | Path) -> Plan:
    """Read the study of a name (`demo`) or path (`studies/demo.yaml`) and those that it extends, check them, and plan them.

    Raises:
        FileNotFoundError: there is no such study; the message names those that exist.
        ValueError: a study has mistakes; the message names each with its file and line.
    """
    ancestors: list[Plan] = []
    for file in reversed(read_lineage(study_path(study))):
        plan = Plan(file.study, tuple(ancestors))
        # The checks of the plan rely on those of the study.
        mistakes = problems(file.study) or plan_problems(plan)
        if mistakes:
            raise ValueError("\n".join(located(mistake, file.lines, file.path) for mistake in mistakes))
        ancestors.append(plan)
    return plan


def load_study(study: str | Path) -> Study:
    """The study of `load_plan`."""
    return load_plan(study).study


def study_path(study: str | Path) -> Path:
    """The file of a study that is named by its name or path."""
    path = Path(study)
    return path if path.suffix or len(path.parts) > 1 else Path("studies") / f"{path}.yaml"
