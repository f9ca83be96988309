"""Bottleneck adapters and the invertible adapter of MAD-X (Pfeiffer et al. 2020, sections 4.1 to 4.3).

In a transformer layer, x is the input of the feed-forward block, h its output, and LN the last LayerNorm, as pre-trained
and frozen. An adapter is A(z) = U f(D z). The input of LN is s = h + x. With a language and a task adapter the *library*
form, in which the published weights were trained, is

    s1 = s + A_L(LN(s))        s2 = s1 + A_T(LN(s1))        out = LN(s2)

and the *paper* form, equations 1 and 2,

    LA = A_L(LN(s)) + h        TA = A_T(LA) + h             out = LN(TA + x)

With one adapter, the two forms agree. The invertible adapter is NICE on the embeddings; its inverse is applied to the states
that the language-modelling head decodes. The adapters wrap the modules of transformers, whose parameters keep their names.
"""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, layer_norm, linear, relu

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# `gelu_new` is the approximation by tanh, which adapter-transformers called gelu.
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
    """NICE: each half of the embedding is moved by a function of the other half (section 4.3, equations 3 to 5). `inverse`
    undoes `forward`."""

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


class AdaptedNorm(nn.Module):
    """The last LayerNorm of a layer with adapters before it. The module takes the place of `output.LayerNorm`, whose parameters
    keep their names; its adapters are called `language` and `task`."""

    def __init__(self, norm: nn.LayerNorm, adapters: dict[str, Bottleneck], wiring: str) -> None:
        super().__init__()
        self.weight, self.bias, self.eps = norm.weight, norm.bias, norm.eps
        for name, adapter in adapters.items():
            self.add_module(name, adapter)
        self.names = tuple(adapters)
        self.with_input = wiring == "paper" and len(adapters) == 2
        # x, which a hook of the layer's `output` notes just before it is needed.
        self.input: Tensor | None = None

    def norm(self, states: Tensor) -> Tensor:
        return layer_norm(states, self.weight.shape, self.weight, self.bias, self.eps)

    def forward(self, states: Tensor) -> Tensor:
        if self.with_input:
            assert self.input is not None
            language, task = self.adapters()
            above = language(self.norm(states)) + (states - self.input)
            self.input = None
            return self.norm(states + task(above))
        for adapter in self.adapters():
            states = states + adapter(self.norm(states))
        return self.norm(states)

    def adapters(self) -> list[Bottleneck]:
        """The adapters in the order in which they are applied."""
        return [getattr(self, name) for name in self.names]


class InverseDecoder(nn.Module):
    """The decoder of a language-modelling head after the inverse of the invertible adapter (figure 1). The module takes the
    place of `decoder`, whose parameters, the word embeddings and a bias, keep their names and their ties."""

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
    inverse: bool = True,
    leave_out_last: bool = False,
    init: str = "bert",
) -> None:
    """Give all layers of a BERT or XLM-R new adapters, and the embeddings an invertible adapter, in place.

    Args:
        language, task, invertible: the reduction factor of each kind of adapter; None for no adapter of the kind.
        activation: a key of `ACTIVATIONS`.
        wiring: the form for a language and a task adapter, `library` or `paper`.
        inverse: whether a language-modelling head gets the inverse of the invertible adapter.
        leave_out_last: whether the last layer gets no adapters.
        init: `bert` draws weights from N(0, 0.02²), with biases of zero; `identity` has zeros in all second projections, so
            that the outputs of the model stay as they were.

    Raises:
        ValueError: the layers are not those of BERT, or the hidden size is odd.
    """
    blocks, size = outputs(model), model.config.hidden_size
    embeddings: Any = model.base_model.embeddings

    def new(kind: Callable[..., Any], reduction: int, near: nn.Module) -> Any:
        return kind(size, reduction, activation, init, next(near.parameters()).device)

    reductions = {"language": language, "task": task}
    for output in blocks[:-1] if leave_out_last else blocks:
        adapters = {name: new(Bottleneck, reduction, output) for name, reduction in reductions.items() if reduction}
        if adapters:
            output.LayerNorm = AdaptedNorm(output.LayerNorm, adapters, wiring)
            if output.LayerNorm.with_input:
                output.register_forward_pre_hook(_note_input)
    if invertible:
        if size % 2:
            raise ValueError(
                f"an invertible adapter halves the hidden size, which is {size} here: set `invertible: false`"
            )
        nice = new(Invertible, invertible, embeddings)
        embeddings.dropout = nn.Sequential(OrderedDict(dropout=embeddings.dropout, invertible=nice))
        head = getattr(getattr(model, "cls", None), "predictions", None) or getattr(model, "lm_head", None)
        if inverse and head is not None:
            head.decoder = InverseDecoder(head.decoder, nice)


def outputs(model: "PreTrainedModel") -> list[Any]:
    """The `output` of each layer of a BERT or XLM-R without adapters.

    Raises:
        ValueError: the layers are not those of BERT.
    """
    layers = getattr(getattr(model.base_model, "encoder", None), "layer", ())
    blocks = [getattr(layer, "output", None) for layer in layers]
    if not blocks or not all(isinstance(getattr(block, "LayerNorm", None), nn.LayerNorm) for block in blocks):
        raise ValueError(f"adapters are for BERT and XLM-R, got {model.config.model_type}")
    return blocks


def _note_input(output: Any, inputs: tuple[Tensor, Tensor]) -> None:
    # A copy of the model would share a closure with the model.
    output.LayerNorm.input = inputs[1]
