"""The settings of a table in LaTeX: the key `latex` of an exhibit."""

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from xlgrid.base.settings import Strict
from xlgrid.results.naming import as_tuple

# The axes whose values do not compete with one another: a target with a higher score is not a better target.
NO_RIVALS = ("task", "target", "metric", "seed", "group")


class Latex(Strict):
    """The place and the width of a table in a LaTeX document. Other formats do not change."""

    environment: Literal["table", "table*"] = Field(
        default="table", description="`table*` spans both columns of a page"
    )
    resize: Literal["column", "text"] | None = Field(
        default=None,
        description="scales the table up or down to exactly the width of a column, or of the text on a page; absent: "
        "only a table that is wider than its place is scaled",
    )

    @model_validator(mode="after")
    def _is_wide_enough(self) -> Self:
        if self.resize == "text" and self.environment == "table":
            raise ValueError(
                "`latex.resize: text` is wider than one of two columns of a page: add `environment: table*`, or write "
                "`column`"
            )
        return self


class LatexOfScores(Latex):
    """The place, the width and the format of the numbers of a table of scores in LaTeX."""

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
