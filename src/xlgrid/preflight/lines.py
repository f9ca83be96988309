"""The lines that `xlgrid check` and `xlgrid doctor` print: one for each thing that was checked."""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple


class State(Enum):
    """The state of a thing, by the mark that is printed before its line. The order is that in which lines are printed."""

    PROBLEM = "✗"
    OPEN = "?"
    GOOD = "✓"


class Line(NamedTuple):
    """The result of one check.

    Attributes:
        state: whether there is a problem, whether all is in order, or whether that is open: the check could not be made, or it
            depends on what only the user knows, such as whether a cluster will run the study.
        thing: what was checked, such as "data ner".
        text: the result; of a problem, also what to do next.
    """

    state: State
    thing: str
    text: str


def ordered(lines: Iterable[Line]) -> list[Line]:
    """The lines with problems first, then open ones, each kind in the order in which they came."""
    return sorted(lines, key=lambda line: [*State].index(line.state))


def written(line: Line) -> str:
    """A line as it is printed. Line breaks of error messages become spaces."""
    return f"{line.state.value} {line.thing}: {' '.join(line.text.split())}"


def summary(lines: Iterable[Line]) -> str:
    """The numbers of problems, open checks and checks without a problem."""
    states = [line.state for line in lines]
    problems, opened, good = (states.count(state) for state in State)
    counted = "1 problem" if problems == 1 else f"{problems or 'no'} problems"
    return f"{counted}, {opened} open, {good} in order"
