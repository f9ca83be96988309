"""The device of a training: repeatable on a GPU, and without needless work of the system on a CPU."""

import ctypes
from typing import TYPE_CHECKING

from xlgrid.base.device import default_device

if TYPE_CHECKING:
    import torch

# Parameters of mallopt (malloc.h), and what they are set to: the heap never shrinks, and only blocks that are larger than glibc
# lets a heap hold are mapped one by one.
_M_TRIM_THRESHOLD, _NEVER = -1, -1
_M_MMAP_THRESHOLD, _LARGEST = -3, 32 * 2**20


def training_device() -> "torch.device":
    """The GPU where there is one, with algorithms that repeat their results, and the CPU elsewhere."""
    import torch

    device = default_device()
    if device.type == "cuda":
        torch.use_deterministic_algorithms(True, warn_only=True)
    else:
        keep_freed_memory()
    return device


def keep_freed_memory() -> None:
    """Let this process use freed memory again instead of giving it back to the system.

    Each step of a training allocates the same large arrays. glibc would give them back after each step, and the system would
    fill their pages with zeros again, which takes up to a tenth of a step on a CPU. C libraries without `mallopt` stay as they are.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(_M_TRIM_THRESHOLD, _NEVER)
        mallopt(_M_MMAP_THRESHOLD, _LARGEST)
