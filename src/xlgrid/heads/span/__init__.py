"""Answers to questions as spans of a context: `head` scores them as SQuAD does, `mlqa` as MLQA does."""

from xlgrid.heads.span.head import SpanHead
from xlgrid.heads.span.mlqa import MlqaSpanHead

__all__ = ["MlqaSpanHead", "SpanHead"]
