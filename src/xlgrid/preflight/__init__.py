"""Checks of a study and of the machine before anything computes, and fetching of what the study needs."""

from enum import Enum
from typing import NamedTuple


class State(Enum):
    """The result of a check, as the mark before its line. Lines are printed in the order of these marks."""

    PROBLEM = "✗"
    OPEN = "?"
    GOOD = "✓"


class Line(NamedTuple):
    """A line of `xlgrid check` or `xlgrid doctor`: the result of one check.

    Attributes:
        state: a problem, in order, or open. The state is open if the check was not possible, or if it depends on
            something that only the user knows, such as whether a cluster will run the study.
        thing: the checked thing, such as "data ner".
        text: the result; for a problem, also the next step.
    """

    state: State
    thing: str
    text: str
