"""One column of a local file or of a data set on the Hub, row by row, in memory that does not grow with the rows."""

import sys
import time
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from xlgrid.base.errors import Damaged
from xlgrid.data import lock as locks
from xlgrid.data.formats import Rows, batch_rows, check_columns, is_lines, rows
from xlgrid.data.sources import Origin, is_wanted

# Rows that are read at once from the Hub.
_ROWS = 1000
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


def stream(
    source: Origin, column: str, language: str, split: str, lock: str | Path, documents: bool = False
) -> tuple[Generator[tuple[int, Any], None, None], str]:
    """A column of a split of a source in a language: number and value of each row that `where` and `limit` select.

    Data of the Hub are read over the network as the caller asks for rows, and nothing is kept on disk. Rows are numbered
    from 0 after the selection by `where`. In plain text, a line is a row, also where it is empty, so that parallel files keep the
    numbers of their lines.

    Args:
        documents: a row of plain text is a document, which ends at an empty line, not a line.

    Returns:
        The rows, which a caller who leaves some unread has to close, and a name of the source for messages.

    Raises:
        FileNotFoundError: a local file does not exist.
        ValueError: the Hub refuses; while reading: data are damaged, a column is missing, or no row is as `where` says.
    """
    original = next((old for old, new in source.rename.items() if new == column), column)
    columns = (original, *source.where)
    if source.hub:
        commit = locks.commit(lock, "dataset", source.hub, source.revision)
        where = f"{source.hub} ({source.configuration(language) or 'default'}, {source.named(split)}, {commit[:7]})"
        arguments = source.hub_arguments(language, split) | {"revision": commit}
        source_rows = _hub_rows(arguments, source.named(split), columns, where)
    else:
        where = source.path(language, split)
        source_rows = rows(where, columns, source.reading())
    if documents and is_lines(source.local):
        source_rows = _documents(source_rows, where)
    return _selected(source_rows, source, where), where


def _documents(lines: Rows, where: str) -> Rows:
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


def _hub_rows(arguments: dict[str, Any], split: str, columns: Sequence[str], where: str) -> Rows:
    from datasets import load_dataset_builder
    from pyarrow.dataset import ParquetFragmentScanOptions

    count = 0
    try:
        # These lines do what `load_dataset(..., streaming=True)` does, and set an option that not all builders have.
        builder = load_dataset_builder(**arguments)
        if hasattr(builder.config, "fragment_scan_options"):
            # A buffer ahead of the reader would keep all that was read of a file until the file ends.
            builder.config.fragment_scan_options = ParquetFragmentScanOptions(pre_buffer=False)
        if hasattr(builder.config, "keep_default_na"):
            # In csv, words such as NA and null are text, as in local files.
            builder.config.keep_default_na, builder.config.na_filter = False, False
        dataset = builder.as_streaming_dataset(split=split)
        # The reader's last references end with this block: threads that live on to the end of the process abort it.
        with closing(iter(dataset.with_format("arrow").iter(_ROWS))) as tables:
            del dataset
            for table in tables:
                check_columns(columns, table.column_names, where)
                yield from batch_rows(table, columns)
                count += table.num_rows
    except Damaged:
        raise
    except Exception as error:  # whatever the Hub, the network or a file format raise: name what was being fetched
        raise ValueError(
            f"cannot fetch {where}, after {count:,} rows: {locks.said(error, 'dataset', arguments['path'])}; "
            "if it was the network, run the same command again, which begins anew"
        ) from error


def _selected(source_rows: Rows, source: Origin, where: str) -> Generator[tuple[int, Any], None, None]:
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
