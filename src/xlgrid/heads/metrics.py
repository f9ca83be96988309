"""Metrics, computed from per-example outcomes, so that a cell's examples can be paired and resampled later.

An outcome is 0 or 1 for the accuracy of a sequence or a choice, `[correct, labelled]` for the accuracy of tokens,
`[true positives, false positives, false negatives]` for F1 of labelled spans, and `[F1, exact match]`, each from 0 to 1,
for an answer to a question.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

Outcome = int | list[int] | list[float]
Span = tuple[str, int, int]

IMPLEMENTATIONS = {
    "accuracy": "xlgrid.heads.metrics: correct / all (of a token task: of the first pieces of words)",
    "f1": "xlgrid.heads.metrics: micro-averaged F1 of exact spans, read from BIO as conlleval and seqeval (default mode) do",
    "squad-f1": "xlgrid.heads.metrics: F1 of words, mean over questions, as the evaluation script of SQuAD v1.1 has it",
    "squad-em": "xlgrid.heads.metrics: exact match, mean over questions, as the evaluation script of SQuAD v1.1 has it",
}
# In the order of an outcome.
SQUAD = ("squad-f1", "squad-em")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


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


def score(metric: str, outcomes: Sequence[Outcome]) -> float:
    """The metric over all examples, in percent; 0 where nothing can be counted (no example, no span)."""
    if metric in SQUAD:
        return 100 * sum(_of_answer(metric, outcomes)) / max(1, len(outcomes))
    sums = [sum(column) for column in zip(*([o] if isinstance(o, int) else o for o in outcomes), strict=True)]
    if metric == "f1":
        found, spurious, missed = sums or (0, 0, 0)
        return 100 * 2 * found / max(1, 2 * found + spurious + missed)
    correct, total = sums if len(sums) == 2 else (sum(sums), len(outcomes))
    return 100 * correct / max(1, total)


def influences(metric: str, outcomes: Sequence[Outcome]) -> "np.ndarray":
    """How far each example moves the metric, in points, to first order; their mean is 0.

    The variance of a score over draws of as many examples is the mean of their squares / n. Without anything to count, all
    are 0.

    Returns:
        Shape [examples]: n times the change of `score` per unit of the example's weight.
    """
    import numpy as np

    counts = np.asarray(_of_answer(metric, outcomes) if metric in SQUAD else outcomes, dtype=float)
    if counts.ndim == 1:
        counts = np.stack([counts, np.ones_like(counts)], axis=1)
    if metric == "f1":
        found, spurious, missed = counts.reshape(-1, 3).T
        part, whole = 2 * found, 2 * found + spurious + missed
    else:
        part, whole = counts.T
    if not whole.sum():
        return np.zeros(len(outcomes))
    return 100 * (part - whole * part.sum() / whole.sum()) / whole.mean()


def _of_answer(metric: str, outcomes: Sequence[Outcome]) -> list[float]:
    """What a metric of `SQUAD` is the mean of."""
    at = SQUAD.index(metric)
    return [one[at] for one in outcomes if not isinstance(one, int)]
