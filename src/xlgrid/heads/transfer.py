"""Copies of the tensors of a batch on a device, for which the CPU does not wait, and what the CPU knows about them.

To ask a GPU about a tensor, the CPU waits for all that it has asked for so far. The CPU makes the batches, so it notes on the copies
what a forward pass asks: whether a mask is true everywhere, and how many labels a batch has.
"""

import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from xlgrid.heads.encoding import IGNORED
from xlgrid.heads.families import known_type

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

# The attribute of a tensor that has its note, with the version of its values.
_NOTE = "xlgrid_note"


def on_device(batch: "Mapping[str, torch.Tensor]", device: "torch.device") -> "dict[str, torch.Tensor]":
    """The tensors of a batch on a device. The CPU does not wait for the copies.

    On a GPU, tensors whose names end with `mask` have the note whether they are true everywhere, 1 or 0, and those
    whose names end with `labels` the number of values that are not `IGNORED`.
    """
    placed = {name: transferred(tensor, device) for name, tensor in batch.items()}
    for name, tensor in batch.items() if device.type != "cpu" else ():
        if name.endswith(("mask", "labels")):
            note(placed[name], int(tensor.all() if name.endswith("mask") else (tensor != IGNORED).sum()))
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


def _version(tensor: "torch.Tensor") -> int | None:
    """How often the values have changed; tensors of inference mode do not count."""
    return None if tensor.is_inference() else tensor._version


def labelled(labels: "torch.Tensor") -> "torch.Tensor":
    """The positions of the labels of a batch that are not `IGNORED`, in all labels in a row.

    An index with a mask would wait for a GPU to count them, in the backward pass, too.
    """
    import torch

    has_label, count = labels.flatten() != IGNORED, noted(labels)
    return (has_label.nonzero() if count is None else torch.nonzero_static(has_label, size=count)).squeeze(1)


def follow_notes(model: "PreTrainedModel") -> None:
    """Let the masks of attention in a model follow from the notes on the padding masks.

    Transformers leaves the mask of attention out if a batch has no padding, because there are faster kernels without masks,
    and asks the GPU in each forward pass. The masks stay the same. Encoders of unknown types, and those with masks of their
    own, ask as before.
    """
    from transformers import AttentionMaskInterface, PreTrainedModel
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

    for module in model.modules():
        if isinstance(module, PreTrainedModel) and module.base_model is module and _uses_interface(module):
            name = module.config._attn_implementation
            function = ALL_MASK_ATTENTION_FUNCTIONS[name]
            if getattr(function, "func", None) is not _mask:
                AttentionMaskInterface.register(name, partial(_mask, function))
            module.register_forward_pre_hook(_as_truth, with_kwargs=True)


def _uses_interface(module: "PreTrainedModel") -> bool:
    """Whether an encoder gives its masks to the functions of `AttentionMaskInterface`, and reads them nowhere else."""
    known = known_type(module.config.model_type) is not None
    return known and any("create_bidirectional_mask" in vars(sys.modules[c.__module__]) for c in type(module).__mro__)


def _as_truth(module: Any, inputs: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Convert the masks in the arguments of an encoder as the encoder itself does, which would lose the notes."""
    import torch

    for name, value in options.items():
        if isinstance(value, torch.Tensor) and value.dtype != torch.bool and (is_full := noted(value)) is not None:
            options = options | {name: value.bool()}
            note(options[name], is_full)
    return inputs, options


def _mask(function: Callable[..., Any], *sizes: Any, attention_mask: Any = None, **options: Any) -> Any:
    """The mask of attention that a mask function of transformers makes."""
    is_full = None if attention_mask is None else noted(attention_mask)
    if is_full == 0:
        # Both settings let the function look for padding.
        options |= {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
    return function(*sizes, attention_mask=None if is_full else attention_mask, **options)
