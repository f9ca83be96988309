"""What is done to rows that are read one after another, in memory that does not grow with the rows."""

import sys
import time
from collections.abc import Generator
from contextlib import closing
from typing import Any

from xlgrid.data.formats import Rows
from xlgrid.data.origins.files import OfFiles
from xlgrid.data.origins.origin import is_wanted

# Characters that a document has at most. It is in memory as a whole.
_LONGEST = 10**7
# Values that an error lists at most.
_SHOWN = 20


class Progress:
    """Lines on stderr about long work, at most one every so many seconds."""

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
    """The documents of a text: lines up to an empty one, joined by line breaks."""
    document: list[str] = []
    length = 0
    with closing(lines):
        for (line,) in lines:
            if line.strip():
                document.append(line)
                length += len(line)
                if length > _LONGEST:
                    raise ValueError(
                        f"{where} has {length:,} characters without an empty line, at which a document would end: without "
                        "`documents`, each line is a row"
                    )
            elif document:
                yield ("\n".join(document),)
                document, length = [], 0
        if document:
            yield ("\n".join(document),)


def selected(source_rows: Rows, source: OfFiles, where: str) -> Generator[tuple[int, Any], None, None]:
    """Number and first value of each row that `where` and `limit` of a source select by the values after the first.

    Rows are numbered from 0 after the selection by `where`.

    Raises:
        ValueError: no row is as `where` says.
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
