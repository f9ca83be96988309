"""What the rows of local files are: how many, with which labels, and whether two splits or languages have the same ones."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from xlgrid.data.sources import SPLITS
from xlgrid.preflight.lines import Line, State

if TYPE_CHECKING:
    import pyarrow as pa

    from xlgrid.tasks import Task

# The share of the rows of a split that are remarked if they are in another split, too.
SHARED = 0.1


class Rows(NamedTuple):
    """The rows of a split in a language or pair.

    Attributes:
        files: the files from which they were read.
        described: the number of rows and their labels, in words.
        inputs: for each row, the hash of what the encoder reads of it.
    """

    language: str
    split: str
    files: Sequence[str]
    described: str
    inputs: Sequence[int]


def rows_of(language: str, split: str, files: Sequence[str], table: "pa.Table", task: "Task") -> Rows:
    """The rows of a table that has been checked."""
    counts = task.head.label_counts(table, task) if task.target in table.column_names else {}
    labels = ""
    if counts:
        label, most = max(counts.items(), key=lambda entry: entry[1])
        of_labels = "1 label" if len(counts) == 1 else f"{len(counts)} labels"
        labels = f", {of_labels}; the most frequent is {label} ({most / sum(counts.values()):.0%})"
    columns = [table[column].to_pylist() for column in task.inputs if column in table.column_names]
    inputs = [hash(tuple(map(_hashable, values))) for values in zip(*columns, strict=True)]
    rows = "1 row" if table.num_rows == 1 else f"{table.num_rows:,} rows"
    return Rows(language, split, files, f"{rows}{labels}", inputs)


def row_lines(thing: str, read: Iterable[Rows]) -> Iterator[Line]:
    """A line for the files of each split, and one for each two that have many rows in common."""
    by_language: dict[str, dict[str, Rows]] = defaultdict(dict)
    for rows in read:
        by_language[rows.language][rows.split] = rows
        yield Line(State.GOOD, thing, f"{' and '.join(rows.files)}: {rows.described}")
    for of_language in by_language.values():
        yield from _in_two_splits(thing, of_language)
    for split in SPLITS:
        yield from _in_two_languages(thing, [splits[split] for splits in by_language.values() if split in splits])


def _in_two_splits(thing: str, of_language: Mapping[str, Rows]) -> Iterator[Line]:
    for first, second in combinations([of_language[split] for split in SPLITS if split in of_language], 2):
        present = {*first.inputs}
        shared = sum(row in present for row in second.inputs)
        if shared < SHARED * len(second.inputs) or not shared:
            continue
        splits = f"{first.split} and {second.split} in {first.language}"
        # A file with the rows of several splits may have some of them twice.
        if [*first.files] == [*second.files] and first.inputs == second.inputs:
            problem = f"{splits} are both read from {' and '.join(first.files)}: put {{split}} into `local`"
        elif first.inputs == second.inputs:
            problem = f"{splits} have the same {len(second.inputs):,} rows: see whether the files are the right ones"
        else:
            problem = f"{splits}: {shared:,} of {len(second.inputs):,} {second.split} rows are {first.split} rows, too"
        yield Line(State.OPEN, thing, problem)


def _in_two_languages(thing: str, of_split: Sequence[Rows]) -> Iterator[Line]:
    """Languages after the first one that have the same rows."""
    first_with: dict[tuple[int, ...], Rows] = {}
    for rows in of_split:
        first = first_with.setdefault(tuple(rows.inputs), rows)
        if first is not rows:
            yield Line(
                State.OPEN,
                thing,
                f"{first.language} and {rows.language} have the same {len(rows.inputs):,} {rows.split} rows, from "
                f"{' and '.join(dict.fromkeys([*first.files, *rows.files]))}: put {{language}} into `local`, or see whether the files are the right ones",
            )


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
