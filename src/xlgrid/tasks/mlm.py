"""Masked language modelling on the texts of a study, which other runs begin with (Devlin et al. 2019, section 3.1).

A pair has both of its texts in each input: translation language modelling (Conneau and Lample 2019, section 3.3).
"""

from typing import Literal

from pydantic import Field, PositiveInt

from xlgrid.base.settings import Strict

# Without a bound, the dev set of a Wikipedia would have a hundred thousand inputs.
DEV_INPUTS = 10_000


class Options(Strict):
    """What becomes of the rows of a text."""

    documents: Literal["cut", "split"] = Field(
        "cut",
        description="rows of more than `max_length` tokens lose their end, or become several inputs, without a loss; "
        "those of a pair are cut",
    )
    dev_inputs: PositiveInt = Field(
        DEV_INPUTS,
        description="most inputs to choose checkpoints with; rows that would be for them and do not fit are trained on",
    )
