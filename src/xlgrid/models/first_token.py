"""The last layer of an encoder, computed for the first token alone where the head reads nothing else.

A classifier of BERT or XLM-R reads the first token of the last layer. The other tokens of this layer are needed as keys and
values only, so that its queries, its feed-forward part and their gradients can be left out: of 12 layers, 7 % of the work.
"""

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from xlgrid.heads import Head
from xlgrid.heads.families import part

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

# Implementations of attention whose masks have a row for each query.
_IMPLEMENTATIONS = ("sdpa", "eager")


def read_first_token(model: "PreTrainedModel", head: Head) -> bool:
    """Let the last layer compute the first token alone, if the head reads nothing else; return whether it does so.

    The outputs of the head stay the same, up to the order of sums. Dropout draws fewer numbers. A layer stays as it is where a
    method has replaced the attention of transformers, and in architectures other than BERT's.
    """
    layers = getattr(getattr(model.base_model, "encoder", None), "layer", None)
    if not head.reads_first_token or not layers or model.config._attn_implementation not in _IMPLEMENTATIONS:
        return False
    # Cross-attention reads all tokens of the last layer.
    if getattr(layers[-1], "add_cross_attention", False):
        return False
    # Layers of other types may have the names of BERT's, and other modules in them.
    attention, kind = part(layers[-1], "attention"), type(part(layers[-1], "attention.self"))
    cross = getattr(sys.modules[kind.__module__], kind.__name__.replace("Self", "Cross"), None)
    if cross in (None, kind):
        return False
    # Cross-attention of transformers has queries of its own, and is otherwise the same function of the same weights.
    attention.self.forward = partial(_attend, attention.self, cross.forward)
    attention.output.register_forward_pre_hook(_first_of_residual)
    return True


def _attend(
    attention: "torch.nn.Module",
    forward: Any,
    hidden_states: "torch.Tensor",
    attention_mask: "torch.Tensor | None" = None,
    encoder_hidden_states: None = None,
    **others: Any,
) -> Any:
    """Attention of the first token, [rows, 1, size], to all tokens, [rows, tokens, size]."""
    mask = attention_mask if attention_mask is None else attention_mask[:, :, :1]
    return forward(attention, hidden_states[:, :1], hidden_states, mask, **others)


def _first_of_residual(_: "torch.nn.Module", states: tuple["torch.Tensor", ...]) -> tuple["torch.Tensor", ...]:
    """The arguments of the module after the attention: its output, and the layer's input, to which that is added."""
    attended, hidden_states = states
    return attended, hidden_states[:, :1]
