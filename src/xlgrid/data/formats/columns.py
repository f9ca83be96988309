"""The columns of tables, for all types of files."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from xlgrid.base.errors import Damaged
from xlgrid.base.names import missing_column


def check_columns(columns: Iterable[str], known: Any, where: str) -> None:
    """Raise ValueError if a column is not among the known ones; the message begins with `where`."""
    for name in columns:
        if name not in known:
            raise Damaged(f"{where}: {missing_column(name, known)}")


def batch_rows(table: Any, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The values of some columns in each row of an Arrow table or batch."""
    return zip(*(table.column(name).to_pylist() for name in columns), strict=True)
