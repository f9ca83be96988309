"""The two streams of VECO (Luo et al. 2021, section 2.1), which share the weights of one XLM-R.

The stream H is the unchanged XLM-R. In layer l of L, the stream S of an input x with the partner y is

    A = LN(S + SelfAttention(S))                 with s_stream: self+cross
    A = S                                        with s_stream: cross
    B = LN(A + CrossAttention(A, H_y, H_y))      queries from A; keys and values from the last layer of H of the partner
    S = LN(B + FeedForward(B))

where S of layer 0 is the embeddings of x. The paper describes S with both kinds of attention (section 2.1), but its
equations 6 to 9 have only cross-attention; the released decoder layers have both.

The layers are those of transformers, which compute S if the model's forward gets `encoder_hidden_states`, and H
otherwise. The parameters have the names of transformers' decoders with cross-attention. Without these parameters, the
model that transformers loads from the folder of an encoder is the plain XLM-R that computes H.
"""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from xlgrid.papers.luo2021.seq2seq.model import CROSS
from xlgrid.papers.luo2021.veco.names import STREAM, is_cross_attention

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Stream = Literal["self+cross", "cross"]


def install(model: Any, s_stream: Stream = "self+cross") -> None:
    """Add a cross-attention to all layers of an XLM-R, in place. Torch's generator draws its weights with the
    distribution of XLM-R.

    Raises:
        ValueError: the encoder is not an XLM-R.
    """
    from transformers.models.xlm_roberta.modeling_xlm_roberta import XLMRobertaAttention

    if model.config.model_type != "xlm-roberta":
        raise ValueError(f"cross-attention needs an XLM-R, got an encoder of type {model.config.model_type}")
    for number, layer in enumerate(model.base_model.encoder.layer):
        with layer.attention.output.dense.weight.device:
            cross = XLMRobertaAttention(model.config, is_causal=False, layer_idx=number, is_cross_attention=True)
        draw_weights(cross, model.config.initializer_range)
        layer.add_module(CROSS, cross)
        # The layer uses `encoder_hidden_states` like a layer of a decoder, but its self-attention stays bidirectional.
        layer.is_decoder = layer.add_cross_attention = True
        if s_stream == "cross":
            layer.__class__ = _without_self_attention()
    setattr(model.config, STREAM, s_stream)


@cache
def _without_self_attention() -> Any:
    """The class of layers in which S has no self-attention."""
    from transformers.models.xlm_roberta.modeling_xlm_roberta import XLMRobertaLayer

    class CrossLayer(XLMRobertaLayer):
        def forward(
            self,
            hidden_states: Tensor,
            attention_mask: Tensor | None = None,
            encoder_hidden_states: Tensor | None = None,
            encoder_attention_mask: Tensor | None = None,
            past_key_values: Any = None,
            **others: Any,
        ) -> Tensor:
            if encoder_hidden_states is None:
                states: Tensor = super().forward(hidden_states, attention_mask, **others)
                return states
            attended, _ = self.crossattention(
                hidden_states, None, encoder_hidden_states, encoder_attention_mask, **others
            )
            states = self.feed_forward_chunk(attended)
            return states

    return CrossLayer


def second_stream(
    model: "PreTrainedModel", inputs: dict[str, Tensor], partners: Tensor, partner_mask: Tensor, detach: bool = True
) -> Tensor:
    """The last layer of S, [inputs, longest, size], for a model after `install`.

    Args:
        inputs: `input_ids` and `attention_mask`, [inputs, longest], and further arguments of the encoder's forward.
        partners: the last layer of H of the partner of each input, [inputs, longest of the partners, size].
        partner_mask: 1 for the tokens of the partners and 0 for padding, [inputs, longest of the partners].
        detach: whether `partners` are constants, so that no gradient goes from S to H (section 2.2).
    """
    memory = partners.detach() if detach else partners
    encoder: Any = model.base_model
    states: Tensor = encoder(
        **inputs, encoder_hidden_states=memory, encoder_attention_mask=partner_mask
    ).last_hidden_state
    return states


def stream_of(config: Any) -> Stream | None:
    """The attention of S in an encoder with this configuration; None if the encoder has no cross-attention."""
    stream: Stream | None = getattr(config, STREAM, None)
    return stream


def load_cross_attention(model: "PreTrainedModel", weights: Any) -> None:
    """Load the weights of cross-attention from an encoder's file into a model after `install`.

    Args:
        weights: the path of `model.safetensors`.

    Raises:
        ValueError: a tensor is missing or has another shape.
    """
    from safetensors import safe_open

    named = model.base_model.named_parameters()
    parameters = {name: parameter for name, parameter in named if is_cross_attention(name)}
    prefix = f"{model.base_model_prefix}."
    with safe_open(weights, framework="pt") as stored, torch.no_grad():
        # In the file of an encoder without a head, names have no prefix.
        names = {name.removeprefix(prefix): name for name in stored.keys()}  # noqa: SIM118
        for name, parameter in parameters.items():
            shape = stored.get_slice(names[name]).get_shape() if name in names else None
            if shape != list(parameter.shape):
                raise ValueError(
                    f"{weights} {f'has {name} of shape {shape}' if shape else f'has no {name}'}, but the encoder needs "
                    f"{list(parameter.shape)}: pre-train an encoder with `architecture: veco`"
                )
            parameter.copy_(stored.get_tensor(names[name]))


def plug_in(model: Any, detach: bool) -> None:
    """Make the head of a model read both streams: [H; S], with twice the hidden size.

    The model's forward gets `parallel_ids` and `parallel_mask`, [inputs, longest parallel example]. Cross-attention has
    the weights in the folder from which the model was loaded, or random weights if the model was not loaded, for
    instance to count its parameters.

    Args:
        detach: whether H of the parallel example is a constant.

    Raises:
        ValueError: the encoder has no cross-attention, or the task's head cannot read two streams.
    """
    stream = stream_of(model.config)
    if stream is None:
        raise ValueError(
            "plug-in needs an encoder with cross-attention, which this one lacks: pre-train one with `architecture: "
            "veco`"
        )
    install(model, stream)
    weights = Path(model.name_or_path) / "model.safetensors"
    if model.name_or_path and weights.is_file():
        load_cross_attention(model, weights)
    owner, name = _first_layer_of_head(model)
    old = getattr(owner, name)
    with old.weight.device:
        wide = nn.Linear(2 * old.in_features, old.out_features)
    nn.init.normal_(wide.weight, std=model.config.initializer_range)
    with torch.no_grad():
        wide.weight[:, : old.in_features], wide.bias[:] = old.weight, old.bias
    setattr(owner, name, wide)
    model.base_model.__class__ = _with_parallel()
    model.base_model.detaches_parallel = detach


def _first_layer_of_head(model: Any) -> tuple[Any, str]:
    """The module and the attribute with the linear layer of a task's head that reads the encoder's last layer."""
    for owner, name in ((model, "qa_outputs"), (getattr(model, "classifier", None), "dense"), (model, "classifier")):
        layer = getattr(owner, name, None)
        if isinstance(layer, nn.Linear) and model.base_model.pooler is None:
            return owner, name
    raise ValueError(
        f"plug-in supports the heads of sequences, tokens and spans, got {type(model).__name__}: leave the task out"
    )


@cache
def _with_parallel() -> Any:
    """The class of an encoder that reads each input with a parallel example and returns both streams side by side."""
    from transformers import XLMRobertaModel

    class Accompanied(XLMRobertaModel):
        detaches_parallel = False

        def forward(
            self,
            *inputs: Any,
            parallel_ids: Tensor | None = None,
            parallel_mask: Tensor | None = None,
            **options: Any,
        ) -> Any:
            if parallel_ids is None:
                raise ValueError(
                    "plug-in needs a parallel example for each input: pass the result of `PlugIn.forward_arguments`"
                )
            output = super().forward(*inputs, **options)
            partners = super().forward(parallel_ids, attention_mask=parallel_mask).last_hidden_state
            partners = partners.detach() if self.detaches_parallel else partners
            memory = {"encoder_hidden_states": partners, "encoder_attention_mask": parallel_mask}
            second = super().forward(*inputs, **options, **memory).last_hidden_state
            output.last_hidden_state = torch.cat([output.last_hidden_state, second], -1)
            return output

    return Accompanied


def draw_weights(model: Any, deviation: float) -> None:
    """Draw random weights for a model or one of its modules, in place, as transformers does for new layers."""
    import torch
    from torch import nn

    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.Linear):
                module.weight.normal_(0.0, deviation)
                if module.bias is not None:
                    module.bias.zero_()
            elif isinstance(module, nn.LayerNorm):
                module.reset_parameters()
        # The output layer may share the word embeddings, where the vector of the padding token is zero.
        for module in model.modules():
            if isinstance(module, nn.Embedding):
                module.weight.normal_(0.0, deviation)
                if module.padding_idx is not None:
                    module.weight[module.padding_idx].zero_()
