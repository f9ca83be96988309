"""Encoders from scratch, and new language-modelling heads: what a study says of them; the configuration of an encoder from scratch,
and the model before the first step."""

from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from xlgrid.base.settings import Seed, Strict
from xlgrid.data.vocabulary import Kind
from xlgrid.heads import HEADS
from xlgrid.heads.families import SHARED
from xlgrid.heads.language_modelling.denoising import Denoising
from xlgrid.heads.language_modelling.mlm import MASKED, Masked
from xlgrid.heads.seq2seq.mbart import LANGUAGES
from xlgrid.languages.sources import Target
from xlgrid.methods.veco.names import STREAM
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

# Likewise of new language-modelling heads. Fewer weights take fewer steps, and a higher rate.
HEAD_TRAINING: dict[str, Any] = TRAINING | {"steps": 500, "lr": 3e-3}

# The task whose tokens encoders read that name no other.
PRETRAINING = "pretraining"
# Sizes by name: those of BERT and XLM-R, base and large.
SHAPES: dict[str, dict[str, Any]] = {
    "base": {"hidden": 768, "layers": 12, "heads": 12, "intermediate": 3072, "dropout": 0.1},
    "large": {"hidden": 1024, "layers": 24, "heads": 16, "intermediate": 4096, "dropout": 0.1},
}


class LmHead(Strict):
    """A language-modelling head for an encoder that is published without one, such as a sentence encoder.

    It is trained by masked language modelling.
    """

    languages: tuple[str, ...] = Field(
        min_length=1, description="the languages of the text, which the encoder should know"
    )
    task: str = Field(
        PRETRAINING, description="the task of kind `mlm` whose tokens are read, as for encoders from `scratch`"
    )
    trains: Literal["head", "all"] = Field(
        "head",
        description="the weights that train. head: those of the head, and the encoder does not change; all: those of the encoder, too, "
        "whose pre-training so goes on",
    )
    seed: Seed = Field(
        0, description="decides batches and masks; encoders that differ by it alone are draws of one encoder"
    )

    @model_validator(mode="after")
    def _languages_differ(self) -> Self:
        if doubles := sorted({code for code in self.languages if self.languages.count(code) > 1}):
            raise ValueError(f"`languages` has {doubles[0]} twice: leave it out once")
        return self


class Scratch(Strict):
    """An encoder with the architecture of BERT, of XLM-R, of X-MOD, of VECO or of mBART, which is pre-trained here on texts of the study.

    It learns by masked language modelling on `languages`, and by translation language modelling on `bitext`.
    """

    kind: Kind = Field("bert", description="the architecture and the vocabulary: those of BERT, or those of XLM-R")
    architecture: Literal["plain", "xmod", "shared", "veco", "mbart"] = Field(
        "plain",
        description="xmod: XLM-R with a module for each language in every layer; shared: with one module for all languages "
        "(Pfeiffer et al. 2022, section 3); veco: with a cross-attention in every layer, which can be left out (Luo et al. 2021); mbart: an "
        "encoder and a decoder of transformers' mBART (Liu et al. 2020)",
    )
    objective: Literal["mlm+tlm", "ca-mlm", "ca-mlm+tlm", "denoising"] | None = Field(
        None,
        description="what the encoder learns to predict, where a row is a pair (x, y) of bitext or of adjacent segments (Luo "
        "et al. 2021, section 2.2). mlm+tlm: the masked tokens of x and of y, from either alone and, for bitext, "
        "from both in one input; ca-mlm: the masked tokens, from either alone, and by cross-attention from both; "
        "ca-mlm+tlm: all of these; denoising (mbart): a text from a damaged copy, and a translation from a "
        "damaged text. Absent: ca-mlm+tlm for architecture veco, and denoising for mbart; for others, a row is "
        "one input, with MLM for a text and TLM for bitext",
    )
    denoising: Denoising = Field(
        Denoising(), description="for architecture mbart: the noise, and what the decoder predicts"
    )
    masked: Masked = Field(Masked(), description="shares of tokens that are masked; evaluations mask 0.15")
    adjacent: Literal["halves", "next"] = Field(
        "halves",
        description="with `objective`: the pair that is made of a row of one segment. halves: the two halves of the row; "
        "next: the row and the next row of the text, which suits `documents: pack`",
    )
    s_stream: Literal["self+cross", "cross"] = Field(
        "self+cross",
        description="for architecture veco: the attention of a layer of the stream S: self-attention and cross-attention "
        "(section 2.1, and the released decoder), or cross-attention alone (equations 6 to 9)",
    )
    detach: bool = Field(
        True,
        description="for architecture veco: true: S sends no gradient to the states of the partner (section 2.2); false: it "
        "does",
    )
    begin: str | None = Field(
        None,
        description="an encoder of the study, of the same sizes and vocabulary, with whose weights this one begins, those of "
        "cross-attention included; absent: new weights",
    )
    trains: Literal["all", "cross-attention"] = Field(
        "all",
        description="for architecture veco with `begin`: the weights that train; cross-attention alone is the first of the "
        "two stages of section 4",
    )
    reduction: PositiveInt = Field(2, description="the hidden size divided by the size of a module's bottleneck")
    absent: Literal["skip", "zero"] = Field(
        "skip",
        description="the gradient of a module if a step has no rows in its language. skip: none, so that the module does not "
        "move; zero: a gradient of zero, as in transformers, so that weight decay and momentum move the module",
    )
    languages: tuple[str, ...] = Field(min_length=1, description="the languages of the text")
    bitext: tuple[tuple[str, str], ...] = Field(
        (), description="pairs of languages to align by TLM (Conneau and Lample 2019)"
    )
    vocab: PositiveInt = Field(2000, description="most entries of a vocabulary of its own")
    shape: Literal["base", "large"] | None = Field(
        None,
        description="hidden, layers, heads, intermediate and dropout of BERT or XLM-R in this size, where the study does not "
        "state them",
    )
    hidden: PositiveInt = Field(128, description="size of the hidden states")
    layers: PositiveInt = Field(
        4, description="layers; an mBART has this many in its encoder, and as many in its decoder"
    )
    heads: PositiveInt = Field(4, description="attention heads of a layer, which divide `hidden`")
    intermediate: PositiveInt = Field(256, description="size of the feed-forward block")
    dropout: float = Field(0.0, ge=0, lt=1, description="the dropout of the encoder, in later runs, too")
    max_length: PositiveInt = Field(512, description="most tokens of an input")
    task: str = Field(
        PRETRAINING,
        description="the task of kind `mlm` whose tokens are read. A study need not state the task `pretraining`: its rows "
        "are cut at 512 tokens, and a line break begins the second segment",
    )
    bitext_task: str | None = Field(
        None,
        description="the task of kind `mlm`, with two `inputs` and `data`, whose tokens are read for the pairs of `bitext`; "
        "absent: the rows with the same id in the texts of both languages",
    )
    nsp: bool = Field(
        False,
        description="also learn to tell, from the first token, whether the second line of a text is its own or that of "
        "another text of the language (next sentence prediction, Devlin et al. 2019); a bert keeps the pooler",
    )
    seed: Seed = Field(
        0, description="decides weights, batches and masks; encoders that differ by it alone are draws of one encoder"
    )

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
        if self.architecture not in ("xmod", "shared") and (idle := self._written("reduction", "absent")):
            raise ValueError(
                f"{idle}: an encoder of architecture {self.architecture} has no modules: leave it out, or set "
                "`architecture: xmod` or `shared`"
            )
        if self.architecture != "plain" and self.kind != "xlmr":
            what = "reads the special tokens of XLM-R" if self.architecture == "mbart" else "is XLM-R with modules"
            raise ValueError(f"architecture {self.architecture} {what}, got kind {self.kind}: set `kind: xlmr`")
        if self.architecture in ("xmod", "shared") and self.hidden < self.reduction:
            raise ValueError(
                f"hidden ({self.hidden}) is smaller than reduction ({self.reduction}): modules would have no size"
            )
        if self.architecture == "xmod" and self.bitext:
            raise ValueError(
                "a module is for inputs in one language: leave out `bitext`, or set `architecture: shared` or `plain`"
            )
        return self

    @model_validator(mode="after")
    def _decoder_fits(self) -> Self:
        is_mbart = self.architecture == "mbart"
        if not is_mbart and (self.objective == "denoising" or self._written("denoising")):
            raise ValueError(
                f"denoising is for a decoder, which an encoder of architecture {self.architecture} has not: set `architecture: mbart`, or "
                "leave it out"
            )
        if is_mbart and self.objective not in (None, "denoising"):
            raise ValueError(
                f"objective {self.objective} does not go with architecture mbart, which takes denoising: leave it out"
            )
        if is_mbart and (idle := self._written("s_stream", "detach", "trains", "begin", "adjacent", "nsp")):
            raise ValueError(
                f"{idle}: an mBART is pre-trained by denoising, with all weights and from new ones: leave it out"
            )
        if is_mbart and self.denoising.noise == "spans" and self.masked != Masked():
            raise ValueError(
                "masked has the shares of single tokens, and `denoising` masks spans: write `share` in `denoising`, or set its `noise: "
                "tokens`"
            )
        return self

    @model_validator(mode="after")
    def _streams_fit(self) -> Self:
        is_veco = self.architecture == "veco"
        if not is_veco and (idle := self._written("s_stream", "detach", "trains")):
            raise ValueError(
                f"{idle}: an encoder of architecture {self.architecture} has no cross-attention: leave it out, or set `architecture: "
                "veco`"
            )
        if self.architecture in ("xmod", "shared") and (idle := self._written("objective", "begin")):
            raise ValueError(
                f"{idle}: an encoder of architecture {self.architecture} is pre-trained on one input a row, from new weights: leave it "
                "out, or set `architecture: plain` or `veco`"
            )
        if self.objective and self.uses_cross_attention != is_veco:
            allowed = "ca-mlm or ca-mlm+tlm" if is_veco else "mlm+tlm, or none,"
            raise ValueError(
                f"objective {self.objective} does not go with architecture {self.architecture}, which takes {allowed}: CA-MLM is what "
                "trains cross-attention"
            )
        if self.nsp and (is_veco or self.objective):
            raise ValueError(
                "nsp is for one input a row, and the objective takes pairs: leave out `nsp`, or `objective` and `architecture: veco`"
            )
        if not (is_veco or self.objective) and (idle := self._written("adjacent")):
            raise ValueError(
                f"{idle}: without `objective`, a row is one input: leave it out, or set `objective: mlm+tlm`"
            )
        if self.trains != "all" and not self.begin:
            raise ValueError(
                "trains: cross-attention alone learns nothing from an encoder of random weights: name the encoder that it is added to "
                "in `begin`, or leave out `trains`"
            )
        return self

    def _written(self, *names: str) -> str:
        """The names of the given settings that differ from their defaults, as a phrase; empty if none differs."""
        fields = type(self).model_fields
        return " and ".join(name for name in names if getattr(self, name) != fields[name].default)

    @property
    def uses_cross_attention(self) -> bool:
        """Whether CA-MLM is among the losses."""
        return "ca-mlm" in (self.objective or ("ca-mlm" if self.architecture == "veco" else ""))

    @property
    def takes_pairs(self) -> bool:
        """Whether a row is a pair of inputs (`xlgrid.methods.veco.objective`), not one input."""
        return self.objective not in (None, "denoising") or self.architecture == "veco"

    @property
    def joins_bitext(self) -> bool:
        """Whether the objective of pairs has TLM, for which there is bitext."""
        return self.takes_pairs and self.objective != "ca-mlm" and bool(self.bitext)

    @property
    def model_type(self) -> str:
        """The type of the encoder in its config.json."""
        plain = "bert" if self.kind == "bert" else "xlm-roberta"
        return {"xmod": "xmod", "shared": "xmod", "mbart": "mbart"}.get(self.architecture, plain)

    @property
    def has_decoder(self) -> bool:
        """Whether the model is an encoder-decoder."""
        return self.architecture == "mbart"

    def predicted_share(self, tlm: float) -> float:
        """The share of a row's tokens at which training computes the output embeddings.

        Args:
            tlm: the share of rows that are bitext, if there is any.
        """
        if not self.has_decoder:
            return MASKED
        of_bitext = tlm if self.bitext else 0.0
        of_masked = self.denoising.share if self.denoising.noise == "spans" else self.masked.mono
        of_text = 1.0 if self.denoising.predict == "all" else of_masked
        return of_bitext + (1 - of_bitext) * of_text

    def task_of(self, part: str) -> str:
        """The task whose tokens are read for a language or a pair."""
        return self.bitext_task if self.bitext_task and Target(part).is_pair else self.task

    def passes(self, tlm: float) -> tuple[float, float]:
        """How often a token of a row passes the encoder in training, without and with cross-attention.

        Args:
            tlm: the share of rows that are bitext, if there is any.
        """
        if not self.takes_pairs:
            return 1.0, 0.0
        of_bitext = tlm if self.bitext else 0.0
        pairs = of_bitext + (1 - of_bitext) * (2 if self.adjacent == "next" else 1)
        return pairs + of_bitext * self.joins_bitext, pairs * self.uses_cross_attention

    @model_validator(mode="after")
    def _bitext_has_pairs(self) -> Self:
        if self.bitext_task and not self.bitext:
            raise ValueError(
                f"bitext_task {self.bitext_task} is for pairs, and `bitext` has none: name them there, or leave it out"
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
    from transformers import BertConfig, MBartConfig, XLMRobertaConfig, XmodConfig

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
    if scratch.architecture == "mbart":
        sides: dict[str, Any] = {
            name.replace("SIDE", side): value
            for name, value in (
                ("SIDE_layers", scratch.layers),
                ("SIDE_attention_heads", scratch.heads),
                ("SIDE_ffn_dim", scratch.intermediate),
            )
            for side in ("encoder", "decoder")
        }
        others: dict[str, Any] = {"dropout": scratch.dropout, "attention_dropout": scratch.dropout, **ids}
        # Tokens of languages follow those of the vocabulary.
        others |= {LANGUAGES: [*scratch.languages], "vocab_size": vocabulary_size + len(scratch.languages)}
        others |= {"d_model": scratch.hidden, "max_position_embeddings": scratch.max_length}
        # The published mBART (facebook/mbart-large-cc25) scales its embeddings by the root of their size.
        return MBartConfig(**sides, **others, scale_embedding=True, forced_eos_token_id=None)
    sizes |= {"max_position_embeddings": length, "type_vocab_size": 1, "layer_norm_eps": 1e-5, **ids}
    if scratch.architecture == "plain":
        return XLMRobertaConfig(**sizes)
    if scratch.architecture == "veco":
        # Transformers, which does not know the entry, reads the encoder as XLM-R without cross-attention.
        return XLMRobertaConfig(**sizes | {STREAM: scratch.s_stream})
    modules = [SHARED] if scratch.architecture == "shared" else [*scratch.languages]
    # Other programs, which do not say the language of an input, compute it with the one module.
    default = SHARED if scratch.architecture == "shared" else None
    return XmodConfig(**sizes, languages=modules, default_language=default, adapter_reduction_factor=scratch.reduction)


def new_model(scratch: Scratch, vocabulary_size: int) -> "PreTrainedModel":
    """An encoder with a language-modelling head. Torch's generator draws the weights."""
    config = scratch_configuration(scratch, vocabulary_size)
    model: PreTrainedModel = model_class(config.model_type, HEADS["mlm"])(config)
    if scratch.architecture == "veco":
        from xlgrid.methods.veco import modules

        modules.install(model, scratch.s_stream)
    return model
