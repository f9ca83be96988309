"""Heads, which turn examples into inputs, losses, predictions and metrics. Each has a file here and a line in `HEADS`.

`ALL_HEADS` also finds the heads that installed packages declare as entry points of the group `xlgrid.heads`.
"""

from dataclasses import replace

from xlgrid.base.names import unknown
from xlgrid.base.plugins import Extensible
from xlgrid.heads.choice import ChoiceHead
from xlgrid.heads.embed import EmbedHead, MiningHead
from xlgrid.heads.head import Head
from xlgrid.heads.language_modelling import MlmHead, PerplexityHead
from xlgrid.heads.metrics import LABEL, Metric
from xlgrid.heads.multilabel import MultilabelHead
from xlgrid.heads.parsing import ParseHead
from xlgrid.heads.regression import RegressionHead
from xlgrid.heads.sequence import SequenceHead
from xlgrid.heads.span import MlqaSpanHead, SpanHead
from xlgrid.heads.token import TokenHead
from xlgrid.heads.token_chunks import ChunkHead

HEADS: dict[str, Head] = {
    head.name: head
    for head in (
        SequenceHead(),
        MultilabelHead(),
        RegressionHead(),
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
    """A metric with this name, among the metrics of all heads: its unit, and whether higher is better.

    The score of a cell needs the labels of its task: `Head.metric` returns the metric that computes it.

    Raises:
        ValueError: no head has a metric with this name; the message has the nearest name.
    """
    of_any_label = "".join(name.partition(LABEL)[:2])
    # The names that packages declare are looked up only for a metric that no known head has, because that takes time.
    for heads in (ALL_HEADS.known, lambda: map(ALL_HEADS.find, ALL_HEADS.names())):
        metrics = {metric.name: metric for head in heads() for metric in head.all_metrics}
        if found := metrics.get(name) or metrics.get(of_any_label):
            return found if found.name == name else replace(found, name=name)
    raise ValueError(unknown("metric", name, metrics))
