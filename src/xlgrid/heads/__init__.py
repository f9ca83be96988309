"""Heads: how examples become inputs, losses, predictions and metrics. Each has a file here and a line in `HEADS`."""

from xlgrid.base.names import unknown
from xlgrid.heads.choice import ChoiceHead
from xlgrid.heads.head import Head
from xlgrid.heads.metrics import Metric
from xlgrid.heads.mlm import MlmHead
from xlgrid.heads.perplexity import PerplexityHead
from xlgrid.heads.sequence import SequenceHead
from xlgrid.heads.span import SpanHead
from xlgrid.heads.token import TokenHead

HEADS: dict[str, Head] = {
    head.name: head for head in (SequenceHead(), TokenHead(), SpanHead(), ChoiceHead(), MlmHead(), PerplexityHead())
}

__all__ = ["HEADS", "Head", "metric"]


def metric(name: str) -> Metric:
    """The metric of a name, among those of all heads.

    Raises:
        ValueError: there is none; the message names the nearest.
    """
    metrics = {metric.name: metric for head in HEADS.values() for metric in head.all_metrics}
    if name not in metrics:
        raise ValueError(unknown("metric", name, metrics))
    return metrics[name]
