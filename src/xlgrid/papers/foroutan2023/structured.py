"""Structured self-attention (Foroutan et al. 2023, section 4.1): a second query between two languages.

An input with two segments in two languages is *switched*. In such an input, a row of attention weights is, up to
normalization,

    M1 * exp(Q K' / sqrt(d)) + M2 * exp(Q_cross K' / sqrt(d))                                              (section 4.1)

where d is the width of a head (as in the authors' code; the paper says "hidden dimension"). M1 always has the cells
within a segment, and M2 has the cells between the two segments. The first token is the bridge: its row and its column
are in both masks. *Strict* masks have no other cells (figure 3a). In *interfering* masks, each of the other cells is
unmasked at random (figure 3b). Without Q_cross, M1 is structured attention dropout (figure 2). An input that is not
switched has ordinary attention with Q.

In some layers of ModernBERT, a token attends only to tokens within a *window*. The cells outside of the window,
including cells of the bridge, are then in neither mask.

The lengths of the segments and torch's generator on the device of the model determine the masks, which are the same for
all heads and layers.
"""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout as drop
from torch.nn.functional import linear, pad, scaled_dot_product_attention

from xlgrid.heads.families import BERT, FAMILIES, family_of, layers_of, part
from xlgrid.heads.transfer import noted

if TYPE_CHECKING:
    from transformers import PreTrainedModel

NAME = "structured"
# From this number of tokens, `strict` is not slower than `joint_weights` on a CPU, and faster in evaluation.
LONG = 256
Overlap = Literal["add", "halve"]


@dataclass(frozen=True)
class Layout:
    """The segments of a batch, and the cells that masks have in addition to the strict masks.

    Attributes:
        contexts: [B], the number of tokens of the first segment, special tokens included.
        switched: [B], whether the segments are in two languages.
        unmasked: [B, L, L], the random cells that are also in the other mask; None for strict masks.
        bridge: whether the row and the column of the first token are in both masks.
        overlap: whether the two exponentials of a cell in both masks are added, or halved and then added.
    """

    contexts: Tensor
    switched: Tensor
    unmasked: Tensor | None = None
    bridge: bool = True
    overlap: Overlap = "add"
    # The biases are cached, because all layers need the same ones.
    _biases: dict[tuple[int, torch.dtype, int | None], Tensor] = field(default_factory=dict, repr=False)

    def second(self, length: int) -> Tensor:
        """Whether a token is in the second segment of a switched input, [B, L]. Padding counts as part of this
        segment."""
        position = torch.arange(length, device=self.contexts.device)
        return (position >= self.contexts[:, None]) & self.switched[:, None]

    def masks(self, length: int) -> tuple[Tensor, Tensor]:
        """The masks M1 and M2, each [B, L, L], where padding is not masked."""
        second = self.second(length)
        same = second[:, :, None] == second[:, None, :]
        both = torch.zeros_like(same) if self.unmasked is None else self.unmasked
        if self.bridge:
            first = torch.arange(length, device=same.device) == 0
            both = both | first[:, None] | first
        switched = self.switched[:, None, None]
        return same | both | ~switched, (~same | both) & switched

    def biases(self, length: int, real: Tensor | None, dtype: torch.dtype, window: int | None = None) -> Tensor:
        """The logarithms of M1 and M2 side by side, [B, 1, L, 2 L].

        Padding keys are masked. If overlaps are halved, cells in both masks have the logarithm of a half.

        Args:
            length: L.
            real: [B, L], false for padding; the same in all calls.
            window: see `near`.
        """
        if (length, dtype, window) not in self._biases:
            within, across = self.masks(length)
            overlap = (within & across).repeat(1, 1, 2)
            kept = torch.cat([within, across], -1)
            if real is not None:
                kept &= real.repeat(1, 2)[:, None]
            if (nearby := near(length, window, kept.device)) is not None:
                kept &= nearby.repeat(1, 2)
                kept[..., :length] |= _itself(kept)
            bias = torch.zeros(kept.shape, dtype=dtype, device=kept.device)
            if self.overlap == "halve":
                bias.masked_fill_(overlap, math.log(0.5))
            self._biases[length, dtype, window] = bias.masked_fill_(~kept, -math.inf)[:, None]
        return self._biases[length, dtype, window]


class CrossQuery(nn.Module):
    """The query projection of a layer with a second projection, Q_cross: [Q; Q_cross], with twice the heads.

    Q_cross begins as a copy of Q. The module replaces the projection, whose parameters keep their names.
    """

    def __init__(self, query: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = query.weight, query.bias
        has_bias = query.bias is not None
        self.cross = nn.Linear(query.in_features, query.out_features, has_bias, device=query.weight.device)
        self.cross.load_state_dict(query.state_dict())

    def forward(self, hidden: Tensor) -> Tensor:
        return torch.cat([linear(hidden, self.weight, self.bias), self.cross(hidden)], -1)


class PackedCrossQuery(nn.Module):
    """A `CrossQuery` for a layer with one projection to queries, keys and values: [Q; Q_cross; K; K; V; V].

    Such layers split the projection into three parts of equal size. `attend` reads only one half of the keys and of the
    values.
    """

    def __init__(self, packed: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = packed.weight, packed.bias
        size, has_bias = packed.out_features // 3, packed.bias is not None
        self.cross = nn.Linear(packed.in_features, size, has_bias, device=packed.weight.device)
        self.cross.load_state_dict({name: tensor[:size] for name, tensor in packed.state_dict().items()})

    def forward(self, hidden: Tensor) -> Tensor:
        query, key, value = linear(hidden, self.weight, self.bias).chunk(3, -1)
        return torch.cat([query, self.cross(hidden), key, key, value, value], -1)


def install(model: "PreTrainedModel", cross: bool) -> None:
    """Make all layers of an encoder use `attend`.

    Args:
        cross: whether to give the layers a Q_cross.

    Raises:
        ValueError: the type of the encoder is unknown, or has a separate implementation of attention.
    """
    from transformers import AttentionInterface, AttentionMaskInterface

    attentions = layers(model)
    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, padding_of)
    model.set_attn_implementation(NAME)
    family = family_of(model)
    for layer in attentions if cross else ():
        layer.has_packed_cross = family.query == family.key
        projection = part(layer, family.query)
        setattr(layer, family.query, (PackedCrossQuery if layer.has_packed_cross else CrossQuery)(projection))


def padding_of(*_: Any, attention_mask: Tensor | None = None, **ignored: Any) -> Tensor | None:
    """The padding of a batch as it is, [B, L], in place of a mask of attention; None for a batch without padding."""
    is_full = attention_mask is None or (attention_mask.all() if (known := noted(attention_mask)) is None else known)
    return None if is_full else attention_mask


def layers(model: "PreTrainedModel") -> list[Any]:
    """The attention module of each layer of an encoder, with or without Q_cross.

    Raises:
        ValueError: the type of the encoder is unknown, or has a separate implementation of attention.
    """
    family = family_of(model)
    # Types with a separate implementation of attention do not call the function that `install` registers.
    has_function = bool(family.attention) and getattr(model, "_supports_attention_backend", True)
    attentions = [part(layer, family.attention) for layer in layers_of(model)] if has_function else []
    projections = [part(attention, family.query) for attention in attentions]
    if not attentions or not all(isinstance(each, nn.Linear | CrossQuery | PackedCrossQuery) for each in projections):
        known = sorted(name for name, family in FAMILIES.items() if family.attention)
        raise ValueError(
            f"structured attention needs an encoder of type {', '.join(known)}, got {model.config.model_type}: use one "
            "of these types"
        )
    return attentions


def weights(
    layer: Any,
    hidden: Tensor,
    real: Tensor | None,
    layout: Layout | None,
    rotary: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """The attention weights of a layer without dropout, which the fused calls of `attend` do not return.

    Args:
        layer: an element of `layers`.
        hidden: [B, L, hidden size], the input of the layer.
        real: [B, L], false for padding; None for a batch without padding.
        layout: see `attend`.
        rotary: the cosines and sines with which the layer rotates queries and keys, each [1, L, d]; None for layers
            without rotation.

    Returns:
        [B, H, L, L], where rows are queries and sum to 1, and columns are keys. The weights of both queries are added.
    """

    family = FAMILIES.get(layer.config.model_type, BERT)
    width = getattr(layer, "head_dim", None) or layer.attention_head_size

    def heads(states: Tensor) -> Tensor:
        states = states.unflatten(-1, (-1, width)).transpose(1, 2)
        if rotary is None:
            return states
        cosines, sines = rotary
        first, second = states.chunk(2, -1)
        return states * cosines + torch.cat([-second, first], -1) * sines

    query = part(layer, family.query)(hidden)
    if family.query == family.key:
        query, key, _ = query.chunk(3, -1)
    else:
        key = part(layer, family.key)(hidden)
    q, q_cross, key, _ = _separated(layer, heads(query), heads(key), heads(key))
    window, scale = getattr(layer, "sliding_window", None), 1 / math.sqrt(width)
    length = key.shape[2]
    if layout is not None and q_cross is not None:
        return joint_weights(q, q_cross, key, layout.biases(length, real, key.dtype, window), scale)
    scores = q @ key.mT * scale
    if layout is not None:
        scores = scores + layout.biases(length, real, key.dtype, window)[..., :length]
    elif (mask := visible(length, real, window, key.device)) is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(-1)


def near(length: int, window: int | None, device: torch.device) -> Tensor | None:
    """Whether two tokens are fewer than `window` tokens apart, [L, L]; None if all tokens are, or without a window."""
    if window is None or length <= window:
        return None
    position = torch.arange(length, device=device)
    return (position[:, None] - position).abs() < window


def visible(length: int, real: Tensor | None, window: int | None, device: torch.device) -> Tensor | None:
    """The keys that a query attends to without a layout, [B or 1, 1, L or 1, L]; None for all keys.

    Args:
        length: L.
        real: [B, L], false for padding; None for a batch without padding.
        window: see `near`.
    """
    mask = None if real is None else real[:, None, None]
    if (nearby := near(length, window, device)) is None:
        return mask
    seen = nearby[None, None] if mask is None else mask & nearby
    return seen | _itself(seen)


def _itself(mask: Tensor) -> Tensor:
    """The cells of each token with itself, [L, L].

    Padding far from all tokens attends to itself, because a row without cells would have NaN as its weights, which
    would spread to other rows in the next layer.
    """
    return torch.eye(mask.shape[-2], dtype=torch.bool, device=mask.device)


def _separated(layer: Any, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
    """Q, Q_cross (None without it), keys and values, each [B, H, L, d], from the projections of a layer, [B, heads, L,
    d]."""
    if getattr(layer, "has_packed_cross", False):
        key, value = (states[:, : states.shape[1] // 2] for states in (key, value))
    # Groups of heads of EuroBERT share keys and values.
    if (group := getattr(layer, "num_key_value_groups", 1)) > 1:
        key, value = (states.repeat_interleave(group, 1) for states in (key, value))
    q, q_cross = query.chunk(2, 1) if query.shape[1] > key.shape[1] else (query, None)
    return q, q_cross, key, value


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    dropout: float = 0.0,
    layout: Layout | None = None,
    sliding_window: int | None = None,
    **ignored: Any,
) -> tuple[Tensor, None]:
    """Structured attention, with the interface of an attention function of transformers.

    Args:
        module: the attention module of a layer.
        query: [B, H, L, d], or [B, 2 H, L, d] with the heads of Q_cross after the heads of Q.
        key, value: [B, H, L, d]; fewer heads if heads share them, or twice as many after a `PackedCrossQuery`.
        attention_mask: [B, L], true for real tokens.
        layout: an argument of the model's forward; without it, no input is switched.
        sliding_window: see `window` of `near`.

    Returns:
        The states of the heads, [B, L, H, d], and None.
    """
    q, q_cross, key, value = _separated(module, query, key, value)
    length, real = key.shape[2], None if attention_mask is None else attention_mask.bool()
    if layout is None:
        mask = visible(length, real, sliding_window, key.device)
        out = scaled_dot_product_attention(q, key, value, mask, dropout, scale=scaling)
    elif q_cross is None:
        bias = layout.biases(length, real, q.dtype, sliding_window)[..., :length]
        out = scaled_dot_product_attention(q, key, value, bias, dropout, scale=scaling)
    elif layout.unmasked is None and length >= LONG:
        out = strict(q, q_cross, key, value, real, layout, scaling, dropout, sliding_window)
    else:
        joint = joint_weights(q, q_cross, key, layout.biases(length, real, q.dtype, sliding_window), scaling)
        # Dropout draws once for each cell, even for cells with both queries, as in the authors' code.
        out = drop(joint, dropout) @ value
    return out.transpose(1, 2).contiguous(), None


def strict(
    q: Tensor,
    q_cross: Tensor,
    key: Tensor,
    value: Tensor,
    real: Tensor | None,
    layout: Layout,
    scale: float,
    dropout: float,
    window: int | None = None,
) -> Tensor:
    """The attention of two queries with strict masks, [B, H, L, d], in one fused call with queries and keys of 2 d + 8
    numbers.

    A row has one query for the keys of the first segment and the other query for the keys of the second. Both queries
    are concatenated, and one half of each key is zero. Only cells of the bridge have both queries. In its column, a row
    has the score log(exp(q k') + exp(q_cross k')): an additional number of the query, for which the first key has a one
    and all other keys a zero. The row of the bridge comes from `joint_weights`.
    """
    length = key.shape[2]
    biases = layout.biases(length, real, q.dtype, window)[:, :, :1]
    top = drop(joint_weights(q[:, :, :1], q_cross[:, :, :1], key, biases, scale), dropout) @ value
    key = key * scale
    of_q, of_q_cross = q @ key[:, :, :1].mT, q_cross @ key[:, :, :1].mT
    both = torch.logaddexp(of_q, of_q_cross) - (math.log(2) if layout.overlap == "halve" else 0)
    # GPU kernels need a width that is a multiple of 8.
    column = pad(torch.where(layout.switched[:, None, None, None], both, of_q), (0, 7))
    first = (torch.arange(length, device=key.device) == 0)[:, None] & layout.bridge
    selector = pad(first.to(key.dtype), (0, 7)).expand_as(column)
    second = layout.second(length)[:, None, :, None]
    queries = torch.cat([torch.where(second, q_cross, q), torch.where(second, q, q_cross), column], -1)
    keys = torch.cat([key.masked_fill(second | first, 0), key.masked_fill(~second, 0), selector], -1)
    # The CPU kernel needs values that are as wide as the keys.
    values = pad(value, (0, keys.shape[3] - value.shape[3]))
    mask = visible(length, real, window, key.device)
    out = scaled_dot_product_attention(queries, keys, values, mask, dropout, scale=1.0)
    return torch.cat([top, out[:, :, 1:, : value.shape[3]]], 2)


def joint_weights(q: Tensor, q_cross: Tensor, key: Tensor, biases: Tensor, scale: float) -> Tensor:
    """The attention weights of two queries, [B, H, L, L]: the sum of the weights for Q and Q_cross after a joint
    softmax.

    Args:
        q, q_cross, key: [B, H, L, d].
        biases: [B, 1, L, 2 L], the result of `Layout.biases`.
    """
    keys = key.mT * scale
    of_q, of_q_cross = torch.cat([q @ keys, q_cross @ keys], -1).add_(biases).softmax(-1).chunk(2, -1)
    return of_q + of_q_cross
