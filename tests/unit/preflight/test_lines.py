"""Problems come first, each line is one line, and the summary counts."""

from xlgrid.preflight.lines import Line, State, ordered, summary, written

LINES = [Line(State.GOOD, "a", "fine"), Line(State.PROBLEM, "b", "bad:\n  - x"), Line(State.OPEN, "c", "unknown")]


def test_problems_come_first_and_what_is_in_order_last() -> None:
    assert [line.thing for line in ordered(LINES)] == ["b", "c", "a"]


def test_a_line_is_one_line_whatever_its_text() -> None:
    assert written(LINES[1]) == "✗ b: bad: - x"


def test_the_summary_counts_each_state() -> None:
    assert summary(LINES) == "1 problem, 1 open, 1 in order"
    assert summary(LINES[:1]) == "no problems, 0 open, 1 in order"
