"""Structured self-attention (Foroutan et al. 2023, section 4.1): a query of its own between two languages.

An input of two segments in two languages is *switched*. In it, a row of attention weights is, up to its sum,

    M1 * exp(Q K' / sqrt(d)) + M2 * exp(Q_cross K' / sqrt(d))                                              (section 4.1)

with one d, that of a head (as in the authors' code; the paper says "hidden dimension"). M1 always has the cells within a
segment, M2 those between the two; the first token, in its row and in its column, has both: it is the bridge. *Strict*
masks have nothing else (figure 3a), *interfering* ones each of the other cells by chance (figure 3b). Without Q_cross,
M1 alone is structured attention dropout (figure 2). An input that is not switched is ordinary attention with Q.

Masks come from the segments' lengths and torch's generator, where the model is, and serve all heads and layers.
"""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout as drop
from torch.nn.functional import linear, pad, scaled_dot_product_attention

if TYPE_CHECKING:
    from transformers import PreTrainedModel

NAME = "structured"
Overlap = Literal["add", "halve"]


@dataclass(frozen=True)
class Layout:
    """A batch's segments, and which cells are in the masks beyond the strict ones.

    Attributes:
        contexts: B, tokens of the first segment, its special tokens included.
        switched: B, whether the segments are in two languages.
        also: B × L × L, cells that are in the mask of the other kind too, by chance; None for none.
        bridge: whether the first token has both masks in its row and column.
        overlap: in a cell of both masks the two exponentials are added, or each halved first.
    """

    contexts: Tensor
    switched: Tensor
    also: Tensor | None = None
    bridge: bool = True
    overlap: Overlap = "add"
    # All layers ask for the same.
    _made: dict[tuple[int, torch.dtype], tuple[Tensor, Tensor]] = field(default_factory=dict, repr=False)
    _joined: dict[tuple[int, torch.dtype], Tensor] = field(default_factory=dict, repr=False)

    def second(self, length: int) -> Tensor:
        """B × L: whether a token of a switched input is of the second segment; its padding counts as such."""
        at = torch.arange(length, device=self.contexts.device)
        return (at >= self.contexts[:, None]) & self.switched[:, None]

    def masks(self, length: int) -> tuple[Tensor, Tensor]:
        """M1 and M2, B × L × L, padding not considered."""
        second = self.second(length)
        same = second[:, :, None] == second[:, None, :]
        both = torch.zeros_like(same) if self.also is None else self.also
        if self.bridge:
            first = torch.arange(length, device=same.device) == 0
            both = both | first[:, None] | first
        switched = self.switched[:, None, None]
        return same | both | ~switched, (~same | both) & switched

    def biases(self, length: int, real: Tensor | None, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Logarithms of M1 and M2 (B × 1 × L × L), without the padding of keys, with halved overlaps where asked for.

        `real` is that of the batch, the same at every call.
        """
        if (length, dtype) in self._made:
            return self._made[length, dtype]
        own, cross = self.masks(length)
        overlap = math.log(0.5) if self.overlap == "halve" else 0.0
        found = []
        for mask, other in ((own, cross), (cross, own)):
            kept = mask if real is None else mask & real[:, None, :]
            bias = torch.where(other, overlap, 0.0).masked_fill(~kept, -math.inf)
            found.append(bias[:, None].to(dtype))
        self._made[length, dtype] = found[0], found[1]
        return found[0], found[1]

    def side_by_side(self, length: int, real: Tensor | None, dtype: torch.dtype) -> Tensor:
        """`biases` in one, B × 1 × L × 2L, which autograd keeps for each layer: once, if all have the same."""
        if (length, dtype) not in self._joined:
            self._joined[length, dtype] = torch.cat(self.biases(length, real, dtype), -1)
        return self._joined[length, dtype]


class CrossQuery(nn.Module):
    """A layer's query projection with a second one, Q_cross, at first a copy of it: [Q; Q_cross], twice the heads.

    Takes the place of `attention.self.query`, whose parameters keep their names.
    """

    def __init__(self, query: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = query.weight, query.bias
        self.cross = nn.Linear(query.in_features, query.out_features, device=query.weight.device)
        self.cross.load_state_dict(query.state_dict())

    def forward(self, hidden: Tensor) -> Tensor:
        return torch.cat([linear(hidden, self.weight, self.bias), self.cross(hidden)], -1)


def install(model: "PreTrainedModel", cross: bool) -> None:
    """Have a BERT or XLM-R attend as `attend` does, in all layers, and give it a Q_cross if `cross`.

    Raises:
        ValueError: its layers are not BERT's.
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import flash_attention_mask

    found = layers(model)
    AttentionInterface.register(NAME, attend)
    # It leaves the padding as it is, B × L, and None where there is none.
    AttentionMaskInterface.register(NAME, flash_attention_mask)
    model.set_attn_implementation(NAME)
    for layer in found if cross else ():
        layer.query = CrossQuery(layer.query)


def layers(model: "PreTrainedModel") -> list[Any]:
    """The `attention.self` of each layer of a BERT or XLM-R, with a Q_cross or without.

    Raises:
        ValueError: its layers are not BERT's.
    """
    found = [module for name, module in model.named_modules() if name.endswith("attention.self")]
    if not found or not all(isinstance(getattr(layer, "query", None), nn.Linear | CrossQuery) for layer in found):
        raise ValueError(f"structured attention is for BERT and XLM-R, got {model.config.model_type}")
    return found


def weights(layer: Any, hidden: Tensor, real: Tensor | None, layout: Layout | None) -> Tensor:
    """The attention weights of a layer without dropout, which the fused calls of `attend` never hold.

    Args:
        layer: one of `layers`.
        hidden: B × L × hidden size, its input.
        real: B × L, true for real tokens; None if all are.
        layout: as `attend` has it.

    Returns:
        B × H × L × L: rows are queries and sum to 1; columns are keys. Those of both queries are added.
    """

    def heads(states: Tensor) -> Tensor:
        return states.unflatten(-1, (-1, layer.attention_head_size)).transpose(1, 2)

    query, key = heads(layer.query(hidden)), heads(layer.key(hidden))
    own, *cross = (one @ key.mT / math.sqrt(key.shape[3]) for one in query.split(key.shape[1], 1))
    if layout is None:
        return (own if real is None else own.masked_fill(~real[:, None, None], -math.inf)).softmax(-1)
    bias, other = layout.biases(key.shape[2], real, own.dtype)
    return (torch.logaddexp(own + bias, cross[0] + other) if cross else own + bias).softmax(-1)


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    dropout: float = 0.0,
    layout: Layout | None = None,
    **ignored: Any,
) -> tuple[Tensor, None]:
    """An attention function of transformers.

    Args:
        query: B × H × L × d, or B × 2H × L × d with the heads of Q_cross after those of Q.
        key, value: B × H × L × d.
        attention_mask: B × L, true for real tokens.
        layout: an argument of the model's forward; without it, no input is switched.

    Returns:
        B × L × H × d.
    """
    own, cross = query.chunk(2, 1) if query.shape[1] > key.shape[1] else (query, None)
    real = None if attention_mask is None else attention_mask.bool()
    if layout is None:
        mask = None if real is None else real[:, None, None, :]
        out = scaled_dot_product_attention(own, key, value, mask, dropout, scale=scaling)
    elif cross is None:
        bias, _ = layout.biases(key.shape[2], real, own.dtype)
        out = scaled_dot_product_attention(own, key, value, bias, dropout, scale=scaling)
    elif layout.also is None:
        out = strict(own, cross, key, value, real, layout, scaling, dropout)
    else:
        joint = together if key.device.type == "cpu" else doubled
        out = joint(own, cross, key, value, real, layout, scaling, dropout)
    return out.transpose(1, 2).contiguous(), None


def strict(
    own: Tensor, cross: Tensor, key: Tensor, value: Tensor, real: Tensor | None, layout: Layout, scale: float, p: float
) -> Tensor:
    """Strict masks in one fused call over L + 1 keys, without a mask of L × L.

    A row asks the keys of the first segment with one query and those of the second with the other. Side by side, as one
    query of 2d, they meet keys that are zero in one half or the other. What the bridge adds to a row is one more key:
    the first token for the other query. The bridge's own row has both queries for all keys, and is done apart.
    """
    length, width = key.shape[2], key.shape[3]
    if real is None:
        real = key.new_ones(key.shape[0], length, dtype=torch.bool)
    second = layout.second(length)[:, None, :, None]
    rows = torch.cat([torch.where(second, cross, own), torch.where(second, own, cross)], -1)
    nothing = key.new_zeros(())
    keys = torch.cat([torch.where(second, nothing, key), torch.where(second, key, nothing)], -1)
    values = value
    bias = real.new_zeros(real.shape, dtype=own.dtype).masked_fill(~real, -math.inf)[:, None, None]
    if layout.bridge:
        keys = torch.cat([keys, pad(key[:, :, :1], (width, 0))], 2)
        values = torch.cat([value, value[:, :, :1]], 2)
        again = torch.zeros_like(layout.switched, dtype=own.dtype).masked_fill(~layout.switched, -math.inf)
        bias = pad(bias, (0, 1))
        bias[..., -1] = again[:, None, None]
        if layout.overlap == "halve":
            half = layout.switched.to(own.dtype)[:, None, None] * math.log(0.5)
            bias[..., 0] += half
            bias[..., -1] += half
    # The CPU's fused kernel wants values as wide as the keys.
    out = scaled_dot_product_attention(rows, keys, pad(values, (0, width)), bias, p, scale=scale)[..., :width]
    if not layout.bridge:
        return out
    first = torch.stack([own[:, :, 0], cross[:, :, 0]], 2) @ key.mT * scale
    first = first.masked_fill(~real[:, None, None], -math.inf)
    apart = torch.cat([first[:, :, 0], first[:, :, 1].masked_fill(~layout.switched[:, None, None], -math.inf)], -1)
    weights = drop(apart.softmax(-1), p).unflatten(-1, (2, length)).sum(-2)
    return torch.cat([weights[:, :, None] @ value, out[:, :, 1:]], 2)


def doubled(
    own: Tensor, cross: Tensor, key: Tensor, value: Tensor, real: Tensor | None, layout: Layout, scale: float, p: float
) -> Tensor:
    """Any masks in one fused call over 2L keys, for a GPU: nothing of L × L is kept but the masks, once for all heads and
    layers."""
    width = key.shape[3]
    keys = torch.cat([pad(key, (0, width)), pad(key, (width, 0))], 2)
    values = torch.cat([value, value], 2)
    bias = layout.side_by_side(key.shape[2], real, own.dtype)
    rows = torch.cat([own, cross], -1)
    return scaled_dot_product_attention(rows, keys, pad(values, (0, width)), bias, p, scale=scale)[..., :width]


def together(
    own: Tensor, cross: Tensor, key: Tensor, value: Tensor, real: Tensor | None, layout: Layout, scale: float, p: float
) -> Tensor:
    """Any masks from two matrices of scores, for a CPU, where it takes half the time of `doubled`."""
    kept = drop(key.new_ones(*key.shape[:3], key.shape[2]), p) if p else None
    biases = layout.biases(key.shape[2], real, own.dtype)
    out: Tensor = _Together.apply(own, cross, key, value, *biases, scale, kept)
    return out


class _Together(torch.autograd.Function):
    """softmax(log(exp(s1 + bias1) + exp(s2 + bias2))) V, with the derivative written out: what autograd would keep and
    recompute costs more than half of the time."""

    @staticmethod
    def forward(
        ctx: Any,
        own: Tensor,
        cross: Tensor,
        key: Tensor,
        value: Tensor,
        bias1: Tensor,
        bias2: Tensor,
        scale: float,
        kept: Tensor | None,
    ) -> Tensor:
        keys = key.mT * scale
        one, two = (own @ keys).add_(bias1), (cross @ keys).add_(bias2)
        most = torch.maximum(one.amax(-1, keepdim=True), two.amax(-1, keepdim=True))
        one.sub_(most).exp_()
        two.sub_(most).exp_()
        norm = (one.sum(-1, keepdim=True) + two.sum(-1, keepdim=True)).reciprocal_()
        one.mul_(norm)
        two.mul_(norm)
        weights = one + two
        out = (weights if kept is None else weights.mul_(kept)) @ value
        ctx.save_for_backward(own, cross, key, value, one, two, out, *([] if kept is None else [kept]))
        ctx.scale = scale
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        own, cross, key, value, one, two, out, *dropped = ctx.saved_tensors
        (grad,) = gradients
        weights = one + two
        slope = grad @ value.mT
        if dropped:
            weights.mul_(dropped[0])
            slope.mul_(dropped[0])
        slope.sub_((grad * out).sum(-1, keepdim=True)).mul_(ctx.scale)
        one, two = one * slope, two * slope
        return (one @ key, two @ key, one.mT @ own + two.mT @ cross, weights.mT @ grad, None, None, None, None)
