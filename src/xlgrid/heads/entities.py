"""Spans of labelled words as the cases of a metric, such as named entities, and the metrics of labels of words."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from xlgrid.heads.classification import WORDS, Cases, accuracy, classification, measure, measures
from xlgrid.heads.metrics import LABEL, Metric
from xlgrid.heads.schemes import Finder, scheme_of


def types(labels: tuple[str, ...]) -> tuple[str, ...]:
    """The types of spans among labels, which follow a scheme, in their order."""
    scheme = scheme_of(labels)
    return tuple(dict.fromkeys(kind for label in labels if scheme and (kind := scheme.tag(label).type)))


def finder_of(labels: tuple[str, ...]) -> Finder:
    """The function that finds spans by the labels of words. Its types are numbered as those of `types`."""
    scheme = scheme_of(labels)
    assert scheme
    return scheme.finder(labels)


def span_cases(
    noun: str,
    classes: Callable[[tuple[str, ...]], tuple[str, ...]] = types,
    finder: Callable[[tuple[str, ...]], Finder] = finder_of,
    is_typed: bool = True,
) -> Cases:
    """Spans as the cases of a metric. An outcome is `[gold, predicted]`, the label numbers of the words of a sentence.

    Args:
        classes, finder: functions that return the types of spans, and the function that finds spans, for the labels of a
            task.
        is_typed: whether spans of different types are different.
    """

    def count(outcomes: Sequence[Any], labels: tuple[str, ...]) -> np.ndarray:
        find, sizes = finder(labels), np.array([len(gold) for gold, _ in outcomes], np.int64)
        example_of = np.repeat(np.arange(len(outcomes)), sizes)
        opens = np.diff(example_of, prepend=-1) > 0
        gold, predicted = (
            find(np.array([*chain.from_iterable(outcome[side] for outcome in outcomes)], np.int64), opens)
            for side in range(2)
        )
        # At most one gold span begins at a word. The last word of this span, and its type.
        last, kind = np.full((2, len(example_of)), -1)
        last[gold.firsts], kind[gold.firsts] = gold.lasts, gold.kinds
        is_right = last[predicted.firsts] == predicted.lasts
        if is_typed:
            is_right &= kind[predicted.firsts] == predicted.kinds
        counts = np.zeros((len(outcomes), len(classes(labels)) if is_typed else 1, 3), np.int32)
        found = (predicted.firsts[is_right], predicted.kinds[is_right]), (gold.firsts, gold.kinds), predicted[::2]
        for column, (firsts, kinds) in enumerate(found):
            np.add.at(counts, (example_of[firsts], kinds if is_typed else 0, column), 1)
        return counts

    return Cases(noun, classes if is_typed else lambda labels: ("",), count)


SPANS, UNTYPED = span_cases("spans"), span_cases("spans without their types", is_typed=False)
_SEQEVAL = "seqeval's {measure}_score(average={average!r}, zero_division=0)"
WORD_METRICS = classification(WORDS)
SPAN_METRICS: tuple[Metric, ...] = (
    measure("f1", "micro", "f1", SPANS, _SEQEVAL.format(measure="f1", average="micro"), is_reported=True),
    *(each for each in measures(SPANS, _SEQEVAL, micro="") if each.name != "f1"),
    measure("untyped-f1", "micro", "f1", UNTYPED, "seqeval's f1_score with one type for all spans"),
    measure(f"f1-without{LABEL}", "micro", "f1", SPANS, "seqeval's f1_score with O for a type", only=False),
    accuracy(WORDS, is_reported=False),
)
