"""`xlgrid check` says what effects the planned seeds of the claims can show."""

from collections.abc import Callable
from typing import Any

import pytest

from xlgrid.plan.plan import Plan
from xlgrid.preflight.claims import claim_lines
from xlgrid.preflight.lines import State
from xlgrid.results.verdicts import smallest_effect

GRID = {"task": ["topic"], "encoder": ["e"], "source": ["en"], "target": ["mono"]}
CLAIM = {"says": "s", "compare": [{"method": "full-ft"}, {"method": "bitfit"}], "expect": "greater"}


def plan(plan_of: Callable[..., Plan], seeds: list[int], claims: int) -> Plan:
    grids = {"all": {**GRID, "method": ["full-ft", "bitfit"], "seed": seeds}}
    return plan_of(methods={"full-ft": {}, "bitfit": {}}, grids=grids, claims={f"c{n}": CLAIM for n in range(claims)})


@pytest.mark.parametrize(("seeds", "claims", "state"), [(3, 1, State.GOOD), (3, 20, State.OPEN), (5, 20, State.GOOD)])
def test_the_line_has_the_smallest_effect_of_the_first_and_the_last_step(
    plan_of: Callable[..., Plan], seeds: int, claims: int, state: State
) -> None:
    [line] = claim_lines(plan(plan_of, [*range(seeds)], claims))
    assert line.state is state
    for step in (claims, 1):
        assert f"{smallest_effect(seeds, step):.1f}" in line.text


@pytest.mark.parametrize("seeds", [[1], [1, 2]])
def test_claims_that_can_have_no_verdict_are_told(plan_of: Callable[..., Plan], seeds: list[int]) -> None:
    [line] = claim_lines(plan(plan_of, seeds, 2))
    assert line.state is State.OPEN and "a verdict needs 3" in line.text


def test_claims_without_a_verdict_never_hold_so_that_the_last_step_counts_them(plan_of: Callable[..., Plan]) -> None:
    """Of five claims, the last of the three with a verdict is tested as the first of three."""
    once: dict[str, Any] = {**CLAIM, "select": {"seed": [1]}}
    both = plan_of(
        methods={"full-ft": {}, "bitfit": {}},
        grids={"all": {**GRID, "method": ["full-ft", "bitfit"], "seed": [1, 2, 3, 4, 5]}},
        claims={"a": CLAIM, "b": CLAIM, "c": CLAIM, "d": once, "e": once},
    )
    first, without = claim_lines(both)
    assert f"the last by {smallest_effect(5, 3):.1f}" in first.text
    assert without.text.startswith("2 of 5")


def test_a_study_without_claims_has_no_line(plan_of: Callable[..., Plan]) -> None:
    assert [*claim_lines(plan_of())] == []
