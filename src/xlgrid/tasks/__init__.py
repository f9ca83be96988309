"""Tasks: heads with the columns and labels of their data. A study names one, or describes one of its own.

A task has a file here and a line in `TASKS` where its data can be generated, or where a benchmark has rules of its own.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from xlgrid.base.names import unknown
from xlgrid.heads import HEADS
from xlgrid.tasks import copa, lot, mlm, ruletaker, siqa, udpos, wikiann, xnli, xquad
from xlgrid.tasks.task import Columns, Task

__all__ = ["TASKS", "Columns", "Task", "task"]


def _generated(
    name: str, module: Any, head: str, inputs: tuple[str, ...], target: str, tokens: int, choices: tuple[str, ...] = ()
) -> Task:
    return Task(name, (*inputs, *choices), target, module.LABELS, choices, HEADS[head], module.Options, module, tokens)


# The tokens per example of ruletaker and lot are the means of 300 generated examples over nine languages, in pieces of XLM-R's
# vocabulary cut to 21,000; the others are guesses.
TASKS: dict[str, Task] = {
    "ruletaker": _generated("ruletaker", ruletaker, "sequence", ("context", "question"), "label", 140),
    "lot": _generated("lot", lot, "sequence", ("context", "phrase"), "answer", 50),
    "xnli": _generated("xnli", xnli, "sequence", ("premise", "hypothesis"), "label", 60),
    "wikiann": _generated("wikiann", wikiann, "token", ("tokens",), "ner_tags", 30),
    "udpos": _generated("udpos", udpos, "token", ("tokens",), "pos_tags", 30),
    "xquad": _generated("xquad", xquad, "span", ("question", "context"), "answers", 200),
    "copa": _generated("copa", copa, "choice", ("premise", "question"), "label", 50, copa.CHOICES),
    "siqa": _generated("siqa", siqa, "choice", ("context", "question"), "label", 110, siqa.CHOICES),
    **{name: Task(name, ("text",), "", (), (), HEADS[name], mlm.Options, tokens=60) for name in ("mlm", "perplexity")},
}


def task(kind: str, columns: Columns | Mapping[str, Any] | None = None) -> Task:
    """The task of a name, or the task of a head with the columns that a study describes.

    Args:
        kind: a key of `TASKS`, or the name of a head.
        columns: for a head only, since other tasks have columns of their own. The heads `mlm` and `perplexity` are tasks, too, and
            may do without.

    Raises:
        ValueError: there is no such task or head, and the message names the nearest; or the columns do not suit the head.
    """
    columns = columns if isinstance(columns, Columns) else Columns(**(columns or {}))
    written = [f"`{name}`" for name in Columns.model_fields if getattr(columns, name)]
    if kind in TASKS and not written:
        return TASKS[kind]
    if kind not in HEADS:
        if kind not in TASKS:
            raise ValueError(unknown("kind of task", kind, dict.fromkeys((*TASKS, *HEADS))))
        raise ValueError(
            f"the task {kind} has columns of its own, so leave out {' and '.join(written)}; a task of yours has one of "
            f"the kinds {', '.join(HEADS)}, and `rename` in `data` gives columns other names"
        )
    inputs, labels, choices = map(tuple, (columns.inputs, columns.labels, columns.choices))
    described = Task(kind, (*inputs, *choices), columns.target, labels, choices, HEADS[kind])
    if kind in TASKS:
        described = replace(described, Options=TASKS[kind].Options, tokens=TASKS[kind].tokens)
    if problems := described.head.problems(described):
        raise ValueError(f"a task of kind {kind}: {'; '.join(problems)}")
    return described
