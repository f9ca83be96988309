"""A step that a training has taken, whose loss and norm are read while the device computes the next step.

A GPU computes what the host has asked for so far, while the host goes on. To read a number of a step at once would let
the GPU wait for the host after every step.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xlgrid.base.arrays import Ints

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Taken:
    """A step, and the numbers that its device computes.

    Attributes:
        number: the number of the step, from 0.
        chosen: the rows of its batch.
        rate: its learning rate.
        names: the names of its losses.
        numbers: [losses + 1], its losses and the norm of its gradients, in memory of the host. The device may not have
            written them yet.
        written: the event after which the device has written them; None if they are there.
    """

    number: int
    chosen: Ints
    rate: float
    names: tuple[str, ...]
    numbers: "torch.Tensor"
    written: "torch.cuda.Event | None"

    @classmethod
    def of(cls, number: int, chosen: Ints, rate: float, names: tuple[str, ...], numbers: "torch.Tensor") -> "Taken":
        """A step whose numbers are on its device. They are copied to the host, which does not wait for the copy."""
        import torch

        copy = numbers.to("cpu", non_blocking=True)
        written = torch.cuda.Event() if numbers.device.type == "cuda" else None
        if written:
            written.record()
        return cls(number, chosen, rate, names, copy, written)

    def read(self) -> tuple[dict[str, float], float]:
        """The losses by name, and the norm of the gradients. The host waits until they are there."""
        if self.written:
            self.written.synchronize()
        *losses, norm = self.numbers.tolist()
        return dict(zip(self.names, losses, strict=True)), norm
