"""Masks of attention that transformers makes without waiting for a GPU.

If a batch has no padding, transformers leaves the mask of attention out, because there are faster kernels without masks.
Before each forward pass, it therefore asks the GPU whether the padding mask is true everywhere, and the CPU waits for the
answer. With `follow_notes`, it reads the notes on the masks (`xlgrid.heads.transfer`) instead. The masks of attention are the same.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from xlgrid.heads.families import known_type
from xlgrid.heads.transfer import note, noted

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


def follow_notes(model: "PreTrainedModel") -> None:
    """Let a model read the notes on its masks. Encoders of unknown types, and those with masks of their own, ask the GPU as before."""
    from transformers import AttentionMaskInterface, PreTrainedModel
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

    for module in model.modules():
        if not (isinstance(module, PreTrainedModel) and module.base_model is module and _uses_interface(module)):
            continue
        name = module.config._attn_implementation
        function = ALL_MASK_ATTENTION_FUNCTIONS[name]
        if getattr(function, "func", None) is not _mask:
            AttentionMaskInterface.register(name, partial(_mask, function))
        module.register_forward_pre_hook(_as_truth, with_kwargs=True)


def _uses_interface(module: "PreTrainedModel") -> bool:
    """Whether an encoder gives its masks to the functions of `AttentionMaskInterface` and reads them nowhere else."""
    modules = (vars(sys.modules[kind.__module__]) for kind in type(module).__mro__)
    return known_type(module.config.model_type) is not None and any(
        "create_bidirectional_mask" in each for each in modules
    )


def _as_truth(module: Any, inputs: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Convert the masks in the arguments of an encoder as its mask functions do, which would lose the notes."""
    return inputs, {name: _truth(value) for name, value in options.items()}


def _truth(value: Any) -> Any:
    import torch

    if not isinstance(value, torch.Tensor) or value.dtype == torch.bool or (is_full := noted(value)) is None:
        return value
    truth = value.bool()
    note(truth, is_full)
    return truth


def _mask(
    function: "Callable[..., torch.Tensor | None]",
    *sizes: Any,
    attention_mask: "torch.Tensor | None" = None,
    **options: Any,
) -> "torch.Tensor | None":
    """The mask of attention that a mask function of transformers makes."""
    is_full = None if attention_mask is None else noted(attention_mask)
    if is_full == 0:
        # Both settings allow the function to look for padding.
        options |= {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
    return function(*sizes, attention_mask=None if is_full else attention_mask, **options)
