"""Encoders from scratch: what a study says of one, its configuration, and the model before the first step."""

from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, PositiveInt, model_validator

from xlgrid.base.settings import Seed, Strict
from xlgrid.data.vocabulary import Kind

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

# The settings of `Training` of encoders from scratch, where a study says nothing else.
TRAINING: dict[str, Any] = {
    "steps": 1500,
    "lr": 1e-3,
    "batch_size": 32,
    "weight_decay": 0.01,
    "alpha": 0.7,
    "evaluations": 2,
    "keep": "last",
}


# The task whose tokens encoders read that name no other.
PRETRAINING = "pretraining"


class Scratch(Strict):
    """An encoder with the architecture of BERT or of XLM-R, which is pre-trained here on texts of the study.

    It learns by masked language modelling on `languages`, and by translation language modelling on `bitext`.
    """

    kind: Kind = "bert"
    languages: tuple[str, ...] = Field(min_length=1, description="languages of the text")
    bitext: tuple[tuple[str, str], ...] = Field(
        (), description="pairs of languages to align by TLM (Conneau and Lample 2019)"
    )
    vocab: PositiveInt = Field(2000, description="most entries of a vocabulary of its own")
    hidden: PositiveInt = 128
    layers: PositiveInt = 4
    heads: PositiveInt = 4
    intermediate: PositiveInt = 256
    dropout: float = Field(0.0, ge=0, lt=1, description="of the encoder, in later runs, too")
    max_length: PositiveInt = Field(512, description="most tokens of an input")
    task: str = Field(
        PRETRAINING,
        description="task of kind `mlm` of the study whose tokens are read; a study need not have the task `pretraining`, whose "
        "rows are cut at 512 tokens, with a line break before the second segment",
    )
    nsp: bool = Field(
        False,
        description="also tell, from the first token, whether a text's second line is its own or that of another text of the "
        "language (next sentence prediction, Devlin et al. 2019); a bert keeps the pooler",
    )
    seed: Seed = 0

    @model_validator(mode="after")
    def _heads_divide_the_hidden_size(self) -> Self:
        if self.hidden % self.heads:
            raise ValueError(f"hidden ({self.hidden}) must be a multiple of heads ({self.heads})")
        return self

    @model_validator(mode="after")
    def _parts_differ(self) -> Self:
        parts = [*((code,) for code in self.languages), *self.bitext]
        sets = [frozenset(part) for part in parts]
        for at, part in enumerate(parts):
            if len(sets[at]) < len(part):
                raise ValueError(f"a pair of `bitext` has two languages, got {'-'.join(part)}: leave it out")
            if sets[at] in sets[:at]:
                raise ValueError(
                    f"`languages` and `bitext` have each language and each pair once, in one order; {'-'.join(part)} is there "
                    "already: leave it out"
                )
        return self

    @property
    def source(self) -> str:
        """The mix of the languages and pairs."""
        return "+".join([*self.languages, *("-".join(pair) for pair in self.bitext)])


def scratch_configuration(scratch: Scratch, vocabulary_size: int) -> "PreTrainedConfig":
    """The configuration of an encoder with a vocabulary of so many entries."""
    from transformers import BertConfig, XLMRobertaConfig

    sizes: dict[str, Any] = {
        "vocab_size": vocabulary_size,
        "hidden_size": scratch.hidden,
        "num_hidden_layers": scratch.layers,
        "num_attention_heads": scratch.heads,
        "intermediate_size": scratch.intermediate,
        "hidden_dropout_prob": scratch.dropout,
        "attention_probs_dropout_prob": scratch.dropout,
    }
    if scratch.kind == "bert":
        return BertConfig(**sizes, max_position_embeddings=scratch.max_length, pad_token_id=0)
    # XLM-R counts positions from the padding id + 1.
    ids: dict[str, Any] = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    length = scratch.max_length + 2
    return XLMRobertaConfig(**sizes, max_position_embeddings=length, type_vocab_size=1, layer_norm_eps=1e-5, **ids)


def new_model(scratch: Scratch, vocabulary_size: int) -> "PreTrainedModel":
    """An encoder with a language-modelling head. Torch's generator draws the weights."""
    from transformers import BertForMaskedLM, XLMRobertaForMaskedLM

    model_type: Any = BertForMaskedLM if scratch.kind == "bert" else XLMRobertaForMaskedLM
    return model_type(scratch_configuration(scratch, vocabulary_size))
