"""Bottleneck adapters and the invertible adapter of MAD-X (Pfeiffer et al. 2020, sections 4.1 to 4.3).

In a transformer layer, let x be the input of the feed-forward block, h its output, and LN the last LayerNorm, which is
pre-trained and frozen. An adapter is A(z) = U f(D z). The input of LN is s = h + x. With a language and a task adapter,
the *library* form, in which the published weights were trained, is

    s1 = s + A_L(LN(s))        s2 = s1 + A_T(LN(s1))        out = LN(s2)

and the *paper* form (equations 1 and 2) is

    LA = A_L(LN(s)) + h        TA = A_T(LA) + h             out = LN(TA + x)

With one adapter, the two forms are the same. A layer of ModernBERT or EuroBERT has no LayerNorm after the feed-forward
block and returns s. Its output with adapters is s2, or TA + x, without the last LN. The other occurrences of LN are the
identity, as in the library (`pre_norm: sum`), or the LayerNorm with which the next layer reads s; after the last layer,
this is the LayerNorm of the encoder (`pre_norm: norm`).

The invertible adapter is NICE on the embeddings, and its inverse is applied to the states that the language-modelling
head decodes. The adapters wrap the modules of transformers, whose parameters keep their names.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, layer_norm, linear, relu

from xlgrid.heads.families import FAMILIES, Family, family_of, has_modules, layers_of, part

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# `gelu_new` is the approximation with tanh, which adapter-transformers called gelu.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": relu,
    "gelu": gelu,
    "gelu_new": partial(gelu, approximate="tanh"),
}


class Bottleneck(nn.Module):
    """An adapter without its residual connection: down, a non-linearity, up (section 4.1)."""

    def __init__(self, size: int, reduction: int, activation: str, init: str, device: torch.device) -> None:
        super().__init__()
        inner = max(1, size // reduction)
        self.down = nn.Linear(size, inner, device=device)
        self.up = nn.Linear(inner, size, device=device)
        self.activation = activation
        for layer in (self.down, self.up):
            nn.init.normal_(layer.weight, std=0.02)
            nn.init.zeros_(layer.bias)
        if init == "identity":
            nn.init.zeros_(self.up.weight)

    def forward(self, states: Tensor) -> Tensor:
        out: Tensor = self.up(ACTIVATIONS[self.activation](self.down(states)))
        return out


class Invertible(nn.Module):
    """The invertible adapter NICE: a function of each half of the embedding is added to the other half (section 4.3,
    equations 3 to 5). `inverse` undoes `forward`."""

    def __init__(self, size: int, reduction: int, activation: str, init: str, device: torch.device) -> None:
        super().__init__()
        self.F = Bottleneck(size // 2, reduction, activation, init, device)
        self.G = Bottleneck(size // 2, reduction, activation, init, device)

    def forward(self, states: Tensor) -> Tensor:
        first, second = states.chunk(2, -1)
        first = first + self.F(second)
        return torch.cat([first, second + self.G(first)], -1)

    def inverse(self, states: Tensor) -> Tensor:
        first, second = states.chunk(2, -1)
        second = second - self.G(first)
        return torch.cat([first - self.F(second), second], -1)


class Adapters(nn.Module):
    """The adapters of a layer, with the names `language` and `task`. Subclasses define LN."""

    def __init__(self, adapters: dict[str, Bottleneck], wiring: str) -> None:
        super().__init__()
        for name, adapter in adapters.items():
            self.add_module(name, adapter)
        self.names = tuple(adapters)
        self.with_input = wiring == "paper" and len(adapters) == 2
        # A hook of the feed-forward block sets x.
        self.input: Tensor | None = None

    def norm(self, states: Tensor) -> Tensor:
        """Apply LN."""
        raise NotImplementedError

    def adapted(self, states: Tensor) -> Tensor:
        """The adapted states from s: s2 in the library's form, or TA + x in the paper's form."""
        if self.with_input:
            assert self.input is not None
            language, task = self.adapters()
            above = language(self.norm(states)) + (states - self.input)
            self.input = None
            return states + task(above)
        for adapter in self.adapters():
            states = states + adapter(self.norm(states))
        return states

    def adapters(self) -> list[Bottleneck]:
        """The adapters in the order in which they are applied."""
        return [getattr(self, name) for name in self.names]


class AdaptedNorm(Adapters):
    """The last LayerNorm of a layer with adapters before it. The module replaces this LayerNorm, whose parameters keep
    their names."""

    def __init__(self, norm: nn.LayerNorm, adapters: dict[str, Bottleneck], wiring: str) -> None:
        super().__init__(adapters, wiring)
        self.weight, self.bias, self.eps = norm.weight, norm.bias, norm.eps

    def norm(self, states: Tensor) -> Tensor:
        return layer_norm(states, self.weight.shape, self.weight, self.bias, self.eps)

    def forward(self, states: Tensor) -> Tensor:
        return self.norm(self.adapted(states))


class AdaptedSum(Adapters):
    """The adapters of a layer that returns s. They are the module `adapters` of the layer."""

    def __init__(self, adapters: dict[str, Bottleneck], wiring: str, next_norm: nn.Module | None) -> None:
        """`next_norm` is LN; None for the identity."""
        super().__init__(adapters, wiring)
        # A tuple hides the module, which belongs to the next layer and must not be registered twice.
        self.next_norm = (next_norm,)

    def norm(self, states: Tensor) -> Tensor:
        [norm] = self.next_norm
        return states if norm is None else norm(states)

    def forward(self, states: Tensor) -> Tensor:
        return self.adapted(states)


class InverseDecoder(nn.Module):
    """The decoder of a language-modelling head after the inverse of the invertible adapter (figure 1).

    The module replaces `decoder`. The parameters of the decoder (the word embeddings and a bias) keep their names and
    ties.
    """

    def __init__(self, decoder: nn.Linear, invertible: Invertible) -> None:
        super().__init__()
        self.weight, self.bias = decoder.weight, decoder.bias
        # A tuple hides the module, which belongs to the embeddings and must not be registered twice.
        self.invertible = (invertible,)

    def forward(self, states: Tensor) -> Tensor:
        return linear(self.invertible[0].inverse(states), self.weight, self.bias)


def install(
    model: "PreTrainedModel",
    language: int | None = None,
    task: int | None = None,
    invertible: int | None = None,
    *,
    activation: str = "relu",
    wiring: str = "library",
    pre_norm: str = "sum",
    inverse: bool = True,
    leave_out_last: bool = False,
    init: str = "bert",
) -> None:
    """Add new adapters to all layers of an encoder, and an invertible adapter to the embeddings, in place.

    Args:
        language, task, invertible: the reduction factor of each kind of adapter; None for no adapter of the kind.
        activation: a key of `ACTIVATIONS`.
        wiring: the form for a language and a task adapter, `library` or `paper`.
        pre_norm: LN in layers that return s: `sum` for the identity, or `norm` for the LayerNorm that reads s.
        inverse: whether a language-modelling head gets the inverse of the invertible adapter.
        leave_out_last: whether the last layer gets no adapters.
        init: `bert` draws weights from N(0, 0.02²), with biases of zero; `identity` has zeros in all second
            projections, so that the outputs of the model do not change.

    Raises:
        ValueError: the layers belong to no family, the size of the embeddings is odd, or a language-modelling head
            decodes states of another size.
    """
    family, layers, size = family_of(model), adaptable(model), model.config.hidden_size

    def new(kind: Callable[..., Any], reduction: int, near: nn.Module) -> Any:
        return kind(size, reduction, activation, init, next(near.parameters()).device)

    reductions = {"language": language, "task": task}
    for number, layer in enumerate(layers[:-1] if leave_out_last else layers):
        adapters = {name: new(Bottleneck, reduction, layer) for name, reduction in reductions.items() if reduction}
        if not adapters:
            continue
        if family.norm:
            in_layer: Adapters = AdaptedNorm(part(layer, family.norm), adapters, wiring)
            layer.set_submodule(family.norm, in_layer)
        else:
            in_layer = AdaptedSum(adapters, wiring, _next_norm(model, family, number) if pre_norm == "norm" else None)
            layer.add_module("adapters", in_layer)
            layer.register_forward_hook(_adapt_output)
        if in_layer.with_input:
            block = part(layer, family.feed_forward)
            # The tuple hides the module, as above.
            block.adapters_after = (in_layer,)
            block.register_forward_pre_hook(_note_input)
    if invertible:
        embedded = part(model.base_model, family.embedded)
        # The embeddings of some encoders, such as small ELECTRAs, are narrower than their layers.
        norm = part(model.base_model, "embeddings.LayerNorm")
        size = norm.weight.shape[0] if norm is not None else size
        if size % 2:
            raise ValueError(
                f"an invertible adapter needs embeddings of an even size, got {size}: set `invertible: false`"
            )
        nice = new(Invertible, invertible, model.get_input_embeddings())
        embedded.add_module("invertible", nice)
        embedded.register_forward_hook(_invert)
        if inverse and (decoder := model.get_output_embeddings()) is not None:
            if decoder.in_features != size:
                raise ValueError(
                    f"the inverse of an invertible adapter has the size {size}, but the language-modelling head of "
                    f"type {model.config.model_type} decodes states of size {decoder.in_features}: set `inverse: false`"
                )
            [path] = [name for name, module in model.named_modules() if module is decoder]
            model.set_submodule(path, InverseDecoder(decoder, nice))


def adaptable(model: "PreTrainedModel") -> list[nn.Module]:
    """The layers of an encoder without adapters.

    Raises:
        ValueError: the layers belong to no family.
    """
    family, layers = family_of(model), layers_of(model)
    norms = [part(layer, family.norm or family.feed_forward) for layer in layers]
    if not layers or any(norm is None or (family.norm and not isinstance(norm, nn.LayerNorm)) for norm in norms):
        types = ", ".join(sorted(kind for kind in FAMILIES if not has_modules(kind)))
        raise ValueError(
            f"adapters need an encoder of type {types}, got {model.config.model_type}: use one of these types, or the "
            "method full-ft"
        )
    return layers


def _next_norm(model: "PreTrainedModel", family: Family, number: int) -> nn.Module:
    """The LayerNorm that reads the output of a layer."""
    layers = layers_of(model)
    if number + 1 < len(layers):
        norm: nn.Module = part(layers[number + 1], family.next_norm)
    else:
        norm = part(model.base_model, family.last_norm)
    return norm


# Hooks are functions of the module, because a copy of a model would share a closure with the model.


def _note_input(block: Any, inputs: tuple[Tensor, ...]) -> None:
    block.adapters_after[0].input = inputs[0]


def _adapt_output(layer: Any, inputs: Any, states: Tensor) -> Tensor:
    adapted: Tensor = layer.adapters(states)
    return adapted


def _invert(embedded: Any, inputs: Any, states: Tensor) -> Tensor:
    moved: Tensor = embedded.invertible(states)
    return moved
