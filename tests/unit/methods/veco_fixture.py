"""Tiny encoders with cross-attention, and pairs of inputs for them."""

from typing import Any

import torch
from xmod_fixture import SIZE, TOKENIZER, batch, moved

from xlgrid.architectures import Architecture
from xlgrid.architectures.scratch import architecture_of


def scratch(**more: Any) -> Architecture:
    fields = {
        "kind": "xlmr",
        "architecture": "veco",
        "languages": ("en", "fr"),
        "bitext": (("en", "fr"),),
        **SIZE,
        **more,
    }
    return architecture_of(fields)


def model_of(**more: Any) -> Any:
    """A model with random numbers in all weights."""
    torch.manual_seed(1)
    return moved(scratch(**more).new_model(TOKENIZER))


def pairs() -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Three inputs x of nine tokens, and their partners y of six; some end with padding."""
    return batch(3), {name: tensor[:3] for name, tensor in batch(4, length=6).items()}


def first_stream(model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """The last layer of H, [inputs, longest, size]."""
    states: torch.Tensor = model.base_model(**inputs).last_hidden_state
    return states
