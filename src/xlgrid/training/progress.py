"""The log of a training: losses, speed and remaining time."""

import time
from collections.abc import Mapping

from xlgrid.base.clock import duration
from xlgrid.training.state import say

# Seconds between two lines of the log.
SECONDS = 30.0


class Progress:
    """Counts steps, and prints a line about them every `SECONDS`."""

    def __init__(self, first: int, steps: int) -> None:
        """Begin at step `first` of `steps`."""
        self.first, self.steps = first, steps
        self.began = self.printed = time.monotonic()
        self.tokens = self.counted = 0
        self.losses: dict[str, float] = {}

    def add(self, step: int, losses: Mapping[str, float], tokens: int, rate: float) -> None:
        """Count a finished step.

        Args:
            step: the number of finished steps.
            losses: the losses of the step by name.
            tokens: the tokens of the step, without padding.
            rate: the learning rate of the step.
        """
        self.tokens += tokens
        self.counted += 1
        self.losses = added(self.losses, losses)
        now = time.monotonic()
        if now - self.printed < SECONDS:
            return
        left = (now - self.began) / (step - self.first) * (self.steps - step)
        say(
            f"step {step}/{self.steps}  {means(self.losses, self.counted)}  {self.tokens / (now - self.printed):,.0f} tokens/s  "
            f"lr {rate:.2g}  {duration(left)} left"
        )
        self.printed, self.tokens, self.counted, self.losses = now, 0, 0, {}


def added(sums: Mapping[str, float], losses: Mapping[str, float]) -> dict[str, float]:
    """The sum of each loss by name, with the losses of one more step."""
    return {name: sums.get(name, 0.0) + value for name, value in losses.items()}


def means(sums: Mapping[str, float], steps: int) -> str:
    """The mean of each loss, as text, from its sum over `steps` steps."""
    return "  ".join(f"{name} {total / steps:.4f}" for name, total in sums.items())
