"""Read files of all supported types, as a whole table or row by row in constant memory."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.base.errors import Damaged
from xlgrid.data.formats.columns import batch_rows, check_columns
from xlgrid.data.formats.delimited import delimited_rows, read_delimited
from xlgrid.data.formats.files import (
    BY_NAME,
    PARQUET,
    WORDS,
    Reading,
    damaged,
    existing,
    has_words,
    text_lines,
    type_of,
)
from xlgrid.data.formats.json_files import json_lines, read_json, read_jsonl
from xlgrid.data.formats.words import read_words

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

# The type of plain text, where a line is a row with the single column COLUMN.
LINES = ".txt"
COLUMN = "text"
# The types that are read row by row, and those that are read as tables.
STREAMED = (LINES, PARQUET, ".jsonl", ".csv", ".tsv")
TABLES = (PARQUET, ".jsonl", ".csv", ".tsv", ".json", *WORDS)
Rows = Generator[tuple[Any, ...], None, None]

# The number of rows that are read at once from a parquet file.
_ROWS = 1000
# The part of the error about a file of another type that is about files of words.
_OF_WORDS = "; tasks of words read .txt, too"


def is_lines(path: str | Path | None) -> bool:
    """Whether a file is plain text, where a line is a row."""
    return type_of(str(path)) == LINES


def read_table(path: str | Path, reading: Reading = BY_NAME) -> "pa.Table":
    """All rows of a file that is not plain text.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: the file is empty or damaged, or has another type.
    """
    path = existing(path, (*TABLES, *([LINES] if reading.words else [])), _OF_WORDS)
    if has_words(path, reading):
        return read_words(path, reading)
    match type_of(path):
        case ".csv" | ".tsv":
            return read_delimited(path, reading)
        case ".jsonl":
            return read_jsonl(path)
        case ".json":
            return read_json(path)
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path)
    except (ValueError, TypeError, OSError) as error:
        raise damaged(path, f"is damaged or not parquet: {error}") from error


def tables(path: str | Path, size: int) -> Iterator["pa.Table"]:
    """All rows of a file that is not plain text, in one or more tables.

    Tables of a parquet file have at most `size` rows, and only a few tables are in memory at once.

    Raises:
        FileNotFoundError, ValueError: `read_table` raises it; during the iteration.
    """
    path = existing(path, TABLES)
    if path.suffix != PARQUET:
        yield read_table(path)
        return
    import pyarrow as pa

    try:
        with _parquet(path) as file:
            if not file.metadata.num_rows:
                yield file.schema_arrow.empty_table()
            for batch in file.iter_batches(size):
                yield pa.Table.from_batches([batch])
    except (ValueError, OSError) as error:
        raise damaged(path, f"is damaged or not parquet: {error}") from error


def rows(path: str | Path, columns: Sequence[str], reading: Reading = BY_NAME) -> Rows:
    """The values of some columns in each row of a file. Plain text has the single column `COLUMN`.

    Every row must have the first column. Another column that is missing in a line of a jsonl file has the value None.
    The first column of a csv or tsv file is read as text.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: the file is empty or has another type; while reading: the file is damaged, or a column is missing.
    """
    return _rows(existing(path, STREAMED), columns, reading)


def notes(path: str | Path) -> dict[str, str]:
    """The entries that the writer of a parquet file has added to its metadata; empty for files of other types.

    Raises:
        FileNotFoundError, ValueError: `read_table` raises it.
    """
    path = existing(path, (LINES, *TABLES))
    if path.suffix != PARQUET:
        return {}
    try:
        with _parquet(path) as file:
            entries: dict[bytes, bytes] = file.metadata.metadata or {}
    except (ValueError, OSError) as error:
        raise damaged(path, f"is damaged or not parquet: {error}") from error
    return {name.decode(): value.decode() for name, value in entries.items() if name != b"ARROW:schema"}


def _rows(path: Path, columns: Sequence[str], reading: Reading) -> Rows:
    kind = type_of(path)
    readers: dict[str, Callable[[Path, Sequence[str]], Rows]]
    delimited = partial(delimited_rows, reading=reading)
    readers = {LINES: _text_rows, ".jsonl": _json_rows, PARQUET: _parquet_rows, ".csv": delimited, ".tsv": delimited}
    count = 0
    try:
        with closing(readers[kind](path, columns)) as reader:
            for row in reader:
                yield row
                count += 1
    except Damaged:
        raise
    except (ValueError, TypeError, OSError) as error:
        raise damaged(path, f"is damaged or not {kind[1:]} in UTF-8, after {count:,} rows: {error}") from error


def _text_rows(path: Path, columns: Sequence[str]) -> Rows:
    check_columns(columns, [COLUMN], str(path))
    for _, line in text_lines(path):
        yield (line,) * len(columns)


def _json_rows(path: Path, columns: Sequence[str]) -> Rows:
    for number, row in json_lines(path):
        check_columns(columns[:1], row, f"{path}, line {number}")
        yield tuple(row.get(name) for name in columns)


def _parquet(path: Path) -> "pq.ParquetFile":
    import pyarrow.parquet as pq

    # Without a buffer, a whole column of a row group would be read at once.
    return pq.ParquetFile(path, buffer_size=2**20, pre_buffer=False)


def _parquet_rows(path: Path, columns: Sequence[str]) -> Rows:
    with _parquet(path) as file:
        check_columns(columns, file.schema_arrow.names, str(path))
        for batch in file.iter_batches(_ROWS, columns=list(dict.fromkeys(columns))):
            yield from batch_rows(batch, columns)
