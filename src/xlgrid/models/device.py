"""The device of a training: deterministic algorithms on a GPU, fewer calls of the system's allocator on a CPU, seeds."""

import ctypes
from typing import TYPE_CHECKING

from xlgrid.base.device import default_device

if TYPE_CHECKING:
    import torch

# Parameters of mallopt (malloc.h) and their values. With these, the heap never shrinks, and only blocks that are too
# large for a heap of glibc are mapped one by one.
_M_TRIM_THRESHOLD, _NEVER = -1, -1
_M_MMAP_THRESHOLD, _LARGEST = -3, 32 * 2**20


def training_device() -> "torch.device":
    """The GPU, set to deterministic algorithms, or the CPU if there is no GPU."""
    import torch

    device = default_device()
    if device.type == "cuda":
        torch.use_deterministic_algorithms(True, warn_only=True)
    else:
        keep_freed_memory()
    return device


def seed_generators(device: "torch.device", seed: int) -> None:
    """Seed the generators from which a computation on a device draws: torch's generator of the CPU, and the GPU's.

    The draws are those after `torch.manual_seed(seed)`. That function also seeds all other devices, and formats a
    traceback for each kind of device that is not initialised, which takes 0.3 to 0.6 ms: too long for each step.
    """
    import torch

    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.init()
        number = torch.cuda.current_device() if device.index is None else device.index
        torch.cuda.default_generators[number].manual_seed(seed)


def keep_freed_memory() -> None:
    """Let this process reuse freed memory instead of returning it to the system.

    Each step of a training allocates the same large arrays. By default, glibc returns them after each step, and the
    system fills their pages with zeros again, which takes up to a tenth of a step on a CPU. Nothing changes with C
    libraries that lack `mallopt`.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(_M_TRIM_THRESHOLD, _NEVER)
        mallopt(_M_MMAP_THRESHOLD, _LARGEST)
