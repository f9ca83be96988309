"""The layers of several models of one encoder, which compute the tokens of all runs at once.

The models share the frozen weights. A parameter that trains, or that differs between the runs, has a value for each run,
which the run's own model reads, too.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, layer_norm, linear, scaled_dot_product_attention
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from xlgrid.training.together.layout import Layout, Rows

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# The name of the attention function for several runs, and of the argument by which it gets their layout.
NAME, LAYOUT = "of-runs", "layout"
# On a CPU, products of whole matrices of scores are faster than the fused kernel up to so many keys.
SHORT = 48


def product(states: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """states @ weight' + bias, as `linear`: [positions, in], [out, in] -> [positions, out].

    On processors of AMD, the library behind `linear` (MKL) does not use AVX-512, while oneDNN does, in half the time.
    """
    is_fp32 = states.dtype == torch.float32 and torch.get_float32_matmul_precision() == "highest"
    if states.device.type != "cpu" or not is_fp32 or not torch.backends.mkldnn.is_available():
        return linear(states, weight, bias)
    multiplied: Tensor = torch.ops.mkldnn._linear_pointwise(states, weight, bias, "none", [], "")
    return multiplied


class Product(torch.autograd.Function):
    """`product` with a weight and a bias that all runs share, and that do not train: [1, T, in] -> [T, out]."""

    @staticmethod
    def forward(context: Any, states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        context.save_for_backward(weight)
        return product(states[0], weight, bias)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, None, None]:
        (weight,) = context.saved_tensors
        return product(gradients[0], weight.t())[None] if context.needs_input_grad[0] else None, None, None


class ProductOfRuns(torch.autograd.Function):
    """The product with a weight of each run: [1, T, in], [runs, out, in] -> [T, out].

    Gradients are computed run by run, so that a run whose gradient is not a number changes no other run.
    """

    @staticmethod
    def forward(context: Any, states: Tensor, weights: Tensor, layout: Layout) -> Tensor:
        context.save_for_backward(states, weights)
        context.pieces = layout.pieces(states)
        result = states.new_zeros(states.shape[1], weights.shape[1])
        for number, at in context.pieces:
            torch.mm(states[0, at], weights[number].t(), out=result[at])
        return result

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        (gradient,), (states, weights) = gradients, context.saved_tensors
        of_states, of_weights = torch.zeros_like(states), torch.zeros_like(weights)
        for number, at in context.pieces:
            torch.mm(gradient[at].t(), states[0, at], out=of_weights[number])
            torch.mm(gradient[at], weights[number], out=of_states[0, at])
        return of_states, of_weights, None


class Plus(torch.autograd.Function):
    """Hidden states and, added in place, a vector of each run: [..., T, size], [runs, size] -> [..., T, size]."""

    @staticmethod
    def forward(context: Any, states: Tensor, values: Tensor, layout: Layout) -> Tensor:
        context.save_for_backward(values)
        context.pieces = layout.pieces(states)
        context.mark_dirty(states)
        rows = states.view(-1, states.shape[-1])
        if states.device.type == "cpu":
            for number, at in context.pieces:
                rows[at] += values[number]
        else:
            # One kernel takes the place of many.
            runs = layout.runs(states)
            rows[: len(runs)] += values.index_select(0, runs)
        return states

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        (values,) = context.saved_tensors
        sums, rows = torch.zeros_like(values), gradients[0].flatten(0, -2)
        for number, at in context.pieces:
            torch.sum(rows[at], 0, out=sums[number])
        return gradients[0], sums, None


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
        self.own, self.layout = own, layout

    def shared(self, name: str) -> Tensor | None:
        """A parameter that all runs share; None without such a parameter."""
        return None if name in self.own else getattr(self, name, None)

    def plus(self, states: Tensor) -> Tensor:
        """Add the bias of each run in place, if it is not shared."""
        if "bias" not in self.own:
            return states
        summed: Tensor = Plus.apply(states, self.own["bias"].to(states.dtype), self.layout)
        return summed


class Linear(OfRuns):
    """A linear layer of which the bias, or weight and bias, may be of each run."""

    def forward(self, states: Tensor) -> Tensor:
        weight, bias, kind = self.weight, self.shared("bias"), states.device.type
        if torch.is_autocast_enabled(kind):
            # As autocast does for `linear`, whose gradients are computed outside of it.
            dtype = torch.get_autocast_dtype(kind)
            states, weight, bias = states.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype)
        with torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext():
            if "weight" not in self.own:
                return self.plus(Product.apply(states, weight, bias))[None]
            result: Tensor = ProductOfRuns.apply(states, weight, self.layout)
            return self.plus(result if bias is None else result + bias)[None]


class LayerNorm(OfRuns):
    """A LayerNorm of which the bias or the weight are of each run."""

    def __init__(self, module: nn.LayerNorm, own: Mapping[str, nn.Parameter], layout: Layout) -> None:
        super().__init__(module, own, layout)
        self.shape, self.eps = module.normalized_shape, module.eps

    def forward(self, states: Tensor) -> Tensor:
        if "weight" not in self.own:
            return self.plus(layer_norm(states, self.shape, self.shared("weight"), self.shared("bias"), self.eps))
        normed, members = layer_norm(states, self.shape, eps=self.eps), self.layout.members
        scaled = self.layout.each(normed, lambda at, batch: batch * self.own["weight"][members[at]])
        bias = self.shared("bias")
        return self.plus(scaled) if bias is None else scaled + bias


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
    """Attention inside the rows of each run, as an attention function of transformers.

    Args:
        query: [1, heads, T, d], or the first tokens, [1, heads, R, d].
        key, value: [1, heads, T, d].
        attention_mask: unused; the layout in `options` has the masks.
    """
    layout: Layout = options.pop(LAYOUT)
    if options["dropout"]:
        return _attend_in_turn(module, query, key, value, layout, **options), None
    heads, scale = query.shape[1], options.get("scaling") or query.shape[3] ** -0.5
    buckets = layout.buckets(query, heads)
    places = [layout.places(x.shape[2], heads, x.device) for x in (query, key, value)]
    # The vectors of all heads and positions, [positions × heads, d], in the order of the buckets.
    vectors = [
        Rows.apply(x.transpose(1, 2).flatten(0, 2), at, back, len(at))
        for x, (at, back) in zip((query, key, value), places, strict=True)
    ]
    # Rows of a bucket have as many queries as keys, or one.
    sizes = [[len(bucket.mask) * bucket.length for bucket in buckets]] * 3
    if query.shape[2] != key.shape[2]:
        sizes[0] = [len(bucket.mask) for bucket in buckets]
    queries, keys, values = (x.split(each) for x, each in zip(vectors, sizes, strict=True))
    attended = []
    for bucket, *parts in zip(buckets, queries, keys, values, strict=True):
        own, own_keys, own_values = (x.unflatten(0, (len(bucket.mask), -1)) for x in parts)
        attended.append(_attend(own, own_keys, own_values, bucket.mask, heads, scale).flatten(0, 1))
    at, back = places[0]
    result = Rows.apply(torch.cat(attended), back, at, query.shape[2] * heads)
    return result.view(1, query.shape[2], heads, -1), None


def _attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, heads: int, scale: float) -> Tensor:
    """softmax(scale × query × key' + mask) × value; all [rows × heads, tokens, d]."""
    if query.device.type == "cpu" and key.shape[1] <= SHORT:
        return torch.bmm(torch.baddbmm(mask, query, key.transpose(1, 2), alpha=scale).softmax(-1), value)
    tensors = (query, key, value, mask.expand(-1, query.shape[1], -1))
    queries, keys, values, masks = (x.unflatten(0, (-1, heads)) for x in tensors)
    return scaled_dot_product_attention(queries, keys, values, masks, scale=scale).flatten(0, 1)


def _attend_in_turn(module: Any, query: Tensor, key: Tensor, value: Tensor, layout: Layout, **options: Any) -> Tensor:
    """`attend` with dropout of attention, of which each run draws its own numbers."""
    heads = query.shape[1]
    keys, values = (layout.split(x.transpose(1, 2).flatten(2)) for x in (key, value))

    def of_run(at: int, queries: Tensor) -> Tensor:
        mask = layout.masks[at]
        if mask is not None:
            mask = mask[:, None, None].expand(-1, -1, queries.shape[1], -1)
        tensors = [x.unflatten(2, (heads, -1)).transpose(1, 2) for x in (queries, keys[at], values[at])]
        with layout.random.of(layout.members[at]):
            states, _ = sdpa_attention_forward(module, *tensors, mask, **options)
        return states.flatten(2)

    return layout.each(query.transpose(1, 2).flatten(2), of_run).unflatten(2, (heads, -1))


class Weights:
    """The parameters that train, of all runs, in one matrix: [runs, numbers]. Those of the models are parts of it.

    Optimisers and norms then read a few long vectors in place of many short ones.

    Attributes:
        values, gradients: the matrix, and that of the gradients.
    """

    def __init__(self, of_runs: Sequence[Mapping[str, nn.Parameter]]) -> None:
        """Move parameters into the matrix; those with weight decay, which have several dimensions, come first."""
        first = of_runs[0]
        names = sorted(first, key=lambda name: first[name].dim() <= 1)
        self.decayed = sum(each.numel() for each in first.values() if each.dim() > 1)
        self.values = torch.stack([torch.cat([own[name].data.flatten() for name in names]) for own in of_runs])
        self.gradients = torch.zeros_like(self.values)
        # The id of the first run's parameter -> the values of all runs, and their gradients in the matrix.
        self._stacked: dict[int, tuple[nn.Parameter, Tensor]] = {}
        begin = 0
        for name in names:
            shape, end = first[name].shape, begin + first[name].numel()
            values, gradients = (x[:, begin:end].unflatten(1, shape) for x in (self.values, self.gradients))
            for own, value, gradient in zip(of_runs, values, gradients, strict=True):
                own[name].data, own[name].grad = value, gradient
            self._stacked[id(first[name])] = nn.Parameter(values), gradients
            begin = end

    def of(self, first: nn.Parameter) -> nn.Parameter | None:
        """The values of all runs of the first run's parameter, [runs, ...]; None if it does not train."""
        values, _ = self._stacked.get(id(first), (None, None))
        return values

    def begin(self) -> None:
        """Forget the gradients of a step."""
        self.gradients.zero_()
        for values, _ in self._stacked.values():
            values.grad = None

    def collect(self) -> None:
        """Add the gradients of what layers compute for all runs at once to the matrix."""
        for values, gradients in self._stacked.values():
            if values.grad is not None:
                gradients += values.grad
                values.grad = None

    def of_run(self, number: int) -> tuple[dict[str, nn.Parameter], dict[str, Tensor]]:
        """The parameters of a run as two vectors, of which the first has weight decay; and their gradients."""
        parts = {"decayed": slice(self.decayed), "others": slice(self.decayed, None)}
        shapes = {"decayed": (1, -1), "others": (-1,)}
        values, gradients = (
            {name: x[number, part].view(shapes[name]) for name, part in parts.items()}
            for x in (self.values, self.gradients)
        )
        return {name: nn.Parameter(value) for name, value in values.items() if value.numel()}, gradients


class Stack:
    """The layers of several models.

    Attributes:
        layout: the runs of the current forward pass.
        weights: the parameters that train.
    """

    def __init__(self, models: Sequence["PreTrainedModel"], weights: "Weights", layout: Layout) -> None:
        """Share what the models share, in place, and give the rest a value for each run.

        Raises:
            ValueError: the models cannot compute together.
        """
        self.weights, self.layout = weights, layout
        # The first run's parameter, by its id -> the values of all runs.
        self._own: dict[int, nn.Parameter] = {}
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
        if not own and type(module) is not nn.Linear:
            return
        if type(module) not in KINDS:
            raise ValueError(
                f"{path} is a {type(module).__name__}, whose parameters cannot have a value for each run: leave out "
                "`together`"
            )
        self.layers.set_submodule(path, KINDS[type(module)](module, own, self.layout))

    def _of_runs(self, parameters: list[nn.Parameter]) -> nn.Parameter:
        """One parameter with the values of all runs, which the parameters of the runs share with it."""
        first = parameters[0]
        if id(first) not in self._own:
            values = self.weights.of(first)
            if values is None:
                values = nn.Parameter(torch.stack([each.data for each in parameters]), requires_grad=False)
                for number, parameter in enumerate(parameters):
                    parameter.data = values.data[number]
            self._own[id(first)] = values
        return self._own[id(first)]

    def __call__(
        self, members: Sequence[int], states: Sequence[Tensor], masks: Sequence[Tensor | None]
    ) -> list[Tensor]:
        """The hidden states after the last layer, of each run."""
        inputs = self.layout.begin(members, states, masks)
        return self.layout.split(self.layers(inputs, **{LAYOUT: self.layout}).last_hidden_state)


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
