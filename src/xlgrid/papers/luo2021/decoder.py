"""The options of an encoder-decoder: the layers of its decoder, the first weights of its cross-attention, and beam
search."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from xlgrid.methods.method import Method
from xlgrid.papers.luo2021.seq2seq.model import CROSS

_LAYERS = re.compile("(first|last)-([1-9][0-9]*)")


class EncoderDecoder(Method):
    """Training of all weights of an encoder-decoder whose two parts begin with the weights of the same encoder (Luo et
    al. 2021, section 3.2)."""

    weights: Literal["encoder", "random"] = Field(
        default="encoder",
        description="the first weights of both parts. `encoder`: the weights of the encoder; `random`: random weights "
        "as transformers draws them for new layers, so that only the sizes and the tokenizer come from the encoder "
        "(the baseline of table 3)",
    )
    decoder: str = Field(
        default="full",
        description="the layers of the encoder with which the layers of the decoder begin: full, first-N or last-N "
        "(table 4 of the paper: the first or last 3 or 6)",
    )
    init: Literal["random", "self", "cross"] = Field(
        default="random",
        description="the first weights of cross-attention. `random`: as transformers draws them for new layers; "
        "`self`: the weights of the layer's self-attention; `cross`: the weights that the encoder stores, as VECO does",
    )
    tie: Literal["embeddings", "all"] = Field(
        default="embeddings",
        description="the shared weights. `embeddings`: sources, targets and the output share the word embeddings (the "
        "released code); `all`: the decoder also shares the other weights of its layers and embeddings with the "
        "encoder, and only its cross-attention is separate (the paper)",
    )
    beams: int = Field(
        default=4,
        ge=1,
        description="the number of hypotheses in beam search; 1 is greedy search",
    )
    length_penalty: float = Field(
        default=1.0,
        description="the exponent of the length by which the log-likelihood of a hypothesis is divided for its score",
    )
    longest: int = Field(
        default=200,
        ge=1,
        description="the maximum number of tokens of a hypothesis",
    )

    @field_validator("decoder")
    @classmethod
    def _names_layers(cls, decoder: str) -> str:
        if decoder != "full" and not _LAYERS.fullmatch(decoder):
            raise ValueError(f"must be full, first-N or last-N, such as last-6, got {decoder!r}")
        return decoder

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        if self.weights == "random" and self.init != "random":
            raise ValueError(
                f"init: {self.init} uses weights of the encoder, but `weights: random` does not: set `init: "
                "random` or `weights: encoder`"
            )
        if self.beams == 1 and self.length_penalty != 1:
            raise ValueError(
                "length_penalty ranks the hypotheses of beam search, but `beams: 1` has a single hypothesis: "
                "leave it out, or raise `beams`"
            )
        return self

    def misfit(self, config: Mapping[str, Any]) -> str | None:
        """A problem with the number of layers that the encoder has for the decoder; None without a problem."""
        if layers := config.get("num_hidden_layers"):
            try:
                self.layers_of(layers)
            except ValueError as error:
                return str(error)
        return None

    def problems(self, study: Any, key: str, grid: str) -> Iterator[str]:
        """The tasks of the grid have encoder-decoders."""
        for task in study.grids[grid].task:
            if not study.tasks[task].task.head.described({}).get("is_encoder_decoder"):
                yield f"grids.{grid}.method: {key} is for encoder-decoders, but task {task} has no decoder: use two grids"
                break

    def install(self, model: Any) -> None:
        """Change the decoder of an encoder-decoder, in place.

        Raises:
            ValueError: the model has no decoder, or the encoder has too few layers or stores no cross-attention.
        """
        if not hasattr(model, "decoder"):
            raise ValueError("method seq2seq needs an encoder-decoder: name a task of kind seq2seq or translation")
        from xlgrid.papers.luo2021.veco.modules import draw_weights

        if self.weights == "random":
            draw_weights(model, model.config.encoder.initializer_range)
        numbers = self.layers_of(model.config.encoder.num_hidden_layers)
        stack = model.decoder.base_model.encoder
        stack.layer = type(stack.layer)(stack.layer[number] for number in numbers)
        model.config.decoder.num_hidden_layers = len(numbers)
        for place, layer in enumerate(stack.layer):
            # The decoder's cache finds the keys and values of a layer by this number.
            for module in layer.modules():
                if hasattr(module, "layer_idx"):
                    module.layer_idx = place
        self._begin_cross_attention(model)
        if self.tie == "all":
            encoder = model.encoder.encoder.layer
            pairs = [(model.encoder.embeddings, model.decoder.base_model.embeddings)]
            pairs += [(encoder[number], layer) for number, layer in zip(numbers, stack.layer, strict=True)]
            for source, receiver in pairs:
                share(source, receiver)
        generation = model.generation_config
        generation.num_beams, generation.max_new_tokens = self.beams, self.longest
        # Greedy search does not use these settings, and transformers warns about them.
        generation.early_stopping = self.beams > 1
        generation.length_penalty = self.length_penalty if self.beams > 1 else 1.0

    def layers_of(self, layers: int) -> range:
        """The numbers of the encoder's layers with which the layers of the decoder begin.

        Args:
            layers: the number of layers of the encoder.

        Raises:
            ValueError: the encoder has too few layers.
        """
        if not (choice := _LAYERS.fullmatch(self.decoder)):
            return range(layers)
        end, count = choice[1], int(choice[2])
        if count > layers:
            raise ValueError(
                f"option decoder: {self.decoder} needs {count} layers, but the encoder has {layers}: write {end}-1 to "
                f"{end}-{layers}, or full"
            )
        return range(count) if end == "first" else range(layers - count, layers)

    def _begin_cross_attention(self, model: Any) -> None:
        """Set the first weights of cross-attention. Before, it has the weights that the encoder stores, or random
        ones."""
        import torch

        from xlgrid.papers.luo2021.veco.modules import draw_weights

        is_empty = model.decoder.device.type == "meta"
        if self.init == "cross" and not model.stores_cross and not is_empty:
            raise ValueError(
                "option init: cross uses the cross-attention of the encoder, but the encoder has none: pre-train it "
                "with `architecture: veco`, or set `init: self` or `init: random`"
            )
        with torch.no_grad():
            for layer in model.decoder.base_model.encoder.layer:
                cross = layer.get_submodule(CROSS)
                if self.init == "self":
                    for name, parameter in cross.named_parameters():
                        parameter.copy_(layer.attention.get_parameter(name))
                elif self.init == "random" and model.stores_cross:
                    draw_weights(cross, model.config.decoder.initializer_range)


def share(source: Any, receiver: Any) -> None:
    """Make the receiver use the parameters of the source instead of its own parameters with the same names. Other
    parameters of the receiver are unchanged."""
    for name, parameter in source.named_parameters():
        module, _, last = name.rpartition(".")
        setattr(receiver.get_submodule(module), last, parameter)
