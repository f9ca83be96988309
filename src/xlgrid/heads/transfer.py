"""Copies of the tensors of a batch on a device, for which the CPU does not wait, and what the CPU knows about them.

To ask a GPU about a tensor, the CPU waits for all that it has asked for so far. The CPU makes the batches, so it notes on the copies
what a forward pass asks: whether a mask is true everywhere, and how many labels a batch has.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from xlgrid.heads.encoding import IGNORED

if TYPE_CHECKING:
    import torch

# The attribute of a tensor that has its note, with the version of its contents.
_NOTE = "xlgrid_note"


def on_device(batch: "Mapping[str, torch.Tensor]", device: "torch.device") -> "dict[str, torch.Tensor]":
    """The tensors of a batch on a device. The CPU does not wait for the copies.

    On a GPU, tensors whose names end with `mask` have the note whether they are true everywhere, 1 or 0, and those
    whose names end with `labels` the number of values that are not `IGNORED`.
    """
    placed = {name: transferred(tensor, device) for name, tensor in batch.items()}
    for name, tensor in batch.items() if device.type != "cpu" else ():
        if name.endswith("mask"):
            note(placed[name], int(tensor.all()))
        elif name.endswith("labels"):
            note(placed[name], int((tensor != IGNORED).sum()))
    return placed


def transferred(tensor: "torch.Tensor", device: "torch.device") -> "torch.Tensor":
    """A tensor of the CPU on a device."""
    # CUDA may wait for all that it was asked for before it copies from memory that is not pinned.
    source = tensor.pin_memory() if device.type == "cuda" and tensor.device.type == "cpu" else tensor
    return source.to(device, non_blocking=True)


def note(tensor: "torch.Tensor", number: int) -> None:
    """Note a number on a tensor."""
    setattr(tensor, _NOTE, (number, _version(tensor)))


def noted(tensor: "torch.Tensor") -> int | None:
    """The note on a tensor, or on the tensor that has the same values in another shape; None without a note, or if the values
    have changed since."""
    for each in (tensor, tensor._base):
        if each is not None and each.numel() == tensor.numel() and hasattr(each, _NOTE):
            number, version = getattr(each, _NOTE)
            return int(number) if version == _version(each) else None
    return None


def is_full(mask: "torch.Tensor") -> bool:
    """Whether a mask is true everywhere. Without a note, the CPU waits for the device of the mask."""
    known = noted(mask)
    return bool(mask.all() if known is None else known)


def labelled(labels: "torch.Tensor") -> "torch.Tensor":
    """The positions of the labels of a batch that are not `IGNORED`, in all labels in a row.

    An index with a mask would wait for a GPU to count them, in the backward pass, too.
    """
    import torch

    has_label, count = labels.flatten() != IGNORED, noted(labels)
    found = has_label.nonzero() if count is None else torch.nonzero_static(has_label, size=count)
    return found.squeeze(1)


def _version(tensor: "torch.Tensor") -> int | None:
    """How often the values have changed; tensors of inference mode do not count."""
    return None if tensor.is_inference() else tensor._version
