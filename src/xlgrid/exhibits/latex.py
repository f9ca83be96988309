"""The place of an exhibit in a LaTeX document, and the settings of a table there: the key `latex` of an exhibit."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from xlgrid.base.settings import Strict
from xlgrid.results.naming import as_tuple

# The axes whose values do not compete with one another: a target with a higher score is not a better target.
NO_RIVALS = ("task", "target", "metric", "seed", "group")


Place = Literal["column", "page"]
# The widths in inches of a column and of the text on a page, in the style of ACL.
WIDTHS: dict[Place, float] = {"column": 3.03, "page": 6.3}


class Latex(Strict):
    """The form of a table in a LaTeX document. Other formats do not change."""

    transpose: bool = Field(default=False, description="true: rows become columns, and columns become rows")
    split: int = Field(
        default=1, ge=1, le=9, description="the number of parts, one below the other, into which the columns are cut"
    )


class LatexOfScores(Latex):
    """The form of a table of scores in LaTeX, and the format of its numbers."""

    deviation: bool = Field(default=True, description="false: means are printed without ± and standard deviation")
    bold: Annotated[tuple[str, ...], BeforeValidator(as_tuple, json_schema_input_type=str | tuple[str, ...])] = Field(
        default=(),
        description="an axis of the rows or columns, such as `method`, or a list: among entries that differ only in "
        "it, the best is bold if the paired test of the claims finds it better than the runner-up; this needs three "
        "complete seeds of each entry",
    )

    def check(self, axes: Sequence[str]) -> None:
        """Raise a `ValueError` if the settings do not fit a table with these axes of rows and columns."""
        rivals = [axis for axis in axes if axis not in NO_RIVALS]
        for axis in self.bold:
            if axis not in rivals:
                named = ", ".join(rivals) or "none: leave it out"
                raise ValueError(
                    f"`latex.bold` must name axes of rows and columns whose values compete, got {axis!r}; there are "
                    f"{named}"
                )
