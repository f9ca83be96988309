"""Structured self-attention (Foroutan et al. 2023): attention dropout between two languages, and a query between them."""

from xlgrid.methods.structured.method import CrossQuery, StructuredDropout

__all__ = ["CrossQuery", "StructuredDropout"]
