"""Reading a study, checking all of it, and planning the cells and runs that follow from it."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from xlgrid.plan import grid
from xlgrid.plan.checks import plan_problems
from xlgrid.plan.products import Product
from xlgrid.results.identity import Cell, Run
from xlgrid.study.checks import problems
from xlgrid.study.load import located, read_study
from xlgrid.study.schema import Study


@dataclass(frozen=True)
class Plan:
    """A study, and the cells and runs that follow from it.

    Attributes:
        chains: product -> that product and everything on which it rests, as far as `needs.rests_on` has been asked.
    """

    study: Study
    chains: dict[Product, list[Product]] = field(default_factory=dict, repr=False)

    @cached_property
    def cells(self) -> list[Cell]:
        """Every cell of the study, in the order of its grids."""
        return grid.cells(self.study)

    @cached_property
    def runs(self) -> list[Run]:
        """Every run of the study; a run comes after those with which it begins."""
        return grid.runs(self.study, self.cells)

    @cached_property
    def results(self) -> frozenset[Run | Cell]:
        """All runs and cells."""
        return frozenset([*self.cells, *self.runs])

    def is_imported(self, run: Run) -> bool:
        """Whether a run is read from adapters that others have trained."""
        return self.study.tasks[run.task].is_text and self.study.methods[run.method].imported is not None


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
