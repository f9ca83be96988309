"""The interface of a head, which has everything that depends on the form of a task's examples.

A head reads the columns of a task's data, turns them into token ids and labels, makes batches, computes the loss, and
turns a model's predictions into outcomes, from which its metrics are computed. Nothing outside this package asks which
head a task has.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from xlgrid.base.arrays import Ints
from xlgrid.base.names import missing_column, unknown
from xlgrid.base.settings import Strict
from xlgrid.heads.encoding import IGNORED, Encoding
from xlgrid.heads.forms import Normalized, in_form
from xlgrid.heads.metrics import Metric, Outcome
from xlgrid.heads.tokens import Tokens

if TYPE_CHECKING:
    import pyarrow as pa
    import torch
    from transformers import PreTrainedModel

    from xlgrid.languages import Language

    Batch = dict[str, "torch.Tensor"]


# How a mix takes its parts: each example from one of them, or all rows of each.
Mix = Literal["shares", "whole"]
# The column of a table to encode that has the number of each row's file, where a tokens file has the rows of several
# splits.
FILE = "file"


class NoOptions(Strict):
    """An empty schema: for a head without options, or for a task whose data cannot be generated."""


@dataclass(frozen=True)
class TaskColumns:
    """The part of a task that its head reads.

    Attributes:
        name: the kind that a study names.
        inputs: the columns that the encoder reads, in the order of the head's description, with `choices` at the end.
        target: the column with the label or answer; "" for heads without a target.
        labels: the names of the labels, in the order of their numbers.
        choices: the columns of the choices; () for other heads.
    """

    name: str
    inputs: tuple[str, ...]
    target: str
    labels: tuple[str, ...]
    choices: tuple[str, ...]


class Example(NamedTuple):
    """A test example and what a model answers in it, as texts.

    Attributes:
        row: the number of the example's row in the data, from 0.
        gold: the answer in the data.
        predicted: the answer of the model.
        is_right: whether the model's answer is right; None if answers are better or worse, but not right or wrong.
    """

    row: int
    gold: str
    predicted: str
    is_right: bool | None


class Evaluated(NamedTuple):
    """A cell, and the data on which it was evaluated.

    Attributes:
        data: the rows, in the order of the outcomes.
        task: the columns of the task.
        labels, options: those of the cell.
        outcomes: the outcome of each example.
        answers: the answer of the model in each example; empty for a head that does not keep answers.
    """

    data: "pa.Table"
    task: TaskColumns
    labels: Sequence[str]
    options: Mapping[str, Any]
    outcomes: Sequence[Any]
    answers: Sequence[Any]

    def rows(self, texts: Iterable[tuple[str, str, bool | None]]) -> list[Example]:
        """The examples of a head for which each row of the data is an example, from all but the numbers of the rows.

        Raises:
            ValueError: there are more or fewer rows than examples.
        """
        return [Example(row, *text) for row, text in zip(range(self.data.num_rows), texts, strict=True)]


class Head(ABC):
    """A head. The methods are in the order in which data flow through them."""

    # The name by which `xlgrid.heads.ALL_HEADS` finds the head, which tokens files store.
    name: ClassVar[str]

    # What the data have. The least and the most columns that the encoder reads, not counting choices; None: any number.
    inputs_allowed: ClassVar[tuple[int, int | None]] = (1, 1)
    has_target: ClassVar[bool] = True  # the data have a column with the answers
    has_labels: ClassVar[bool] = True  # the target names labels of the task
    has_pairs_only: ClassVar[bool] = False  # each row of the data is in two languages, and files are named by pairs
    reads_words: ClassVar[bool] = False  # the input is a list of words, for each of which the target has a label
    # The columns of CoNLL-U files that become those of `columns`, for heads that read words
    conllu: ClassVar[tuple[str, ...]] = ("FORM", "UPOS")

    # Tokens files. The columns of `fields` that have one value per token; the others have one value per row.
    token_columns: ClassVar[tuple[str, ...]] = ()
    # How a mix may take its parts, the default first. `shares`: each example comes from one of the parts, which have
    # the same examples; `whole`: the mix has all rows of each part.
    mixes: ClassVar[tuple[Mix, ...]] = ("shares", "whole")

    # Models. Classes of transformers are `{family}For{model_suffix}`; "" for a head with a `model_class` of its own.
    model_suffix: ClassVar[str] = ""
    modules: ClassVar[tuple[str, ...]] = ()  # the modules of these models that an encoder may come without
    # The model has one output per label, so that other labels need another model
    output_per_label: ClassVar[bool] = False
    # The column of a tokens file with the label of each row, by which samples can be balanced; "" for other heads
    class_column: ClassVar[str] = ""
    # The head reads the first token of the encoder's last layer, and no other
    reads_first_token: ClassVar[bool] = False
    # The share of tokens at which a language model's output embeddings are computed
    output_share: ClassVar[float] = 0.0

    # Runs and cells.
    is_trained: ClassVar[bool] = True  # runs train the head; otherwise only encoders without training are evaluated
    is_pretrained: ClassVar[bool] = False  # the head is a part of the encoder, which can be evaluated without training
    keeps_answers: ClassVar[bool] = False  # cells store the answers of the model, which their outcomes do not contain
    has_cells: ClassVar[bool] = True  # runs are evaluated; otherwise they store no head, and other runs begin with them
    loss_names: tuple[str, ...] = ("loss",)  # the names of `losses`
    allows_smoothing: ClassVar[bool] = True  # the loss is a cross entropy, and can spread probability over all classes
    label_smoothing: float = 0.0  # the share of each label's probability that the loss spreads over all classes
    all_metrics: ClassVar[tuple[Metric, ...]]  # the metrics of all tasks with the head, before they know its labels
    # The settings of tokens and of evaluation, which are among the options of a task
    options: ClassVar[type[Strict]] = NoOptions

    def smoothed(self, label_smoothing: float) -> Self:
        """The head with a loss that spreads a share of each label's probability evenly over all classes (Szegedy et al.
        2016, section 7).

        Raises:
            ValueError: the loss of the head does not allow label smoothing.
        """
        if not label_smoothing:
            return self
        if not self.allows_smoothing:
            raise ValueError(
                f"the loss of head {self.name} does not support label smoothing, got {label_smoothing}: leave out "
                "`label_smoothing`, or limit it with the key `when` to tasks whose head supports it"
            )
        head = copy(self)
        head.label_smoothing = label_smoothing
        return head

    def of(self, options: Mapping[str, Any]) -> Self:
        """The head for a task with some options, if its model depends on them; equal options give the same object."""
        return self

    # Data

    def problems(self, task: TaskColumns) -> list[str]:
        """The mistakes in the columns and labels of a task that a study describes, each as a clause for an error."""
        least, most = self.inputs_allowed
        inputs = len(task.inputs) - len(task.choices)
        problems = []
        if inputs < least or (most and inputs > most):
            wanted = f"at least {least}" if most is None else f"{least} or {most}" if least < most else str(least)
            problems.append(f"`inputs` has {inputs} columns, expected {wanted}")
        if self.has_target and not task.target:
            problems.append("`target`, the column of the answer, is missing")
        if task.target and not self.has_target:
            problems.append("there is no answer to predict, so leave out `target`")
        if self.has_labels and len(task.labels) < 2:
            problems.append(f"`labels` has {len(task.labels)} names, expected at least 2")
        if task.labels and not self.has_labels:
            problems.append("there are no labels, so leave out `labels`")
        problems += self.problems_of_choices(task)
        for name, values in (("`inputs` and `choices`", task.inputs), ("`labels`", task.labels)):
            doubles = sorted({value for value in values if values.count(value) > 1})
            if doubles:
                problems.append(f"{', '.join(map(repr, doubles))} occurs twice in {name}")
        return problems

    def problems_of_choices(self, task: TaskColumns) -> list[str]:
        """The mistakes in the columns of the choices, as those of `problems`. Only some heads have choices."""
        return ["there are no choices, so leave out `choices`"] if task.choices else []

    def columns(self, task: TaskColumns) -> list[str]:
        """The columns of the data that the head reads."""
        return [*task.inputs, *filter(None, [task.target])]

    def splits(self, split: str) -> tuple[str, ...]:
        """The splits whose rows a tokens file of a split has: the split, and those on which a cell chooses what its
        predictions depend on. In the table to encode, the column `FILE` tells the rows of several splits apart."""
        return (split,)

    def labelled(
        self, target: "pa.ChunkedArray", task: TaskColumns, names: Mapping[str, str]
    ) -> "pa.ChunkedArray | pa.Array":
        """The target column after labels of the source are replaced by labels of the task.

        Values that are not labels of the task are unchanged, and `check` reports them.

        Args:
            names: label of the source, as text -> label of the task.
        """
        return target

    def label_names(self, task: TaskColumns) -> tuple[str, ...]:
        """The names of labels into which `labelled` can translate the labels of a source."""
        return task.labels

    def prepared(
        self, table: "pa.Table", task: TaskColumns, unanswerable: str | None, misplaced: Any
    ) -> "tuple[pa.Table, dict[str, int]]":
        """The rows of a table, which has the columns of `check_columns`, that a task can read; and the numbers of
        corrections by what was corrected, for the log and the record of the data.

        Args:
            unanswerable, misplaced: see `xlgrid.data.origins.origin.Origin`.

        Raises:
            ValueError: one of these is given, but the task has no questions.
        """
        for key, value in (("unanswerable", unanswerable), ("misplaced", misplaced)):
            if value:
                raise ValueError(f"`{key}` is about questions, and {task.name} has none: leave it out")
        return table, {}

    def in_form(self, table: "pa.Table", task: TaskColumns, normalized: Normalized) -> "pa.Table":
        """The rows of a table with their texts and words in a normalization form of Unicode."""
        return in_form(table, (*task.inputs, task.target), normalized)

    def second(self, task: TaskColumns) -> str | None:
        """The input column that is in the second language of a pair; None if the task cannot have pairs."""
        return None

    def parallel(self, task: TaskColumns) -> str:
        """The column that must be equal in row i of two languages with the same content; "" without such a column."""
        return task.target

    def check(self, table: "pa.Table", task: TaskColumns, where: str, first_row: int = 1) -> None:
        """Check the columns and labels of a table that was read from `where`.

        Args:
            first_row: the number of the table's first row. Messages count rows from 1.

        Raises:
            ValueError: there are no rows, a column is missing, a value is missing or not text, or a label is wrong. The
                message has `where`, the column, and the number of the row.
        """
        if not table.num_rows:
            raise ValueError(f"{where} has no rows: check the source of the data, its `where` and its language")
        columns = self.check_columns(table, task, where)
        for column in columns:
            values = table[column]
            if values.null_count:
                row = first_row + values.is_null().to_pylist().index(True)
                raise ValueError(
                    f"{where}, row {row}, column {column!r}: the value is missing; fill it in, or remove the row"
                )
        check_text(table, self.texts(task), where)

    def texts(self, task: TaskColumns) -> Sequence[str]:
        """The columns that have a text in each row."""
        return task.inputs

    def check_columns(self, table: "pa.Table", task: TaskColumns, where: str) -> list[str]:
        """The columns that a task needs, after the check that a table which was read from `where` has all of them.

        Raises:
            ValueError: a column is missing; the message has `where` and the name of the nearest column.
        """
        columns = self.columns(task)
        for column in columns:
            if column not in table.column_names:
                raise ValueError(
                    f"{where} has no column {column!r}, which {task.name} needs: "
                    f"{missing_column(column, table.column_names)}; in `data`, `rename` renames a column, and "
                    "`columns` names the columns of a file without a header"
                )
        return columns

    def problem_of_all(self, table: "pa.Table") -> str | None:
        """A mistake that only all rows together show, as a clause after the name of the file; None without a
        mistake."""
        return None

    def remarks(self, table: "pa.Table", task: TaskColumns) -> list[str]:
        """Remarks on unusual properties of rows that are not errors, each as a clause for the log of the data."""
        return []

    def problems_of_grid(self, study: Any, task: str, grid: str) -> Iterator[str]:
        """The mistakes in a grid that names a task with the head, each as `place: what is wrong`.

        Args:
            study: the study, whose names exist.
            task, grid: the names of the task and of the grid in the study.
        """
        yield from ()

    def unscorable(self, options: Any, targets: Sequence[Sequence["Language"]]) -> list[str]:
        """Why some targets of a task cannot be scored, each as `option: what is wrong`, for the settings of evaluation
        `options`. A target has one language, or the two of a pair."""
        return []

    def label_counts(self, table: "pa.Table", task: TaskColumns) -> Counter[str]:
        """How often each label occurs in the rows of a checked table; empty for heads without labels."""
        return Counter()

    # Tokens

    def check_tokenizer(self, tokenizer: Any) -> None:
        """Check that a tokenizer has the special tokens that the head needs.

        Raises:
            ValueError: a special token is missing.
        """
        return

    @abstractmethod
    def fields(self) -> list["pa.Field"]:
        """The columns that a tokens file has besides `input_ids` and `context_length`."""

    @abstractmethod
    def encode(self, table: "pa.Table", task: TaskColumns, encoding: Encoding) -> dict[str, list[Any]]:
        """Turn rows of a task's data into rows of a tokens file.

        Returns:
            These columns. For heads with several inputs in a row, the entries of the first two are lists with an
            element per input.

            - `input_ids`: lists of token ids, special tokens included;
            - `context_length`: the number of tokens of the first segment, including the special tokens before and after
              it, or of the whole input if it has one segment;
            - the columns of `fields`;
            - `example`, if an example can have several rows or no rows: the number of the table's row, from 0.
        """

    def remainder(self, encoding: Encoding) -> dict[str, list[Any]]:
        """The rows of a tokens file that `encode` has not returned when the data end, with the columns of `encode`."""
        return {}

    def segment_languages(self, codes: Sequence[str]) -> tuple[str, str]:
        """The languages of the first and the second segment in data of one language, or of a pair."""
        return codes[0], codes[-1]

    def language_of(self, segments: NDArray[np.int16], columns: Mapping[str, Any]) -> NDArray[np.int16]:
        """The languages of the first and the second segment of each input, [inputs, 2], or of all inputs alike, [2].

        Args:
            segments: the languages of `segment_languages`, as numbers.
            columns: the columns of a tokens file that have one value per row.
        """
        return segments

    # Batches

    def collate(self, tokens: Tokens, rows: Ints, token_types: bool) -> "Batch":
        """The tensors of a batch, on the CPU: `input_ids` and `attention_mask`, both [rows, longest], and `labels`.

        Args:
            token_types: add `token_type_ids`, 0 for tokens of the first segment and for padding, 1 for the second.
        """
        import torch

        inputs = tokens.inputs(rows)
        lengths = tokens.sizes[inputs]
        at = np.arange(lengths.max())[None, :]
        real = at < lengths[:, None]
        positions = tokens.positions(inputs)
        ids = np.full(real.shape, tokens.pad_id, np.int64)
        ids[real] = tokens.values[positions]
        arrays = {"input_ids": ids, "attention_mask": real.astype(np.int64)}
        if token_types:
            arrays["token_type_ids"] = (real & (at >= tokens.contexts[inputs][:, None])).astype(np.int64)
        arrays = {name: self.shaped(array, len(rows)) for name, array in arrays.items()}
        arrays["labels"] = self.batch_labels(tokens, rows, arrays, positions)
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def shaped(self, inputs: Any, rows: int) -> Any:
        """An array or tensor of a batch, [inputs, longest], in the shape that the model reads: [rows, longest] where
        each row has one input."""
        return inputs

    def evaluation_batch(self, tokens: Tokens, rows: Ints, token_types: bool) -> "Batch":
        """The tensors of a batch of evaluation, which do not depend on other batches or on a random generator."""
        return self.collate(tokens, rows, token_types)

    @abstractmethod
    def batch_labels(self, tokens: Tokens, rows: Ints, arrays: Mapping[str, np.ndarray], positions: Ints) -> np.ndarray:
        """The labels of a batch, with `IGNORED` for tokens without a prediction.

        Args:
            arrays: the batch's `input_ids` and `attention_mask`.
            positions: the positions of the batch's tokens in `tokens.values`, in the order of the ones in the attention
                mask.
        """

    # Models

    def without_class(self, family: str) -> str | None:
        """Why encoders of a family have no model with the head, as a sentence that says what to do instead; None if
        they have one.

        Args:
            family: as of `model_class`.
        """
        return None

    def model_class(self, family: str) -> Any:
        """The class of transformers for encoders of a family with the head.

        Args:
            family: the stem of the names of the family's classes, such as `XLMRoberta`.
        """
        import transformers

        return getattr(transformers, f"{family}For{self.model_suffix}")

    def described(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """The configuration of the head's model, as `Method.misfit` reads it: that of the encoder, with what the head
        changes in it.

        Args:
            config: the contents of the encoder's config.json, or some of them; or the configuration of a model with the
                head.
        """
        return config

    def computed(self, model: "PreTrainedModel", name: str, is_output: bool) -> tuple[float, float]:
        """How often a training step and an evaluation multiply by a parameter, each per token of an example, for
        estimates of cost.

        Args:
            name: the parameter, by its name in `xlgrid.models.deltas.named_parameters`. It is in a layer, or else
                `is_output`.
            is_output: whether it is the output embeddings of a language model.
        """
        share = self.output_share if is_output else 1.0
        return share, share

    def settings(self, labels: int) -> dict[str, int]:
        """The entries of a model's configuration that the head needs, for a task with so many labels."""
        return {"num_labels": labels} if self.output_per_label else {}

    def scores(self, model: "PreTrainedModel", batch: "Batch") -> tuple["torch.Tensor", "torch.Tensor"]:
        """The model's outputs, [predictions, outputs], and the labels, [predictions]. `loss` compares them.

        Args:
            batch: the tensors of `collate`, and the arguments that the method adds to the model's forward.
        """
        inputs, labels = without_labels(batch)
        return model(**inputs).logits.flatten(0, -2), labels.flatten()

    def terms(self, batch: "Batch") -> int:
        """The number of terms in the loss of a batch: one for each label. They are counted while the batch is on the CPU,
        which would have to wait for a GPU."""
        return int((batch["labels"] != IGNORED).sum())

    def loss(self, model: "PreTrainedModel", batch: "Batch") -> "torch.Tensor":
        """The sum of the terms of the loss in a batch. The training loss is this sum divided by `terms`.

        A term is the cross entropy of a label with the logits of `scores`. A head with another loss overrides this
        method.
        """
        from torch.nn.functional import cross_entropy

        logits, labels = self.scores(model, batch)
        smoothing = self.label_smoothing
        return cross_entropy(
            at_least_fp32(logits), labels, ignore_index=IGNORED, reduction="sum", label_smoothing=smoothing
        )

    def losses(self, model: "PreTrainedModel", batch: "Batch") -> dict[str, "torch.Tensor"]:
        """The losses that training adds, by name, each as the sum of its terms in a batch."""
        return {"loss": self.loss(model, batch)}

    def terms_of_losses(self, batch: "Batch") -> dict[str, int]:
        """The number of terms in each of `losses`."""
        return {"loss": self.terms(batch)}

    @abstractmethod
    def predict(self, model: "PreTrainedModel", batch: "Batch", tokens: Tokens, rows: Ints) -> list[Any]:
        """The model's prediction for each of the rows that `batch` was made from."""

    def answers(self, tokens: Tokens, predictions: Sequence[Any]) -> list[Any]:
        """What the model answers in each example, from the predictions of `predict` for all rows of a tokens file. Answers
        that a cell stores (`keeps_answers`) are values of JSON."""
        return list(predictions)

    def outcomes(self, tokens: Tokens, answers: Sequence[Any]) -> list[Outcome]:
        """The outcome of each example, in their order, from the answers of `answers`."""
        return list(answers)

    def chance(self, tokens: Tokens) -> dict[str, float]:
        """The score of a guess without reading the input, such as the most frequent label for all examples, by metric.

        For a metric that is left out, chance is 0 if higher is better, and unknown if lower is better.

        Args:
            tokens: the data of the evaluation.
        """
        return {}

    def counts(self, tokens: Tokens, outcomes: Sequence[Outcome]) -> dict[str, int]:
        """Counts that a cell records besides its number of examples, from the data and all outcomes."""
        return {}

    # Metrics

    def metrics(self, labels: Sequence[str]) -> tuple[Metric, ...]:
        """All metrics of a task with these labels. The first one is the main metric of a task that names no other."""
        return tuple(each for metric in self.all_metrics for each in metric.of(labels))

    def metric(self, labels: Sequence[str], name: str | None = None) -> Metric:
        """The metric with a name, among the metrics of a task with these labels; None: the first one.

        Raises:
            ValueError: there is no metric with this name; the message has the nearest name.
        """
        metrics = {metric.name: metric for metric in self.metrics(labels)}
        if name and name not in metrics:
            raise ValueError(unknown("metric", name, metrics))
        return metrics[name] if name else next(iter(metrics.values()))

    def listed(self, tokens: Tokens, outcomes: Sequence[Outcome]) -> dict[str, float]:
        """The scores that a cell lists."""
        return {each.name: each.score(outcomes) for each in self.metrics(tokens.label_names) if each.is_listed}

    def implementation(self, tokens: Tokens, metric: Metric) -> str:
        """The implementation and the definition of a metric for these data, which cells record."""
        return metric.implementation

    # Reading cells

    def examples(self, seen: Evaluated) -> list[Example]:
        """The examples of a cell with the model's answers as texts; empty for a head without answers, such as that of masked
        tokens."""
        return []

    def confusion(self, labels: Sequence[str], outcomes: Sequence[Any]) -> NDArray[np.int64] | None:
        """How often each label is predicted where each label is gold, [gold, predicted]; None for a head without labels that
        exclude one another."""
        return None


def without_labels(batch: "Batch") -> tuple["Batch", "torch.Tensor"]:
    """The arguments of the model's forward, and the labels."""
    return {name: tensor for name, tensor in batch.items() if name != "labels"}, batch["labels"]


def at_least_fp32(outputs: "torch.Tensor") -> "torch.Tensor":
    """The outputs of a model in the precision of a loss: fp32, or the precision that they have if it is higher."""
    import torch

    return outputs.to(torch.promote_types(outputs.dtype, torch.float32))


def written(label: Any) -> str:
    """A label as text. Numbers and truth values are written as in YAML and JSON."""
    return str(label).lower() if isinstance(label, bool) else str(label)


def check_text(table: "pa.Table", columns: Sequence[str], where: str) -> None:
    """Raise a ValueError if a column does not have a type of text."""
    import pyarrow as pa

    for column in columns:
        kind = table.schema.field(column).type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise ValueError(f"{where}, column {column!r} is of type {kind}: expected text in each row")


def check_integers(table: "pa.Table", columns: Sequence[str], where: str) -> None:
    """Raise a ValueError if a column does not have a type of whole numbers."""
    import pyarrow as pa

    for column in columns:
        kind = table.schema.field(column).type
        if not pa.types.is_integer(kind):
            raise ValueError(f"{where}, column {column!r} is of type {kind}: expected whole numbers")
