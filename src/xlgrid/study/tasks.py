"""The tasks of a study: what an example is, and where the data come from."""

from functools import cached_property
from typing import Any, Literal, Self

from pydantic import Field, PositiveInt, ValidationError, model_validator

from xlgrid.base.settings import Name, Strict, plainly
from xlgrid.data.sources import DataSource
from xlgrid.heads.head import Mix
from xlgrid.languages.sources import Source
from xlgrid.tasks import Columns, Task, task


class Splits(Strict):
    """Numbers of examples in the splits of data."""

    train: PositiveInt | None = Field(None, description="examples of the training set; for a text: all rows")
    dev: PositiveInt | None = Field(None, description="examples of the dev set")
    test: PositiveInt | None = Field(None, description="examples of the test set")


class Sizes(Splits):
    """Numbers of examples in the splits of a task's data in each language or pair."""

    languages: dict[str, Splits] = Field({}, description="language or pair: its numbers, if they differ")


class TaskEntry(Columns):
    """A task and its data. `kind` is a benchmark with columns of its own, or a head, which needs `inputs`, `target` and `labels`.

    `data` says where the data come from. Without `data`, the kinds `mlm` and `perplexity` use the texts of the study,
    and data of other kinds are generated as `options` say. Runs of a task of kind `mlm` have no cells: they are MLM
    runs, with whose weights runs of other tasks begin (`start` of a method).
    """

    kind: str = Field(
        description="a head, such as sequence, token or span, or a benchmark with columns of its own, such as xnli or "
        "wikiann: docs/how-to/task.md lists both"
    )
    options: dict[str, Any] = Field(
        {}, description="options of the kind, such as the size and content of generated data"
    )
    data: DataSource | None = Field(
        None, description="where the data come from; absent: they are generated, or are the texts of the study"
    )
    examples: Sizes | None = Field(
        None,
        description="numbers of examples in each language, which `xlgrid cost` uses until the data are here; not "
        "needed for generated data",
    )
    max_length: PositiveInt = Field(512, description="most tokens of an input")
    start: Name | None = Field(
        None,
        description="a task of the study; a run begins with all weights of that task's run with the same method, "
        "including the head",
    )
    tokenizer: str | None = Field(
        None,
        description="for tasks of kind `mlm`: the tokenizer of their runs, and of runs that begin with them, if it "
        "is not the encoder's; the runs train embeddings of its tokens. {language} is replaced by the language of "
        "the run",
    )
    trained_on: str | None = Field(
        None, description="another task of the study with the same head; the runs train on its training and dev sets"
    )
    mix: Mix | None = Field(
        None,
        description="how the runs of the task use the parts of a mix. shares: the parts are parallel, and each "
        "example comes from one of them; whole: all rows of each part (translate-train-all); absent: `whole` for "
        "kinds whose examples have no labels, such as `mlm`, else `shares`",
    )
    parallel: str | None = Field(
        None,
        description="for methods with the option `parallel`: another task of the study with this head. Its test set in a "
        "language has the test examples of this task in that language, translated into the language of parallel "
        "examples. Absent: the parallel examples are this task's own test set in the language of parallel examples",
    )
    separators: Literal["tokenizer", "one"] = Field(
        "tokenizer",
        description="separators between two segments: as many as the tokenizer writes, or one (Foroutan et al. 2023's "
        "code)",
    )

    def mix_of(self, source: Source) -> Mix | None:
        """How a run on a source uses the parts of a mix; None if there is no mix, or for the default of the head."""
        return self.mix if len(source.parts) > 1 and self.mix != self.task.head.mixes[0] else None

    def tokenizer_in(self, language: str) -> str | None:
        """The name of the tokenizer of a run in a language; None for the encoder's tokenizer."""
        return self.tokenizer and self.tokenizer.replace("{language}", language)

    @cached_property
    def task(self) -> Task:
        """The task that the entry names or describes."""
        return task(self.kind, self.columns)

    @property
    def columns(self) -> dict[str, Any]:
        """The columns and labels that the entry describes; empty if its kind is a benchmark."""
        return {name: value for name in Columns.model_fields if (value := getattr(self, name))}

    @model_validator(mode="after")
    def _has_data(self) -> Self:
        if self.from_text and (self.task.target or self.task.head.has_pairs_only):
            labels = " with `labels` of their own" if self.labels and not self.inputs else ""
            raise ValueError(f"data of kind {self.kind}{labels} cannot be generated: name their source in `data`")
        return self

    @model_validator(mode="after")
    def _mixes(self) -> Self:
        allowed = self.task.head.mixes if self.task.head.is_trained else ()
        if self.mix and self.mix not in allowed:
            raise ValueError(
                f"mixes of kind {self.kind} take their parts by {' or '.join(allowed)}, got `mix: {self.mix}`: leave it out"
                if allowed
                else f"runs of kind {self.kind} train on nothing: leave out `mix`"
            )
        return self

    @model_validator(mode="after")
    def _options_exist(self) -> Self:
        try:
            _ = self.options_without_defaults
        except ValidationError as error:
            raise ValueError(f"options: {plainly(error)}") from None
        return self

    @cached_property
    def options_without_defaults(self) -> dict[str, Any]:
        """The options that differ from the task's defaults, as JSON, in the order of the task's `Options`."""
        options = self.task.Options.model_validate(self.options, context={"fetched": self.data is not None})
        return options.model_dump(mode="json", exclude_defaults=True)

    @model_validator(mode="after")
    def _data_suit(self) -> Self:
        if self.data:
            self.data.check_task(self.task)
        return self

    @model_validator(mode="after")
    def _text_is_text(self) -> Self:
        wrong = [name for name in ("start", "trained_on") if getattr(self, name)]
        if wrong and not self.task.target:
            raise ValueError(
                f"runs of a task of kind {self.kind} begin with the encoder, and train on the task's own data: leave "
                f"out {' and '.join(f'`{name}`' for name in wrong)}"
            )
        if self.tokenizer and self.task.head.has_cells:
            raise ValueError(
                "only the runs of a task of kind mlm train embeddings of another tokenizer: leave out `tokenizer`"
            )
        if self.inputs and self.from_text:
            raise ValueError(
                "`inputs` names columns of `data`, but this task reads the texts of the study: leave it out"
            )
        return self

    @property
    def is_generated(self) -> bool:
        """Whether the data are generated."""
        return self.data is None and self.task.generator is not None

    @property
    def from_text(self) -> bool:
        """Whether the data are the texts of the study."""
        return self.data is None and self.task.generator is None
