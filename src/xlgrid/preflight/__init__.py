"""What can go wrong is found before anything computes: checks of a study and of the machine, and what is fetched beforehand."""

from enum import Enum
from typing import NamedTuple


class State(Enum):
    """The state of a thing, by the mark that is printed before its line. The order is that in which lines are printed."""

    PROBLEM = "✗"
    OPEN = "?"
    GOOD = "✓"


class Line(NamedTuple):
    """A line of `xlgrid check` or `xlgrid doctor`: the result of one check.

    Attributes:
        state: whether there is a problem, whether all is in order, or whether that is open: the check could not be made, or it
            depends on what only the user knows, such as whether a cluster will run the study.
        thing: what was checked, such as "data ner".
        text: the result; of a problem, also what to do next.
    """

    state: State
    thing: str
    text: str
