"""Spans of labelled words as the cases of a metric, such as named entities, and the metrics of labels of words."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlgrid.heads.classification import WORDS, Cases, accuracy, classification, measure, measures
from xlgrid.heads.metrics import LABEL, Metric
from xlgrid.heads.schemes import Span, scheme_of


def types(labels: tuple[str, ...]) -> tuple[str, ...]:
    """The types of spans among labels, which follow a scheme, in their order."""
    scheme = scheme_of(labels)
    return tuple(dict.fromkeys(kind for label in labels if scheme and (kind := scheme.tag(label).type)))


def spans_of(labels: tuple[str, ...]) -> Callable[[Sequence[str]], set[Span]]:
    """A function that returns the spans of a sentence, from the labels of its words."""
    scheme = scheme_of(labels)
    assert scheme
    return scheme.spans


def span_cases(
    noun: str,
    classes: Callable[[tuple[str, ...]], tuple[str, ...]] = types,
    spans: Callable[[tuple[str, ...]], Callable[[Sequence[str]], set[Span]]] = spans_of,
    is_typed: bool = True,
) -> Cases:
    """Spans as the cases of a metric. An outcome is `[gold, predicted]`, the label numbers of the words of a sentence.

    Args:
        classes, spans: functions that return the types of spans, and the function `spans_of`, for the labels of a task.
        is_typed: whether spans of different types are different.
    """

    def count(outcomes: Sequence[Any], labels: tuple[str, ...]) -> np.ndarray:
        find, number = spans(labels), {kind: at for at, kind in enumerate(classes(labels) if is_typed else ())}
        counts = np.zeros((len(outcomes), len(number) if is_typed else 1, 3), np.int32)
        for example, sides in enumerate(outcomes):
            gold, predicted = (
                {(number.get(kind, 0), *place) for kind, *place in find([labels[at] for at in side])} for side in sides
            )
            for column, found in enumerate((gold & predicted, gold, predicted)):
                for kind, *_ in found:
                    counts[example, kind, column] += 1
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
