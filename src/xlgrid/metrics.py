"""Metrics, computed from per-example outcomes, so that a cell's examples can be paired and resampled later.

An outcome is 0 or 1 for the accuracy of a sequence, `[correct, labelled]` for the accuracy of tokens, and
`[true positives, false positives, false negatives]` for span F1.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

Outcome = int | list[int]
Span = tuple[str, int, int]

IMPLEMENTATIONS = {
    "accuracy": "xlgrid.metrics: correct / all (of a token task: of the first pieces of words)",
    "f1": "xlgrid.metrics: micro-averaged F1 of exact spans, read from BIO as conlleval and seqeval (default mode) do",
}


def metric_of(head: str, labels: Sequence[str]) -> str:
    """The metric of a task: `f1` where tokens carry BIO labels, `accuracy` otherwise."""
    return "f1" if head == "token" and any(label.startswith("B-") for label in labels) else "accuracy"


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

    counts = np.asarray(outcomes, dtype=float)
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
