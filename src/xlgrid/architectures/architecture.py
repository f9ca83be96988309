"""The settings that a study writes for an encoder from scratch, and the methods of every architecture."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from xlgrid.architectures.begin import SIZES
from xlgrid.base.settings import Seed, Strict
from xlgrid.data.tokenizer import Kind
from xlgrid.heads import HEADS, Head
from xlgrid.heads.language_modelling.mlm import Masked, MlmHead
from xlgrid.heads.tokens import Tokens
from xlgrid.languages.sources import Target
from xlgrid.models.load import new_model
from xlgrid.models.parameters import Count

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig, PreTrainedModel

# The task whose tokens an encoder from scratch reads if its entry has no `task`.
PRETRAINING = "pretraining"
# Sizes by name: those of BERT and XLM-R, base and large.
SHAPES: dict[str, dict[str, Any]] = {
    "base": {"hidden": 768, "layers": 12, "heads": 12, "intermediate": 3072, "dropout": 0.1},
    "large": {"hidden": 1024, "layers": 24, "heads": 16, "intermediate": 4096, "dropout": 0.1},
}


class Architecture(Strict):
    """An encoder that is pre-trained here on the texts of a study.

    The objectives are masked language modelling on `languages` and translation language modelling on `bitext`, unless
    the architecture defines another objective. Each subclass is one architecture: it adds settings and overrides
    methods. A subclass whose encoders may begin with the weights of another encoder overrides `begins_with`,
    `seedless`, `misfit` and `take_weights`, as `xlgrid.architectures.plain.Pairs` does.
    """

    architecture: str
    kind: Kind = Field("xlmr", description="the tokenizer, and the special tokens: those of BERT, or those of XLM-R")
    masked: Masked = Field(Masked(), description="shares of tokens that are masked; evaluations mask 0.15")
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
    layers: PositiveInt = Field(4, description="number of layers")
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
        min_length=1,
        description="the task of kind `mlm`, with two `inputs` and `data`, whose tokens are read for the pairs of `bitext`; "
        "absent: the rows with the same id in the texts of both languages",
    )
    seed: Seed = Field(
        0,
        description="decides weights, batches and masks; encoders that differ by it alone are replicas of one encoder",
    )

    @model_validator(mode="before")
    @classmethod
    def _sizes_of_the_shape(cls, fields: Any) -> Any:
        """Replace `shape` by its sizes.

        A recipe leaves out settings that equal their defaults. If `shape` stayed, a size that the study writes and that
        equals its default would be lost, and the size of the shape would be used instead.
        """
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
    def _parts_differ(self) -> Self:
        if self.bitext_task and not self.bitext:
            raise ValueError(
                f"bitext_task {self.bitext_task} is for pairs, and `bitext` has none: name them there, or leave it out"
            )
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
        """The source of the training: the languages and pairs, joined by `+`."""
        return "+".join([*self.languages, *("-".join(pair) for pair in self.bitext)])

    def task_of(self, part: str) -> str:
        """The task whose tokens are read for a language or a pair."""
        return self.bitext_task if self.bitext_task and Target(part).is_pair else self.task

    @property
    def begins_with(self) -> str | None:
        """The encoder of the study with whose weights this one begins; None if it begins with new weights."""
        return None

    def seedless(self, begin: str | None) -> Self:
        """A copy without the seed, which is equal for encoders that differ only by their seeds.

        Args:
            begin: replaces the name of the encoder with whose weights this one begins.
        """
        return self.model_copy(update={"seed": 0})

    @property
    def model_type(self) -> str:
        """The type of the encoder in its config.json."""
        return "bert" if self.kind == "bert" else "xlm-roberta"

    @property
    def known(self) -> dict[str, Any]:
        """The entries of config.json that do not depend on the tokenizer. Only these are passed to `Method.misfit`."""
        sizes = self.sizes(self.vocab)
        return {"model_type": self.model_type, **{entry: sizes[entry] for entry in SIZES if entry in sizes}}

    @property
    def modules(self) -> tuple[str, ...]:
        """The languages that have a module in every layer."""
        return ()

    def problems(self, study: Any, grid: str) -> Iterator[tuple[str, str]]:
        """The mistakes in a grid that uses the encoder, as (key, problem). The key is empty if several keys are to
        blame.

        Heads and methods report their own mistakes elsewhere.

        Args:
            study: the study, whose names exist.
            grid: the name of the grid.
        """
        yield from ()

    def problems_of_text(self, lines: str, documents: str) -> Iterator[tuple[str, str]]:
        """The mistakes in how the task cuts texts into rows, as (key, problem).

        Args:
            lines, documents: the options of the task, which is of kind `mlm`.
        """
        yield from ()

    def sizes(self, vocabulary_size: int) -> dict[str, Any]:
        """The entries of config.json with sizes. They include the entries specific to XLM-R if `kind` is `xlmr`."""
        entries: dict[str, Any] = {
            "vocab_size": vocabulary_size,
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "intermediate_size": self.intermediate,
            "hidden_dropout_prob": self.dropout,
            "attention_probs_dropout_prob": self.dropout,
            "max_position_embeddings": self.max_length,
            "pad_token_id": 0,
        }
        if self.kind == "bert":
            return entries
        # XLM-R counts positions from the padding id + 1.
        of_xlmr = {"max_position_embeddings": self.max_length + 2, "type_vocab_size": 1, "layer_norm_eps": 1e-5}
        return entries | of_xlmr | {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}

    def configuration(self, vocabulary_size: int) -> "PreTrainedConfig":
        """The configuration of an encoder whose tokenizer has `vocabulary_size` entries."""
        from transformers import AutoConfig

        return AutoConfig.for_model(self.model_type, **self.sizes(vocabulary_size))

    def new_model(self, vocabulary_size: int) -> "PreTrainedModel":
        """An encoder with a language-modelling head and random weights from torch's global generator."""
        model = new_model(self.configuration(vocabulary_size), HEADS["mlm"])
        self.install(model)
        return model

    def install(self, model: Any) -> None:
        """Add the modules that transformers' class of the encoder lacks, in place. The model may be on the meta device.

        Sizes come from the model's configuration. Later runs load the encoder without these modules, unless their
        method adds them.
        """

    def misfit(self, config: Mapping[str, Any]) -> str | None:
        """Why the encoder cannot begin with the weights of another encoder; None if no obstacle is known.

        Args:
            config: the known entries of the config.json of the other encoder, with `model_type`.
        """
        return None

    def take_weights(self, model: "PreTrainedModel", encoder: Path, log: Callable[[str], None]) -> None:
        """Load the weights of the encoder with which a new model begins.

        Args:
            encoder: the folder of that encoder.
            log: receives a line with the names of the weights that either of the two lacks.

        Raises:
            ValueError: the encoder is damaged, or has another type or other sizes.
        """

    def objectives(self, model: "PreTrainedModel", train: Tokens) -> tuple[Head, Head]:
        """The head that computes the losses of training, and the one that evaluates the dev sets.

        Raises:
            ValueError: the texts do not suit the objective.
        """
        return MlmHead(self.masked), HEADS["mlm"]

    def trains_weight(self, name: str) -> bool:
        """Whether training changes the parameter of a name."""
        return True

    def complete_gradients(self, weights: "Mapping[str, torch.nn.Parameter]") -> None:
        """Change the gradients of the weights that train, before an update."""

    def uncounted_work(self, attention: float, output: int, tlm: float) -> float:
        """The floating-point operations of training on a token in one pass that do not follow from the number of
        parameters. Evaluation takes a third of them.

        Args:
            attention: the operations for the attention scores of all layers of an encoder.
            output: the number of parameters of the output embeddings.
            tlm: the share of rows that are bitext, if there is any.
        """
        return attention

    def work(self, plain: Count, whole: Count, uncounted: float, tlm: float) -> float:
        """The floating-point operations of training on a token of a row, in all passes.

        Args:
            plain: the parameters of the encoder without what `install` adds.
            whole: the parameters of the encoder after `install`.
            uncounted: the result of `uncounted_work`.
            tlm: the share of rows that are bitext, if there is any.
        """
        return plain.training + uncounted
