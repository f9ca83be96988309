"""Read tables of text: csv, with commas between values, and tsv, with tabs. The first line may have names of columns.

All values are text: `01` is not a number, and `NA` is a word, unless a study lists it as a missing value.
"""

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.base.errors import Damaged
from xlgrid.data.formats.columns import batch_rows, check_columns
from xlgrid.data.formats.files import UNREAD, Reading, damaged, opened, text_lines, type_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import csv

# The number of bytes of a file that are read at once, which is the maximum length of a row.
_BLOCK = 2**24


def read_delimited(path: Path, reading: Reading) -> "pa.Table":
    """All rows of a csv or tsv file. Values that `reading` counts as missing are null.

    Raises:
        ValueError: the file is damaged or not in UTF-8, two columns have the same name, or the number of columns of a
            row differs from the first row or from `reading`.
    """
    import pyarrow as pa
    from pyarrow import csv

    reads, parses, names = _options(path, reading)
    with _errors_named(path, reading):
        present = _names(path, reads, parses)
        if doubles := [name for name, count in Counter(present).items() if count > 1]:
            raise Damaged(f"{path} has two columns {doubles[0]!r}: rename one of them in the first line")
        converts = csv.ConvertOptions(
            include_columns=[name for name in names if name in reading.columns] or None,
            column_types=dict.fromkeys(present, pa.string()),
            null_values=[*reading.missing],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        with opened(path) as file:
            return csv.read_csv(file, reads, parses, converts)


def delimited_rows(path: Path, columns: Sequence[str], reading: Reading) -> Generator[tuple[Any, ...], None, None]:
    """The values of some columns in each row of a csv or tsv file. No value is missing: an empty value is an empty
    text.

    Raises:
        ValueError: a column is missing, or `read_delimited` raises it.
    """
    import pyarrow as pa
    from pyarrow import csv

    reads, parses, _ = _options(path, reading)
    with _errors_named(path, reading):
        present = _names(path, reads, parses)
        check_columns(columns, present, str(path))
        # In a file with one column, an empty line is an empty value, so that row i of parallel files stays row i.
        parses.ignore_empty_lines = len(present) > 1
        converts = csv.ConvertOptions(
            include_columns=list(dict.fromkeys(columns)),
            column_types=dict.fromkeys(columns, pa.string()),
            strings_can_be_null=False,
        )
        with opened(path) as file, csv.open_csv(file, reads, parses, converts) as batches:
            for batch in batches:
                yield from batch_rows(batch, columns)


def _names(path: Path, reads: "csv.ReadOptions", parses: "csv.ParseOptions") -> list[str]:
    """The names of the columns of a file."""
    from pyarrow import csv

    with opened(path) as file, csv.open_csv(file, reads, parses) as batches:
        return list(batches.schema.names)


def _options(path: Path, reading: Reading) -> tuple["csv.ReadOptions", "csv.ParseOptions", list[str]]:
    """The options with which Arrow reads and parses a file, and the names of its columns if it has no header."""
    from pyarrow import csv

    is_tsv = type_of(path) == ".tsv"
    quotes = not is_tsv if reading.quotes is None else reading.quotes
    # Arrow needs distinct names, so a column that is not read is named by its number.
    names = [f"{name}{number}" if name == UNREAD else name for number, name in enumerate(reading.columns)]
    # With threads, errors do not name the row.
    reads = csv.ReadOptions(use_threads=False, block_size=_BLOCK, column_names=names or None)
    quote = '"' if quotes else False
    parses = csv.ParseOptions(delimiter="\t" if is_tsv else ",", quote_char=quote, newlines_in_values=quotes)
    return reads, parses, names


@contextmanager
def _errors_named(path: Path, reading: Reading) -> Iterator[None]:
    try:
        yield
    except Damaged:
        raise
    except (ValueError, TypeError, OSError) as error:
        if "UTF8" in str(error):
            # This finds the line.
            for _ in text_lines(path):
                pass
        problem = f"is damaged or not {type_of(path)[1:]}: {error}"
        if reading.columns:
            problem += f"; `columns` in `data` names {len(reading.columns)}"
        if type_of(path) == ".csv" and isinstance(error, ValueError) and reading.quotes is not False:
            problem += "; put a value with a comma or a quotation mark in double quotes"
        if type_of(path) == ".tsv" and not reading.quotes:
            problem += "; if values are in double quotes, set `quotes: true` in `data`"
        raise damaged(path, problem) from error
