"""The head `token`: labels of words, windows over long sentences, and outcomes that agree with seqeval."""

import warnings
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokens_fixture import collate, write

from xlgrid.data import batches
from xlgrid.heads import HEADS, metric
from xlgrid.heads.token import Span, accuracy_outcome, span_outcome, spans, windows

LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
SENTENCE = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8)


@given(st.lists(SENTENCE, min_size=1, max_size=5))
@settings(max_examples=200)
def test_span_f1_is_seqevals(sentences: list[list[tuple[int, int]]]) -> None:
    from seqeval.metrics import f1_score

    predicted = [[LABELS[p] for p, _ in sentence] for sentence in sentences]
    gold = [[LABELS[g] for _, g in sentence] for sentence in sentences]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = 100 * f1_score(gold, predicted)
    score = metric("f1").score([span_outcome(LABELS, [p for p, _ in s], [g for _, g in s]) for s in sentences])
    assert score == pytest.approx(expected), (predicted, gold)


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("O O", set()),
        ("B-A I-A O B-A", {("A", 0, 1), ("A", 3, 3)}),
        ("I-A I-A", {("A", 0, 1)}),
        ("B-A B-A", {("A", 0, 0), ("A", 1, 1)}),
        ("B-A I-B I-B", {("A", 0, 0), ("B", 1, 2)}),
    ],
)
def test_spans(tags: str, expected: set[Span]) -> None:
    assert spans(tags.split()) == expected


def test_accuracy_of_tokens_counts_tokens_not_examples() -> None:
    outcomes = [
        accuracy_outcome(LABELS, [1, 2, 3], [1, 2, 3]),
        accuracy_outcome(LABELS, [0], [1]),
    ]
    assert metric("accuracy").score(outcomes) == 75


@pytest.mark.parametrize(("labels", "metric"), [(("NOUN", "VERB"), "accuracy"), (LABELS, "f1")])
def test_the_metric_follows_from_the_labels(labels: tuple[str, ...], metric: str) -> None:
    assert [measured.name for measured in HEADS["token"].metrics(labels)] == [metric]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=20), st.integers(3, 12))
def test_every_word_begins_in_exactly_one_window(pieces: list[int], max_length: int) -> None:
    """Each word is whole, unless it has no room even alone."""
    word_of = [None, *(word for word, count in enumerate(pieces) for _ in range(count)), None]
    parts = windows(word_of, max_length)
    assert all(len(part) <= max_length and part[0] == 0 and part[-1] == len(word_of) - 1 for part in parts)
    words = [(word, len(list(group))) for part in parts for word, group in groupby(word_of[at] for at in part[1:-1])]
    assert words == [(word, min(count, max_length - 2)) for word, count in enumerate(pieces)]


def test_a_sentence_that_fits_is_one_window_of_all_its_tokens() -> None:
    assert windows([None, 0, 0, 1, None], 5) == [[0, 1, 2, 3, 4]]
    assert windows([None, 0, 0, 1, None], 4) == [[0, 1, 2, 4], [0, 3, 4]]


def test_no_room_for_a_word_is_an_error() -> None:
    with pytest.raises(ValueError, match="max_length 2 leaves no room for a word"):
        windows([None, 0, 1, None], 2)


def test_padding_has_no_labels(tmp_path: Path) -> None:
    tokens = batches.read(write(tmp_path / "t.arrow", [[5, 5], [7, 7, 7]], "token"))
    made = collate(tokens, np.array([1, 0]))
    assert made["labels"].tolist() == [[-100, 1, 1], [-100, 2, -100]]
    assert "token_type_ids" not in made
