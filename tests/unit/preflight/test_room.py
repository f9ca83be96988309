"""Disk and memory that a study needs, beside those that are free."""

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import pytest

from xlgrid.plan.plan import Plan
from xlgrid.preflight import room
from xlgrid.preflight.lines import Line, State

XLMR = {"e": {"hub": "FacebookAI/xlm-roberta-base"}}
Usage = namedtuple("Usage", "total used free")


def lines_of(plan: Plan) -> dict[str, Line]:
    return {line.thing: line for line in room.room_lines(plan)}


@pytest.mark.parametrize(("free", "state"), [(10**13, State.GOOD), (10**9, State.PROBLEM)])
def test_the_disk_has_to_hold_the_encoder_twice_and_the_runs(
    plan_of: Callable[..., Plan], sized_tasks: dict[str, Any], monkeypatch: pytest.MonkeyPatch, free: int, state: State
) -> None:
    """XLM-R base has 278 million parameters of 4 bytes: in the cache of the Hub, in the results, and in the one run."""
    monkeypatch.setattr(room.shutil, "disk_usage", lambda path: Usage(free, 0, free))
    line = lines_of(plan_of(encoders=XLMR, tasks=sized_tasks))["disk"]
    assert line.state is state and "about 3.3 GB" in line.text


@pytest.mark.parametrize(
    ("free", "has_slurm", "state"),
    [(10**12, False, State.GOOD), (10**9, False, State.PROBLEM), (10**9, True, State.OPEN)],
)
def test_the_memory_has_to_hold_weights_gradients_and_optimiser(
    plan_of: Callable[..., Plan],
    sized_tasks: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    free: int,
    has_slurm: bool,
    state: State,
) -> None:
    """Full fine-tuning holds 16 bytes for each parameter."""
    monkeypatch.setattr(room, "memory_here", lambda: ("this machine", free))
    monkeypatch.setattr(room.shutil, "which", lambda name: "/usr/bin/sbatch" if has_slurm else None)
    line = lines_of(plan_of(encoders=XLMR, tasks=sized_tasks))["memory"]
    assert line.state is state and "full-ft on e take 4.4 GB" in line.text


def test_an_encoder_of_unknown_size_is_an_open_line(plan_of: Callable[..., Plan], sized_tasks: dict[str, Any]) -> None:
    [line] = lines_of(plan_of(tasks=sized_tasks)).values()
    assert line.state is State.OPEN and "some/encoder" in line.text
