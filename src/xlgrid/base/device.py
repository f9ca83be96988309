"""The device on which a process computes."""

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

# The name of a device in CUDA_VISIBLE_DEVICES. Any other word, such as NoDevFiles, hides all devices after it.
_NAME = re.compile(r"\s*(\d+|GPU-|MIG-)")


def default_device() -> "torch.device":
    """The GPU where there is one, and the CPU elsewhere.

    Raises:
        ValueError: this process was given a GPU that torch cannot use.
    """
    import torch

    if torch.cuda.is_available():
        # cuDNN, the first choice of torch on new GPUs, plans attention anew for each shape of a batch. Batches of sentences have
        # hundreds of shapes.
        torch.backends.cuda.enable_cudnn_sdp(False)
        return torch.device("cuda")
    if given := given_gpu():
        raise ValueError(
            f"{given} names a GPU, but torch sees none: {reason()}. `xlgrid doctor` says which driver torch needs, and how to install "
            "a build for an older one. To compute on the CPU all the same, set CUDA_VISIBLE_DEVICES to nothing"
        )
    return torch.device("cpu")


def given_gpu() -> str | None:
    """The variable by which this process was given a GPU, with its value; None if it was given none."""
    # Slurm sets both. Whoever hides the GPUs of a job sets the first one.
    for name in ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_GPUS"):
        value = os.environ.get(name)
        if value is not None:
            return f"{name}={value}" if _NAME.match(value) else None
    return None


def reason() -> str:
    """The reason that torch gives for not using a GPU."""
    import torch

    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as error:
        return " ".join(str(error).split()).rstrip(".")
    return f"torch {torch.__version__} says that none is available"
