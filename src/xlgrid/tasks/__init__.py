"""Tasks: the origin of their examples, the columns of their data, their labels, and their head."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xlgrid.base.names import unknown
from xlgrid.base.settings import Strict
from xlgrid.heads import HEADS, Head
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
    `to_json` and `from_json` store a meaning as a line; `speaks(code)` is whether `row` knows a language.

    The head reads `inputs`, the columns for the encoder; `target`, the column with the label or answer; `labels`; and
    `choices`, the columns at the end of `inputs` that hold choices. The description of each head in `xlgrid.heads` says what
    these columns contain.
    """

    name: str
    head: Head
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
    def is_generated(self) -> bool:
        """Whether examples can be generated, so that a study need not say where data come from."""
        return self.examples is not _not_generated

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics of the task's cells, the main one first."""
        return tuple(metric.name for metric in self.head.metrics(self.labels))

    @property
    def second(self) -> str | None:
        """The column that a pair takes from its second language; None if the task has no pairs."""
        return self.head.second(self)

    def check(self, table: "pa.Table", where: str) -> None:
        """Check columns and labels of a table that was read from `where`; see `Head.check`."""
        self.head.check(table, self, where)


def _task(
    name: str, module: Any, head: str, inputs: tuple[str, ...], target: str, choices: tuple[str, ...] = ()
) -> Task:
    made = (module.Options, module.examples, module.group, module.row, module.to_json, module.from_json, module.speaks)
    return Task(name, HEADS[head], module.LABELS, module.COLUMNS, inputs + choices, target, *made, choices)


TASKS: dict[str, Task] = {
    "ruletaker": _task("ruletaker", ruletaker, "sequence", ("context", "question"), "label"),
    "lot": _task("lot", lot, "sequence", ("context", "phrase"), "answer"),
    "xnli": _task("xnli", xnli, "sequence", ("premise", "hypothesis"), "label"),
    "wikiann": _task("wikiann", wikiann, "token", ("tokens",), "ner_tags"),
    "udpos": _task("udpos", udpos, "token", ("tokens",), "pos_tags"),
    "xquad": _task("xquad", xquad, "span", ("question", "context"), "answers"),
    "copa": _task("copa", copa, "choice", ("premise", "question"), "label", copa.CHOICES),
    "mlm": Task("mlm", HEADS["mlm"], (), ("text",), ("text",), "", mlm.Options),
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
