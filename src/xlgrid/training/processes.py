"""The processes of one training: one, or one for each GPU of a node, which `torchrun` starts."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Processes:
    """This process among those of a training. All of them hold the whole model and take every step.

    Attributes:
        count: the number of processes.
        rank: the number of this one, from 0. Only process 0 writes files and log lines.
        device: where the tensors are that the processes exchange.
    """

    count: int
    rank: int
    device: "torch.device"

    @property
    def writes(self) -> bool:
        """Whether this process writes the results."""
        return self.rank == 0

    def own(self, parts: Sequence[int]) -> Sequence[int]:
        """Every `count`th of some numbers, from `rank` on."""
        return parts[self.rank :: self.count]

    def sums(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """Each number, added up over all processes, which have to call this together and with the same names."""
        if self.count == 1:
            return dict(numbers)
        import torch

        vector = torch.tensor([*numbers.values()], dtype=torch.float64, device=self.device)
        torch.distributed.all_reduce(vector)
        return dict(zip(numbers, vector.tolist(), strict=True))

    def add_gradients(self, weights: Sequence["torch.nn.Parameter"]) -> None:
        """Give each weight the sum of its gradients over all processes, in one exchange; none if no process has one."""
        if self.count == 1:
            return
        import torch

        gradients = [torch.zeros_like(each) if each.grad is None else each.grad for each in weights]
        has_gradient = torch.tensor([float(each.grad is not None) for each in weights], device=self.device)
        flat = torch.cat([*(gradient.flatten() for gradient in gradients), has_gradient])
        torch.distributed.all_reduce(flat)
        *summed, counted = flat.split([*(each.numel() for each in weights), len(weights)])
        for weight, gradient, number in zip(weights, summed, counted.tolist(), strict=True):
            weight.grad = gradient.view_as(weight) if number else None


def join(device: "torch.device") -> Processes:
    """Join the processes that `torchrun` has started; a process that was not started so is alone.

    Args:
        device: the kind of device that the training uses; each process takes a GPU of its own.
    """
    # Some clusters set WORLD_SIZE for every job, so it says nothing without the variable of torchrun.
    is_shared = "TORCHELASTIC_RUN_ID" in os.environ
    count, rank = (int(os.environ[name]) for name in ("WORLD_SIZE", "RANK")) if is_shared else (1, 0)
    if count > 1:
        import torch

        if device.type == "cuda":
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return Processes(count, rank, device)
