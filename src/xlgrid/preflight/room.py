"""The disk and the memory that a study needs, and those that this machine has free."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from xlgrid.plan.estimate import Assumed, Estimate
from xlgrid.plan.plan import Plan
from xlgrid.plan.pretraining import WEIGHT
from xlgrid.preflight.lines import Line, State
from xlgrid.preflight.machine import RESULTS, existing
from xlgrid.products.encode import Encoder

if TYPE_CHECKING:
    from xlgrid.plan.pretraining import Pretraining

# Bytes of a parameter that trains beside the weight: its gradient and the two moments of the optimiser.
TRAINED = 3 * WEIGHT


def room_lines(plan: Plan) -> Iterator[Line]:
    """A line for the disk and one for the memory."""
    try:
        estimate = Estimate(plan, Assumed())
        needed, memory = _disk(estimate), _memory(estimate)
    except ValueError as error:
        yield Line(State.OPEN, "disk and memory", f"not estimated: {error}")
        return
    free = shutil.disk_usage(existing(RESULTS)).free
    text = f"results need about {gigabytes(needed)}, and {gigabytes(free)} are free in {existing(RESULTS).resolve()}"
    if needed > free:
        yield Line(State.PROBLEM, "disk", f"{text}: free some space, or let results/ be a link to a larger disk")
    else:
        yield Line(State.GOOD, "disk", text)
    if memory is None:
        return
    bytes_needed, what = memory
    place, bytes_free = memory_here()
    text = (
        f"weights, gradients and optimiser of {what} take {gigabytes(bytes_needed)}, activations not counted; {place} has "
        f"{gigabytes(bytes_free)}"
    )
    if bytes_needed <= bytes_free:
        yield Line(State.GOOD, "memory", text)
    elif shutil.which("sbatch"):
        yield Line(
            State.OPEN,
            "memory",
            f"{text}, which does not matter if a cluster runs the study: see `mem_mb` in its profile",
        )
    else:
        yield Line(State.PROBLEM, "memory", f"{text}: take a larger machine, or a smaller encoder")


def gigabytes(number: float) -> str:
    """Bytes in GB, or in MB where they are fewer than one GB."""
    return f"{number / 1e9:,.1f} GB" if number >= 1e9 else f"{number / 1e6:,.0f} MB"


def memory_here() -> tuple[str, int]:
    """The memory in which a training would run, in words and in bytes: that of the first GPU, or else the free memory."""
    import torch

    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        return f"the GPU ({properties.name})", int(properties.total_memory)
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return "this machine", 1024 * int(value.split()[0])
    raise ValueError("/proc/meminfo does not say how much memory is free: xlgrid is developed on Linux")


def _disk(estimate: Estimate) -> float:
    """The bytes that the study still has to store: runs, pre-trainings with their texts and tokens, and encoders from elsewhere."""
    plan, study = estimate.plan, estimate.study
    runs = [run for run in plan.runs if run.study == study.name and not Path(run.delta).exists()]
    stored = 1e9 * sum(estimate.run(run).gigabytes for run in runs)
    for name, each in estimate.pretrainings.items():
        if not _is_made(plan, name):
            stored += 1e9 * _of_pretraining(each)
    weights = {}
    for user in (*plan.runs, *(cell.run for cell in plan.cells)):
        entry = study.encoders[user.encoder]
        if (entry.hub or entry.path) and user.encoder not in weights and not _is_made(plan, user.encoder):
            # What is fetched lies in the cache of the Hub and in the results.
            weights[user.encoder] = WEIGHT * estimate.count(user).total * (2 if entry.hub else 1)
    return stored + sum(weights.values())


def _of_pretraining(each: "Pretraining") -> float:
    return each.stored_gigabytes + each.state_gigabytes + (each.text_gigabytes or 0) + (each.tokens_gigabytes or 0)


def _is_made(plan: Plan, encoder: str) -> bool:
    return Path(plan.owned(Encoder(plan.study.name, encoder)).path).exists()


def _memory(estimate: Estimate) -> tuple[float, str] | None:
    """The bytes that the largest training holds, and the training; None if nothing trains."""
    needs: dict[str, float] = {}
    for run in estimate.plan.runs:
        what = f"{run.method} on {run.encoder}"
        if what not in needs:
            counted = estimate.count(run)
            needs[what] = WEIGHT * counted.total + TRAINED * counted.trained
    for name, each in estimate.pretrainings.items():
        needs[f"the pre-training of {name}"] = WEIGHT * each.weights + TRAINED * each.trained
    return max(((number, what) for what, number in needs.items()), default=None)
