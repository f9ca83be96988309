"""The disk that a study needs, beside what is free."""

from collections import namedtuple
from collections.abc import Callable
from pathlib import Path

import pytest

from xlgrid.plan.plan import Plan
from xlgrid.preflight import room
from xlgrid.preflight.lines import State

XLMR = {"e": {"hub": "FacebookAI/xlm-roberta-base"}}
Usage = namedtuple("Usage", "total used free")


def state_of(plan: Plan) -> State:
    [line] = room.room_lines(plan)
    return line.state


@pytest.mark.parametrize(("free", "state"), [(2 * 10**9, State.GOOD), (10**9, State.PROBLEM)])
def test_the_disk_has_to_hold_the_runs(
    plan_of: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch, free: int, state: State
) -> None:
    """A run with all weights of XLM-R base stores 278 million numbers of 4 bytes."""
    monkeypatch.setattr(room.shutil, "disk_usage", lambda path: Usage(free, 0, free))
    assert state_of(plan_of(encoders=XLMR)) is state


def test_runs_that_are_done_need_no_disk_more(plan_of: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room.shutil, "disk_usage", lambda path: Usage(0, 0, 0))
    plan = plan_of(encoders=XLMR)
    for run in plan.runs:
        Path(run.delta).parent.mkdir(parents=True)
        Path(run.delta).touch()
    assert state_of(plan) is State.GOOD


def test_an_encoder_of_unknown_size_leaves_the_disk_open(plan_of: Callable[..., Plan]) -> None:
    assert state_of(plan_of()) is State.OPEN
