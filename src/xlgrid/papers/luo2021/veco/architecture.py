"""VECO from scratch: XLM-R with a cross-attention in every layer, which can be left out (Luo et al. 2021, section
2)."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator

from xlgrid.architectures.begin import take_weights
from xlgrid.architectures.plain import Pairs
from xlgrid.heads import HEADS, Head
from xlgrid.heads.tokens import Tokens
from xlgrid.models.parameters import Count
from xlgrid.papers.luo2021.veco.names import STREAM, is_cross_attention
from xlgrid.papers.luo2021.veco.objective import CrossPairHead

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Veco(Pairs):
    """VECO: XLM-R with a cross-attention in every layer (Luo et al. 2021). It is pre-trained on pairs (x, y) of bitext
    or of adjacent segments (section 2.2 of the paper, as for all sections below)."""

    architecture: Literal["veco"] = Field(description="XLM-R with a cross-attention in every layer")
    kind: Literal["xlmr"] = Field("xlmr", description="the tokenizer is that of XLM-R")
    objective: Literal["ca-mlm", "ca-mlm+tlm"] = Field(
        "ca-mlm+tlm",
        description="the objective (section 2.2). ca-mlm: the encoder predicts the masked tokens of x and of y from "
        "each alone and, with cross-attention, from both; ca-mlm+tlm: for bitext, it also predicts the masked tokens "
        "of both in one input",
    )
    s_stream: Literal["self+cross", "cross"] = Field(
        "self+cross",
        description="the attention of a layer of the stream S: self-attention and cross-attention (section 2.1, and "
        "the released decoder), or only cross-attention (equations 6 to 9)",
    )
    detach: bool = Field(
        True,
        description="true: S sends no gradient to the states of the partner (section 2.2); false: it does",
    )
    trains: Literal["all", "cross-attention"] = Field(
        "all",
        description="with `begin`: the weights that train; `cross-attention` is the first of the two stages of section 4",
    )

    @model_validator(mode="after")
    def _cross_attention_has_an_encoder(self) -> Self:
        if self.trains != "all" and not self.begin:
            raise ValueError(
                "trains: cross-attention needs a pre-trained encoder: name the encoder to which cross-attention is "
                "added in `begin`, or leave out `trains`"
            )
        return self

    @property
    def known(self) -> dict[str, Any]:
        return super().known | {STREAM: self.s_stream}

    def sizes(self, vocabulary_size: int) -> dict[str, Any]:
        # Transformers, which does not know the entry, reads the encoder as XLM-R without cross-attention.
        return super().sizes(vocabulary_size) | {STREAM: self.s_stream}

    def install(self, model: Any) -> None:
        from xlgrid.papers.luo2021.veco import modules

        modules.install(model, self.s_stream)

    def take_weights(self, model: "PreTrainedModel", encoder: Path, log: Callable[[str], None]) -> None:
        from xlgrid.papers.luo2021.veco import modules

        other = take_weights(model, encoder, log, is_cross_attention)
        if modules.stream_of(other.config):
            modules.load_cross_attention(model, encoder / "model.safetensors")

    def objectives(self, model: "PreTrainedModel", train: Tokens) -> tuple[Head, Head]:
        return CrossPairHead(self.masked, self._has_tlm, self.detach, self.adjacent), HEADS["mlm"]

    @property
    def _has_tlm(self) -> bool:
        return self.objective == "ca-mlm+tlm" and bool(self.bitext)

    def trains_weight(self, name: str) -> bool:
        return self.trains == "all" or is_cross_attention(name)

    def work(self, plain: Count, whole: Count, uncounted: float, tlm: float) -> float:
        of_second = self.pairs_of_a_row(tlm)
        of_first = of_second + (tlm if self._has_tlm else 0.0)
        first, second = plain.training + uncounted, whole.training + 2 * uncounted
        if self.trains != "all":
            # Frozen layers have no gradients in the first stream, and only gradients of their inputs in the second.
            first, second = plain.evaluation + uncounted / 3, second - 2 * plain.passed_trained
        return of_first * first + of_second * second
