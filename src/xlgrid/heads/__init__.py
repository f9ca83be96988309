"""Heads, which turn examples into inputs, losses, predictions and metrics. Each has a file here and a line in `HEADS`.

`ALL_HEADS` also finds the heads that installed packages declare as entry points of the group `xlgrid.heads`.
"""

from xlgrid.base.names import unknown
from xlgrid.base.plugins import Extensible
from xlgrid.heads.choice import ChoiceHead
from xlgrid.heads.embed import EmbedHead, MiningHead
from xlgrid.heads.head import Head
from xlgrid.heads.language_modelling import MlmHead, PerplexityHead
from xlgrid.heads.metrics import Metric
from xlgrid.heads.parsing import ParseHead
from xlgrid.heads.sequence import SequenceHead
from xlgrid.heads.span import MlqaSpanHead, SpanHead
from xlgrid.heads.token import TokenHead
from xlgrid.heads.token_chunks import ChunkHead

HEADS: dict[str, Head] = {
    head.name: head
    for head in (
        SequenceHead(),
        TokenHead(),
        ChunkHead(),
        ParseHead(),
        SpanHead(),
        MlqaSpanHead(),
        ChoiceHead(),
        MlmHead(),
        PerplexityHead(),
        EmbedHead(),
        MiningHead(),
    )
}

ALL_HEADS = Extensible(
    "head",
    "xlgrid.heads",
    HEADS,
    fits=lambda name, head: isinstance(head, Head) and head.name == name,
    expected="an instance of xlgrid.heads.Head whose `name` is the name of the entry point",
)

__all__ = ["ALL_HEADS", "HEADS", "Head", "metric"]


def metric(name: str) -> Metric:
    """The metric with a name, among the metrics of all heads.

    Raises:
        ValueError: no head has a metric with this name; the message has the nearest name.
    """
    metrics = {metric.name: metric for head in ALL_HEADS.known() for metric in head.all_metrics}
    if name not in metrics:
        metrics |= {metric.name: metric for key in ALL_HEADS.names() for metric in ALL_HEADS.find(key).all_metrics}
    if name not in metrics:
        raise ValueError(unknown("metric", name, metrics))
    return metrics[name]
