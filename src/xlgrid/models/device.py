"""The device of a training: deterministic algorithms on a GPU, fewer calls of the system's allocator on a CPU, seeds."""

import ctypes
import os
from typing import TYPE_CHECKING

from xlgrid.base.device import default_device

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

# Parameters of mallopt (malloc.h) and their values. With these, the heap never shrinks, and only blocks that are too
# large for a heap of glibc are mapped one by one.
_M_TRIM_THRESHOLD, _NEVER = -1, -1
_M_MMAP_THRESHOLD, _LARGEST = -3, 32 * 2**20


# What torch says of an operation that has no deterministic algorithm on a GPU.
_LACKING = "does not have a deterministic implementation"


def training_device(strict: bool) -> "torch.device":
    """The GPU, set to deterministic algorithms, or the CPU if there is no GPU.

    Only the strict mode of torch makes the backward pass of attention deterministic. An operation without a deterministic
    algorithm is then an error, after which `allows` lets training go on.

    Args:
        strict: whether such operations are errors; otherwise torch warns of them, and leaves attention as it is.
    """
    import torch

    device = default_device()
    if device.type == "cuda":
        # cuBLAS reads this before its first product, and multiplies deterministically only with it.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=not strict)
        # By default, torch then also writes NaN to all new memory, which no operation here reads.
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    else:
        keep_freed_memory()
    return device


def allows(error: BaseException) -> bool:
    """Whether an error says that an operation has no deterministic algorithm. From then on, this process may use another one."""
    import torch

    if not (isinstance(error, RuntimeError) and _LACKING in str(error)):
        return False
    torch.use_deterministic_algorithms(True, warn_only=True)
    return True


def repeats(device: "torch.device", model: "PreTrainedModel") -> dict[str, bool]:
    """The entry `deterministic` of the record of a training on a GPU: whether all its operations were deterministic. Otherwise another
    training of the same recipe, or one that was interrupted, gives the same weights only up to rounding.

    What torch compiles depends on the batches that a process has seen first.
    """
    import torch

    if device.type != "cuda":
        return {}
    strict = torch.are_deterministic_algorithms_enabled() and not torch.is_deterministic_algorithms_warn_only_enabled()
    is_compiled = any(module._compiled_call_impl is not None for module in model.modules())
    return {"deterministic": strict and not is_compiled}


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
