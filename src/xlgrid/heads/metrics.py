"""Metrics. They are computed from the outcomes of examples, so that the examples can be paired and resampled later.

The head defines the outcome of an example:

- `[gold, predicted]`, the numbers of two labels, for a sequence or a choice;
- `[gold, predicted]`, two lists with the number of a label for each word, for labels of words;
- `[gold, predicted, not annotated]`, three lists of the numbers of labels, for several labels of a row;
- `[gold heads, gold relations, predicted heads, predicted relations]`, four lists with a number for each word, for trees;
- `[gold, predicted]`, two numbers, for a regression;
- 0 or 1 for a retrieved sentence, and `[correct, masked]` for the accuracy of masked tokens;
- `[negative log-likelihood, masked]` for the perplexity of masked tokens;
- `[true positives, false positives, false negatives]` for the F1 of mined pairs;
- `[F1, exact match]`, each from 0 to 1, for the answer to a question;
- ten statistics for the BLEU of a sentence.

A metric is a `Ratio` of two sums over examples, a function of a confusion matrix (`xlgrid.heads.classification`), or a
function of all outcomes at once (`OfAll`).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The number of draws of examples from which a bootstrap estimates a variance.
DRAWS = 1000
# What separates a metric from the label that it is about, as in `f1:positive`.
LABEL = ":"
# The parts of names that papers write in another way.
_WRITTEN = {
    "f1": "F1",
    "em": "EM",
    "mcc": "MCC",
    "mse": "MSE",
    "las": "LAS",
    "uas": "UAS",
    "bleu": "BLEU",
    "squad": "SQuAD",
    "mlqa": "MLQA",
    "spearman": "Spearman",
    "pearson": "Pearson",
}
Outcome = int | list[int] | list[float] | list[list[int]]
# The amounts that an example adds to the numerator and to the denominator of a ratio.
Share = tuple[float, float]


@dataclass(frozen=True)
class Metric(ABC):
    """A number that is computed from the outcomes of examples.

    Attributes:
        name: the name in cells, tables and published numbers.
        implementation: the module of the computation and the definition that it follows; cells record it.
        unit: "%" or, for a metric without a unit, "".
        higher_is_better: whether higher scores are better.
        is_reported: whether exhibits, the report and exports show the metric of a task that names no metric of its own.
            Other metrics are shown where they are named.
    """

    name: str
    implementation: str
    unit: str = field(default="%", kw_only=True)
    higher_is_better: bool = field(default=True, kw_only=True)
    is_reported: bool = field(default=True, kw_only=True)

    @property
    def title(self) -> str:
        """The name as papers write it, such as `macro-F1` for `macro-f1`."""
        name, colon, label = self.name.partition(LABEL)
        return "-".join(_WRITTEN.get(part, part) for part in name.split("-")) + colon + label

    @property
    def is_listed(self) -> bool:
        """Whether cells list the score. Cells do not list the scores of single labels, such as `f1:positive`."""
        return LABEL not in self.name

    def of(self, labels: Sequence[str]) -> "tuple[Metric, ...]":
        """The metrics of a task with these labels: this one, or one for each label if the name ends in a colon."""
        return (self,)

    @abstractmethod
    def score(self, outcomes: Iterable[Outcome]) -> float:
        """The metric over all examples, in its unit.

        If nothing can be counted (no example, no span), a metric for which higher is better is 0. A metric for which
        lower is better has no suitable value: 0 would be the best value, tables show NaN as a missing cell, and JSON
        has no infinity.

        Raises:
            ValueError: the metric has no value.
        """

    @abstractmethod
    def moves(self, outcomes: Sequence[Outcome]) -> NDArray[np.float64]:
        """The moves of the score: values whose mean square, divided by their number, is the variance of the score over
        draws of the same number of examples.

        The moves of a weighted sum of scores on the same examples are the weighted sum of their moves, which gives the
        variance of the weighted sum.

        Returns:
            Shape [examples] or [DRAWS], the same for all outcomes with this number of examples. The mean is 0.
        """

    def better(self, first: float, second: float) -> bool:
        """Whether the first of two scores is better than the second."""
        return first > second if self.higher_is_better else first < second


@dataclass(frozen=True)
class Ratio(Metric):
    """A ratio of two sums over examples.

    Attributes:
        shares: a function that returns the amounts that an outcome adds to the numerator and to the denominator.
        scale: the factor of the ratio, 100 for percent.
    """

    shares: Callable[[Any], Share]
    scale: float = 100

    def score(self, outcomes: Iterable[Outcome]) -> float:
        shares = [self.shares(outcome) for outcome in outcomes]
        numerator, denominator = (sum(column) for column in zip(*shares, strict=True)) if shares else (0, 0)
        if denominator > 0:
            return self.scale * numerator / denominator
        if self.higher_is_better:
            return 0.0
        raise ValueError(
            f"{self.name}, for which lower is better, has no value, because nothing can be counted in {len(shares)} "
            "examples: correct the task's data and labels, then tokenize again"
        )

    def moves(self, outcomes: Sequence[Outcome]) -> NDArray[np.float64]:
        """The effect of each example on the ratio, in the unit of the score, to first order; 0 if nothing can be
        counted.

        Returns:
            Shape [examples]: the number of examples times the change of `score` per unit of the example's weight.
        """
        shares = [self.shares(outcome) for outcome in outcomes]
        numerators, denominators = np.array(shares, dtype=float).reshape(-1, 2).T
        if not denominators.sum():
            return np.zeros(len(outcomes))
        ratio = numerators.sum() / denominators.sum()
        moves: NDArray[np.float64] = self.scale * (numerators - denominators * ratio) / denominators.mean()
        return moves


@dataclass(frozen=True)
class OfAll(Metric):
    """A function of the outcomes of all examples at once, such as a rank correlation or BLEU.

    Attributes:
        function: a function that returns the metric in its unit for an array of outcomes, [examples] or [examples,
            values of an outcome]. It gets at least one example, and also returns a number if the metric is undefined,
            such as 0 for the correlation of a constant.
    """

    function: Callable[[NDArray[Any]], float]

    def score(self, outcomes: Iterable[Outcome]) -> float:
        listed = [*outcomes]
        score = float(self.function(np.array(listed))) if listed else 0.0
        if not math.isfinite(score):
            raise ValueError(
                f"{self.name} of {len(listed)} examples is {score}, which is not a score: let its function return a "
                "number, such as 0, if it is undefined; if an outcome is not a number, the model has diverged"
            )
        return score

    def moves(self, outcomes: Sequence[Outcome]) -> NDArray[np.float64]:
        """The difference of the score from its mean, in its unit, times the root of `DRAWS`, in each of `DRAWS` draws
        of examples with replacement (the bootstrap; for BLEU, Koehn 2004).

        The draws depend only on the number of examples.

        Returns:
            Shape [DRAWS].
        """
        array = np.array(outcomes)
        scores = np.array([self.function(np.repeat(array, times, axis=0)) for times in _draws(len(outcomes))])
        moves: NDArray[np.float64] = (scores - scores.mean()) * math.sqrt(DRAWS)
        return moves


@lru_cache(maxsize=1)
def _draws(examples: int) -> NDArray[np.int64]:
    """[DRAWS, examples], the number of times that each draw contains each example."""
    return np.random.default_rng([examples]).multinomial(examples, np.full(examples, 1 / examples), size=DRAWS)


def _accuracy(outcome: int | list[int]) -> Share:
    return (outcome, 1) if isinstance(outcome, int) else (outcome[0], outcome[1])


def _answer_f1(outcome: list[float]) -> Share:
    return outcome[0], 1


def _answer_match(outcome: list[float]) -> Share:
    return outcome[1], 1


def _f1(outcome: list[int]) -> Share:
    true_positives, false_positives, false_negatives = outcome
    return 2 * true_positives, 2 * true_positives + false_positives + false_negatives


ACCURACY = Ratio(
    "accuracy",
    "xlgrid.heads.metrics: correct / all",
    _accuracy,
)
SQUAD_F1 = Ratio(
    "squad-f1",
    "xlgrid.heads.span: F1 of words, mean over questions, as the evaluation script of SQuAD v1.1 has it",
    _answer_f1,
)
SQUAD_EM = Ratio(
    "squad-em",
    "xlgrid.heads.span: exact match, mean over questions, as the evaluation script of SQuAD v1.1 has it",
    _answer_match,
)
MLQA_F1 = Ratio(
    "mlqa-f1",
    "xlgrid.heads.span.mlqa: F1 of words, mean over questions, as MLQA's evaluation script v1 has it for the "
    "context's language",
    _answer_f1,
)
MLQA_EM = Ratio(
    "mlqa-em",
    "xlgrid.heads.span.mlqa: exact match, mean over questions, as MLQA's evaluation script v1 has it for the "
    "context's language",
    _answer_match,
)
MINING_F1 = Ratio(
    "mining-f1",
    "xlgrid.heads.embed.mining: F1 of pairs from two pools above the threshold that is best on the dev set, as XTREME "
    "mines BUCC",
    _f1,
)
