"""Windows over long contexts, and the best answer over all windows of a question."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xlgrid.heads.spans import NOTHING, Answer, Spans, Window

from xlgrid.heads import spans

TEXT = "Ada met Bob in Rome."
FIRST = np.array([-1, -1, -1, 0, 4, 8, 12, 15, 19, -1], np.int32)
LAST = np.array([-1, -1, -1, 3, 7, 11, 14, 19, 20, -1], np.int32)


def logits(**at: float) -> np.ndarray:
    found = np.zeros(len(FIRST))
    for place, value in at.items():
        found[int(place[1:])] = value
    return found


def words(count: int) -> list[tuple[int, int]]:
    """Characters of words of three letters and a space."""
    return [(4 * at, 4 * at + 3) for at in range(count)]


@given(st.integers(1, 60), st.integers(1, 30), st.data())
def test_windows_cover_the_context_and_share_the_stride(count: int, room: int, data: st.DataObject) -> None:
    stride = data.draw(st.integers(0, room - 1))
    found = list(spans.windows(words(count), (0, 3), room, stride))
    assert found[0].start == 0 and found[-1].end == count
    assert all(0 < window.end - window.start <= room for window in found)
    for one, after in pairwise(found):
        assert one.end - after.start == stride
        assert one.end < after.end, "each says something new"


@given(st.integers(1, 40), st.integers(2, 20), st.data())
def test_a_window_has_the_answer_exactly_where_it_is_whole(count: int, room: int, data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, count - 1))
    end = data.draw(st.integers(begin, count - 1))
    answer = words(count)[begin][0], words(count)[end][1]
    for window in spans.windows(words(count), answer, room, room // 2):
        whole = window.start <= begin and end < window.end
        assert window.answer == ((begin, end) if whole else None)


def test_an_answer_that_begins_inside_a_token_takes_the_whole_token() -> None:
    [window] = spans.windows([(0, 5), (6, 12), (13, 20)], (8, 15), 10, 2)
    assert window == Window(0, 3, (1, 2))


def test_an_answer_of_a_character_that_two_tokens_share_does_not_end_before_it_starts() -> None:
    [window] = spans.windows([(0, 5), (6, 7), (6, 7)], (6, 7), 10, 2)
    assert window == Window(0, 3, (2, 2))


def test_the_best_span_has_the_highest_sum() -> None:
    found = spans.best(logits(_3=2.0, _5=3.0), logits(_5=1.0, _7=0.5), FIRST, LAST, TEXT)
    assert found == Answer(4.0, "Bob")


def test_an_answer_has_no_space_around_it() -> None:
    """Tokens of XLM-R may begin with the one before them."""
    first = np.where(FIRST > 0, FIRST - 1, FIRST).astype(np.int32)
    assert spans.best(logits(_5=3.0), logits(_5=1.0), first, LAST, TEXT).text == "Bob"


def test_an_end_before_its_start_is_no_answer() -> None:
    found = spans.best(logits(_7=9.0), logits(_3=9.0, _8=0.1), FIRST, LAST, TEXT)
    assert found.text == "Rome."


def test_an_answer_is_never_outside_of_the_context() -> None:
    found = spans.best(logits(_0=9.0, _5=1.0), logits(_9=9.0, _5=1.0), FIRST, LAST, TEXT)
    assert found == Answer(2.0, "Bob")


def test_an_answer_is_no_longer_than_permitted() -> None:
    count = spans.LONGEST + 5
    first, last = (np.array([4 * at + more for at in range(count)], np.int32) for more in (0, 3))
    starts, ends = np.zeros(count), np.zeros(count)
    starts[0], ends[spans.LONGEST], ends[spans.LONGEST - 1] = 5, 5, 1
    found = spans.best(starts, ends, first, last, "wor " * count)
    assert found == Answer(6.0, ("wor " * spans.LONGEST)[:-1])


def test_only_the_most_likely_starts_and_ends_count() -> None:
    outside = np.full(spans.BEST, -1, np.int32)
    first, last = np.append(outside, 0).astype(np.int32), np.append(outside, 3).astype(np.int32)
    high = np.append(np.ones(spans.BEST), 0.0)
    assert spans.best(high, high, first, last, "Ada") is NOTHING
    assert spans.best(high[1:], high[1:], first[1:], last[1:], "Ada").text == "Ada"


def test_the_best_window_answers_its_question() -> None:
    made = Spans(
        first=FIRST,
        last=LAST,
        examples=np.array([0, 0, 1]),
        texts=pa.array(["", "", ""]),
        answers=pa.array([["Ada"], ["Ada"], ["Rome", "the old Rome"]]),
    )
    found = spans.outcomes(made, [Answer(1.0, "Bob"), Answer(2.0, "Ada"), Answer(0.0, "old Rome")])
    assert found == [[1.0, 1.0], [1.0, 1.0]]
    assert spans.outcomes(made, [Answer(3.0, "Bob"), Answer(2.0, "Ada"), NOTHING]) == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("order", [[2, 0], [1, 1, 2]])
def test_windows_that_are_taken_keep_what_is_theirs(order: list[int]) -> None:
    made = Spans(
        first=np.array([0, 1, 2], np.int32),
        last=np.array([1, 2, 3], np.int32),
        examples=np.array([0, 0, 1]),
        texts=pa.array(["a", "b", "c"]),
        answers=pa.array([["x"], ["y"], ["z"]]),
    )
    chosen = np.array(order)
    found = Spans.joined([made.take(chosen[:1], chosen[:1]), made.take(chosen[1:], chosen[1:])])
    assert found.texts.to_pylist() == ["abc"[at] for at in order]
    assert found.answers.to_pylist() == [["xyz"[at]] for at in order]
    assert found.first.tolist() == order and found.examples.tolist() == [at // 2 for at in order]
