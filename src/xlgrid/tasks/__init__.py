"""Tasks: heads with the columns and labels of their data. A study names one, or describes one of its own.

A task has a line in `TASKS` where its data can be generated (`xlgrid.synthetic.miniatures`), or where a benchmark has rules of its own.
`ALL_TASKS` also finds the tasks that installed packages declare as entry points of the group `xlgrid.tasks`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import create_model

from xlgrid.base.names import unknown
from xlgrid.base.plugins import Extensible
from xlgrid.heads import ALL_HEADS, HEADS
from xlgrid.heads.head import NoOptions
from xlgrid.synthetic.miniatures import (
    bucc,
    causal_nli,
    copa,
    lot,
    mentions,
    ruletaker,
    similarity,
    siqa,
    tatoeba,
    udparse,
    udpos,
    wikiann,
    xnli,
    xquad,
)
from xlgrid.tasks import mlm
from xlgrid.tasks.task import Columns, Task

__all__ = ["ALL_TASKS", "TASKS", "Columns", "Task", "task"]


def _generated(
    name: str, module: Any, head: str, inputs: tuple[str, ...], target: str, tokens: int, choices: tuple[str, ...] = ()
) -> Task:
    """A task whose data a module generates. Its options are those of the module, and those of the head."""
    Options = module.Options
    if (of_head := HEADS[head].options) is not NoOptions:
        about = "Size and content of the generated data, and the options of the head."
        Options = create_model("Options", __base__=(module.Options, of_head), __doc__=about)
    return Task(name, (*inputs, *choices), target, module.LABELS, choices, HEADS[head], Options, module, tokens)


# The tokens of an input of ruletaker and lot are the means of 300 generated examples over nine languages, in pieces of XLM-R's
# tokenizer cut to 21,000; the others are guesses.
TASKS: dict[str, Task] = {
    "ruletaker": _generated("ruletaker", ruletaker, "sequence", ("context", "question"), "label", 140),
    "lot": _generated("lot", lot, "sequence", ("context", "phrase"), "answer", 50),
    "xnli": _generated("xnli", xnli, "sequence", ("premise", "hypothesis"), "label", 60),
    "causal-nli": _generated("causal-nli", causal_nli, "sequence", ("premise", "hypothesis"), "label", 30),
    "wikiann": _generated("wikiann", wikiann, "token", ("tokens",), "ner_tags", 30),
    "udpos": _generated("udpos", udpos, "token", ("tokens",), "pos_tags", 30),
    "udparse": _generated("udparse", udparse, "parse", ("tokens",), "deprel", 30),
    # XTREME scores parts of speech by chunks.
    "udpos-chunks": _generated("udpos-chunks", udpos, "token-chunks", ("tokens",), "pos_tags", 30),
    "xquad": _generated("xquad", xquad, "span", ("question", "context"), "answers", 200),
    # TyDiQA-GoldP (Clark et al. 2020, section 8) has the columns of XQuAD and the scores of SQuAD. MLQA (Lewis et al. 2020) has
    # these columns, too, and compares answers in another way.
    "tydiqa": _generated("tydiqa", xquad, "span", ("question", "context"), "answers", 200),
    "mlqa": _generated("mlqa", xquad, "span-mlqa", ("question", "context"), "answers", 200),
    "copa": _generated("copa", copa, "choice", ("premise", "question"), "label", 25, copa.CHOICES),
    "siqa": _generated("siqa", siqa, "choice", ("context", "question"), "label", 37, siqa.CHOICES),
    "mentions": _generated("mentions", mentions, "multilabel", ("text",), "labels", 30),
    "similarity": _generated("similarity", similarity, "regression", ("sentence1", "sentence2"), "score", 60),
    # Both sentences of an example count.
    "tatoeba": _generated("tatoeba", tatoeba, "embed", ("source_sentence", "target_sentence"), "", 40),
    "bucc": _generated("bucc", bucc, "embed-mining", ("sentence",), "", 40),
    **{name: Task(name, ("text",), "", (), (), HEADS[name], mlm.Options, tokens=60) for name in ("mlm", "perplexity")},
}

ALL_TASKS = Extensible(
    "kind of task",
    "xlgrid.tasks",
    TASKS,
    fits=lambda name, task: isinstance(task, Task) and task.name == name,
    expected="an xlgrid.tasks.Task whose `name` is that of the entry point",
)


def task(kind: str, columns: Columns | Mapping[str, Any] | None = None) -> Task:
    """The task of a name, or the task of a head with the columns that a study describes.

    Args:
        kind: the name of a task in `ALL_TASKS`, or of a head in `ALL_HEADS`.
        columns: for a head; other tasks have columns of their own, and only those with labels of words may get other labels, in the
            order of their numbers in the data. Such a task cannot be generated. The heads `mlm` and `perplexity` are tasks, too,
            and may do without columns.

    Raises:
        ValueError: there is no such task or head, and the message names the nearest; or the columns do not suit the head.
    """
    columns = columns if isinstance(columns, Columns) else Columns(**(columns or {}))
    written = [f"`{name}`" for name in Columns.model_fields if getattr(columns, name)]
    head = HEADS.get(kind)
    # Entry points are asked only for a name that is neither a task nor a head of xlgrid.
    known = TASKS.get(kind) if head else ALL_TASKS.get(kind)
    if known and not written:
        return known
    head = head or ALL_HEADS.get(kind)
    if head is None:
        if known is None:
            raise ValueError(unknown("kind of task", kind, [*ALL_TASKS.names(), *ALL_HEADS.names()]))
        if known.head.reads_words and written == ["`labels`"]:
            return _checked(replace(known, labels=tuple(columns.labels), generator=None))
        raise ValueError(
            f"the task {kind} has columns of its own, so leave out {' and '.join(written)}; a task of yours has one of "
            f"the kinds {', '.join(ALL_HEADS.names())}, and `rename` in `data` gives columns other names"
        )
    inputs, labels, choices = map(tuple, (columns.inputs, columns.labels, columns.choices))
    described = Task(kind, (*inputs, *choices), columns.target, labels, choices, head, head.options)
    if known:
        described = replace(described, Options=known.Options, tokens=known.tokens)
    return _checked(described)


def _checked(described: Task) -> Task:
    if problems := described.head.problems(described):
        raise ValueError(f"a task of kind {described.name}: {'; '.join(problems)}")
    return described
