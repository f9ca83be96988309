"""Whether a study's exhibits can be rendered, found out before there are results."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from xlgrid.exhibits.exhibit import P
from xlgrid.plan.plan import Plan
from xlgrid.preflight.lines import Line, State
from xlgrid.products.evaluate import Cell
from xlgrid.study.schema import Study

# No study has this name, so that its cells have no files.
_NO_STUDY = "-"


@dataclass(frozen=True)
class _Unmade:
    """A plan as exhibits read it, of whose cells none has been evaluated."""

    plan: Plan

    @property
    def study(self) -> Study:
        return self.plan.study

    @cached_property
    def cells(self) -> list[Cell]:
        return [cell._replace(study=_NO_STUDY) for cell in self.plan.cells]

    def owned(self, product: P) -> P:
        return self.plan.owned(product)


def exhibit_lines(plan: Plan) -> Iterator[Line]:
    """A line for each exhibit that its job could not render, such as one with an entry that would average over two methods.

    Learning curves are left out, because they are lines of the runs that have begun.
    """
    study, unmade = plan.study, _Unmade(plan)
    exhibits = {name: study.exhibit(name) for name in study.exhibits}
    drawn = {name: each for name, each in exhibits.items() if not each.shows_runs}
    problems = []
    for name, exhibit in drawn.items():
        try:
            exhibit.rendering(unmade)
        except (ValueError, OSError) as error:
            problems.append(Line(State.PROBLEM, f"exhibit {name}", str(error)))
    yield from problems
    if drawn and not problems:
        yield Line(State.GOOD, "exhibits", f"{len(drawn)} can be rendered, as far as the planned cells show")
