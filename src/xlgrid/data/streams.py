"""Select and join rows while they are streamed, so that memory does not grow with their number."""

import sys
import time
from collections.abc import Generator
from contextlib import closing
from typing import Any

from xlgrid.data.formats import Rows
from xlgrid.data.origins.files import OfFiles
from xlgrid.data.origins.origin import is_wanted

# A document may have at most this many characters, since it is kept in memory as a whole.
_LONGEST = 10**7
# An error lists at most this many values.
_SHOWN = 20


class Progress:
    """Prints lines about the progress of long work on stderr, at most one every `seconds` seconds."""

    def __init__(self, seconds: float = 10) -> None:
        self.seconds, self.last = seconds, time.monotonic()

    def due(self) -> bool:
        """Whether it is time for the next line."""
        if time.monotonic() - self.last < self.seconds:
            return False
        self.last = time.monotonic()
        return True

    def say(self, line: str) -> None:
        """Print a line."""
        print(line, file=sys.stderr, flush=True)


def documents(lines: Rows, where: str) -> Rows:
    """The documents of a text: an empty line ends a document, whose lines are joined by line breaks."""
    document: list[str] = []
    length = 0
    with closing(lines):
        for (line,) in lines:
            if line.strip():
                document.append(line)
                length += len(line)
                if length > _LONGEST:
                    raise ValueError(
                        f"{where} has {length:,} characters without an empty line, which would end a document: leave "
                        "out `documents` to make each line a row"
                    )
            elif document:
                yield ("\n".join(document),)
                document, length = [], 0
        if document:
            yield ("\n".join(document),)


def selected(source_rows: Rows, source: OfFiles, where: str) -> Generator[tuple[int, Any], None, None]:
    """The number and the first value of each row that `where` and `limit` of a source select.

    The other values of a row are in the columns of `where`. The selected rows are numbered from 0.

    Raises:
        ValueError: no row matches `where`.
    """
    # Column of `where` -> some values of the rows that it rejected.
    rejected: dict[str, set[str]] = {column: set() for column in source.where}
    kept = 0
    with closing(source_rows) as numbered:
        for value, *selectors in numbered:
            for (column, wanted), got in zip(source.where.items(), selectors, strict=True):
                if not is_wanted(got, wanted):
                    if len(rejected[column]) < _SHOWN:
                        rejected[column].add(str(got))
                    break
            else:
                yield kept, source.normalized(value) if isinstance(value, str) else value
                kept += 1
                if kept == source.limit:
                    return
    for column, values in reversed(rejected.items()):
        if values and not kept:
            present = ", ".join(sorted(values))
            raise ValueError(f"{where} has no row whose {column} is {source.where[column]!r} (there are: {present})")
