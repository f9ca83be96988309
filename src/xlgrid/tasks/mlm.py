"""Masked language modelling on the texts of a study, which other runs begin with (Devlin et al. 2019, section 3.1).

A pair has both of its texts in each input: translation language modelling (Conneau and Lample 2019, section 3.3).
"""

import math
from typing import Literal

from pydantic import Field, PositiveInt

from xlgrid.base.settings import Strict

# One row of a text in so many is for the dev set. Without a bound, that of a Wikipedia would have a hundred thousand rows.
DEV_EVERY = 50
DEV_ROWS = 10_000


def is_for_dev(row: int, dev_rows: int) -> bool:
    """Whether a row of a text, by its number, is for the dev set, which has at most `dev_rows`; else it is for training."""
    return row % DEV_EVERY == 0 and row < DEV_EVERY * dev_rows


def split_sizes(rows: int, dev_rows: int) -> tuple[int, int]:
    """The number of rows of a text that are for training and for the dev set."""
    dev = min(math.ceil(rows / DEV_EVERY), dev_rows)
    return rows - dev, dev


class Options(Strict):
    """The options that decide what becomes of the rows of a text."""

    documents: Literal["cut", "split"] = Field(
        "cut",
        description="rows of more than `max_length` tokens lose their end, or become several inputs, without a loss; "
        "those of a pair are cut",
    )
    dev_rows: PositiveInt = Field(
        DEV_ROWS, description="most rows to choose checkpoints with: every 50th row, the others are trained on"
    )
