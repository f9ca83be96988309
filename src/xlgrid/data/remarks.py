"""Remarks for the log about texts and words that are unusual but not an error."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from xlgrid.tasks import Task

# Control characters of Unicode except tabs and line ends, byte order marks within a text, and replacement characters,
# which stand for bytes that could not be decoded.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff\ufffd]")
# A sentence with more words than this is unusual; the second number is for a file with only one sentence.
_LONGEST, _ONLY = 1000, 100


def text_remarks(table: "pa.Table", described: "Task") -> Iterator[str]:
    """The remarks on the columns that the encoder reads, with rows counted from 1."""
    for column in described.inputs:
        if column not in table.column_names:
            continue
        values = table[column].to_pylist()
        marks = [(row, mark) for row, value in enumerate(values, start=1) if (mark := _first_mark(value))]
        if marks:
            row, mark = marks[0]
            yield (
                f"{len(marks):,} of {len(values):,} rows have control characters in column {column!r}, the first one U+{ord(mark):04X} in row "
                f"{row:,}: see whether the file was decoded or cut in a wrong way"
            )
        longest = max((len(words) for words in values if isinstance(words, list)), default=0)
        if longest > (_ONLY if len(values) == 1 else _LONGEST):
            yield (
                f"the longest of {len(values):,} rows has {longest:,} words: see whether the file has an empty line after each "
                "sentence"
            )


def strings(value: Any) -> Iterable[str]:
    """The texts in a value of a column: the value itself, or the items of a list."""
    return [value] if isinstance(value, str) else value if isinstance(value, list) else ()


def _first_mark(value: Any) -> str:
    """The first character in a value of a column that matches `_CONTROL`; "" if no character matches."""
    matches = (_CONTROL.search(text) for text in strings(value) if isinstance(text, str))
    return next((match[0] for match in matches if match), "")
