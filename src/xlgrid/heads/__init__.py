"""Heads: how examples become inputs, losses, predictions and metrics. Each has a file here and a line in `HEADS`."""

from xlgrid.heads.choice import ChoiceHead
from xlgrid.heads.head import Head
from xlgrid.heads.mlm import MlmHead
from xlgrid.heads.sequence import SequenceHead
from xlgrid.heads.span import SpanHead
from xlgrid.heads.token import TokenHead

HEADS: dict[str, Head] = {
    head.name: head for head in (SequenceHead(), TokenHead(), SpanHead(), ChoiceHead(), MlmHead())
}

__all__ = ["HEADS", "Head"]
