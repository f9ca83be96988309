"""Read files of all supported types: `tables` reads all of them, `files` opens them, and each other module reads one
type."""

from xlgrid.data.formats.columns import batch_rows, check_columns
from xlgrid.data.formats.files import BY_NAME, PARQUET, UNREAD, WORDS, Reading, has_words, listed, matches, type_of
from xlgrid.data.formats.tables import (
    COLUMN,
    LINES,
    STREAMED,
    TABLES,
    Rows,
    is_lines,
    notes,
    read_table,
    rows,
    tables,
)

__all__ = [
    "BY_NAME",
    "COLUMN",
    "LINES",
    "PARQUET",
    "STREAMED",
    "TABLES",
    "UNREAD",
    "WORDS",
    "Reading",
    "Rows",
    "batch_rows",
    "check_columns",
    "has_words",
    "is_lines",
    "listed",
    "matches",
    "notes",
    "read_table",
    "rows",
    "tables",
    "type_of",
]
