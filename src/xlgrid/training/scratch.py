"""Encoders from scratch: what a study says of one, its configuration, and the model before the first step."""

from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from xlgrid.base.settings import Seed, Strict
from xlgrid.data.vocabulary import Kind
from xlgrid.heads import HEADS
from xlgrid.methods.xmod.names import SHARED
from xlgrid.models.load import model_class

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
# Sizes by name: those of BERT and XLM-R, base and large.
SHAPES: dict[str, dict[str, Any]] = {
    "base": {"hidden": 768, "layers": 12, "heads": 12, "intermediate": 3072, "dropout": 0.1},
    "large": {"hidden": 1024, "layers": 24, "heads": 16, "intermediate": 4096, "dropout": 0.1},
}


class Scratch(Strict):
    """An encoder with the architecture of BERT, of XLM-R or of X-MOD, which is pre-trained here on texts of the study.

    It learns by masked language modelling on `languages`, and by translation language modelling on `bitext`.
    """

    kind: Kind = "bert"
    architecture: Literal["plain", "xmod", "shared"] = Field(
        "plain",
        description="xmod: XLM-R with a module for each language in every layer; shared: with one module for all languages "
        "(Pfeiffer et al. 2022, section 3)",
    )
    reduction: PositiveInt = Field(2, description="the hidden size divided by the size of a module's bottleneck")
    absent: Literal["skip", "zero"] = Field(
        "skip",
        description="the gradient of a module whose language a step has no rows of: none, so that the module does not move, or "
        "zero, as in transformers, so that weight decay and momentum move it",
    )
    languages: tuple[str, ...] = Field(min_length=1, description="languages of the text")
    bitext: tuple[tuple[str, str], ...] = Field(
        (), description="pairs of languages to align by TLM (Conneau and Lample 2019)"
    )
    vocab: PositiveInt = Field(2000, description="most entries of a vocabulary of its own")
    shape: Literal["base", "large"] | None = Field(
        None,
        description="stands for hidden, layers, heads, intermediate and dropout of BERT or XLM-R that are not written",
    )
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

    @model_validator(mode="before")
    @classmethod
    def _sizes_of_the_shape(cls, fields: Any) -> Any:
        """The sizes of `shape` in its place: in a recipe without defaults, a shape would hide a written size that is a default."""
        shape = fields.get("shape") if isinstance(fields, dict) else None
        if not isinstance(shape, str) or shape not in SHAPES:
            return fields
        return SHAPES[shape] | {name: value for name, value in fields.items() if name != "shape"}

    @model_validator(mode="after")
    def _heads_divide_the_hidden_size(self) -> Self:
        if self.hidden % self.heads:
            raise ValueError(f"hidden ({self.hidden}) must be a multiple of heads ({self.heads})")
        return self

    @model_validator(mode="after")
    def _modules_fit(self) -> Self:
        if self.architecture == "plain":
            fields = type(self).model_fields
            if idle := [name for name in ("reduction", "absent") if getattr(self, name) != fields[name].default]:
                raise ValueError(
                    f"{' and '.join(idle)}: an encoder of architecture plain has no modules: leave it out, or set "
                    "`architecture: xmod` or `shared`"
                )
        elif self.kind != "xlmr":
            raise ValueError(
                f"architecture {self.architecture} is XLM-R with modules, got kind {self.kind}: set `kind: xlmr`"
            )
        elif self.hidden < self.reduction:
            raise ValueError(
                f"hidden ({self.hidden}) is smaller than reduction ({self.reduction}): modules would have no size"
            )
        if self.architecture == "xmod" and self.bitext:
            raise ValueError(
                "a module is for inputs in one language: leave out `bitext`, or set `architecture: shared` or `plain`"
            )
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
    from transformers import BertConfig, XLMRobertaConfig, XmodConfig

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
    sizes |= {"max_position_embeddings": length, "type_vocab_size": 1, "layer_norm_eps": 1e-5, **ids}
    if scratch.architecture == "plain":
        return XLMRobertaConfig(**sizes)
    modules = [SHARED] if scratch.architecture == "shared" else [*scratch.languages]
    # Other programs, which do not say the language of an input, compute it with the one module.
    default = SHARED if scratch.architecture == "shared" else None
    return XmodConfig(**sizes, languages=modules, default_language=default, adapter_reduction_factor=scratch.reduction)


def new_model(scratch: Scratch, vocabulary_size: int) -> "PreTrainedModel":
    """An encoder with a language-modelling head. Torch's generator draws the weights."""
    config = scratch_configuration(scratch, vocabulary_size)
    model: PreTrainedModel = model_class(config.model_type, HEADS["mlm"])(config)
    return model
