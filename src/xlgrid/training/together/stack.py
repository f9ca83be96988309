"""The layers of several models of one encoder, which compute the tokens of all runs at once.

The models share the frozen weights. A parameter that trains, or that differs between the runs, has a value for each run,
which the run's own model reads, too.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, layer_norm, linear
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from xlgrid.training.together.layout import Layout

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# The name of the attention function for several runs, and of the argument by which it gets their layout.
NAME, LAYOUT = "of-runs", "layout"


class Gather(torch.autograd.Function):
    """The value of its run for each position: [runs, size] -> [positions, size].

    The gradient is summed run by run, so that a run whose gradient is not a number changes no other run.
    """

    @staticmethod
    def forward(context: Any, values: Tensor, runs: Tensor, sizes: list[int]) -> Tensor:
        context.sizes = sizes
        return values.index_select(0, runs)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return torch.stack([part.sum(0) for part in gradients[0].split(context.sizes)]), None, None


class OfRuns(nn.Module):
    """A module with parameters of which some have a value for each run, [all runs, ...]; the others are shared.

    Args:
        module: the module of the first model.
        own: name -> the values of a parameter that is not shared.
    """

    def __init__(self, module: nn.Module, own: Mapping[str, nn.Parameter], layout: Layout) -> None:
        super().__init__()
        for name, parameter in module.named_parameters(recurse=False):
            self.register_parameter(name, own.get(name, parameter))
        self.own, self.layout = frozenset(own), layout

    def value(self, name: str) -> Tensor | None:
        """A parameter: [...], if all runs share it, or [runs of the forward pass, ...]; None without such a parameter."""
        parameter: Tensor | None = getattr(self, name, None)
        if name not in self.own or parameter is None or len(self.layout.members) == len(parameter):
            return parameter
        return parameter[self.layout.members]

    def at_positions(self, name: str, states: Tensor) -> Tensor | None:
        """A vector with a value for each run at each position: [positions, size]; None if all runs share it."""
        value = self.value(name)
        if value is None or name not in self.own:
            return None
        gathered: Tensor = Gather.apply(value, self.layout.runs(states), self.layout.sizes(states))
        return gathered


class Linear(OfRuns):
    """A linear layer of which the bias, or weight and bias, are of each run."""

    def forward(self, states: Tensor) -> Tensor:
        weight, bias = self.value("weight"), self.value("bias")
        assert weight is not None
        if "weight" in self.own:
            biases = bias if "bias" in self.own and bias is not None else [bias] * len(weight)
            parts = zip(self.layout.segments(states), weight, biases, strict=True)
            return torch.cat([linear(*each) for each in parts])[None]
        gathered = self.at_positions("bias", states)
        assert gathered is not None
        return torch.addmm(gathered, states[0], weight.t())[None]


class LayerNorm(OfRuns):
    """A LayerNorm of which the bias or the weight are of each run."""

    def __init__(self, module: nn.LayerNorm, own: Mapping[str, nn.Parameter], layout: Layout) -> None:
        super().__init__(module, own, layout)
        self.shape, self.eps = module.normalized_shape, module.eps

    def forward(self, states: Tensor) -> Tensor:
        shared = {name: None if name in self.own else self.value(name) for name in ("weight", "bias")}
        if "weight" in self.own:
            shared["bias"] = None
        normed = layer_norm(states, self.shape, shared["weight"], shared["bias"], self.eps)
        if (weight := self.at_positions("weight", states)) is not None:
            normed = normed * weight
        bias = self.at_positions("bias", states)
        if bias is None and "weight" in self.own:
            bias = self.value("bias")
        return normed if bias is None else normed + bias


class Dropout(nn.Module):
    """Dropout that draws the numbers of each run as the run draws them alone."""

    def __init__(self, module: nn.Dropout, layout: Layout) -> None:
        super().__init__()
        self.p, self.layout = module.p, layout

    def forward(self, states: Tensor) -> Tensor:
        if not self.p:
            return states

        def drop(at: int, batch: Tensor) -> Tensor:
            with self.layout.random.of(self.layout.members[at]):
                return dropout(batch, self.p)

        return self.layout.each(states, drop)


KINDS: dict[type[nn.Module], Callable[..., OfRuns]] = {nn.Linear: Linear, nn.LayerNorm: LayerNorm}


def attend(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    """Attention of each run, as an attention function of transformers.

    Args:
        query: [1, heads, T, d], or the first tokens, [1, heads, R, d].
        key, value: [1, heads, T, d].
        attention_mask: unused; the layout in `options` has the masks.
    """
    layout: Layout = options.pop(LAYOUT)
    parts = zip(*([part for part in layout.split(x.transpose(1, 2))] for x in (query, key, value)), strict=True)
    attended = []
    for at, (own, keys, values) in enumerate(parts):
        mask = layout.masks[at]
        if mask is not None and mask.shape[2] > own.shape[1]:
            mask = mask[:, :, : own.shape[1]]
        tensors = [x.transpose(1, 2) for x in (own, keys, values)]
        if options["dropout"]:
            with layout.random.of(layout.members[at]):
                states, _ = sdpa_attention_forward(module, *tensors, mask, **options)
        else:
            states, _ = sdpa_attention_forward(module, *tensors, mask, **options)
        attended.append(states.flatten(0, 1))
    return torch.cat(attended)[None], None


class Stack:
    """The layers of several models.

    Attributes:
        layout: the runs of the current forward pass.
        own: the parameters with a value for each run, and the parameters of the runs' models that are these values.
    """

    def __init__(self, models: Sequence["PreTrainedModel"], layout: Layout) -> None:
        """Share what the models share, in place, and give the rest a value for each run.

        Raises:
            ValueError: the models cannot compute together.
        """
        self.models, self.layout = models, layout
        self.own: list[tuple[nn.Parameter, list[nn.Parameter]]] = []
        if problem := unfit(models[0]):
            raise ValueError(problem)
        share(models)
        AttentionInterface.register(NAME, attend)
        encoders: list[Any] = [model.base_model.encoder for model in models]
        # The copy has the same frozen parameters.
        memo = {id(parameter): parameter for parameter in encoders[0].parameters()}
        self.layers: Any = deepcopy(encoders[0], memo)
        for path, module in [*self.layers.named_modules()]:
            self._take(path, module, [encoder.get_submodule(path) for encoder in encoders])
        self.layers.train()

    def _take(self, path: str, module: Any, modules: list[nn.Module]) -> None:
        """Give a module of the copied layers the parameters of all runs."""
        if hasattr(module, "config"):
            module.config._attn_implementation = NAME
        if "first" in vars(module):
            module.first = self.layout.first
        if isinstance(module, nn.Dropout):
            self.layers.set_submodule(path, Dropout(module, self.layout))
        parameters = [dict(each.named_parameters(recurse=False)) for each in modules]
        own = {}
        for name, first in parameters[0].items():
            of_runs = [each[name] for each in parameters]
            if first.requires_grad or any(each is not first for each in of_runs):
                own[name] = self._of_runs(of_runs)
        if not own:
            return
        if type(module) not in KINDS:
            raise ValueError(
                f"{path} is a {type(module).__name__}, whose parameters cannot have a value for each run: leave out "
                "`together`"
            )
        self.layers.set_submodule(path, KINDS[type(module)](module, own, self.layout))

    def _of_runs(self, parameters: list[nn.Parameter]) -> nn.Parameter:
        """One parameter with the values of all runs, which the parameters of the runs share with it."""
        for values, others in self.own:
            if others[0] is parameters[0]:
                return values
        values = nn.Parameter(torch.stack([each.data for each in parameters]), parameters[0].requires_grad)
        for number, parameter in enumerate(parameters):
            parameter.data = values.data[number]
        self.own.append((values, parameters))
        return values

    def __call__(
        self, members: Sequence[int], states: Sequence[Tensor], masks: Sequence[Tensor | None]
    ) -> list[Tensor]:
        """The hidden states after the last layer, of each run."""
        inputs = self.layout.begin(members, states, masks)
        return self.layout.split(self.layers(inputs, **{LAYOUT: self.layout}).last_hidden_state)

    def give_gradients(self, members: Sequence[int]) -> None:
        """Give the parameters of the models of some runs their gradients."""
        for values, parameters in self.own:
            if values.grad is not None:
                for number in members:
                    parameters[number].grad = values.grad[number]
                values.grad = None

    def forget_gradients(self) -> None:
        """Drop the gradients of a step that is computed again."""
        for values, _ in self.own:
            values.grad = None


def share(models: Sequence["PreTrainedModel"]) -> None:
    """Let all models have the frozen parameters of the first one where they are equal."""
    modules = [dict(model.base_model.named_modules()) for model in models]
    for path, module in modules[0].items():
        for name, parameter in module.named_parameters(recurse=False):
            for other in modules[1:]:
                own = getattr(other[path], name)
                if own is not parameter and not parameter.requires_grad and torch.equal(parameter, own):
                    other[path].register_parameter(name, parameter)


def unfit(model: "PreTrainedModel") -> str | None:
    """Why models with an encoder cannot compute together; None if they can."""
    if model.config._attn_implementation != "sdpa":
        return "the method has an attention of its own, which computes one run at a time: leave out `together`"
    if not {"encoder", "embeddings"} <= dict(model.base_model.named_children()).keys():
        return f"encoders of type {model.config.model_type} compute one run at a time: leave out `together`"
    return None
