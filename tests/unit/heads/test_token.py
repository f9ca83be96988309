"""The head `token`: labels of words, windows over long sentences, and outcomes that agree with seqeval."""

import re
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokens_fixture import collate, write

from xlgrid.data import batches
from xlgrid.heads import HEADS
from xlgrid.heads.token import windows
from xlgrid.tasks import task

LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
INSIDE = ("O", "I-PER", "I-LOC")
BILOU = ("O", "B-PER", "I-PER", "L-PER", "U-PER")


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


@pytest.mark.parametrize(
    ("labels", "numbers", "remark"),
    [
        (["NOUN", "VERB"], [1], None),
        (["O", "PER", "LOC"], [1], "the metric is the accuracy of words; for the F1 of spans, write I-PER"),
        (BILOU, [1, 3, 0, 4], None),
        (BILOU, [1, 2, 0, 3], "3 of 3 words with the label of an entity are in no whole entity of BILOU"),
    ],
)
def test_labels_that_are_scored_otherwise_than_they_look_are_told(
    labels: list[str], numbers: list[int], remark: str | None
) -> None:
    described = task("token", {"inputs": ["words"], "target": "tags", "labels": list(labels)})
    remarks = HEADS["token"].remarks(pa.table({"words": [["w"] * len(numbers)], "tags": [numbers]}), described)
    assert remarks == [] if remark is None else remark in remarks[0]


@pytest.mark.parametrize(
    ("labels", "metric", "read_as"),
    [
        (("NOUN", "VERB"), "accuracy", "right / all words"),
        (LABELS, "f1", "IOB (IOB1 and IOB2 alike), as seqeval's default mode"),
        (INSIDE, "f1", "IOB (IOB1 and IOB2 alike), as seqeval's default mode"),
        (("o", "per_b", "per_i"), "f1", "IOB (IOB1 and IOB2 alike), as seqeval's default mode"),
        (BILOU, "f1", "BILOU, as seqeval's mode strict, scheme BILOU"),
    ],
)
def test_the_metric_and_its_definition_follow_from_the_labels(
    labels: tuple[str, ...], metric: str, read_as: str, tmp_path: Path
) -> None:
    main = HEADS["token"].metric(labels)
    assert main.name == metric
    assert [each.name for each in HEADS["token"].metrics(labels) if each.is_reported] == [metric]
    tokens = batches.read(write(tmp_path / "t.arrow", [[5]], "token"))
    assert read_as in HEADS["token"].implementation(replace(tokens, label_names=labels), main)


def test_labels_of_half_a_scheme_are_refused_with_the_labels_to_write() -> None:
    for kind in ("token", "token-chunks"):
        with pytest.raises(
            ValueError, match=r"`labels`: B-PER, I-PER mark spans, and LOC does not: .* B-LOC and I-LOC"
        ):
            task(kind, {"inputs": ["words"], "target": "tags", "labels": ["O", "B-PER", "I-PER", "LOC"]})
    with pytest.raises(ValueError, match="`labels` mark spans as BILOU, which `kind: token` scores"):
        task("token-chunks", {"inputs": ["words"], "target": "tags", "labels": list(BILOU)})


@pytest.mark.parametrize("other", ["Other", "0", "BPER"])
def test_another_name_of_a_label_is_translated_as_errors_about_schemes_say(other: str) -> None:
    described = task("token", {"inputs": ["words"], "target": "tags", "labels": ["O", "B-PER", "I-PER"]})
    target = pa.chunked_array([[["B-PER", "I-PER", other]]])
    assert HEADS["token"].labelled(target, described, {other: "O"}).to_pylist() == [[1, 2, 0]]


@pytest.mark.parametrize("form", ["{}-{}", "{}_{}"])
def test_the_name_of_a_type_translates_its_labels_in_each_notation(form: str) -> None:
    for letters, labels in (("BI", [form]), ("bi", [form]), ("BI", ["{1}-{0}"])):
        outside = "o" if letters.islower() else "O"
        written = lambda kind: [labels[0].format(letter, kind) for letter in letters]  # noqa: B023, E731
        described = task(
            "token", {"inputs": ["words"], "target": "tags", "labels": [outside, *written("PER"), *written("LOC")]}
        )
        target = pa.chunked_array([[[*written("PERSON"), outside, *written("DATE"), *written("LOC")]]])
        names = {"PERSON": "PER", "DATE": outside}
        assert {*names.values()} <= {*HEADS["token"].label_names(described)}
        translated = HEADS["token"].labelled(target, described, names)
        assert translated.to_pylist() == [[1, 2, 0, 0, 0, 3, 4]]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=20), st.integers(3, 12))
def test_every_word_begins_in_exactly_one_window(pieces: list[int], max_length: int) -> None:
    """Each word is whole, unless it has no room even alone."""
    word_of = [None, *(word for word, count in enumerate(pieces) for _ in range(count)), None]
    parts = windows(word_of, max_length)
    assert all(len(part) <= max_length and part[0] == 0 and part[-1] == len(word_of) - 1 for part in parts)
    words = [(word, len(list(group))) for part in parts for word, group in groupby(word_of[at] for at in part[1:-1])]
    assert words == [(word, min(count, max_length - 2)) for word, count in enumerate(pieces)]


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
        ValueError, match="here, row 1, column 'tags', word 'a': expected the number of the label 'VERB'"
    ):
        described.check(named, "here")
    with pytest.raises(
        ValueError, match="here, row 2, column 'tags', word 'b': unknown label 'NUON', did you mean 'NOUN'"
    ):
        described.check(pa.table({"words": [["a"], ["b"]], "tags": [["VERB"], ["NUON"]]}), "here")


@pytest.mark.parametrize(("words", "got"), [(["Anna", None], "nothing"), ([3, 4], "3")])
def test_words_are_texts(words: list[object], got: str) -> None:
    described = task("token", {"inputs": ["words"], "target": "tags", "labels": ["NOUN", "VERB"]})
    with pytest.raises(ValueError, match=rf"here, row 1, column 'words', word \d: must be a text, got {got}"):
        described.check(pa.table({"words": [words], "tags": [[0, 1]]}), "here")


@pytest.mark.parametrize(("labels", "metric_name"), [(("a", "b", "c"), "accuracy"), (("O", "B-PER", "I-PER"), "f1")])
def test_chance_is_the_score_of_the_most_frequent_label_for_each_word(
    labels: tuple[str, ...], metric_name: str, tmp_path: Path
) -> None:
    """Of the F1 of entities 0, since most words are outside of all."""
    gold = [[0, 1, 0], [0, 0], [2, 0, 0, 1]]
    tokens = batches.read(write(tmp_path / "t.arrow", [[9, *[3 + label for label in row]] for row in gold], "token"))
    chance = HEADS["token"].chance(replace(tokens, label_names=labels))
    assert chance[metric_name] == pytest.approx(0.0 if metric_name == "f1" else 100 * 6 / 9)
    assert chance["accuracy"] == pytest.approx(100 * 6 / 9)
