"""The head `span-mlqa`: answers are compared as MLQA's evaluation compares them, in the language of the context."""

import sys
from collections import Counter
from string import punctuation
from unicodedata import category

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows_fixture import rows_of

from xlgrid.heads import HEADS
from xlgrid.heads.span.mlqa import MlqaSpanHead

LANGUAGES = ("en", "es", "hi", "vi", "de", "ar", "zh")
# The steps of MLQA's script of evaluation, version 1, written out without regular expressions.
MARKS = {chr(i) for i in range(sys.maxunicode + 1) if category(chr(i))[0] == "P"} | set(punctuation)
ARTICLES = {
    "en": "a an the",
    "es": "un una unos unas el la los las",
    "vi": "của là cái chiếc những",
    "de": "ein eine einen einem eines einer der die das den dem des",
}


def words_as_in_the_script(text: str, language: str) -> list[str]:
    text = "".join([letter for letter in text.lower() if letter not in MARKS])
    if language == "ar":
        text = " ".join(text.split("ال"))
    # A word of letters, digits and underscores that is an article becomes a space.
    pieces = [""]
    for letter in text:
        is_inside = letter.isalnum() or letter == "_"
        was_inside = bool(pieces[-1]) and (pieces[-1][-1].isalnum() or pieces[-1][-1] == "_")
        pieces = [*pieces, letter] if is_inside != was_inside else [*pieces[:-1], pieces[-1] + letter]
    articles = ARTICLES.get(language, "").split()
    text = "".join(" " if piece in articles else piece for piece in pieces)
    if language == "zh":
        text = "".join(f" {letter} " if 0x4E00 <= ord(letter) <= 0x9FA5 else letter for letter in text)
    return text.split()


def outcome_as_in_the_script(predicted: str, gold: list[str], language: str) -> list[float]:
    best = [0.0, 0.0]
    guess = words_as_in_the_script(predicted, language)
    for text in gold:
        answer = words_as_in_the_script(text, language)
        shared = sum(min(number, Counter(answer)[word]) for word, number in Counter(guess).items())
        precision, recall = (shared / len(words) if words else 0.0 for words in (guess, answer))
        f1 = 2 * precision * recall / (precision + recall) if shared else 0.0
        best = [max(best[0], f1), max(best[1], float(guess == answer))]
    return best


def outcome(predicted: str, gold: list[str], context: str, question: str = "en") -> list[float]:
    """The outcome of the head for one question, with the languages of its two segments."""
    codes = (context, question)
    segments = HEADS["span-mlqa"].segment_languages(codes)
    tokens = rows_of(
        "span-mlqa",
        {"example": np.array([0]), "answers": pa.array([gold])},
        languages=codes,
        language_of=np.array([[codes.index(code) for code in segments]], np.int16),
    )
    [scores] = HEADS["span-mlqa"].outcomes(tokens, [predicted])
    assert isinstance(scores, list)
    return [float(value) for value in scores]


@pytest.mark.parametrize(
    ("language", "predicted", "gold", "f1", "em"),
    [
        ("en", "the Cat.", "cat", 1.0, 1.0),
        ("es", "«El gato»", "gato", 1.0, 1.0),
        ("de", "den großen Hund", "der große Hund", 0.5, 0.0),
        ("de", "the Hund", "Hund", 2 / 3, 0.0),
        ("vi", "những con mèo", "con mèo", 1.0, 1.0),
        ("hi", "लाल किला।", "लाल किला", 1.0, 1.0),
        ("ar", "الكتاب", "كتاب", 1.0, 1.0),
        ("zh", "北京市", "北京", 0.8, 0.0),
        ("zh", "1990年 IBM公司", "1990年IBM公司", 1.0, 1.0),
        # Languages that MLQA does not have.
        ("ru", "«Анна»", "анна", 1.0, 1.0),
        ("ja", "北京市", "北京", 0.0, 0.0),
    ],
)
def test_answers_are_compared_in_their_language(language: str, predicted: str, gold: str, f1: float, em: float) -> None:
    assert outcome(predicted, [gold], language) == pytest.approx([f1, em])


TEXT = "the a el los la der des ein của là những cat Katze gato x-y U.S. ال الكتاب كتاب 北 京市 年 ， 。 « » 3,5 1990 IBM _a the_ की । é"
PIECES = TEXT.split()
TEXTS = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(["", " ", "  "])), max_size=7).map(
    lambda pieces: "".join(piece + space for piece, space in pieces)
)


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3), st.sampled_from(LANGUAGES))
def test_outcomes_are_those_of_the_script(predicted: str, gold: list[str], language: str) -> None:
    assert outcome(predicted, gold, language) == pytest.approx(outcome_as_in_the_script(predicted, gold, language))


def test_the_language_of_the_context_counts_and_not_that_of_the_question() -> None:
    assert outcome("北京市", ["北京"], "zh", "en") == pytest.approx([0.8, 0.0])
    assert outcome("the cat", ["cat"], "zh", "en") == pytest.approx([2 / 3, 0.0])


def test_another_code_of_a_language_has_its_normalisation() -> None:
    head = MlqaSpanHead()
    assert head.normalised("The house", "eng") == "house"
    assert head.normalised("北京市", "cmn") == head.normalised("北京市", "zho") == "北 京 市"
    assert head.normalised("The house", "qa1") == "the house"


def test_metrics_have_names_of_their_own() -> None:
    """SQuAD's metrics normalise in another way, so that their scores are not to be mixed."""
    assert [metric.name for metric in MlqaSpanHead().metrics(())] == ["mlqa-f1", "mlqa-em"]
