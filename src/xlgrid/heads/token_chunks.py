"""The head `token-chunks`, which scores parts of speech with the F1 of XTREME (Hu et al. 2020)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from xlgrid.base.arrays import Flags, Ints
from xlgrid.heads.classification import measure
from xlgrid.heads.entities import WORD_METRICS, span_cases
from xlgrid.heads.head import TaskColumns
from xlgrid.heads.metrics import Metric
from xlgrid.heads.schemes import Finder, Spans, scheme_of
from xlgrid.heads.token import TokenHead

# The first letter of a label that seqeval reads as a chunk of one word, as in the scheme BIOES.
_SINGLE = "S"


def chunks(labels: tuple[str, ...]) -> Finder:
    """The function that finds chunks. The number of a chunk's type is that of its label."""
    is_single = np.array([label.startswith(_SINGLE) for label in labels])

    def find(numbers: Ints, opens: Flags) -> Spans:
        begins = opens.copy()
        begins[1:] |= (numbers[1:] != numbers[:-1]) | is_single[numbers[:-1]]
        firsts = np.flatnonzero(begins)
        return Spans(firsts, np.append(firsts[1:], len(numbers))[: len(firsts)] - 1, numbers[firsts])

    return find


CHUNK_F1 = measure(
    "chunk-f1",
    "micro",
    "f1",
    span_cases("runs of words with one label", lambda labels: labels, chunks),
    "XTREME takes it from seqeval 0.0.12",
    is_reported=True,
)


class ChunkHead(TokenHead):
    """The head `token` for labels without a tagging scheme. Neighbouring words with the same label form a chunk.

    XTREME passes labels such as NOUN to seqeval 0.0.12, which reads them as BIOES: a chunk ends where the label
    changes, and a word whose label begins with S (SCONJ, SYM) is a separate chunk.

    The other metrics are those of words.
    """

    name = "token-chunks"
    all_metrics: ClassVar[tuple[Metric, ...]] = (
        CHUNK_F1,
        *(replace(each, is_reported=False) for each in WORD_METRICS),
    )

    def problems(self, task: TaskColumns) -> list[str]:
        problems = super().problems(task)
        if not problems and (scheme := scheme_of(task.labels)):
            problems.append(f"`labels` mark spans as {scheme.name}, which `kind: token` scores")
        return problems

    def metrics(self, labels: Sequence[str]) -> tuple[Metric, ...]:
        return tuple(each for metric in self.all_metrics for each in metric.of(labels))
