"""mBART from scratch: an encoder and a decoder of transformers, pre-trained by denoising (Liu et al. 2020)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from xlgrid.architectures.architecture import Architecture
from xlgrid.heads import Head
from xlgrid.heads.language_modelling.mlm import MASKED, Masked
from xlgrid.heads.tokens import Tokens
from xlgrid.papers.luo2021.mbart.denoising import Denoising, DenoisingHead
from xlgrid.papers.luo2021.mbart.models import LANGUAGES, language_tokens

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel


class MBart(Architecture):
    """mBART (Liu et al. 2020). It learns to restore texts in `languages` from damaged copies, and to translate damaged
    texts of `bitext`."""

    architecture: Literal["mbart"] = Field(description="an encoder and a decoder of transformers' mBART")
    kind: Literal["xlmr"] = Field("xlmr", description="the tokenizer is that of XLM-R")
    denoising: Denoising = Field(Denoising(), description="the noise, and what the decoder predicts")
    layers: PositiveInt = Field(4, description="number of layers of the encoder, and of the decoder")

    @model_validator(mode="after")
    def _masks_are_stated_once(self) -> Self:
        if self.denoising.noise == "spans" and self.masked != Masked():
            raise ValueError(
                "masked has the shares of single tokens, but `denoising` masks spans: write `share` in `denoising`, or "
                "set its `noise: tokens`"
            )
        return self

    @property
    def model_type(self) -> str:
        return "mbart"

    def problems(self, study: Any, grid: str) -> Iterator[tuple[str, str]]:
        axes = study.grids[grid]
        for method in axes.method:
            entry = study.methods[method]
            if entry.base != "full-ft" or entry.start:
                what = f"of base {entry.base}" if entry.base != "full-ft" else "which begins with an MLM run"
                yield (
                    "method",
                    f"an mBART needs full-ft without `start`, got method {method}, {what}: put the encoder into a "
                    "separate grid with a method of `base: full-ft`",
                )
        parts = [*study.trained(axes), *study.targets(axes)]
        if strange := [*dict.fromkeys(code for part in parts for code in part.languages if code not in self.languages)]:
            yield (
                "",
                f"an mBART has a token for each of {', '.join(self.languages)}, but not for {', '.join(strange)}: "
                "leave these out, or add them to `languages` of its `scratch`",
            )

    def configuration(self, vocabulary_size: int) -> "PreTrainedConfig":
        from transformers import MBartConfig

        entries: dict[str, Any] = {}
        for side in ("encoder", "decoder"):
            entries |= {
                f"{side}_layers": self.layers,
                f"{side}_attention_heads": self.heads,
                f"{side}_ffn_dim": self.intermediate,
            }
        entries |= {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
        entries |= {"d_model": self.hidden, "max_position_embeddings": self.max_length}
        # The tokens of languages follow the tokens of the tokenizer.
        entries |= {LANGUAGES: [*self.languages], "vocab_size": vocabulary_size + len(self.languages)}
        # The published mBART (facebook/mbart-large-cc25) scales its embeddings by the root of their size.
        entries |= {"scale_embedding": True, "forced_eos_token_id": None}
        return MBartConfig(**entries, dropout=self.dropout, attention_dropout=self.dropout)

    def objectives(self, model: "PreTrainedModel", train: Tokens) -> tuple[Head, Head]:
        head = DenoisingHead(language_tokens(model.config), self.denoising, self.masked)
        return head, head

    def uncounted_work(self, attention: float, output: int, tlm: float) -> float:
        of_bitext = tlm if self.bitext else 0.0
        of_masked = self.denoising.share if self.denoising.noise == "spans" else self.masked.mono
        predicted = of_bitext + (1 - of_bitext) * (1.0 if self.denoising.predict == "all" else of_masked)
        # The decoder has as many layers as the encoder, with self- and cross-attention. The parameters already include
        # the output embeddings at the tokens that MLM predicts.
        return 3 * attention + round(6 * (predicted - MASKED) * output)
