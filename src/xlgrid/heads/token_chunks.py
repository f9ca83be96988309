"""The head `token-chunks`: the F1 by which XTREME scores parts of speech (Hu et al. 2020)."""

from collections.abc import Sequence

from xlgrid.heads.head import TaskColumns
from xlgrid.heads.metrics import CHUNK_F1, Metric
from xlgrid.heads.schemes import Span, scheme_of
from xlgrid.heads.token import TokenHead, span_outcome

# The first letter of a label that marks a chunk of one word to seqeval, as in the scheme BIOES.
_SINGLE = "S"


class ChunkHead(TokenHead):
    """As `token`, with labels of no tagging scheme. Neighbouring words with one label are a chunk.

    XTREME gives labels such as NOUN to seqeval 0.0.12, which reads them as if they were BIOES: the end of a chunk is where the label
    changes, and a word whose label begins with S (SCONJ, SYM) is a chunk of its own.

    An outcome is `[true positives, false positives, false negatives]` of a sentence's chunks.
    """

    name = "token-chunks"
    all_metrics = (CHUNK_F1,)

    def problems(self, task: TaskColumns) -> list[str]:
        problems = super().problems(task)
        if not problems and (scheme := scheme_of(task.labels)):
            problems.append(f"`labels` mark spans as {scheme.name}, which `kind: token` scores")
        return problems

    def outcome(self, labels: Sequence[str], predicted: Sequence[int], gold: Sequence[int]) -> list[int]:
        return span_outcome(chunks, labels, predicted, gold)

    def metrics(self, labels: Sequence[str]) -> tuple[Metric, ...]:
        return self.all_metrics


def chunks(tags: Sequence[str]) -> set[Span]:
    """The chunks of a sentence: label, first word and last word of each."""
    closed: set[Span] = set()
    start = 0
    for at, tag in enumerate(tags):
        is_last = at + 1 == len(tags) or tags[at + 1] != tag or tag.startswith(_SINGLE)
        if is_last:
            closed.add((tag, start, at))
            start = at + 1
    return closed
