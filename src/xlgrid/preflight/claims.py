"""What the planned seeds of a study's claims can show, said before anything computes."""

from collections import Counter
from collections.abc import Iterator

from xlgrid.plan.plan import Plan
from xlgrid.preflight.lines import Line, State
from xlgrid.results.claims import problem_of_plan, terms
from xlgrid.results.verdicts import LEAST_SEEDS, smallest_effect

# Standard deviations over seeds. Five seeds show a smaller effect among a hundred claims, and three seeds do not among four.
LARGE = 5.0
ENOUGH = 5


def claim_lines(plan: Plan) -> Iterator[Line]:
    """A line for the claims of each number of planned seeds: the smallest effects that can show, or that there is no verdict.

    Claims that pair what is not planned have a line of their own. Claims without cells are among `inherited_problems`.
    """
    study, cells = plan.study, plan.cells
    of_seeds: Counter[int] = Counter()
    for name, claim in study.claims.items():
        if problem_of_plan(claim, cells, study.belongs):
            continue
        try:
            planned = terms(name, claim, cells, study.belongs)
        except ValueError as error:
            yield Line(State.PROBLEM, "claims", str(error))
            continue
        of_seeds[len({term.cell.seed for term in planned})] += 1
    total = len(study.claims)
    without = sum(number for seeds, number in of_seeds.items() if seeds < LEAST_SEEDS)
    for seeds, number in sorted(of_seeds.items(), reverse=True):
        of_these = f"{seeds} seed{'s' * (seeds > 1)}"
        if seeds < LEAST_SEEDS:
            counted = f"{number} of {total}" if number < total else str(total)
            runs = f"{counted} {'have' if number > 1 else 'has'} {of_these}"
            text = f"{runs}, and a verdict needs {LEAST_SEEDS}: add seeds, or read the effects without verdicts"
            yield Line(State.OPEN, "claims", text)
            continue
        # Claims without a verdict count as if they did not hold.
        steps = [total, 1 + without]
        first, last = (smallest_effect(seeds, step) for step in steps)
        only = f", in {number} of {total} claims" if number < total else ""
        which = f"the first of {total} claims to hold" if total > 1 else "to hold, the claim"
        text = f"{of_these}{only}: {which} must exceed its margin by {first:.1f} standard deviations over seeds"
        text += f", the last by {last:.1f}" if total > 1 else ""
        if first > LARGE:
            more = " and ".join(f"{smallest_effect(ENOUGH, step):.1f}" for step in dict.fromkeys(steps))
            text += f"; with {ENOUGH} seeds {more}"
        yield Line(State.OPEN if first > LARGE else State.GOOD, "claims", text)
