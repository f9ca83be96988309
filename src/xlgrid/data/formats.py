"""Local files of every supported format, read whole as a table or row by row in constant memory."""

import contextlib
import gzip
import json
import lzma
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from xlgrid.base.errors import Damaged
from xlgrid.base.names import unknown

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

# Plain text: a line is a row with the one column COLUMN.
LINES = (".txt", ".txt.gz", ".txt.xz")
COLUMN = "text"
TABLES = (".parquet", ".jsonl", ".csv")
TYPES = (*LINES, *TABLES)
Rows = Generator[tuple[Any, ...], None, None]

# Rows that are read at once from a parquet file.
_ROWS = 1000
# Bytes of a CSV file that are read at once. No row may be longer.
_BLOCK = 2**24


def is_lines(path: str | Path | None) -> bool:
    """Whether a file is plain text, in which a line is a row."""
    return str(path).endswith(LINES)


def read_table(path: str | Path) -> "pa.Table":
    """All rows of a parquet, jsonl or csv file.

    Columns of a jsonl file whose values are mappings with different keys are left out, because a table has no type for
    them.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is empty, damaged or of another type.
    """
    path = _existing(path, TABLES)
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            return pq.read_table(path)
        if path.suffix == ".csv":
            from pyarrow import csv

            # With threads, errors do not name the row.
            reading = csv.ReadOptions(use_threads=False)
            return csv.read_csv(path, reading, csv.ParseOptions(newlines_in_values=True))
        return _json_table(path)
    except Damaged:
        raise
    except (ValueError, TypeError, OSError) as error:
        raise _damaged(path, f"is damaged or not {path.suffix[1:]}: {error}") from error


def tables(path: str | Path, size: int) -> Iterator["pa.Table"]:
    """All rows of a parquet, jsonl or csv file: one or more tables.

    Tables of a parquet file have at most `size` rows, and no more than a few of them are in memory at once.

    Raises:
        FileNotFoundError, ValueError: as `read_table`, when the first table is asked for or later.
    """
    path = _existing(path, TABLES)
    if path.suffix != ".parquet":
        yield read_table(path)
        return
    import pyarrow as pa

    try:
        with _opened(path) as file:
            if not file.metadata.num_rows:
                yield file.schema_arrow.empty_table()
            for batch in file.iter_batches(size):
                yield pa.Table.from_batches([batch])
    except (ValueError, OSError) as error:
        raise _damaged(path, f"is damaged or not parquet: {error}") from error


def count_rows(path: str | Path, documents: bool = False) -> int:
    """The number of rows of a file.

    Args:
        documents: a row of plain text is a document, not a line.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is empty, damaged or of another type.
    """
    path = _existing(path, TYPES)
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        return int(pq.read_metadata(path).num_rows)
    if path.suffix == ".csv":
        return int(read_table(path).num_rows)
    count, after_text = 0, False
    with _open(path) as lines:
        for line in lines:
            has_text = bool(line.strip())
            count += has_text and not (documents and after_text)
            after_text = has_text
    return count


def rows(path: str | Path, columns: Sequence[str]) -> Rows:
    """The values of some columns in each row of a file. Plain text has the one column `COLUMN`.

    The first column is there in every row. Another column that is missing in a line of a jsonl file has the value None.
    The first column of a csv file is read as text.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is empty or of another type; while reading: the file is damaged, or a column is missing.
    """
    return _rows(_existing(path, TYPES), columns)


def notes(path: str | Path) -> dict[str, str]:
    """The entries that the writer of a parquet file has added to its metadata; none for files of other types.

    Raises:
        FileNotFoundError, ValueError: as `read_table`.
    """
    path = _existing(path, TYPES)
    if path.suffix != ".parquet":
        return {}
    try:
        with _opened(path) as file:
            entries: dict[bytes, bytes] = file.metadata.metadata or {}
    except (ValueError, OSError) as error:
        raise _damaged(path, f"is damaged or not parquet: {error}") from error
    return {name.decode(): value.decode() for name, value in entries.items() if name != b"ARROW:schema"}


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number, counted from 1, and object of every line of a jsonl file that is not empty.

    Raises:
        Damaged: a line is not UTF-8, not JSON, or no object; the message has the line's number.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                # A file that an editor on Windows wrote may begin with a byte order mark.
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                if not text:
                    continue
                row = json.loads(text)
            except json.JSONDecodeError as error:
                raise Damaged(
                    f"{path}, line {number}: no JSON ({error.msg}, column {error.colno}); mend this line"
                ) from None
            except UnicodeDecodeError as error:
                raise Damaged(f"{path}, line {number}: no UTF-8 ({error}); mend this line") from None
            if not isinstance(row, dict):
                raise Damaged(
                    f"{path}, line {number}: expected an object with a value for each column, got {text[:80]}; "
                    "mend this line"
                )
            yield number, row


def check_columns(columns: Iterable[str], known: Any, where: str) -> None:
    """Raise ValueError if a column is not among the known ones; the message begins with `where`."""
    for name in columns:
        if name not in known:
            raise Damaged(f"{where}: {unknown('column', name, known)}")


def batch_rows(table: Any, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The values of some columns in each row of an Arrow table or batch."""
    return zip(*(table.column(name).to_pylist() for name in columns), strict=True)


def _existing(path: str | Path, types: tuple[str, ...]) -> Path:
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}: check the path, or make it with the step before")
    if not path.name.endswith(types):
        raise ValueError(f"{path} is of an unknown type: expected {', '.join(types[:-1])} or {types[-1]}")
    if not path.stat().st_size:
        raise _damaged(path, "is empty")
    return path


def _damaged(path: Path, problem: str) -> Damaged:
    """The error about a file. The workflow itself writes parquet only; all other files are the user's."""
    if path.suffix == ".parquet":
        return Damaged(f"{path} {problem}; fetch, copy or make it again", path)
    return Damaged(f"{path} {problem}; mend it")


def _json_table(path: Path) -> "pa.Table":
    import pyarrow as pa

    objects = [row for _, row in json_lines(path)]
    columns = {}
    for name in dict.fromkeys(name for row in objects for name in row):
        values = [row.get(name) for row in objects]
        keys = {tuple(value) if isinstance(value, dict) else None for value in values}
        if keys == {None}:
            try:
                columns[name] = pa.array(values)
            except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                raise Damaged(f"{path}, column {name!r}: {error}; give it one type in all lines") from error
        elif len(keys) == 1:
            with contextlib.suppress(pa.ArrowInvalid):
                columns[name] = pa.array(values)
    return pa.table(columns)


def _rows(path: Path, columns: Sequence[str]) -> Rows:
    kind = ".txt" if is_lines(path) else path.suffix
    readers: dict[str, Callable[[Path, Sequence[str]], Rows]]
    readers = {".txt": _text_rows, ".jsonl": _json_rows, ".parquet": _parquet_rows, ".csv": _csv_rows}
    count = 0
    try:
        with closing(readers[kind](path, columns)) as reader:
            for row in reader:
                yield row
                count += 1
    except Damaged:
        raise
    except (ValueError, TypeError, OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise _damaged(path, f"is damaged or not {kind[1:]} in UTF-8, after {count:,} rows: {error}") from error


def _open(path: Path) -> IO[bytes] | gzip.GzipFile:
    """A file of lines, which may be compressed."""
    if path.suffix == ".gz":
        return gzip.open(path)
    return lzma.open(path) if path.suffix == ".xz" else path.open("rb")


def _text_rows(path: Path, columns: Sequence[str]) -> Rows:
    check_columns(columns, [COLUMN], str(path))
    with _open(path) as file:
        for number, line in enumerate(file):
            # The file is read as bytes, because only "\n" ends a line, and no other line separator of Unicode.
            yield (line.decode("utf-8-sig" if number == 0 else "utf-8").rstrip("\r\n"),) * len(columns)


def _json_rows(path: Path, columns: Sequence[str]) -> Rows:
    for number, row in json_lines(path):
        check_columns(columns[:1], row, f"{path}, line {number}")
        yield tuple(row.get(name) for name in columns)


def _opened(path: Path) -> "pq.ParquetFile":
    import pyarrow.parquet as pq

    # Without a buffer, a whole column of a row group would be read at once.
    return pq.ParquetFile(path, buffer_size=2**20, pre_buffer=False)


def _parquet_rows(path: Path, columns: Sequence[str]) -> Rows:
    with _opened(path) as file:
        check_columns(columns, file.schema_arrow.names, str(path))
        for batch in file.iter_batches(_ROWS, columns=list(dict.fromkeys(columns))):
            yield from batch_rows(batch, columns)


def _csv_rows(path: Path, columns: Sequence[str]) -> Rows:
    import pyarrow as pa
    from pyarrow import csv

    reading = csv.ReadOptions(block_size=_BLOCK, use_threads=False)
    parsing = csv.ParseOptions(newlines_in_values=True)
    with csv.open_csv(path, reading, parsing) as opened:
        check_columns(columns, opened.schema.names, str(path))
    chosen = csv.ConvertOptions(
        include_columns=list(dict.fromkeys(columns)), column_types={columns[0]: pa.string()}, strings_can_be_null=False
    )
    with csv.open_csv(path, reading, parsing, chosen) as opened:
        for batch in opened:
            yield from batch_rows(batch, columns)
