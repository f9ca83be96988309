"""The head `span`: windows over long contexts, the best answer over all windows of a question, and SQuAD's scores."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows_fixture import rows_of

from xlgrid.heads import HEADS
from xlgrid.heads.span import head as span
from xlgrid.heads.span.head import NO_ANSWER, Answer, Window

TEXT = "Ada met Bob in Rome."
FIRST = np.array([-1, -1, -1, 0, 4, 8, 12, 15, 19, -1], np.int32)
LAST = np.array([-1, -1, -1, 3, 7, 11, 14, 19, 20, -1], np.int32)


def logits(**at: float) -> np.ndarray:
    scores = np.zeros(len(FIRST))
    for place, value in at.items():
        scores[int(place[1:])] = value
    return scores


def outcome(predicted: str, gold: list[str]) -> list[float]:
    """The outcome of an answer as it stands in the data."""
    return span.answer_outcome(*map(span.normalised, [predicted, *gold]))


def words(count: int) -> list[tuple[int, int]]:
    """Characters of words of three letters and a space."""
    return [(4 * at, 4 * at + 3) for at in range(count)]


@given(st.integers(1, 60), st.integers(1, 30), st.data())
def test_windows_cover_the_context_and_share_the_stride(count: int, room: int, data: st.DataObject) -> None:
    stride = data.draw(st.integers(0, room - 1))
    windows = list(span.windows(words(count), (0, 3), room, stride))
    assert windows[0].start == 0 and windows[-1].end == count
    assert all(0 < window.end - window.start <= room for window in windows)
    for before, after in pairwise(windows):
        assert before.end - after.start == stride
        assert before.end < after.end, "each says something new"


@given(st.integers(1, 40), st.integers(2, 20), st.data())
def test_a_window_has_the_answer_exactly_where_it_is_whole(count: int, room: int, data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, count - 1))
    end = data.draw(st.integers(begin, count - 1))
    answer = words(count)[begin][0], words(count)[end][1]
    for window in span.windows(words(count), answer, room, room // 2):
        whole = window.start <= begin and end < window.end
        assert window.answer == ((begin, end) if whole else None)


def test_an_answer_that_begins_inside_a_token_takes_the_whole_token() -> None:
    [window] = span.windows([(0, 5), (6, 12), (13, 20)], (8, 15), 10, 2)
    assert window == Window(0, 3, (1, 2))


def test_an_answer_of_a_character_that_two_tokens_share_does_not_end_before_it_starts() -> None:
    [window] = span.windows([(0, 5), (6, 7), (6, 7)], (6, 7), 10, 2)
    assert window == Window(0, 3, (2, 2))


def test_the_best_span_has_the_highest_sum() -> None:
    answer = span.best(logits(_3=2.0, _5=3.0), logits(_5=1.0, _7=0.5), FIRST, LAST, TEXT)
    assert answer == Answer(4.0, "Bob")


def test_an_answer_has_no_space_around_it() -> None:
    """Tokens of XLM-R may begin with the one before them."""
    first = np.where(FIRST > 0, FIRST - 1, FIRST).astype(np.int32)
    assert span.best(logits(_5=3.0), logits(_5=1.0), first, LAST, TEXT).text == "Bob"


def test_an_end_before_its_start_is_no_answer() -> None:
    answer = span.best(logits(_7=9.0), logits(_3=9.0, _8=0.1), FIRST, LAST, TEXT)
    assert answer.text == "Rome."


def test_an_answer_is_never_outside_of_the_context() -> None:
    answer = span.best(logits(_0=9.0, _5=1.0), logits(_9=9.0, _5=1.0), FIRST, LAST, TEXT)
    assert answer == Answer(2.0, "Bob")


def test_an_answer_is_no_longer_than_permitted() -> None:
    count = span.LONGEST + 5
    first, last = (np.array([4 * at + more for at in range(count)], np.int32) for more in (0, 3))
    starts, ends = np.zeros(count), np.zeros(count)
    starts[0], ends[span.LONGEST], ends[span.LONGEST - 1] = 5, 5, 1
    answer = span.best(starts, ends, first, last, "wor " * count)
    assert answer == Answer(6.0, ("wor " * span.LONGEST)[:-1])


def test_only_the_most_likely_starts_and_ends_count() -> None:
    outside = np.full(span.BEST, -1, np.int32)
    first, last = np.append(outside, 0).astype(np.int32), np.append(outside, 3).astype(np.int32)
    high = np.append(np.ones(span.BEST), 0.0)
    assert span.best(high, high, first, last, "Ada") is NO_ANSWER
    assert span.best(high[1:], high[1:], first[1:], last[1:], "Ada").text == "Ada"


def test_the_best_window_answers_its_question() -> None:
    answers = pa.array([["Ada"], ["Ada"], ["Rome", "the old Rome"]])
    tokens = rows_of("span", {"example": np.array([0, 0, 1]), "answers": answers})
    head = HEADS["span"]
    answers = head.answers(tokens, [Answer(1.0, "Bob"), Answer(2.0, "Ada"), Answer(0.0, "old Rome")])
    assert answers == ["Ada", "old Rome"]
    assert head.outcomes(tokens, answers) == [[1.0, 1.0], [1.0, 1.0]]
    assert head.answers(tokens, [Answer(2.0, "Ada"), Answer(2.0, "Bob"), NO_ANSWER]) == ["Ada", ""]
    assert head.outcomes(tokens, ["Bob", ""]) == [[0.0, 0.0], [0.0, 0.0]]


# By hand, from the definition: SQuAD v1.1's script lowers, then drops punctuation, articles and superfluous spaces.
@pytest.mark.parametrize(
    ("predicted", "gold", "f1", "em"),
    [
        ("the Cat.", ["cat"], 1.0, 1.0),
        ("An  apple, a pear", ["apple pear"], 1.0, 1.0),
        ("theatre", ["atre"], 0.0, 0.0),
        ("U.S.", ["us"], 1.0, 1.0),
        ("Denver Broncos", ["The Denver Broncos of 2015"], 2 / 3, 0.0),
        ("red red", ["red"], 2 / 3, 0.0),
        ("two three", ["one two", "two three four"], 0.8, 0.0),
        ("Wolf", ["ten wolves", "a wolf"], 1.0, 1.0),
        ("", ["wolf"], 0.0, 0.0),
        ("the", ["a"], 0.0, 1.0),
        ("«Анна»", ["Анна"], 0.0, 0.0),
        ("哈哈 (X)", ["哈哈 x"], 1.0, 1.0),
    ],
)
def test_answers_are_scored_as_in_squad(predicted: str, gold: list[str], f1: float, em: float) -> None:
    assert outcome(predicted, gold) == pytest.approx([f1, em])


def test_answers_drawn_by_chance_are_scored_as_in_transformers() -> None:
    """`squad_fixture.py` made the answers and scores."""
    cases = json.loads((Path(__file__).parent / "squad.json").read_text(encoding="utf-8"))
    for predicted, gold, f1, em in cases:
        assert outcome(predicted, gold) == pytest.approx([f1, em]), (predicted, gold)


@pytest.mark.parametrize("starts", [["0"], [0.0], [None], [0, "1"]], ids=str)
def test_starts_that_are_no_whole_numbers_are_named(starts: list[object]) -> None:
    problem = span.wrong_answers("a b", {"text": ["a", "b"][: len(starts)], "answer_start": starts})
    assert problem and str(starts) in problem and "whole numbers" in problem
