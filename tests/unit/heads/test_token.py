"""The head `token`: labels of words, windows over long sentences, and outcomes that agree with seqeval."""

import re
import warnings
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokens_fixture import collate, write

from xlgrid.data import batches
from xlgrid.heads import HEADS, metric
from xlgrid.heads.token import Span, accuracy_outcome, span_outcome, spans, windows
from xlgrid.tasks import task

LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
# Labels of a data set's own, with a type that others lack.
DATES = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC", "B-DATE", "I-DATE")
# Ends of spans and spans of one word have labels of their own in BIOES.
BIOES = (*LABELS, "E-PER", "S-PER", "E-LOC", "S-LOC")
INSIDE = ("O", "I-PER", "I-LOC")


@pytest.mark.parametrize("labels", [LABELS, DATES, BIOES, INSIDE])
@given(data=st.data())
@settings(max_examples=200)
def test_span_f1_is_seqevals(labels: tuple[str, ...], data: st.DataObject) -> None:
    from seqeval.metrics import f1_score

    number = st.integers(0, len(labels) - 1)
    sentence = st.lists(st.tuples(number, number), min_size=1, max_size=8)
    sentences = data.draw(st.lists(sentence, min_size=1, max_size=5))
    predicted = [[labels[p] for p, _ in sentence] for sentence in sentences]
    gold = [[labels[g] for _, g in sentence] for sentence in sentences]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = 100 * f1_score(gold, predicted)
    score = metric("f1").score([span_outcome(labels, [p for p, _ in s], [g for _, g in s]) for s in sentences])
    assert score == pytest.approx(expected), (predicted, gold)


def table_of(*sentences: str) -> pa.Table:
    """Rows with these labels, separated by spaces."""
    tags = [[LABELS.index(tag) for tag in sentence.split()] for sentence in sentences]
    return pa.table({"words": [["w"] * len(sentence) for sentence in tags], "tags": tags})


@pytest.mark.parametrize(
    ("sentences", "remark"),
    [
        (["O B-PER I-PER", "B-LOC B-LOC"], None),
        (["I-PER I-PER B-PER O", "I-LOC I-PER"], r"3 of 4 entities begin with I-, .* \(as in IOB1, where .*seqeval"),
        (["B-PER I-LOC", "B-PER"], r"1 of 3 entities begin with I-, not with B- \(as in IOB2, but these are not\)"),
    ],
)
def test_entities_that_begin_with_i_are_counted(sentences: list[str], remark: str | None) -> None:
    described = task("token", {"inputs": ["words"], "target": "tags", "labels": list(LABELS)})
    remarks = HEADS["token"].remarks(table_of(*sentences), described)
    if remark is None:
        assert remarks == []
    else:
        assert len(remarks) == 1 and re.search(remark, remarks[0]), remarks


def test_the_numbers_of_entities_in_a_remark_are_seqevals() -> None:
    from seqeval.metrics.sequence_labeling import get_entities

    sentences = ["I-PER I-PER B-PER O I-LOC", "B-LOC I-PER I-LOC"]
    total = sum(len(get_entities(sentence.split())) for sentence in sentences)
    described = task("token", {"inputs": ["words"], "target": "tags", "labels": list(LABELS)})
    assert HEADS["token"].remarks(table_of(*sentences), described)[0].startswith(f"4 of {total} entities")


def test_labels_that_are_no_bio_have_no_remarks() -> None:
    described = task("token", {"inputs": ["words"], "target": "tags", "labels": ["NOUN", "VERB"]})
    assert HEADS["token"].remarks(pa.table({"words": [["a"]], "tags": [[1]]}), described) == []


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("O O", set()),
        ("B-A I-A O B-A", {("A", 0, 1), ("A", 3, 3)}),
        ("I-A I-A", {("A", 0, 1)}),
        ("B-A B-A", {("A", 0, 0), ("A", 1, 1)}),
        ("B-A I-B I-B", {("A", 0, 0), ("B", 1, 2)}),
        ("B-A E-A I-A S-A", {("A", 0, 1), ("A", 2, 2), ("A", 3, 3)}),
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


@pytest.mark.parametrize(("labels", "metric"), [(("NOUN", "VERB"), "accuracy"), (LABELS, "f1"), (INSIDE, "f1")])
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
    batch = collate(tokens, np.array([1, 0]))
    assert batch["labels"].tolist() == [[-100, 1, 1], [-100, 2, -100]]
    assert "token_type_ids" not in batch


def test_names_that_are_no_numbers_yet_are_refused() -> None:
    described = task("token", {"inputs": ["words"], "target": "tags", "labels": ["NOUN", "VERB"]})
    named = pa.table({"words": [["a"], ["b"]], "tags": [["VERB"], ["NOUN"]]})
    with pytest.raises(
        ValueError, match="here, row 0, column 'tags', word 'a': expected the number of the label 'VERB'"
    ):
        described.check(named, "here")
    with pytest.raises(
        ValueError, match="here, row 1, column 'tags', word 'b': unknown label 'NUON', did you mean 'NOUN'"
    ):
        described.check(pa.table({"words": [["a"], ["b"]], "tags": [["VERB"], ["NUON"]]}), "here")
