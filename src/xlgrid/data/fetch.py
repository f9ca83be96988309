"""Fetch the data of a task from the Hub, local files or a place of a package, and write a parquet file for each split
and language or pair."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from xlgrid.base.files import whole
from xlgrid.base.names import unknown
from xlgrid.base.settings import plainly
from xlgrid.data.origins.origin import SPLITS, Origin, is_wanted
from xlgrid.data.remarks import text_remarks
from xlgrid.data.sources import DataSource, no_data
from xlgrid.languages.sources import Target
from xlgrid.tasks import Columns, Task, task

if TYPE_CHECKING:
    import pyarrow as pa

# The log has a remark about smaller training sets, which do not fill a batch of the usual size.
FEW = 32
# An error lists at most this many values.
_SHOWN = 20
# The values of this column are read as whole numbers, even from csv and tsv. Tokens files store them in 32 bits.
_DEPTH = "depth"
_WHOLE = re.compile(r"\s*-?[0-9]{1,9}(\.0*)?\s*")


def fetch_data(
    kind: str,
    source: dict[str, Any],
    language: str,
    split: str,
    out: str | Path,
    lock: str | Path,
    columns: Columns | Mapping[str, Any] | None = None,
) -> None:
    """Write a split of the data of a task in a language or pair as a parquet file: the table of `read_data`.

    Args:
        kind: the name of a task in `xlgrid.tasks.ALL_TASKS`, or of a head.
        source: fields of a `DataSource`.
        language: a language or pair.
        split: train, dev or test.
        out: the file to write.
        lock: the lock file, see `xlgrid.data.lock`.
        columns: the columns of a task that is described by its head.

    Raises:
        FileNotFoundError: a local file does not exist.
        ValueError: a field of `source` or a split does not exist, `source` does not suit the task, or `read_data`
            fails.
    """
    described = task(kind, columns)
    if split not in SPLITS:
        raise ValueError(unknown("split", split, SPLITS))
    try:
        data = DataSource(**source)
    except ValidationError as error:
        raise ValueError(f"source of data: {plainly(error)}") from error
    data.check_task(described)
    write_rows(read_data(data.of(split, language), described, language, split, lock), out)


def read_data(origin: Origin, described: Task, language: str, split: str, lock: str | Path) -> "pa.Table":
    """The rows of a split of a task in a language or pair, as a table with the task's columns.

    If answers were corrected, the metadata entry `corrections` has their numbers as JSON. A pair is joined from its two
    languages row by row, unless the origin has the pair itself (see `Origin.has_pair`): the second input comes from the
    second language, and all other columns from the first language (Foroutan et al. 2023).

    Args:
        lock: the lock file; an origin of local files needs none.

    Raises:
        FileNotFoundError: a local file does not exist.
        ValueError: the origin does not have the language; the Hub refuses access; data are damaged, empty or do not
            suit the task; the task has no pairs, or the rows of a pair's languages are not parallel.
    """
    if problem := described.problem_of(Target(language)):
        raise ValueError(f"{described.name} {problem}")
    if not origin.has(language):
        raise ValueError(no_data(described.name, origin, split, language))
    codes = origin.parts(language, described.head.has_pairs_only)
    fetched = [fetch_table(origin, described, code, split, lock) for code in codes]
    tables = [_labelled(table, described, origin.labels) for table, _, _ in fetched]
    places = [place for _, place, _ in fetched]
    table = tables[0] if len(tables) == 1 else _joined(described, codes, tables, places)
    corrections = {place: counts for _, place, counts in fetched if counts}
    notes = {"corrections": json.dumps(corrections, ensure_ascii=False)} if corrections else None
    where = " and ".join(places)
    table = checked(table, described, where, notes)
    if remark := few_rows(split, table.num_rows, described):
        print(f"{where}: {remark}", file=sys.stderr)
    return table


def few_rows(split: str, rows: int, described: Task) -> str | None:
    """A remark for the log if a training set has fewer than `FEW` rows; otherwise None."""
    if split != "train" or rows >= max(FEW, len(described.labels)):
        return None
    labels = f" for {len(described.labels)} labels" if described.labels else ""
    return f"{rows} training example{'s' * (rows != 1)}{labels}: a run may learn nothing from so few"


def fetch_table(
    source: Origin, described: Task, language: str, split: str, lock: str | Path
) -> tuple["pa.Table", str, dict[str, int]]:
    """A split of a source in a language, after rows were selected and columns renamed.

    Returns:
        The table; a name for it in messages; and the numbers of corrections by kind (see
        `xlgrid.heads.head.Head.prepared`), which are also in the log.

    Raises:
        FileNotFoundError: a local file does not exist.
        ValueError: the Hub refuses access; the data are damaged; a column of `where`, `begins` or `rename` is missing;
            or no rows remain.
    """
    table, where = source.read(described, language, split, lock)
    table = _renamed(_selected(table, source, language, where), source.renamed(language), where)
    described.head.check_columns(table, described, where)
    read = table.num_rows
    table, counts = described.head.prepared(table, described, source.unanswerable, source.misplaced)
    for what, count in counts.items():
        print(f"{where}, {read:,} rows: {count:,} {what}", file=sys.stderr)
    if source.normalize:
        table = described.head.in_form(table, described, source.normalized)
    table = _with_numbers(table, described, where)
    return (table.slice(0, source.limit) if source.limit else table), where, counts


def checked(table: "pa.Table", described: Task, where: str, notes: Mapping[str, str] | None = None) -> "pa.Table":
    """Check rows that were read from `where`, print remarks about them, and return the columns of the task.

    Args:
        notes: the metadata of the table's file.

    Raises:
        ValueError: a row does not suit the task.
    """
    described.check(table, where)
    if problem := described.head.problem_of_all(table):
        raise ValueError(f"{where} {problem}")
    for remark in (*described.head.remarks(table, described), *text_remarks(table, described)):
        print(f"{where}: {remark}", file=sys.stderr)
    kept = table.select([column for column in described.columns if column in table.column_names])
    return kept.replace_schema_metadata(notes)


def write_rows(table: "pa.Table", out: str | Path) -> None:
    """Write the rows of a task as a parquet file."""
    import pyarrow.parquet as pq

    with whole(out) as aside:
        pq.write_table(table, aside)


def _selected(table: "pa.Table", source: Origin, language: str, where: str) -> "pa.Table":
    """The rows in a language that `where` and `begins` of a source keep."""
    import pyarrow as pa
    import pyarrow.compute as pc

    begins = source.begins or {}
    for column in (*source.where, *begins):
        if column not in table.column_names:
            raise ValueError(f"{where} has no column {column!r} to select by (it has: {', '.join(table.column_names)})")
    for column, value in source.where.items():
        try:
            present = table[column].unique()
        except NotImplementedError:  # Arrow does not compare lists and mappings
            raise ValueError(
                f"{where}: the column {column!r} has values of type {table[column].type}, which `where` cannot compare "
                f"with {value!r}: name another column"
            ) from None
        wanted = [each for each in present.to_pylist() if is_wanted(each, value)]
        kept = table.filter(pc.is_in(table[column], pa.array(wanted, present.type)))
        if not kept.num_rows and table.num_rows:
            values = ", ".join(sorted(map(str, present.to_pylist()))[:_SHOWN])
            raise ValueError(f"{where} has no row whose {column} is {value!r} (there are: {values})")
        table = kept
    for column, texts in begins.items():
        if language not in texts:
            raise ValueError(f"`begins` of {where} has no text for {unknown('language', language, texts)}: add it")
        try:
            kept = table.filter(pc.starts_with(pc.cast(table[column], "string"), texts[language]))
        except NotImplementedError:
            raise ValueError(
                f"{where}: the column {column!r} has values of type {table[column].type}, which have no text at the "
                "beginning: name another column in `begins`"
            ) from None
        if not kept.num_rows and table.num_rows:
            first = ", ".join(map(repr, table[column].slice(0, 3).to_pylist()))
            raise ValueError(
                f"{where} has no row whose {column} begins with {texts[language]!r} (the first are: {first})"
            )
        table = kept
    return table


def _with_numbers(table: "pa.Table", described: Task, where: str) -> "pa.Table":
    """Convert the column `depth`, which curricula compare, to whole numbers; in csv and tsv it is text.

    If a value is not a whole number, the column has another meaning and is removed. If the task itself reads the
    column, it stays as it is.
    """
    import pyarrow as pa

    if _DEPTH not in table.column_names or _DEPTH in (*described.inputs, described.target):
        return table
    values = table[_DEPTH].to_pylist()
    if others := [value for value in values if not _WHOLE.fullmatch(str(value))]:
        print(
            f"{where}: the column `{_DEPTH}` is left out because it has the value {others[0]!r}; a curriculum needs "
            "whole numbers in it",
            file=sys.stderr,
        )
        return table.drop_columns(_DEPTH)
    if pa.types.is_integer(table.schema.field(_DEPTH).type):
        return table
    numbers = pa.array([int(float(value)) for value in values], pa.int64())
    return table.set_column(table.column_names.index(_DEPTH), _DEPTH, numbers)


def _renamed(table: "pa.Table", names: Mapping[str, str], where: str) -> "pa.Table":
    """The table with new names for columns, and with new columns for parts of columns."""
    parts = {path: new for path, new in names.items() if path not in table.column_names}
    added = {new: _part(table, path, where) for path, new in parts.items()}
    table = table.rename_columns([names.get(column, column) for column in table.column_names])
    for new, column in added.items():
        if new in table.column_names:
            table = table.drop_columns(new)
        table = table.append_column(new, column)
    if len(set(table.column_names)) < len(table.column_names):
        doubles = sorted({column for column in table.column_names if table.column_names.count(column) > 1})
        raise ValueError(
            f"{where} has a column {doubles[0]!r}, and `rename` gives this name to another one: rename both, or neither"
        )
    return table


def _part(table: "pa.Table", path: str, where: str) -> "pa.ChunkedArray":
    """The elements of lists (`options.0`) or the fields of mappings (`answer.text`) in a column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column, *steps = path.split(".")
    if column not in table.column_names:
        raise ValueError(f"{where} has no column {path!r} to rename (it has: {', '.join(table.column_names)})")
    values = table[column]
    for step in steps:
        try:
            if re.fullmatch("[0-9]+", step):
                values = pc.list_element(values, int(step))
            else:
                values = pc.struct_field(values, step)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError) as error:
            raise ValueError(f"{where}, column {column!r} has no part {path!r} in every row: {error}") from error
    return values


def _labelled(table: "pa.Table", described: Task, names: Mapping[str, str]) -> "pa.Table":
    """Translate labels of the source to labels of the task. Unknown values stay, and the task's check reports them."""
    target = described.target
    if target not in table.column_names:
        return table
    labels = described.head.labelled(table[target], described, names)
    return table.set_column(table.column_names.index(target), target, labels)


def _joined(described: Task, codes: Sequence[str], tables: Sequence["pa.Table"], places: Sequence[str]) -> "pa.Table":
    """The first table with the column `Task.second` of the second table."""
    compared = described.head.parallel(described)
    for table, place in zip(tables, places, strict=True):
        described.check(table, place)
        if compared and compared not in table.column_names:
            raise ValueError(
                f"{place} has no column {compared!r}, which shows that the rows of a pair belong together: add it"
            )
    pair = "-".join(codes)
    if places[0] == places[1] and codes[0] != codes[1]:
        raise ValueError(
            f"{pair} is joined from {codes[0]} and {codes[1]}, but the source has {places[0]} for both languages: "
            "put {language} into `name`, or give each language a configuration in `names`"
        )
    if tables[0].num_rows != tables[1].num_rows:
        raise ValueError(
            f"{pair} needs parallel data, but {places[0]} has {tables[0].num_rows} rows and {places[1]} has "
            f"{tables[1].num_rows}: row i must have the same content in both"
        )
    answers = [table[compared].to_pylist() for table in tables] if compared else [[], []]
    for row, (first, other) in enumerate(zip(*answers, strict=True), start=1):
        if first != other:
            raise ValueError(
                f"{pair} needs parallel data, but in row {row} the {compared} is {first!r} in {places[0]} and "
                f"{other!r} in {places[1]}: row i must have the same content in both"
            )
    second = described.second
    assert second
    return tables[0].set_column(tables[0].column_names.index(second), second, tables[1][second])
