"""The head `parse`, which predicts the dependency tree of a sentence."""

from xlgrid.heads.parsing.head import ParseHead

__all__ = ["ParseHead"]
