"""All checks of a study before anything computes: exhibits, the Hub, files, tokenizers and disk."""

from collections.abc import Iterator
from pathlib import Path

from xlgrid.plan.checks import inherited_problems
from xlgrid.plan.plan import Plan
from xlgrid.preflight.claims import claim_lines
from xlgrid.preflight.exhibits import exhibit_lines
from xlgrid.preflight.files import file_lines, tokenizer_lines
from xlgrid.preflight.hub import hub_lines
from xlgrid.preflight.lines import Line, State
from xlgrid.preflight.materials import materials, needed_products
from xlgrid.preflight.room import room_lines


def study_lines(plan: Plan, lock: str | Path) -> Iterator[Line]:
    """A line for each thing that a study needs, in the order in which a study uses them.

    Args:
        plan: the plan of the study, which has been checked against its schema.
        lock: the lock file, see `xlgrid.data.lock`.

    Raises:
        ValueError: the lock file is damaged.
    """
    shared = f"; {plan.shared}" if plan.shared else ""
    yield Line(State.GOOD, f"study {plan.study.name}", f"{len(plan.cells):,} cells, {len(plan.runs):,} runs{shared}")
    yield from (Line(State.PROBLEM, "report", problem) for problem in inherited_problems(plan))
    yield from exhibit_lines(plan)
    yield from claim_lines(plan)
    needed = needed_products(plan)
    taken = materials(plan, needed)
    if not taken:
        yield Line(State.GOOD, "files", "everything is generated here: the study needs neither files nor the Hub")
    yield from hub_lines(plan.study, taken, lock)
    yield from file_lines(plan, taken)
    yield from tokenizer_lines(plan, needed)
    yield from room_lines(plan)
