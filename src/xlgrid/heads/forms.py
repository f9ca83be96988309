"""Convert texts to a Unicode normalization form (UAX #15), in which equal letters have equal code points.

For example, NFC composes `e` and `´` to `é`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

# A function that converts a text to a normalization form.
Normalized = Callable[[str], str]


def in_form(table: "pa.Table", columns: Iterable[str], normalized: Normalized) -> "pa.Table":
    """The table with the texts of some columns, and the texts in their lists, in a normalization form.

    Columns that the table lacks are ignored.
    """
    for column in dict.fromkeys(columns):
        if column in table.column_names:
            table = with_values(table, column, [_in_form(value, normalized) for value in table[column].to_pylist()])
    return table


def with_values(table: "pa.Table", column: str, values: Sequence[Any]) -> "pa.Table":
    """The table with new values of the same type in a column."""
    import pyarrow as pa

    place = table.column_names.index(column)
    field = table.schema.field(place)
    return table.set_column(place, field, pa.array(values, field.type))


def _in_form(value: Any, normalized: Normalized) -> Any:
    if isinstance(value, list):
        return [_in_form(item, normalized) for item in value]
    return normalized(value) if isinstance(value, str) else value
