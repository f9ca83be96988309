"""Tasks: where their examples come from, the columns of their data, their labels and head (`xlgrid.metrics` follows)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from xlgrid.names import unknown
from xlgrid.recipe import Strict
from xlgrid.tasks import lot, ruletaker, udpos, wikiann, xnli

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Task:
    """One task.

    A *meaning* is an example that no language has said yet: the same one is realised in every language, so data are
    parallel. `examples(options, sizes)` makes sum(sizes) meanings, in the order train, dev, test; `group(options)` is
    how many consecutive ones must share a split; `row(meaning, language, options)` says one in a language or pair;
    `to_json` and `from_json` store a meaning as a line; `speaks(code)` is whether `row` knows a language. `inputs` are the columns the encoder reads, `target` the one
    with the label: a name out of `labels` for the sequence head, a list of indices into `labels` for the token head.
    """

    name: str
    head: Literal["sequence", "token"]
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    inputs: tuple[str, ...]
    target: str
    Options: type[Strict]
    examples: Callable[..., list[Any]]
    group: Callable[..., int]
    row: Callable[..., dict[str, Any]]
    to_json: Callable[..., str]
    from_json: Callable[[str], Any]
    speaks: Callable[[str], bool]

    def check(self, table: "pa.Table", where: str) -> None:
        """Check columns and labels of a table that was read from `where`.

        Raises:
            ValueError: no rows, a missing column, an empty value or a label that does not exist; the message names
                `where`, the column and the row, counted from 0.
        """
        if not table.num_rows:
            raise ValueError(f"{where} has no rows: check the source of the data, its `where` and its language")
        for column in self.columns:
            if column not in table.column_names:
                raise ValueError(
                    f"{where} has no column {column!r}, which {self.name} needs: {unknown('column', column, table.column_names)}; "
                    "`rename` in the study gives a column another name"
                )
        for column in (*self.inputs, self.target):
            values = table[column]
            if values.null_count:
                raise ValueError(f"{where}, row {_first(values.is_null())}, column {column!r}: the value is missing")
        if self.head == "sequence":
            for i, label in enumerate(table[self.target].to_pylist()):
                if label not in self.labels:
                    raise ValueError(
                        f"{where}, row {i}, column {self.target!r}: there is no label {label!r} "
                        f"(there are: {', '.join(self.labels)}); `labels` in the study translates theirs to ours"
                    )
            return
        pairs = zip(table[self.inputs[0]].to_pylist(), table[self.target].to_pylist(), strict=True)
        for i, (tokens, tags) in enumerate(pairs):
            if len(tokens) != len(tags):
                raise ValueError(
                    f"{where}, row {i}: {len(tokens)} values in {self.inputs[0]!r} but {len(tags)} in {self.target!r}"
                )
            for tag in tags:
                if not isinstance(tag, int) or not 0 <= tag < len(self.labels):
                    raise ValueError(
                        f"{where}, row {i}, column {self.target!r}: the label {tag!r} is not a number from 0 to "
                        f"{len(self.labels) - 1} ({', '.join(self.labels)})"
                    )


def _first(mask: "pa.ChunkedArray") -> int:
    return int(mask.to_pylist().index(True))


def _task(name: str, module: Any, head: Any, inputs: tuple[str, ...], target: str) -> Task:
    made = (module.Options, module.examples, module.group, module.row, module.to_json, module.from_json, module.speaks)
    return Task(name, head, module.LABELS, module.COLUMNS, inputs, target, *made)


TASKS: dict[str, Task] = {
    "ruletaker": _task("ruletaker", ruletaker, "sequence", ("context", "question"), "label"),
    "lot": _task("lot", lot, "sequence", ("context", "phrase"), "answer"),
    "xnli": _task("xnli", xnli, "sequence", ("premise", "hypothesis"), "label"),
    "wikiann": _task("wikiann", wikiann, "token", ("tokens",), "ner_tags"),
    "udpos": _task("udpos", udpos, "token", ("tokens",), "pos_tags"),
}


def task(kind: str) -> Task:
    """The task of a name.

    Raises:
        ValueError: there is none; the message names the nearest.
    """
    if kind not in TASKS:
        raise ValueError(unknown("kind of task", kind, TASKS))
    return TASKS[kind]
