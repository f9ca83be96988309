"""The value that describes a task, and what a study writes to describe one of its own."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from pydantic import BeforeValidator, Field

from xlgrid.base.settings import Strict
from xlgrid.heads.head import Head, NoOptions, TaskColumns, written
from xlgrid.heads.metrics import Metric
from xlgrid.languages.sources import Target

if TYPE_CHECKING:
    import pyarrow as pa


def _written_list(value: Any) -> Any:
    return [written(label) for label in value] if isinstance(value, list) else value


class Columns(Strict):
    """The columns of a task's data and its labels, which a study writes for a task of its own: see docs/how-to/task.md."""

    inputs: list[str] = Field(
        [],
        description="columns that the encoder reads. sequence, multilabel and regression: one text, or two; token and parse: a list of words; span: the question, "
        "then the context; choice: all texts before the choice, which are joined by spaces",
    )
    choices: list[str] = Field([], description="columns of the choices, only for the head `choice`")
    target: str = Field(
        "",
        description="column with the label; token: with the list of the words' labels; parse: with the list of their "
        "relations, beside the column `head`; span: with the answers of SQuAD; multilabel: with a list of labels, or, if the "
        "data have a column for each label instead, a name for these lists; regression: with a number",
    )
    labels: Annotated[
        list[str], BeforeValidator(_written_list, json_schema_input_type=list[str | int | float | bool])
    ] = Field(
        [],
        description="the names of the labels. token: in the order of their numbers in the data, or as the data have them; "
        "choice: one for each of `choices`, in their order",
    )


class Generator(Protocol):
    """A module, such as those in `xlgrid.synthetic.miniatures`, that generates the data of a task without downloads.

    A *meaning* is an example independent of any language. Each language expresses the same meanings, so generated data
    are parallel.

    Attributes:
        COLUMNS: the columns of the data, as the Hub has them.
        examples: (options, sizes of train, dev and test) -> the meanings, those of the training split first.
        group: options -> how many consecutive meanings have to share a split.
        row: (meaning, language or pair, options) -> a row with `COLUMNS`.
        to_json, from_json: write a meaning as one line, and read it. A damaged line is a ValueError, TypeError or KeyError.
        speaks: code -> whether `row` knows a language.
    """

    COLUMNS: tuple[str, ...]
    examples: Callable[..., list[Any]]
    group: Callable[[Any], int]
    row: Callable[[Any, str, Any], dict[str, Any]]
    to_json: Callable[[Any], str]
    from_json: Callable[[str], Any]
    speaks: Callable[[str], bool]


@dataclass(frozen=True)
class Task(TaskColumns):
    """One task: a head, and the columns and labels of its data.

    Attributes:
        head: see `xlgrid.heads`, where each head describes what its columns contain.
        Options: the schema of the task's `options`.
        generator: makes the data of tasks that can be generated; None for others, which need `data` or a text in the study.
        tokens: of an input, which the estimate of cost assumes.
        metric: the main metric; None: the first one of the head.
    """

    head: Head
    Options: type[Strict] = NoOptions
    generator: Generator | None = None
    tokens: int = 128
    metric: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that its files of data keep, where the source has them: further ones of generated data, and ids."""
        generated = self.generator.COLUMNS if self.generator else ()
        return tuple(dict.fromkeys((*generated, *self.head.columns(self), "depth", "id")))

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics that are shown where no others are named, the main one first."""
        return (self.metric,) if self.metric else tuple(each.name for each in self._metrics if each.is_reported)

    @property
    def all_metrics(self) -> tuple[str, ...]:
        """The names of all metrics that can be computed from the task's cells."""
        return tuple(each.name for each in self._metrics)

    @property
    def _metrics(self) -> tuple[Metric, ...]:
        return self.head.metrics(self.labels)

    @property
    def second(self) -> str | None:
        """The column that a pair takes from its second language; None if the task has no pairs."""
        return self.head.second(self)

    def problem_of(self, language: Target) -> str | None:
        """Why the task has no data in a language or pair, as words that follow the name of the task; None if it may have some."""
        if self.head.has_pairs_only and not language.is_pair:
            other = "de" if language == "en" else "en"
            return f"compares sentences of two languages, got {language}: write a pair, such as {language}-{other}"
        if language.is_pair and self.second is None and not self.head.has_pairs_only:
            reads = "reads one text and " if len(self.inputs) == 1 else ""
            return f"{reads}has no pairs such as {language}: leave them out"
        return None

    def speaks(self, code: str) -> bool:
        """Whether the task's data can be generated in the language `code`."""
        return self.generator is not None and self.generator.speaks(code)

    def check(self, table: "pa.Table", where: str, first_row: int = 1) -> None:
        """Check columns and labels of a table that was read from `where`; see `Head.check`."""
        self.head.check(table, self, where, first_row)
