"""The state of an interrupted training, from which the same command goes on."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.base.files import whole
from xlgrid.models import deltas

if TYPE_CHECKING:
    import torch

STATE = "state.pt"


def write(folder: Path, digest: str, inputs: str, values: dict[str, Any]) -> None:
    """Write the state of a run, atomically.

    Args:
        folder: the run's folder.
        digest: the digest of the run's recipe.
        inputs: the fingerprint of the encoder and the data.
        values: everything that a step changes.

    Raises:
        OSError: the disk is full, or the folder cannot be written.
    """
    import torch

    # Python opens the file, because its errors name the cause on the disk.
    with whole(folder / STATE) as aside, aside.open("wb") as file:
        torch.save({"digest": digest, "inputs": inputs, **values}, file)


def read(
    folder: Path, digest: str, inputs: str, snapshots: Iterable[int], device: "torch.device"
) -> dict[str, Any] | None:
    """The values that `write` wrote; None if training has to start from the beginning, for a reason that a line on stderr gives.

    Args:
        snapshots: the steps after which the run writes its weights; all earlier snapshots have to exist.
        device: the device on which the tensors are needed.
    """
    import torch

    path = folder / STATE
    # A process that is killed while it writes leaves its temporary file behind.
    for left in (*folder.glob(f".{path.stem}.*{path.suffix}"), *folder.glob(".step*.safetensors")):
        left.unlink(missing_ok=True)
    if not path.exists():
        return None
    try:
        state = torch.load(path, map_location=device, weights_only=True)
        saved_digest, saved_inputs = state["digest"], state["inputs"]
    except Exception as error:
        say(f"warning: {path} is truncated or damaged ({type(error).__name__}): training starts over")
        return None
    if saved_digest != digest:
        say(f"note: {path} belongs to another recipe ({saved_digest}): training starts over")
        return None
    if saved_inputs != inputs:
        say(f"note: the encoder or the data have changed since {path} was written: training starts over")
        return None
    passed = [deltas.snapshot_path(folder, step) for step in snapshots if step < state["step"]]
    if lost := [file for file in passed if not file.exists()]:
        say(f"note: {lost[0]} is gone, which only training can make: it starts over")
        return None
    return dict(state)


def say(line: str) -> None:
    """Print a line to stderr at once. Of several processes that share a training, the first one prints."""
    if os.environ.get("RANK", "0") == "0":
        print(line, file=sys.stderr, flush=True)
