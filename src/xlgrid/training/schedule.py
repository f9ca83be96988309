"""Which examples each optimiser step takes: curricula, epochs and batches, all decided by seeds alone."""

import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from xlgrid.base.arrays import Ints
from xlgrid.data.batches import cut
from xlgrid.heads.tokens import Tokens
from xlgrid.training.recipe import Phase, Training

# Batches are cut from pools of so many batches' worth of examples, sorted by length: less than 3% of padding, and yet
# every batch of an epoch is drawn from a random subset.
POOL = 32


def eligible(tokens: Tokens, phase: Phase) -> Ints:
    """Numbers of the examples that a curriculum's phase admits.

    Raises:
        ValueError: the phase admits none, or the data has no column `depth`.
    """
    if (depths := tokens.columns.get("depth")) is None:
        raise ValueError(f"the curriculum asks for max_depth {phase.max_depth}, but the data has no column `depth`")
    admitted = np.flatnonzero(depths <= phase.max_depth)
    if not len(admitted):
        raise ValueError(
            f"no example has a proof depth of at most {phase.max_depth}, for which a phase of the curriculum asks: "
            "raise `max_depth`, or drop the phase"
        )
    return admitted


def epoch(
    lengths: Ints, chosen: Ints, settings: Training, seed: int, number: int, parts: Ints | None = None
) -> list[Ints]:
    """The batches of epoch `number`: every example of `chosen` once, near ones in length together, in random order.

    `parts` are those of `Tokens`, which without `settings.mixed_batches` share no batch.
    """
    rng = np.random.default_rng([seed, number])
    order = rng.permutation(chosen)
    most = settings.batch_size or sys.maxsize
    budget = sys.maxsize if settings.batch_size else settings.batch_tokens
    examples = settings.batch_size or budget / max(1.0, float(lengths[chosen].mean()))
    size = max(1, int(POOL * examples))
    batches: list[Ints] = []
    groups = [order]
    if parts is not None and not settings.mixed_batches:
        groups = [order[parts[order] == part] for part in np.unique(parts)]
    for group in groups:
        for start in range(0, len(group), size):
            pool = group[start : start + size]
            batches += cut(lengths, pool[np.argsort(lengths[pool], kind="stable")], budget, most)
    return [batches[at] for at in rng.permutation(len(batches))]


class Plan(NamedTuple):
    """The pools of examples that training draws from, one after another, and the step at which each ends."""

    pools: list[Ints]
    ends: list[int]

    @property
    def steps(self) -> int:
        """Optimiser steps in all."""
        return self.ends[-1]


def plan(tokens: Tokens, settings: Training, seed: int) -> Plan:
    """Each phase of the curriculum for its share or epochs, then everything for the rest of `steps` or for `epochs`.

    Raises:
        ValueError: there are no examples, a phase admits none, or the phases leave nothing for all examples.
    """
    if not len(tokens):
        raise ValueError("there are no training examples: look at the data and the tokens file")
    pools = [*(eligible(tokens, phase) for phase in settings.curriculum), np.arange(len(tokens))]
    epochs = [*(phase.epochs for phase in settings.curriculum), None if settings.steps else settings.epochs]
    counts = [
        max(1, round(passes * len(epoch(tokens.lengths, pool, settings, seed, 0, tokens.parts)))) if passes else 0
        for pool, passes in zip(pools, epochs, strict=True)
    ]
    steps = settings.steps or sum(counts)
    for at, phase in enumerate(settings.curriculum):
        counts[at] = counts[at] or round((phase.share or 0) * steps)
    if (used := sum(counts[:-1])) >= steps:
        raise ValueError(
            f"the curriculum takes {used} steps of {steps}: leave some for the end, where all examples are used"
        )
    return Plan(pools, [*np.cumsum(counts[:-1]).tolist(), steps])


def stream(tokens: Tokens, settings: Training, seed: int, planned: Plan) -> Iterator[Ints]:
    """The batch of every step, a function of its arguments alone, so that training resumes by skipping what is done."""
    step = number = 0
    for pool, end in zip(*planned, strict=True):
        while step < end:
            for batch in epoch(tokens.lengths, pool, settings, seed, number, tokens.parts)[: end - step]:
                yield batch
                step += 1
            number += 1
