"""The head `token-chunks`: chunks are those that seqeval reads from parts of speech."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows_fixture import rows_of

from xlgrid.heads import HEADS
from xlgrid.heads.token import Words
from xlgrid.heads.token_chunks import CHUNK_F1, chunks
from xlgrid.synthetic.miniatures.udpos import LABELS

HEAD = HEADS["token-chunks"]
# seqeval 1.2 leaves out the first letter of a label, so that it takes CCONJ for SCONJ, and X for the O between sentences; 0.0.12 did not.
APART = [number for number, label in enumerate(LABELS) if label not in ("CCONJ", "X")]
# Few labels, so that equal neighbours are frequent.
FEW = [LABELS.index(label) for label in ("NOUN", "SCONJ", "SYM", "INTJ")]


def sentences(labels: list[int]) -> st.SearchStrategy[list[list[tuple[int, int]]]]:
    """Predicted and gold label of each word of some sentences."""
    word = st.tuples(st.sampled_from(labels), st.sampled_from(labels))
    return st.lists(st.lists(word, min_size=1, max_size=8), min_size=1, max_size=5)


@given(sentences(APART) | sentences(FEW))
def test_f1_is_seqevals(of_words: list[list[tuple[int, int]]]) -> None:
    from seqeval.metrics import f1_score

    predicted, gold = ([[LABELS[word[side]] for word in each] for each in of_words] for side in (0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = 100 * f1_score(gold, predicted)
    outcomes = [[[g for _, g in each], [p for p, _ in each]] for each in of_words]
    assert HEAD.metric(LABELS).score(outcomes) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("NOUN NOUN VERB", {("NOUN", 0, 1), ("VERB", 2, 2)}),
        ("NOUN VERB NOUN", {("NOUN", 0, 0), ("VERB", 1, 1), ("NOUN", 2, 2)}),
        ("SYM SYM SCONJ", {("SYM", 0, 0), ("SYM", 1, 1), ("SCONJ", 2, 2)}),
        ("CCONJ SCONJ", {("CCONJ", 0, 0), ("SCONJ", 1, 1)}),
        ("INTJ INTJ", {("INTJ", 0, 1)}),
        ("X X NOUN X", {("X", 0, 1), ("NOUN", 2, 2), ("X", 3, 3)}),
        ("", set()),
    ],
)
def test_chunks(tags: str, expected: set[tuple[str, int, int]]) -> None:
    numbers = np.array([LABELS.index(tag) for tag in tags.split()], np.int64)
    found = chunks(tuple(LABELS))(numbers, np.arange(len(numbers)) == 0)
    rows = zip(found.firsts.tolist(), found.lasts.tolist(), found.kinds.tolist(), strict=True)
    assert {(LABELS[kind], first, last) for first, last, kind in rows} == expected


def test_the_chunks_of_a_sentence_cross_its_windows() -> None:
    tokens = rows_of("token-chunks", {"example": np.zeros(2, np.int64)}, label_names=LABELS)
    noun, verb = LABELS.index("NOUN"), LABELS.index("VERB")
    windows = [Words([noun, noun], [noun, noun]), Words([noun, noun], [noun, verb])]
    outcomes = HEAD.outcomes(tokens, windows)
    assert outcomes == [[[noun] * 4, [noun, noun, noun, verb]]]
    [counts] = CHUNK_F1.cases.matrices(outcomes, LABELS)
    assert counts.sum(0).tolist() == [0, 1, 2]
