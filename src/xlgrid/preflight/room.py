"""The disk that a study still needs, and that this machine has free."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from xlgrid.plan.estimate import Estimate
from xlgrid.plan.plan import Plan
from xlgrid.preflight.lines import Line, State
from xlgrid.preflight.machine import RESULTS, existing
from xlgrid.products.encode import Encoder


def room_lines(plan: Plan) -> Iterator[Line]:
    """A line for the disk."""
    estimate = Estimate(plan)
    try:
        runs = [run for run in plan.runs if run.study == plan.study.name and not Path(run.delta).exists()]
        missing = [name for name in estimate.pretrained if not Path(Encoder(plan.study.name, name).path).exists()]
        encoders = sum(estimate.pretraining(name).gigabytes for name in missing)
        needed = sum(map(estimate.stored, runs)) + encoders
    except ValueError as error:
        yield Line(State.OPEN, "disk", f"not estimated: {error}")
        return
    free = shutil.disk_usage(existing(RESULTS)).free / 1e9
    text = (
        f"runs and encoders that are trained need about {needed:,.3g} GB, data and states for resuming not counted; "
        f"{free:,.3g} GB are free in {existing(RESULTS).resolve()}"
    )
    advice = ": free some space, or let results/ be a link to a larger disk" if needed > free else ""
    yield Line(State.PROBLEM if advice else State.GOOD, "disk", text + advice)
