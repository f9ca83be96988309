"""Answers that are spans of a context: `head` scores them as SQuAD does, each other module as a benchmark of its name does."""

from xlgrid.heads.span.head import SpanHead
from xlgrid.heads.span.mlqa import MlqaSpanHead

__all__ = ["MlqaSpanHead", "SpanHead"]
