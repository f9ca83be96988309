"""The head `sequence`, which predicts a label for an input of one or two segments."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from xlgrid.base.arrays import Ints
from xlgrid.base.names import unknown
from xlgrid.heads.classification import ROWS, classification, confusion
from xlgrid.heads.encoding import Encoding
from xlgrid.heads.head import Evaluated, Example, Head, TaskColumns, written
from xlgrid.heads.metrics import Metric
from xlgrid.heads.tokens import Tokens

if TYPE_CHECKING:
    import pyarrow as pa
    import torch
    from transformers import PreTrainedModel


class RowHead(Head):
    """A label for each row. The outcome of an example is `[gold, predicted]`, the numbers of two labels."""

    modules = ("pooler", "pre_classifier", "classifier", "classification_head")
    all_metrics: ClassVar[tuple[Metric, ...]] = classification(ROWS)
    reads_first_token = True
    class_column = "label"

    def labelled(self, target: "pa.ChunkedArray", task: TaskColumns, names: Mapping[str, str]) -> "pa.Array":
        """The target column as text, after labels of the source are translated."""
        import pyarrow as pa

        labels = [None if label is None else written(label) for label in target.to_pylist()]
        return pa.array([label and names.get(label, label) for label in labels], pa.string())

    def label_counts(self, table: "pa.Table", task: TaskColumns) -> Counter[str]:
        return Counter(map(written, table[task.target].to_pylist()))

    def fields(self) -> list["pa.Field"]:
        import pyarrow as pa

        return [pa.field("label", pa.int64())]

    def batch_labels(self, tokens: Tokens, rows: Ints, arrays: Mapping[str, np.ndarray], positions: Ints) -> np.ndarray:
        labels: np.ndarray = tokens.columns["label"][rows]
        return labels

    def predict(
        self, model: "PreTrainedModel", batch: dict[str, "torch.Tensor"], tokens: Tokens, rows: Ints
    ) -> list[list[int]]:
        import torch

        logits, labels = self.scores(model, batch)
        return list(torch.stack([labels, logits.argmax(-1)], 1).tolist())

    def chance(self, tokens: Tokens) -> dict[str, float]:
        """The scores if the most frequent label is predicted for all rows."""
        labels = tokens.columns["label"]
        majority = int(np.bincount(labels).argmax())
        outcomes = [[label, majority] for label in labels.tolist()]
        metrics = (each for metric in RowHead.all_metrics for each in metric.of(tokens.label_names))
        return {each.name: score for each in metrics if (score := each.score(outcomes)) or each.is_listed}

    def examples(self, seen: Evaluated) -> list[Example]:
        names = seen.labels
        return seen.rows((names[gold], names[predicted], gold == predicted) for gold, predicted in seen.outcomes)

    def confusion(self, labels: Sequence[str], outcomes: Sequence[Any]) -> NDArray[np.int64] | None:
        return confusion(outcomes, len(labels))


class SequenceHead(RowHead):
    """A label for one or two texts. The target is the name of the label. In a pair, the second text is in the second
    language."""

    name = "sequence"
    model_suffix = "SequenceClassification"
    inputs_allowed = (1, 2)
    output_per_label = True

    def second(self, task: TaskColumns) -> str | None:
        return task.inputs[1] if len(task.inputs) == 2 else None

    def check(self, table: "pa.Table", task: TaskColumns, where: str, first_row: int = 1) -> None:
        super().check(table, task, where, first_row)
        check_names(table[task.target].to_pylist(), task, where, first_row)

    def encode(self, table: "pa.Table", task: TaskColumns, encoding: Encoding) -> dict[str, list[Any]]:
        columns = encoding.cut([table[column].to_pylist() for column in task.inputs], task.inputs[-1])
        return columns | {"label": [task.labels.index(label) for label in table[task.target].to_pylist()]}


def check_names(names: Sequence[Any], task: TaskColumns, where: str, first_row: int) -> None:
    """Raise a ValueError if a value of the target column is not the name of a label."""
    for row, name in enumerate(names, start=first_row):
        if name not in task.labels:
            raise ValueError(
                f"{where}, row {row}, column {task.target!r}: {unknown('label', name, task.labels)}; `labels` of the "
                "task lists its labels, and `labels` in `data` translates those of the source into them"
            )
