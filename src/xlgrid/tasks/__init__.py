"""Tasks: where their examples come from, the columns of their data, their labels and head (`xlgrid.heads.metrics` follows)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from xlgrid.base.names import unknown
from xlgrid.base.settings import Strict
from xlgrid.heads import metrics
from xlgrid.tasks import copa, lot, mlm, ruletaker, siqa, udpos, wikiann, xnli, xquad

if TYPE_CHECKING:
    import pyarrow as pa


def _not_generated(*arguments: Any) -> Any:
    raise ValueError("the data of this task are not generated: say in its `data` where they come from")


def _speaks_nothing(code: str) -> bool:
    return False


@dataclass(frozen=True)
class Task:
    """One task.

    A *meaning* is an example that no language has said yet: the same one is realised in every language, so data are
    parallel. `examples(options, sizes)` makes sum(sizes) meanings, in the order train, dev, test; `group(options)` is
    how many consecutive ones must share a split; `row(meaning, language, options)` says one in a language or pair, as a row
    with the `columns` of the Hub's data, of which fetched data need the `inputs` and the `target` alone;
    `to_json` and `from_json` store a meaning as a line; `speaks(code)` is whether `row` knows a language. `inputs` are the
    columns the encoder reads, `target` the one with the label: a name out of `labels` for the sequence head, a list of
    indices into `labels` for the token head. For the span head it has the answers, each a text and where in the context, the
    second input, it starts; for the choice head the name out of `labels`, or the number it reads as, of the right one of
    `choices`, which end `inputs`.
    """

    name: str
    head: Literal["sequence", "token", "span", "choice", "mlm"]
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    inputs: tuple[str, ...]
    target: str
    Options: type[Strict]
    examples: Callable[..., list[Any]] = _not_generated
    group: Callable[..., int] = _not_generated
    row: Callable[..., dict[str, Any]] = _not_generated
    to_json: Callable[..., str] = _not_generated
    from_json: Callable[[str], Any] = _not_generated
    speaks: Callable[[str], bool] = _speaks_nothing
    choices: tuple[str, ...] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        """Those of its cells, the main one first."""
        return metrics.metrics_of(self.head, self.labels)

    @property
    def second(self) -> str | None:
        """The column that a pair takes from its second language; None if the task has no pairs."""
        if len(self.inputs) != 2:
            return None
        return self.inputs[0] if self.head == "span" else self.inputs[1]

    def check(self, table: "pa.Table", where: str) -> None:
        """Check columns and labels of a table that was read from `where`.

        Raises:
            ValueError: no rows, a missing column, an empty value or a label that does not exist; the message names
                `where`, the column and the row, counted from 0.
        """
        if not table.num_rows:
            raise ValueError(f"{where} has no rows: check the source of the data, its `where` and its language")
        for column in (*self.inputs, self.target):
            if column not in table.column_names:
                raise ValueError(
                    f"{where} has no column {column!r}, which {self.name} needs: {unknown('column', column, table.column_names)}; "
                    "`rename` in the study gives a column another name"
                )
        for column in (*self.inputs, self.target):
            values = table[column]
            if values.null_count:
                raise ValueError(f"{where}, row {_first(values.is_null())}, column {column!r}: the value is missing")
        if self.head in ("span", "choice"):
            _check_text(table, self.inputs, where)
        if self.head == "span":
            for i, row in enumerate(table.select([*self.inputs, self.target]).to_pylist()):
                if problem := _wrong_answers(row[self.inputs[1]], row[self.target]):
                    raise ValueError(f"{where}, row {i}, column {self.target!r}: {problem}")
            return
        if self.head in ("sequence", "choice"):
            for i, label in enumerate(table[self.target].to_pylist()):
                if (str(label) if self.head == "choice" else label) not in self.labels:
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


def _check_text(table: "pa.Table", columns: Sequence[str], where: str) -> None:
    import pyarrow as pa

    for column in columns:
        kind = table.schema.field(column).type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise ValueError(f"{where}, column {column!r} is of type {kind}: expected text")


def _wrong_answers(context: str, answers: Any) -> str | None:
    """What is wrong with the answers of a question."""
    if not isinstance(answers, dict) or not {"text", "answer_start"} <= answers.keys():
        return f"expected the lists `text` and `answer_start`, as in SQuAD, got {answers!r}"
    texts, starts = answers["text"], answers["answer_start"]
    if not texts or len(texts) != len(starts):
        return f"{len(texts)} texts and {len(starts)} starts of answers: expected as many, and at least one"
    for text, start in zip(texts, starts, strict=True):
        if not text or (found := context[start : start + len(text)]) != text:
            return (
                f"the answer {text!r} is not in the context at character {start}"
                + (f", where {found!r} stands" if text else "")
                + ": `answer_start` counts characters (not bytes) from 0"
            )
    return None


def _first(mask: "pa.ChunkedArray") -> int:
    return int(mask.to_pylist().index(True))


def _task(
    name: str, module: Any, head: Any, inputs: tuple[str, ...], target: str, choices: tuple[str, ...] = ()
) -> Task:
    made = (module.Options, module.examples, module.group, module.row, module.to_json, module.from_json, module.speaks)
    return Task(name, head, module.LABELS, module.COLUMNS, inputs + choices, target, *made, choices)


TASKS: dict[str, Task] = {
    "ruletaker": _task("ruletaker", ruletaker, "sequence", ("context", "question"), "label"),
    "lot": _task("lot", lot, "sequence", ("context", "phrase"), "answer"),
    "xnli": _task("xnli", xnli, "sequence", ("premise", "hypothesis"), "label"),
    "wikiann": _task("wikiann", wikiann, "token", ("tokens",), "ner_tags"),
    "udpos": _task("udpos", udpos, "token", ("tokens",), "pos_tags"),
    "xquad": _task("xquad", xquad, "span", ("question", "context"), "answers"),
    "copa": _task("copa", copa, "choice", ("premise", "question"), "label", copa.CHOICES),
    "mlm": Task("mlm", "mlm", (), ("text",), ("text",), "", mlm.Options),
    "siqa": _task("siqa", siqa, "choice", ("context", "question"), "label", siqa.CHOICES),
}


def task(kind: str) -> Task:
    """The task of a name.

    Raises:
        ValueError: there is none; the message names the nearest.
    """
    if kind not in TASKS:
        raise ValueError(unknown("kind of task", kind, TASKS))
    return TASKS[kind]
