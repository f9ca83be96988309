"""Metrics of labels, which are functions of a confusion matrix: F1, precision, recall and MCC.

The matrix has, for each class, the number of cases that are right, that are gold and that are predicted. A case is a
row, a word, a label of a row with several labels, or a span. The conventions are those of scikit-learn, which seqeval
follows for spans:

- Macro averages are over the classes that are gold or predicted in some case (`labels=None`). A class that a test set
  lacks counts, with 0, as soon as a model predicts it. For rows with several labels, they are over all labels that
  the test set is annotated with, because scikit-learn gets a matrix with a column for each label.
- What cannot be computed is 0 (`zero_division=0`), such as the precision of a class that is never predicted. MCC is 0
  if all cases have one gold label, or one predicted label.
- `f1:positive` is the F1 of the label `positive`, and likewise for spans, where labels are types.

All scores are in percent; MCC is multiplied by 100.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xlgrid.heads.metrics import LABEL, Metric, Outcome

Array = NDArray[Any]
# The step of a derivative along the imaginary axis, which is exact, because nothing is subtracted.
_STEP = 1e-30
# The columns of a matrix: the cases of a class that are right, gold and predicted.
_RIGHT, _GOLD, _PREDICTED, _ANNOTATED = range(4)


class Cases(NamedTuple):
    """The cases of the examples of a task.

    Attributes:
        noun: the cases in words.
        classes: a function that returns the classes of a task from its labels.
        matrices: a function that returns the numbers of right, gold and predicted cases, [examples, classes, 3], from the
            outcomes and the labels of the task. A fourth number may say that an example is annotated with the class.
    """

    noun: str
    classes: Callable[[tuple[str, ...]], tuple[str, ...]]
    matrices: Callable[[Sequence[Any], tuple[str, ...]], Array]


@dataclass(frozen=True)
class OfCounts(Metric):
    """A function of a confusion matrix.

    Attributes:
        function: a function that returns scores, [...], for matrices, [..., classes, 3]. It computes with complex
            numbers, which must be compared by their real parts only, and does not depend on the scale of the matrix.
        cases: the cases that are counted.
        only: whether the metric is about one class; otherwise about all other classes. None: about all classes.
        labels: the labels of the task, which `of` sets.
        chosen: the positions of the classes that the metric is about.
    """

    function: Callable[[Array], Array]
    cases: Cases
    only: bool | None = None
    labels: tuple[str, ...] = field(default=(), repr=False)
    chosen: tuple[int, ...] = field(default=(), repr=False)

    def of(self, labels: Sequence[str]) -> "tuple[OfCounts, ...]":
        labels = tuple(labels)
        classes = self.cases.classes(labels)
        every = range(len(classes))
        if self.only is None:
            return (replace(self, labels=labels, chosen=(*every,)),)
        return tuple(
            replace(
                self,
                name=self.name + name,
                labels=labels,
                chosen=(at,) if self.only else tuple(other for other in every if other != at),
                implementation=f"{self.implementation} {name}",
            )
            for at, name in enumerate(classes)
        )

    def _counts(self, outcomes: Sequence[Outcome]) -> Array:
        """The matrix of each example, [examples, classes, 3]."""
        if _counted.get("outcomes") is not outcomes:
            _counted.clear()
        key = self.cases, self.labels
        if key not in _counted:
            _counted.update({"outcomes": outcomes, key: self.cases.matrices(outcomes, self.labels)})
        counts: Array = _counted[key][:, list(self.chosen)]
        return counts

    def score(self, outcomes: Iterable[Outcome]) -> float:
        listed = outcomes if isinstance(outcomes, list) else [*outcomes]
        return 100 * float(self.function(self._counts(listed).sum(0).astype(float))) if listed else 0.0

    def moves(self, outcomes: Sequence[Outcome]) -> NDArray[np.float64]:
        """The effect of each example on the score, in its unit, to first order (the delta method).

        Returns:
            Shape [examples]: the number of examples times the change of `score` per unit of the example's weight.
        """
        counts = self._counts(outcomes)
        flat = counts.reshape(len(counts), -1)
        # Row i is the matrix with a small imaginary part in its entry i.
        matrices = flat.sum(0) + 1j * _STEP * np.eye(flat.shape[1])
        gradient = self.function(matrices.reshape(-1, *counts.shape[1:])).imag / _STEP
        moves: NDArray[np.float64] = 100 * len(flat) * (flat @ gradient)
        return moves


# The outcomes that were counted last, and their counts by cases and labels: the metrics of a cell share them.
_counted: dict[Any, Any] = {}


def _quotient(numerators: Array, denominators: Array, defined: Array | None = None) -> Array:
    """A quotient, which is 0 where it is not defined."""
    defined = denominators.real > 0 if defined is None else defined
    numerators, denominators, defined = np.broadcast_arrays(numerators, denominators, defined)
    result = np.zeros(numerators.shape, np.result_type(numerators, denominators))
    quotients: Array = np.divide(numerators, denominators, out=result, where=defined)
    return quotients


# For each measure, the columns of a matrix whose sum is the denominator. The numerator is as many times the right cases.
_DENOMINATORS = {"f1": [_GOLD, _PREDICTED], "precision": [_PREDICTED], "recall": [_GOLD]}


def averaged(average: str, measure: str, counts: Array) -> Array:
    """The F1, precision or recall of matrices, [..., classes, 3 or 4].

    Args:
        average: `micro` (of the sum of the classes), `macro` (the mean over the classes with which examples are annotated,
            or else with gold or predicted cases), or `weighted` (the mean weighted by the gold cases).
    """
    columns = _DENOMINATORS[measure]
    numerators, denominators = len(columns) * counts[..., _RIGHT], counts[..., columns].sum(-1)
    if average == "micro":
        return _quotient(numerators.sum(-1), denominators.sum(-1))
    if average == "weighted":
        weights = counts[..., _GOLD]
    else:
        weights = counts[..., [_ANNOTATED] if counts.shape[-1] > _ANNOTATED else [_GOLD, _PREDICTED]].real.sum(-1) > 0
    return _quotient((weights * _quotient(numerators, denominators)).sum(-1), weights.sum(-1))


def correlation(counts: Array) -> Array:
    """Matthews' correlation coefficient of matrices, for any number of classes: R_K of Gorodkin (2004)."""
    right, gold, predicted = (counts[..., column] for column in (_RIGHT, _GOLD, _PREDICTED))
    cases = gold.sum(-1)
    covariance = right.sum(-1) * cases - (gold * predicted).sum(-1)
    of_gold, of_predicted = (cases**2 - (sums**2).sum(-1) for sums in (gold, predicted))
    spread = (of_gold.real > 0) & (of_predicted.real > 0)
    return _quotient(covariance, np.sqrt(of_gold * of_predicted), spread)


def measure(
    name: str, average: str, of: str, cases: Cases, follows: str, is_reported: bool = False, only: bool | None = None
) -> OfCounts:
    """F1, precision or recall of some cases.

    Args:
        average: see `averaged`.
        of: `f1`, `precision` or `recall`.
        follows: the function of a library with the same result.
    """
    which = {None: "", True: ", of the label", False: ", without the label"}[only]
    text = f"xlgrid.heads.classification: {average} {of} of {cases.noun}, as {follows}{which}"
    return OfCounts(name, text, partial(averaged, average, of), cases, only, is_reported=is_reported)


def measures(cases: Cases, follows: str, micro: str | None = None) -> list[OfCounts]:
    """The averages of F1, precision and recall, and those of each class.

    Args:
        follows: a function of a library for each measure, as a pattern with the `{measure}` and the `{average}`.
        micro: the beginning of the names of micro averages; None: only that of F1, where the three are equal.
    """
    means = [("micro-f1", "micro", "f1")] if micro is None else [(micro + of, "micro", of) for of in _DENOMINATORS]
    means += [(f"{average}-{of}", average, of) for average in ("macro", "weighted") for of in _DENOMINATORS]
    of_each = [(of + LABEL, of, follows.format(measure=of, average=None)) for of in _DENOMINATORS]
    return [
        *(measure(name, mean, of, cases, follows.format(measure=of, average=mean)) for name, mean, of in means),
        *(measure(name, "micro", of, cases, text, only=True) for name, of, text in of_each),
    ]


def counted(examples: Array, gold: Array, predicted: Array, shape: tuple[int, int]) -> Array:
    """The counts of cases with one gold and one predicted label each.

    Args:
        examples, gold, predicted: [cases], the example and the numbers of the labels of each case.
        shape: the numbers of examples and of classes.
    """
    counts = np.zeros((*shape, 3), np.int32)
    right = gold == predicted
    np.add.at(counts[..., _RIGHT], (examples[right], gold[right]), 1)
    np.add.at(counts[..., _GOLD], (examples, gold), 1)
    np.add.at(counts[..., _PREDICTED], (examples, predicted), 1)
    return counts


def confusion(pairs: Iterable[Sequence[int]], labels: int) -> NDArray[np.int64]:
    """[labels, labels], how often each label is predicted (second axis) where each label is gold (first axis), from the numbers
    of the gold and the predicted label of each case."""
    counts = np.zeros((labels, labels), np.int64)
    np.add.at(counts, tuple(np.array([*pairs], np.int64).reshape(-1, 2).T), 1)
    return counts


def _of_rows(outcomes: Sequence[Any], labels: tuple[str, ...]) -> Array:
    gold, predicted = np.array(outcomes, np.int64).reshape(-1, 2).T
    return counted(np.arange(len(outcomes)), gold, predicted, (len(outcomes), len(labels)))


def _of_words(outcomes: Sequence[Any], labels: tuple[str, ...]) -> Array:
    examples = np.repeat(np.arange(len(outcomes)), [len(gold) for gold, _ in outcomes])
    gold, predicted = (np.fromiter(chain.from_iterable(each[side] for each in outcomes), np.int64) for side in (0, 1))
    return counted(examples, gold, predicted, (len(outcomes), len(labels)))


ROWS = Cases("rows", lambda labels: labels, _of_rows)
WORDS = Cases("words", lambda labels: labels, _of_words)


def accuracy(cases: Cases, is_reported: bool = True) -> OfCounts:
    """The share of right cases, for cases with one gold label each."""
    text = f"xlgrid.heads.classification: right / all {cases.noun}"
    return OfCounts("accuracy", text, partial(averaged, "micro", "recall"), cases, is_reported=is_reported)


def classification(cases: Cases) -> tuple[Metric, ...]:
    """The metrics of cases with one label each. Accuracy is the main one."""
    text = f"xlgrid.heads.classification: correlation of {cases.noun}, as scikit-learn's matthews_corrcoef, times 100"
    mcc = OfCounts("mcc", text, correlation, cases, is_reported=False)
    follows = "scikit-learn's {measure}_score(average={average!r}, labels=None, zero_division=0)"
    return (accuracy(cases), *measures(cases, follows), mcc)
