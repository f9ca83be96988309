"""The batches of a training, for tests of what decides them."""

from typing import Any

from xlgrid.base.arrays import Ints
from xlgrid.heads.tokens import Tokens
from xlgrid.training import schedule
from xlgrid.training.recipe import Training


def taken(tokens: Tokens, **settings: Any) -> list[Ints]:
    """The batches of a training with seed 1."""
    training = Training(**{"batch_tokens": 24, **settings})
    return list(schedule.stream(tokens, training, 1, schedule.plan(tokens, training, 1)))
