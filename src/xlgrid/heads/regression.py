"""The head `regression`, which predicts a number for an input of one or two segments, such as how similar they are."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from xlgrid.base.arrays import Ints
from xlgrid.base.settings import Strict
from xlgrid.heads.encoding import Encoding
from xlgrid.heads.head import Evaluated, Example, Head, TaskColumns, at_least_fp32
from xlgrid.heads.metrics import Metric, OfAll, Ratio, Share
from xlgrid.heads.sequence import RowHead
from xlgrid.heads.tokens import Tokens

if TYPE_CHECKING:
    import pyarrow as pa
    import torch
    from transformers import PreTrainedModel

Numbers = NDArray[np.float64]


def pearson(outcomes: Numbers) -> float:
    """Pearson's correlation of gold and predicted numbers, [examples, 2], times 100; 0 if either is constant."""
    gold, predicted = (outcomes - outcomes.mean(0)).T
    # A sum of squares may underflow where numbers are nearly constant.
    spread = np.linalg.norm(gold) * np.linalg.norm(predicted)
    return 100 * float(np.clip(gold @ predicted / spread, -1, 1)) if np.ptp(outcomes, axis=0).all() and spread else 0.0


def spearman(outcomes: Numbers) -> float:
    """Spearman's correlation: Pearson's correlation of ranks, where equal numbers have their mean rank."""
    from scipy.stats import rankdata

    return pearson(rankdata(outcomes, axis=0))


def _squared(outcome: list[float]) -> Share:
    return (outcome[0] - outcome[1]) ** 2, 1


_OF_ERRORS: Any = {"unit": "", "higher_is_better": False, "is_reported": False}
_TEXT = "xlgrid.heads.regression: {} of gold and predicted numbers"
METRICS: tuple[Metric, ...] = (
    OfAll("spearman", _TEXT.format("rank correlation") + " times 100, as scipy's spearmanr; 0 of a constant", spearman),
    OfAll("pearson", _TEXT.format("correlation") + " times 100, as scipy's pearsonr; 0 of a constant", pearson),
    Ratio("mse", _TEXT.format("mean squared difference"), _squared, scale=1, **_OF_ERRORS),
)


class Scaling(Strict):
    """The options of a regression."""

    scale: float = Field(
        1.0,
        gt=0,
        description="the loss compares numbers divided by this one, such as 5 for similarities from 0 to 5; outcomes "
        "and scores have the numbers of the data",
    )


class RegressionHead(Head):
    """A number for one or two texts. In a pair, the second text is in the second language.

    The target is the number, or a text that says it. The loss is the mean squared error. The outcome of an example is
    `[gold, predicted]`.
    """

    name = "regression"
    model_suffix = "SequenceClassification"
    modules = RowHead.modules
    reads_first_token = True
    inputs_allowed = (1, 2)
    has_labels = False
    allows_smoothing = False
    all_metrics: ClassVar[tuple[Metric, ...]] = METRICS
    options = Scaling

    def second(self, task: TaskColumns) -> str | None:
        return task.inputs[1] if len(task.inputs) == 2 else None

    def check(self, table: "pa.Table", task: TaskColumns, where: str, first_row: int = 1) -> None:
        super().check(table, task, where, first_row)
        for row, value in enumerate(table[task.target].to_pylist(), start=first_row):
            if not _is_number(value):
                raise ValueError(f"{where}, row {row}, column {task.target!r}: expected a number, got {value!r}")

    def fields(self) -> list["pa.Field"]:
        import pyarrow as pa

        return [pa.field("label", pa.float64())]

    def encode(self, table: "pa.Table", task: TaskColumns, encoding: Encoding) -> dict[str, list[Any]]:
        columns = encoding.cut([table[column].to_pylist() for column in task.inputs], task.inputs[-1])
        return columns | {"label": [float(value) for value in table[task.target].to_pylist()]}

    def batch_labels(self, tokens: Tokens, rows: Ints, arrays: Mapping[str, np.ndarray], positions: Ints) -> np.ndarray:
        scale = Scaling.model_validate(tokens.options).scale
        labels: np.ndarray = (tokens.columns["label"][rows] / scale).astype(np.float32)
        return labels

    def settings(self, labels: int) -> dict[str, int]:
        return {"num_labels": 1}

    def terms(self, batch: dict[str, "torch.Tensor"]) -> int:
        return len(batch["labels"])

    def loss(self, model: "PreTrainedModel", batch: dict[str, "torch.Tensor"]) -> "torch.Tensor":
        predicted, gold = self.scores(model, batch)
        return (at_least_fp32(predicted.squeeze(-1)) - gold).square().sum()

    def predict(
        self, model: "PreTrainedModel", batch: dict[str, "torch.Tensor"], tokens: Tokens, rows: Ints
    ) -> list[Any]:
        predicted, _ = self.scores(model, batch)
        scale = Scaling.model_validate(tokens.options).scale
        values = predicted.squeeze(-1).double().cpu().numpy() * scale
        return [[*pair] for pair in zip(tokens.columns["label"][rows].tolist(), values.tolist(), strict=True)]

    def chance(self, tokens: Tokens) -> dict[str, float]:
        """The scores if the mean is predicted for all rows."""
        gold = np.asarray(tokens.columns["label"], float)
        outcomes = [[value, float(gold.mean())] for value in gold.tolist()]
        return {each.name: each.score(outcomes) for each in self.all_metrics}

    def examples(self, seen: Evaluated) -> list[Example]:
        return seen.rows((f"{gold:g}", f"{predicted:g}", None) for gold, predicted in seen.outcomes)


def _is_number(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and math.isfinite(float(value))
    except (TypeError, ValueError):
        return False
