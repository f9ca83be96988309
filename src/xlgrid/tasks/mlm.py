"""Masked language modelling on the texts of a study, which other runs begin with (Devlin et al. 2019, section 3.1).

A pair has both of its texts in each input: translation language modelling (Conneau and Lample 2019, section 3.3).
"""

import math
from typing import Literal, Self

from pydantic import Field, PositiveInt, model_validator

from xlgrid.base.settings import Strict

# So many ids of a text give one row to the dev set and one to the test set. `DEV_ROWS` bounds both sets, because those of a Wikipedia
# would have a hundred thousand rows each.
HELD_OUT_EVERY = 50
DEV_ROWS = 10_000


class HoldOut:
    """Decides for each row of a text, in the order of the rows, which split the row is for.

    The first row with an id from 0 to 24 is for the dev set, the first one with an id from 25 to 49 for the test set, and so on. So
    parallel texts hold out rows of the same ids, even if lines are empty in one of them alone, unless the empty one is the first of its
    25: there the two texts hold out different rows, and no pair.

    Args:
        dev_rows: the most rows of the dev set, and of the test set.
    """

    def __init__(self, dev_rows: int) -> None:
        self._end = HELD_OUT_EVERY * dev_rows
        self._half = -1

    def split_of(self, number: int) -> Literal["train", "dev", "test"]:
        """The split of the next row, by its id, which is larger than that of the row before."""
        half = number // (HELD_OUT_EVERY // 2)
        is_first, self._half = half > self._half, half
        if not is_first or number >= self._end:
            return "train"
        return "test" if half % 2 else "dev"


def split_sizes(rows: int, dev_rows: int) -> tuple[int, int, int]:
    """The number of rows of a text that are for training, for the dev set and for the test set, if its ids are 0, 1, ..."""
    dev, test = (min(math.ceil(max(0, rows - first) / HELD_OUT_EVERY), dev_rows) for first in (0, HELD_OUT_EVERY // 2))
    return rows - dev - test, dev, test


class Options(Strict):
    """The options that decide what becomes of the rows of a text."""

    documents: Literal["cut", "split", "pack"] = Field(
        "cut",
        description="rows of more than `max_length` tokens lose their end (cut), or become several inputs (split); pack: rows fill "
        "inputs of `max_length` tokens one after another, with a separator between them. Rows of a pair are cut",
    )
    lines: Literal["joined", "segments"] = Field(
        "joined",
        description="a line break in a row is a space, or begins the second segment, as a question follows its context; with "
        "`documents: cut`, for languages, since a pair has two segments anyway",
    )
    dev_rows: PositiveInt = Field(
        DEV_ROWS,
        description="most rows to choose checkpoints with, and most rows to test on: every 50th row, and those halfway between "
        "them, or the next row where one has no text; the others are trained on",
    )

    @model_validator(mode="after")
    def _segments_are_of_whole_rows(self) -> Self:
        if self.lines == "segments" and self.documents != "cut":
            raise ValueError(
                f"`lines: segments` goes with `documents: cut`, got `{self.documents}`: leave out one of the two"
            )
        return self
