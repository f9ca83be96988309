"""Metrics, computed from the outcome of each example, so that the examples of a cell can be paired and resampled later.

An outcome is 0 or 1 for the accuracy of a sequence or a choice, `[correct, labelled]` for the accuracy of tokens,
`[true positives, false positives, false negatives]` for F1 of labelled spans, and `[F1, exact match]`, each from 0 to 1,
for an answer to a question.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xlgrid.base.names import unknown

if TYPE_CHECKING:
    import numpy as np

Outcome = int | list[int] | list[float]
Span = tuple[str, int, int]
# What an example adds to the numerator and to the denominator of a metric.
Share = tuple[float, float]


@dataclass(frozen=True)
class Metric:
    """A ratio of two sums over examples.

    Attributes:
        name: as cells, tables and published numbers have it.
        unit: "%" or, for a metric without one, "".
        higher_is_better: whether a greater score is a better one.
        implementation: where the computation stands and what it follows; a cell records it.
        shares: outcome of one example -> what it adds to the numerator and to the denominator.
        scale: the factor of the ratio, 100 for percent.
    """

    name: str
    unit: str
    higher_is_better: bool
    implementation: str
    shares: Callable[[Any], Share]
    scale: float = 100

    def score(self, outcomes: Iterable[Outcome]) -> float:
        """The metric over all examples, in its unit; 0 where nothing can be counted (no example, no span)."""
        shares = [self.shares(outcome) for outcome in outcomes]
        numerator, denominator = (sum(column) for column in zip(*shares, strict=True)) if shares else (0, 0)
        return self.scale * numerator / max(1, denominator)

    def influences(self, outcomes: Sequence[Outcome]) -> "np.ndarray":
        """How far each example moves the score, in its unit, to first order; the mean of all is 0.

        The variance of a score over draws of as many examples is the mean of their squares divided by their number. All are
        0 where nothing can be counted.

        Returns:
            Shape [examples]: the number of examples times the change of `score` per unit of the example's weight.
        """
        import numpy as np

        shares = [self.shares(outcome) for outcome in outcomes]
        numerators, denominators = np.array(shares, dtype=float).reshape(-1, 2).T
        if not denominators.sum():
            return np.zeros(len(outcomes))
        ratio = numerators.sum() / denominators.sum()
        return self.scale * (numerators - denominators * ratio) / denominators.mean()

    def better(self, first: float, second: float) -> bool:
        """Whether the first of two scores is the better one."""
        return first > second if self.higher_is_better else first < second


def _accuracy(outcome: int | list[int]) -> Share:
    return (outcome, 1) if isinstance(outcome, int) else (outcome[0], outcome[1])


def _span_f1(outcome: list[int]) -> Share:
    true_positives, false_positives, false_negatives = outcome
    return 2 * true_positives, 2 * true_positives + false_positives + false_negatives


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "accuracy",
            "%",
            True,
            "xlgrid.heads.metrics: correct / all (of a token task: of the first pieces of words)",
            _accuracy,
        ),
        Metric(
            "f1",
            "%",
            True,
            "xlgrid.heads.metrics: micro-averaged F1 of exact spans, read from BIO as conlleval and seqeval (default mode) do",
            _span_f1,
        ),
        Metric(
            "squad-f1",
            "%",
            True,
            "xlgrid.heads.metrics: F1 of words, mean over questions, as the evaluation script of SQuAD v1.1 has it",
            lambda outcome: (outcome[0], 1),
        ),
        Metric(
            "squad-em",
            "%",
            True,
            "xlgrid.heads.metrics: exact match, mean over questions, as the evaluation script of SQuAD v1.1 has it",
            lambda outcome: (outcome[1], 1),
        ),
    )
}
# In the order of an outcome.
SQUAD = ("squad-f1", "squad-em")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def metric(name: str) -> Metric:
    """The metric of a name.

    Raises:
        ValueError: there is none; the message names the nearest.
    """
    if name not in METRICS:
        raise ValueError(unknown("metric", name, METRICS))
    return METRICS[name]


def metrics_of(head: str, labels: Sequence[str]) -> tuple[str, ...]:
    """The metrics of a task, the main one first: `SQUAD` of answers to questions, `f1` where tokens carry BIO labels,
    `accuracy` otherwise."""
    if head == "span":
        return SQUAD
    return ("f1",) if head == "token" and any(label.startswith("B-") for label in labels) else ("accuracy",)


def metric_of(head: str, labels: Sequence[str]) -> str:
    """The main metric of a task: the one that chooses checkpoints, and that tables show unless they name another."""
    return metrics_of(head, labels)[0]


def normalised(text: str) -> str:
    """An answer as SQuAD's evaluation compares it: lower case, without ASCII punctuation and English articles, its words
    separated by single spaces. XQuAD's evaluation does so in every language (Artetxe et al. 2020)."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def answer(predicted: str, gold: Sequence[str]) -> list[float]:
    """The outcome of a question: F1 of the words of a predicted answer, and whether it matches, of the gold answer for
    which each is highest (Rajpurkar et al. 2016, section 6)."""
    ours, theirs = normalised(predicted), [normalised(one) for one in gold]
    return [max(_words_f1(ours.split(), one.split()) for one in theirs), float(ours in theirs)]


def _words_f1(ours: Sequence[str], theirs: Sequence[str]) -> float:
    """0 where either has no words, which in SQuAD v1.1 no gold answer lacks."""
    shared = (Counter(ours) & Counter(theirs)).total()
    return 2 * shared / (len(ours) + len(theirs)) if shared else 0.0


def spans(tags: Sequence[str]) -> set[Span]:
    """Spans (type, first, last) of BIO `tags`; an I- that continues nothing opens a span, as in conlleval."""
    found: set[Span] = set()
    start, kind = 0, ""
    for at, tag in enumerate([*tags, "O"]):
        here = "" if tag == "O" else tag[2:]
        if kind and (tag.startswith("B-") or here != kind):
            found.add((kind, start, at - 1))
            kind = ""
        if here and not kind:
            start, kind = at, here
    return found


def outcome(metric: str, labels: Sequence[str], predicted: Sequence[int], gold: Sequence[int]) -> list[int]:
    """The outcome of a token-labelled example, from label numbers of its labelled tokens."""
    if metric == "accuracy":
        return [sum(p == g for p, g in zip(predicted, gold, strict=True)), len(gold)]
    ours, theirs = (spans([labels[number] for number in numbers]) for numbers in (predicted, gold))
    return [len(ours & theirs), len(ours - theirs), len(theirs - ours)]
