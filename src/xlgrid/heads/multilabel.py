"""The head `multilabel`, which predicts any number of labels for an input of one or two segments."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from xlgrid.base.arrays import Ints
from xlgrid.heads.classification import Cases, measures
from xlgrid.heads.encoding import IGNORED, Encoding
from xlgrid.heads.head import Evaluated, Example, TaskColumns, at_least_fp32, written
from xlgrid.heads.metrics import Metric, Outcome
from xlgrid.heads.sequence import SequenceHead, check_names
from xlgrid.heads.tokens import Tokens
from xlgrid.heads.transfer import labelled

if TYPE_CHECKING:
    import pyarrow as pa
    import torch
    from transformers import PreTrainedModel

_TRUE, _FALSE = ("1", "1.0", "true"), ("0", "0.0", "false")


def _of_sets(outcomes: Sequence[Any], labels: tuple[str, ...]) -> np.ndarray:
    gold, predicted, absent = (np.zeros((len(outcomes), len(labels)), np.int32) for _ in range(3))
    for example, sides in enumerate(outcomes):
        for of_side, numbers in zip((gold, predicted, absent), sides, strict=True):
            of_side[example, numbers] = 1
    return np.stack([gold * predicted, gold, predicted, 1 - absent], -1)


SETS = Cases("labels of rows", lambda labels: labels, _of_sets)


_FOLLOWS = "scikit-learn's {measure}_score(average={average!r}, zero_division=0) of a column for each annotated label"
_MEASURES = measures(SETS, _FOLLOWS, "micro-")


class MultilabelHead(SequenceHead):
    """Any number of labels for one or two texts.

    The target is a list of names of labels. If the data lack this column, but have a column for each label, with the
    name of the label and the values 0 and 1, the lists are made from these columns. A missing value means that the row
    is not annotated with the label, as in languages for which a benchmark has fewer labels: the label is then no part
    of the loss and of the scores of the row.

    In files of data, the target is a list with 1, 0 or nothing for each label of the task. The loss is the mean binary
    cross entropy over labels. The outcome of an example is `[gold, predicted, not annotated]`, three lists of numbers
    of labels.
    """

    name = "multilabel"
    all_metrics: ClassVar[tuple[Metric, ...]] = (
        *(replace(each, is_reported=True) for each in _MEASURES if each.name == "macro-f1"),
        *(each for each in _MEASURES if each.name != "macro-f1"),
    )
    allows_smoothing = False

    def check_columns(self, table: "pa.Table", task: TaskColumns, where: str) -> list[str]:
        if task.target in table.column_names or not {*task.labels} & {*table.column_names}:
            return super().check_columns(table, task, where)
        missing = [name for name in task.labels if name not in table.column_names]
        if missing:
            raise ValueError(
                f"{where} has no column {task.target!r} with lists of labels, and no column for the labels "
                f"{', '.join(missing)}: add a column for each, empty where rows are not annotated with the label, or "
                "name it with `rename` in `data`"
            )
        return [*task.inputs, *task.labels]

    def prepared(
        self, table: "pa.Table", task: TaskColumns, unanswerable: str | None, misplaced: Any
    ) -> "tuple[pa.Table, dict[str, int]]":
        """The rows with the column of the target, which may be made from a column for each label."""
        table, counts = super().prepared(table, task, unanswerable, misplaced)
        if task.target in table.column_names:
            return table, counts
        import pyarrow as pa

        columns = [[_is_given(value, name) for value in table[name].to_pylist()] for name in task.labels]
        rows = pa.array(zip(*columns, strict=True), pa.list_(pa.int64(), len(columns)))
        absent = sum(value is None for column in columns for value in column)
        note = {"values of labels with which a row is not annotated": absent} if absent else {}
        return table.append_column(task.target, rows), counts | note

    def labelled(
        self, target: "pa.ChunkedArray", task: TaskColumns, names: Mapping[str, str]
    ) -> "pa.ChunkedArray | pa.Array":
        """The target column as lists with 1, 0 or nothing for each label, if its names are labels of the task.

        The source may have the numbers of the labels, too, in the order of `labels`.
        """
        import pyarrow as pa

        numbered = pa.list_(pa.int64())
        if pa.types.is_fixed_size_list(target.type):
            return target.cast(numbered)
        if not (pa.types.is_list(target.type) or pa.types.is_large_list(target.type)):
            return target
        number = {str(at): at for at in range(len(task.labels))} | {name: at for at, name in enumerate(task.labels)}
        rows = [row and [names.get(name, name) for name in map(written, row)] for row in target.to_pylist()]
        if any(row is None or {*row} - {*number} for row in rows):
            return pa.array(rows, pa.list_(pa.string()))
        found = [{number[name] for name in row} for row in rows]
        return pa.array([[int(at in row) for at in range(len(task.labels))] for row in found], numbered)

    def label_counts(self, table: "pa.Table", task: TaskColumns) -> Counter[str]:
        rows = table[task.target].to_pylist()
        return Counter({name: sum(row[at] or 0 for row in rows) for at, name in enumerate(task.labels)})

    def check(self, table: "pa.Table", task: TaskColumns, where: str, first_row: int = 1) -> None:
        import pyarrow as pa

        super(SequenceHead, self).check(table, task, where, first_row)
        kind = table.schema.field(task.target).type
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
            raise ValueError(f"{where}, column {task.target!r} is of type {kind}: expected a list of labels")
        rows = table[task.target].to_pylist()
        # If `labelled` does not know one of the labels, it leaves all of them as names.
        for row, values in enumerate(rows, start=first_row):
            for name in values:
                if isinstance(name, str):
                    check_names([name], task, where, row)
        for row, values in enumerate(rows, start=first_row):
            if len(values) != len(task.labels) or not {*values} <= {0, 1, None}:
                raise ValueError(
                    f"{where}, row {row}, column {task.target!r}: expected 1, 0 or nothing for each of {len(task.labels)} "
                    f"labels, got {values}; fetch the data again"
                )

    def fields(self) -> list["pa.Field"]:
        import pyarrow as pa

        return [pa.field("label", pa.list_(pa.int64()))]

    def encode(self, table: "pa.Table", task: TaskColumns, encoding: Encoding) -> dict[str, list[Any]]:
        columns = encoding.cut([table[column].to_pylist() for column in task.inputs], task.inputs[-1])
        rows = table[task.target].to_pylist()
        return columns | {"label": [[IGNORED if value is None else value for value in row] for row in rows]}

    def batch_labels(self, tokens: Tokens, rows: Ints, arrays: Mapping[str, np.ndarray], positions: Ints) -> np.ndarray:
        """[rows, labels], with 1, 0 or `IGNORED`."""
        return _labels(tokens)[rows].astype(np.float32)

    def loss(self, model: "PreTrainedModel", batch: dict[str, "torch.Tensor"]) -> "torch.Tensor":
        from torch.nn.functional import binary_cross_entropy_with_logits

        logits, labels = self.scores(model, batch)
        counted, logits = labelled(labels), at_least_fp32(logits.flatten())
        loss: torch.Tensor = binary_cross_entropy_with_logits(
            logits[counted], labels[counted].to(logits.dtype), reduction="sum"
        )
        return loss

    def predict(
        self, model: "PreTrainedModel", batch: dict[str, "torch.Tensor"], tokens: Tokens, rows: Ints
    ) -> list[Any]:
        logits, _ = self.scores(model, batch)
        gold = _labels(tokens)[rows]
        return _outcomes(gold, (logits >= 0).cpu().numpy().reshape(gold.shape))

    def chance(self, tokens: Tokens) -> dict[str, float]:
        """The scores if each label is predicted for all rows or for none, whichever is more frequent."""
        labels = _labels(tokens)
        majority = (labels == 1).sum(0) > (labels == 0).sum(0)
        outcomes = _outcomes(labels, np.broadcast_to(majority, labels.shape))
        metrics = self.metrics(tokens.label_names)
        return {each.name: score for each in metrics if (score := each.score(outcomes)) or each.is_listed}

    def examples(self, seen: Evaluated) -> list[Example]:
        texts = ([", ".join(seen.labels[at] for at in side) for side in outcome[:2]] for outcome in seen.outcomes)
        return seen.rows((gold, predicted, gold == predicted) for gold, predicted in texts)

    def confusion(self, labels: Sequence[str], outcomes: Sequence[Any]) -> None:
        """None, because a row may have several labels."""


def _labels(tokens: Tokens) -> np.ndarray:
    """[rows, labels], the labels of all rows."""
    column = tokens.columns["label"]
    values: np.ndarray = np.asarray(column.flatten()).reshape(len(column), -1)
    return values


def _outcomes(labels: np.ndarray, predicted: np.ndarray) -> list[Outcome]:
    """The outcomes of rows, from their labels and whether each label is predicted, both [rows, labels]."""
    known = labels != IGNORED
    sides = (labels == 1, predicted & known, ~known)
    return [[np.flatnonzero(side[row]).tolist() for side in sides] for row in range(len(labels))]


def _is_given(value: Any, name: str) -> int | None:
    """Whether a row has a label, from the value in the column of the label; None for a missing value.

    Raises:
        ValueError: the value is neither 0 nor 1.
    """
    if value is None or written(value) == "":
        return None
    if written(value) not in (*_TRUE, *_FALSE):
        raise ValueError(f"column {name!r} of a label: must be 0 or 1, or empty without an annotation, got {value!r}")
    return int(written(value) in _TRUE)
