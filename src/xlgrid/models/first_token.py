"""The last layer of an encoder, computed for the first token only if the head reads no other token.

A classifier of BERT or XLM-R reads only the first token of the last layer. In this layer, the other tokens serve only
as keys and values, so their queries, feed-forward outputs and gradients are not computed. With 12 layers, this saves
7 % of the work.
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
    """Let the last layer compute only the first token if the head reads no other token; return whether it does so.

    The outputs of the head stay the same, up to the order of sums. Dropout draws fewer numbers. The layer stays as it
    is if a method has replaced the attention of transformers, and in architectures other than BERT's.
    """
    layers = getattr(getattr(model.base_model, "encoder", None), "layer", None)
    if not head.reads_first_token or not layers or model.config._attn_implementation not in _IMPLEMENTATIONS:
        return False
    # Cross-attention reads all tokens of the last layer.
    if getattr(layers[-1], "add_cross_attention", False):
        return False
    # Layers of other types may use BERT's names for other modules.
    attention, kind = part(layers[-1], "attention"), type(part(layers[-1], "attention.self"))
    cross = getattr(sys.modules[kind.__module__], kind.__name__.replace("Self", "Cross"), None)
    if cross in (None, kind):
        return False
    # The cross-attention of transformers computes the same function of the same weights, with separate queries.
    # Another choice of tokens, for a layer that computes the tokens of several batches in one row, may take its place.
    attention.self.first = attention.output.first = _first
    attention.self.forward = partial(_attend, attention.self, cross.forward)
    attention.output.register_forward_pre_hook(_first_of_residual)
    return True


def _attend(
    attention: Any,
    forward: Any,
    hidden_states: "torch.Tensor",
    attention_mask: "torch.Tensor | None" = None,
    encoder_hidden_states: None = None,
    **others: Any,
) -> Any:
    """Let the first token attend to all tokens: [rows, tokens, size] -> [rows, 1, size]."""
    mask = attention_mask if attention_mask is None else attention_mask[:, :, :1]
    return forward(attention, attention.first(hidden_states), hidden_states, mask, **others)


def _first(states: "torch.Tensor") -> "torch.Tensor":
    return states[:, :1]


def _first_of_residual(output: Any, states: tuple["torch.Tensor", ...]) -> tuple["torch.Tensor", ...]:
    """Cut the arguments of the module after the attention, which adds the attention's output to the layer's input."""
    attended, hidden_states = states
    return attended, output.first(hidden_states)
