"""BERT and XLM-R from scratch, with the objectives of BERT, XLM-R or XLM."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator

from xlgrid.architectures.architecture import Architecture
from xlgrid.architectures.begin import misfit, take_weights
from xlgrid.data.tokenizer import Kind
from xlgrid.heads import HEADS, Head
from xlgrid.heads.language_modelling.nsp import NextSentenceHead
from xlgrid.heads.language_modelling.pairs import PairHead
from xlgrid.heads.tokens import Tokens
from xlgrid.models.parameters import Count

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Pairs(Architecture):
    """An encoder that may train on pairs of inputs, and may begin with the weights of another encoder."""

    adjacent: Literal["halves", "next"] = Field(
        "halves",
        description="the pair that is made of a row of one segment. halves: the two halves of the row; next: the row and the next row "
        "of the text, which suits `documents: pack`",
    )
    begin: str | None = Field(
        None,
        min_length=1,
        description="an encoder of the study, of the same sizes and tokenizer, with whose weights this one begins; absent: new weights",
    )

    def seedless(self, begin: str | None) -> Self:
        return super().seedless(begin).model_copy(update={"begin": begin})

    @property
    def begins_with(self) -> str | None:
        return self.begin

    def misfit(self, config: Mapping[str, Any]) -> str | None:
        return misfit(self.known, config)

    def take_weights(self, model: "PreTrainedModel", encoder: Path, log: Callable[[str], None]) -> None:
        take_weights(model, encoder, log)

    def problems_of_text(self, lines: str, documents: str) -> Iterator[tuple[str, str]]:
        if self.adjacent == "next" and documents == "cut":
            yield (
                "adjacent",
                "`adjacent: next` needs rows that continue the text of the row before, but task "
                f"{self.task} has `documents: {documents}`: set `options: {{documents: pack}}` in the task, or set "
                "`adjacent: halves`",
            )

    def pairs_of_a_row(self, tlm: float) -> float:
        """In how many pairs a token of a row occurs.

        Args:
            tlm: the share of rows that are bitext, if there is any.
        """
        of_bitext = tlm if self.bitext else 0.0
        return of_bitext + (1 - of_bitext) * (2 if self.adjacent == "next" else 1)


class Plain(Pairs):
    """BERT or XLM-R. It learns by masked language modelling on `languages`, and by translation language modelling on `bitext`."""

    architecture: Literal["plain"] = Field("plain", description="BERT or XLM-R, by `kind`")
    kind: Kind = Field("bert", description="the encoder and its tokenizer: those of BERT, or those of XLM-R")
    objective: Literal["mlm+tlm"] | None = Field(
        None,
        description="mlm+tlm: a row is a pair (x, y) of bitext or of adjacent segments. The encoder predicts the "
        "masked tokens of x from x, the masked tokens of y from y and, for bitext, both from one input with x and y "
        "(Luo et al. 2021, section 2.2, without cross-attention). Absent: a row is one input, with MLM for a text and "
        "TLM for bitext",
    )
    nsp: bool = Field(
        False,
        description="also learn to predict, from the first token, whether the second line belongs to the same text as "
        "the first line, or to another text of the language (next sentence prediction, Devlin et al. 2019). An encoder "
        "of kind bert keeps its pooler",
    )

    @model_validator(mode="after")
    def _rows_are_pairs_or_inputs(self) -> Self:
        if self.nsp and self.objective:
            raise ValueError(
                "`nsp` needs one input in each row, but `objective: mlm+tlm` makes pairs: leave out one of the two"
            )
        if not self.objective and self.adjacent != "halves":
            raise ValueError(
                "`adjacent` makes pairs, but without `objective`, a row is one input: leave out `adjacent`, or set "
                "`objective: mlm+tlm`"
            )
        return self

    def problems_of_text(self, lines: str, documents: str) -> Iterator[tuple[str, str]]:
        if self.nsp and lines != "segments":
            yield (
                "nsp",
                f"`nsp` needs the second line of a text as second segment, but task {self.task} has `lines: {lines}`: "
                "set `options: {lines: segments}` in the task, or set `nsp: false`",
            )
        yield from super().problems_of_text(lines, documents)

    def objectives(self, model: "PreTrainedModel", train: Tokens) -> tuple[Head, Head]:
        if self.objective:
            return PairHead(self.masked, bool(self.bitext), self.adjacent), HEADS["mlm"]
        if not self.nsp:
            return super().objectives(model, train)
        languages = train.language_of
        two_texts = (train.contexts < train.sizes) & (languages[:, 0] == languages[:, 1])
        if not two_texts.any():
            raise ValueError(
                "`nsp` needs texts of two lines, such as generated texts in natural languages with `statements`, and "
                f"`lines: segments` in task {self.task}: give it such texts, or set `nsp: false`"
            )
        # Inputs with an exchanged line must not be longer than others. Otherwise, their length would give them away.
        objective = NextSentenceHead(int(train.sizes[two_texts].max()), self.masked)
        objective.attach(model)
        return objective, HEADS["mlm"]

    def work(self, plain: Count, whole: Count, uncounted: float, tlm: float) -> float:
        once = super().work(plain, whole, uncounted, tlm)
        if not self.objective:
            return once
        return (self.pairs_of_a_row(tlm) + (tlm if self.bitext else 0.0)) * once
