"""The state of an interrupted training, from which the same command continues."""

import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.base.files import whole, write_text
from xlgrid.models import deltas
from xlgrid.training.results import fingerprint

if TYPE_CHECKING:
    import torch

STATE = "state.pt"
# This file has the fingerprint of the inputs of an interrupted training, and the inode, size and times of each input.
INPUTS = "inputs.json"
# Seconds. After a more recent change, a file could change again without a new time stamp.
RECENT = 60.0


def inputs_of(folder: Path, files: Sequence[Path]) -> str:
    """The fingerprint of the input files of a run.

    A resumed run does not read terabytes of tokens again: the last fingerprint still holds if each file has the same
    inode, size and times. Every change of a file sets its ctime (the time when the inode changed), which no program can
    choose.
    """
    path, now = folder / INPUTS, time.time()
    stamps = [_stamp(file) for file in files if file.is_file()]
    try:
        last = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        last = {}
    if last.get("files") == stamps:
        return str(last["inputs"])
    inputs = fingerprint(files)
    if all(now - int(changed) / 1e9 > RECENT for *_, changed in stamps):
        write_text(path, json.dumps({"inputs": inputs, "files": stamps}))
    return inputs


def _stamp(file: Path) -> list[str | int]:
    entry = file.stat()
    return [str(file), entry.st_ino, entry.st_size, entry.st_mtime_ns, entry.st_ctime_ns]


def remove(folder: Path) -> None:
    """Remove the files that only an interrupted run needs."""
    for name in (STATE, INPUTS):
        (folder / name).unlink(missing_ok=True)


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
    folder: Path, digest: str, inputs: str, checkpoints: Iterable[int], device: "torch.device"
) -> dict[str, Any] | None:
    """The values that `write` wrote; None if training has to start over.

    A line on stderr gives the reason, unless there is no state.

    Args:
        checkpoints: the steps after which the run writes its weights. Earlier checkpoints than the state must exist.
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
    passed = [deltas.checkpoint_path(folder, step) for step in checkpoints if step < state["step"]]
    if lost := [file for file in passed if not file.exists()]:
        say(f"note: {lost[0]} is missing, and only the training can write it: training starts over")
        return None
    return dict(state)


def say(line: str) -> None:
    """Print a line to stderr at once. If several processes share a training, only process 0 prints."""
    if os.environ.get("RANK", "0") == "0":
        print(line, file=sys.stderr, flush=True)
