"""Bottleneck adapters and the invertible adapter of MAD-X (Pfeiffer et al. 2020, sections 4.1 to 4.3).

Of a transformer layer, h is what its feed-forward block computes of x, and LN its last LayerNorm, as pre-trained and
frozen. An adapter is A(z) = U f(D z). With s = h + x, what goes into LN, the *library* form, that of the published
weights, of a language and a task adapter is

    s1 = s + A_L(LN(s))        s2 = s1 + A_T(LN(s1))        out = LN(s2)

and the *paper* form, equations 1 and 2,

    LA = A_L(LN(s)) + h        TA = A_T(LA) + h             out = LN(TA + x)

With one adapter, they agree. The invertible adapter is NICE on the embeddings; its inverse is applied to what the
language-modelling head decodes. All of it is wrapped around the modules of transformers, whose parameters keep their names.
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
    """NICE: each half of the embedding is moved by a function of the other (section 4.3, equations 3 to 5); `inverse` takes it back."""

    def __init__(self, size: int, reduction: int, activation: str, init: str, device: torch.device) -> None:
        super().__init__()
        self.F = Bottleneck(size // 2, reduction, activation, init, device)
        self.G = Bottleneck(size // 2, reduction, activation, init, device)

    def forward(self, states: Tensor) -> Tensor:
        one, two = states.chunk(2, -1)
        one = one + self.F(two)
        return torch.cat([one, two + self.G(one)], -1)

    def inverse(self, states: Tensor) -> Tensor:
        one, two = states.chunk(2, -1)
        two = two - self.G(one)
        return torch.cat([one - self.F(two), two], -1)


class AdaptedNorm(nn.Module):
    """A layer's last LayerNorm with adapters before it. Takes the place of `output.LayerNorm`, whose parameters keep their
    names; the adapters are `language` and `task` in it."""

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
        """From the one that comes first."""
        return [getattr(self, name) for name in self.names]


class InverseDecoder(nn.Module):
    """The decoder of a language-modelling head behind the inverse of the invertible adapter (figure 1). Takes the place of
    `decoder`, whose parameters, the word embeddings and a bias, keep their names and their ties."""

    def __init__(self, decoder: nn.Linear, invertible: Invertible) -> None:
        super().__init__()
        self.weight, self.bias = decoder.weight, decoder.bias
        # A tuple, since it is a module of the embeddings and must not be registered twice.
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
    """Give all layers of a BERT or XLM-R new adapters, and its embeddings an invertible one, in place.

    Args:
        language, task, invertible: the reduction factor of each; None for none.
        activation: a key of `ACTIVATIONS`.
        wiring: of a language and a task adapter, `library` or `paper`.
        inverse: a language-modelling head has the inverse of the invertible adapter.
        leave_out_last: the last layer gets none.
        init: `bert` draws weights from N(0, 0.02²), biases are zero; `identity` has zeros in all second projections, by
            which the model's outputs stay as they were.

    Raises:
        ValueError: its layers are not BERT's, or the hidden size is odd.
    """
    found, size = outputs(model), model.config.hidden_size
    embeddings: Any = model.base_model.embeddings

    def made(maker: Callable[..., Any], reduction: int, near: nn.Module) -> Any:
        return maker(size, reduction, activation, init, next(near.parameters()).device)

    wanted = {"language": language, "task": task}
    for output in found[:-1] if leave_out_last else found:
        adapters = {name: made(Bottleneck, reduction, output) for name, reduction in wanted.items() if reduction}
        if adapters:
            output.LayerNorm = AdaptedNorm(output.LayerNorm, adapters, wiring)
            if output.LayerNorm.with_input:
                output.register_forward_pre_hook(_note_input)
    if invertible:
        if size % 2:
            raise ValueError(
                f"an invertible adapter halves the hidden size, which is {size} here: set `invertible: false`"
            )
        nice = made(Invertible, invertible, embeddings)
        embeddings.dropout = nn.Sequential(OrderedDict(dropout=embeddings.dropout, invertible=nice))
        head = getattr(getattr(model, "cls", None), "predictions", None) or getattr(model, "lm_head", None)
        if inverse and head is not None:
            head.decoder = InverseDecoder(head.decoder, nice)


def outputs(model: "PreTrainedModel") -> list[Any]:
    """The `output` of each layer of a BERT or XLM-R without adapters.

    Raises:
        ValueError: its layers are not BERT's.
    """
    layers = getattr(getattr(model.base_model, "encoder", None), "layer", ())
    found = [getattr(layer, "output", None) for layer in layers]
    if not found or not all(isinstance(getattr(output, "LayerNorm", None), nn.LayerNorm) for output in found):
        raise ValueError(f"adapters are for BERT and XLM-R, got {model.config.model_type}")
    return found


def _note_input(output: Any, given: tuple[Tensor, Tensor]) -> None:
    # Not a closure, which a copy of the model would share with it.
    output.LayerNorm.input = given[1]
