"""Text out of a file or a data set on the Hub, row by row, in memory that does not grow with the number of rows."""

import gzip
import json
import sys
import time
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from xlgrid.base.names import unknown
from xlgrid.data import lock as locks
from xlgrid.data.sources import Origin

# Of these a line is a row, with one column.
LINES = (".txt", ".txt.gz")
TYPES = (*LINES, ".parquet", ".jsonl", ".csv")
COLUMN = "text"
Rows = Generator[tuple[Any, ...], None, None]

# Rows at once, of those files that have rows; characters of CSV at once, more than which no row may have.
_ROWS = 1000
_BLOCK = 2**24
_SHOWN = 20


class _Missing(Exception):
    """A column that is not there; its argument is the sentence that says so."""


class Progress:
    """Lines on stderr about long work, one in so many seconds."""

    def __init__(self, seconds: float = 10) -> None:
        self.seconds, self.last = seconds, time.monotonic()

    def due(self) -> bool:
        """Whether it is time for a line."""
        if time.monotonic() - self.last < self.seconds:
            return False
        self.last = time.monotonic()
        return True

    def say(self, line: str) -> None:
        """Print a line."""
        print(line, file=sys.stderr, flush=True)


def is_lines(path: str | Path | None) -> bool:
    """Whether a file is plain text, a line a row."""
    return str(path).endswith(LINES)


def stream(
    source: Origin, column: str, language: str, split: str, lock: str | Path
) -> tuple[Generator[tuple[int, Any], None, None], str]:
    """A column of a split of a source in a language: number and value of each row that `where` and `limit` select.

    What the Hub has is read from there as it is asked for, and nothing is kept on disk. Rows are counted from 0, after
    `where`; in plain text lines are, of which empty ones are no rows, so that those of parallel files keep their numbers.

    Returns:
        The rows, to be closed by who leaves some unread, and a name for the source in messages.

    Raises:
        FileNotFoundError: a local file does not exist.
        ValueError: the Hub refuses; from the rows: data are damaged, a column is missing, or no row is as `where` says.
    """
    theirs = next((old for old, new in source.rename.items() if new == column), column)
    columns = (theirs, *source.where)
    if source.hub:
        commit = locks.commit(lock, "dataset", source.hub, source.revision)
        name, split = source.configuration(language), source.named(split)
        where = f"{source.hub} ({name or 'default'}, {split}, {commit[:7]})"
        found = _from_hub(source.hub, name, split, commit, columns, where)
    else:
        where = source.path(language, split)
        found = rows(where, columns)
    return _selected(found, source, where), where


def rows(path: str | Path, columns: Sequence[str]) -> Rows:
    """The values of some columns in each row of a file; plain text has the one column `COLUMN`.

    A value that a line of .jsonl lacks is None, but all have the first column. The first column of .csv is text.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is empty or of another type; from the rows: it is damaged, or a column is missing.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}: check the path, or make it with the step before")
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty: delete it and make or fetch it again")
    if not path.name.endswith(TYPES):
        raise ValueError(f"{path} is of an unknown type: expected {', '.join(TYPES[:-1])} or {TYPES[-1]}")
    return _read(path, columns)


def _read(path: Path, columns: Sequence[str]) -> Rows:
    kind = ".txt" if is_lines(path) else path.suffix
    read = {".txt": _lines, ".jsonl": _objects, ".parquet": _parquet, ".csv": _csv}[kind]
    count = 0
    try:
        with closing(read(path, columns)) as found:
            for row in found:
                yield row
                count += 1
    except _Missing as error:
        raise ValueError(f"{path}: {error}") from None
    except (ValueError, TypeError, OSError, EOFError, zlib.error) as error:
        raise ValueError(
            f"{path} is damaged or not {kind[1:]} in UTF-8, after {count:,} rows: {error}; mend it or make it again"
        ) from error


def _lines(path: Path, columns: Sequence[str]) -> Rows:
    _check(columns, [COLUMN])
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        for number, line in enumerate(file):
            # As bytes, because the end of a line is "\n" and nothing else that Unicode or an old Mac takes for one.
            yield (line.decode("utf-8-sig" if number == 0 else "utf-8").rstrip("\r\n"),) * len(columns)


def _objects(path: Path, columns: Sequence[str]) -> Rows:
    with path.open("rb") as file:
        for line in file:
            if not line.strip():
                continue
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError("a line is no mapping of columns to values")
            _check(columns[:1], row)
            yield tuple(row.get(name) for name in columns)


def _parquet(path: Path, columns: Sequence[str]) -> Rows:
    import pyarrow.parquet as pq

    # Without a buffer of its own, a column of a row group is read at once.
    with pq.ParquetFile(path, buffer_size=2**20, pre_buffer=False) as file:
        _check(columns, file.schema_arrow.names)
        for batch in file.iter_batches(_ROWS, columns=list(dict.fromkeys(columns))):
            yield from _together(batch, columns)


def _csv(path: Path, columns: Sequence[str]) -> Rows:
    import pyarrow as pa
    from pyarrow import csv

    reading = csv.ReadOptions(block_size=_BLOCK, use_threads=False)
    parsing = csv.ParseOptions(newlines_in_values=True)
    with csv.open_csv(path, reading, parsing) as opened:
        _check(columns, opened.schema.names)
    chosen = csv.ConvertOptions(
        include_columns=list(dict.fromkeys(columns)), column_types={columns[0]: pa.string()}, strings_can_be_null=False
    )
    with csv.open_csv(path, reading, parsing, chosen) as opened:
        for batch in opened:
            yield from _together(batch, columns)


def _from_hub(hub: str, name: str | None, split: str, commit: str, columns: Sequence[str], where: str) -> Rows:
    from datasets import load_dataset_builder
    from pyarrow.dataset import ParquetFragmentScanOptions

    count = 0
    try:
        # What `load_dataset(..., streaming=True)` does, but for one setting that not all kinds of data have.
        builder = load_dataset_builder(hub, name, revision=commit)
        if hasattr(builder.config, "fragment_scan_options"):
            # A buffer ahead of the reading would keep all that was read of a file until its end.
            builder.config.fragment_scan_options = ParquetFragmentScanOptions(pre_buffer=False)
        found = builder.as_streaming_dataset(split=split)
        # The last references to what reads go with this block: left to the end of the process, its threads abort that.
        with closing(iter(found.with_format("arrow").iter(_ROWS))) as tables:
            del found
            for table in tables:
                _check(columns, table.column_names)
                yield from _together(table, columns)
                count += table.num_rows
    except _Missing as error:
        raise ValueError(f"{where}: {error}") from None
    except Exception as error:  # of whatever the Hub, the network or a file format raise, say what was being fetched
        raise ValueError(
            f"cannot fetch {where}, after {count:,} rows: {type(error).__name__}: {error}; "
            "if it was the network, run the same command again, which begins anew"
        ) from error


def _together(table: Any, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*(table.column(name).to_pylist() for name in columns), strict=True)


def _check(columns: Sequence[str], known: Any) -> None:
    for name in columns:
        if name not in known:
            raise _Missing(unknown("column", name, known))


def _selected(found: Rows, source: Origin, where: str) -> Generator[tuple[int, Any], None, None]:
    lines = is_lines(source.local)
    others: dict[str, set[str]] = {column: set() for column in source.where}
    kept = 0
    with closing(found) as rows:
        for number, (value, *told) in enumerate(rows):
            for (column, wanted), got in zip(source.where.items(), told, strict=True):
                if got != wanted:
                    if len(others[column]) < _SHOWN:
                        others[column].add(str(got))
                    break
            else:
                if lines and not value.strip():
                    continue
                yield number if lines else kept, value
                kept += 1
                if kept == source.limit:
                    return
    for column, values in reversed(others.items()):
        if values and not kept:
            there = ", ".join(sorted(values))
            raise ValueError(f"{where} has no row whose {column} is {source.where[column]!r} (there are: {there})")
