"""The head `token-chunks`, which scores parts of speech with the F1 of XTREME (Hu et al. 2020)."""

from collections.abc import Sequence

from xlgrid.heads.head import TaskColumns
from xlgrid.heads.metrics import CHUNK_F1, Metric
from xlgrid.heads.schemes import Span, scheme_of
from xlgrid.heads.token import TokenHead, span_outcome

# The first letter of a label that seqeval reads as a chunk of one word, as in the scheme BIOES.
_SINGLE = "S"


class ChunkHead(TokenHead):
    """The head `token` for labels without a tagging scheme. Neighbouring words with the same label form a chunk.

    XTREME passes labels such as NOUN to seqeval 0.0.12, which reads them as BIOES: a chunk ends where the label
    changes, and a word whose label begins with S (SCONJ, SYM) is a separate chunk.

    An outcome is `[true positives, false positives, false negatives]` for the chunks of a sentence.
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
    """The chunks of a sentence, each with its label, first word and last word."""
    closed: set[Span] = set()
    start = 0
    for at, tag in enumerate(tags):
        is_last = at + 1 == len(tags) or tags[at + 1] != tag or tag.startswith(_SINGLE)
        if is_last:
            closed.add((tag, start, at))
            start = at + 1
    return closed
