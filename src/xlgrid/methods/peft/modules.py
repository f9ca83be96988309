"""The modules of peft in the layers of an encoder. All parameters that the encoder had keep their names."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from peft import IA3Config, LoraConfig, PeftConfig, PrefixEncoder, PrefixTuningConfig, inject_adapter_in_model
from peft.tuners.tuners_utils import BaseTunerLayer
from torch import Tensor, nn
from torch.nn.functional import pad
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from xlgrid.heads.families import FAMILIES, family_of, layers_of, module_of, part

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# The name of the attention function with prefixes, and of the argument by which it gets them.
PREFIX = "prefix"
ROLES = ("query", "key", "value")


class Rows(nn.Linear):
    """The linear layer of some rows of a `Packed`, which has the parameters."""

    def __init__(self, packed: "Packed", rows: slice) -> None:
        nn.Module.__init__(self)
        # A tuple hides the other module, of which this one is a part.
        self.packed, self.rows = (packed,), rows
        self.in_features, self.out_features = packed.weight.shape[1], rows.stop - rows.start

    weight = property(lambda self: self.packed[0].weight[self.rows])
    bias = property(lambda self: None if self.packed[0].bias is None else self.packed[0].bias[self.rows])


class Packed(nn.Module):
    """Replaces a projection by one matrix to queries, keys and values with a layer for each."""

    def __init__(self, projection: Any) -> None:
        super().__init__()
        self.weight, self.bias, size = projection.weight, projection.bias, projection.out_features // 3
        for number, role in enumerate(ROLES):
            self.add_module(role, Rows(self, slice(number * size, (number + 1) * size)))

    def forward(self, hidden: Tensor) -> Tensor:
        return torch.cat([rows(hidden) for rows in self.children()], -1)


def lora(model: "PreTrainedModel", roles: Sequence[str] | None, **options: Any) -> None:
    """Install LoRA with options of peft's `LoraConfig`; see `linear_layers` for the roles and errors."""
    _inject(model, LoraConfig(target_modules=linear_layers(model, roles), **options))


def ia3(model: "PreTrainedModel") -> None:
    """Install IA3 in attention, and at the last layers of feed-forward blocks; see `linear_layers` for errors."""
    names = linear_layers(model, ("key", "value", "last_dense"))
    _inject(model, IA3Config(target_modules=names, feedforward_modules=names[2::3]))


def linear_layers(model: "PreTrainedModel", roles: Sequence[str] | None) -> list[str]:
    """The paths of linear layers in all layers of an encoder. A matrix for queries, keys and values becomes a `Packed`.

    Args:
        roles: the names of paths in a `Family`; None for all linear layers except those of modules for languages.

    Raises:
        ValueError: the layers have other names.
    """
    family, names = family_of(model), list[str]()
    for number, layer in enumerate(layers_of(model)):
        inside = {role: ".".join(filter(None, (family.attention, getattr(family, role)))) for role in ROLES}
        if family.query == family.key:
            if not isinstance(projection := layer.get_submodule(inside["query"]), Packed):
                layer.set_submodule(inside["query"], Packed(projection))
            inside = {role: f"{path}.{role}" for role, path in inside.items()}
        inside["last_dense"] = family.last_dense
        linear = [name for name, each in layer.named_modules() if isinstance(each, nn.Linear) and not module_of(name)]
        wanted = linear if roles is None else [inside[role] for role in roles]
        _check(model, {*wanted} <= {*linear})
        names += [f"{family.layers}.{number}.{name}" for name in wanted]
    _check(model, bool(layers_of(model)))
    return names


def _inject(model: "PreTrainedModel", config: PeftConfig) -> None:
    encoder: Any = model.base_model
    inject_adapter_in_model(config, encoder)
    for wrapper in [module for module in encoder.modules() if isinstance(module, BaseTunerLayer)]:
        # Runs load parameters by name. Of two names, the first counts, which is the one from before.
        wrapper._parameters.update(wrapper.base_layer._parameters)
        # Weight decay, which vectors do not have, would draw the matrices of peft to zero instead of one.
        for name, matrix in getattr(wrapper, "ia3_l", {}).items():
            wrapper.ia3_l[name] = nn.Parameter(matrix.flatten())


def prefixes(model: "PreTrainedModel", length: int) -> None:
    """Add prefixes of some length to all layers.

    peft passes prefixes as the past keys and values of a decoder, which most encoders of transformers do not take, and which
    shift the positions of the others. Here, `attend` is the encoder's attention function.

    Raises:
        ValueError: the layers have other names, or do not call an attention function.
    """
    family, encoder = family_of(model), model.base_model
    attentions = [part(layer, family.attention) for layer in layers_of(model)]
    keys: list[Any] = [part(attention, family.key) for attention in attentions]
    _check(model, bool(keys) and None not in keys and getattr(model, "_supports_attention_backend", True))
    AttentionInterface.register(PREFIX, attend)
    AttentionMaskInterface.register(PREFIX, sdpa_mask)
    model.set_attn_implementation(PREFIX)
    for number, attention in enumerate(attentions):
        attention.number = number
    width = keys[0].out_features // (3 if family.query == family.key else 1)
    config = PrefixTuningConfig(num_virtual_tokens=length, num_layers=len(keys), token_dim=width)
    encoder.add_module(PREFIX, PrefixEncoder(config).to(model.device))
    encoder.register_forward_pre_hook(_give_prefixes, with_kwargs=True)


def _give_prefixes(encoder: Any, inputs: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    numbers = torch.arange(encoder.prefix.embedding.num_embeddings, device=encoder.device)
    # Encoders pass arguments that they do not know on to the attention function.
    return inputs, {**options, PREFIX: encoder.prefix(numbers)}


def attend(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    """Attention to prefixes and an input, as an attention function of transformers.

    Args:
        key, value: [B, heads, L, d].
        attention_mask: [B, 1, L, L], true where a query attends to a key; None if it is true everywhere.
        options: with `prefix`, the output of a `PrefixEncoder`, [P, layers * 2 * heads * d].
    """
    prefix, (batch, heads, _, width) = options.pop(PREFIX), key.shape
    own = prefix.to(key.dtype).unflatten(-1, (-1, 2, heads, width))[:, module.number].permute(1, 2, 0, 3)
    key, value = (torch.cat([p.expand(batch, -1, -1, -1), x], 2) for p, x in zip(own, (key, value), strict=True))
    mask = None if attention_mask is None else pad(attention_mask, (len(prefix), 0), value=True)
    states: tuple[Tensor, None] = sdpa_attention_forward(module, query, key, value, mask, **options)
    return states


def _check(model: "PreTrainedModel", is_known: bool) -> None:
    if not is_known:
        raise ValueError(
            f"the layers of an encoder of type {model.config.model_type} have unknown names: use the method full-ft, or an "
            f"encoder of one of the types {', '.join(sorted(FAMILIES))}"
        )
