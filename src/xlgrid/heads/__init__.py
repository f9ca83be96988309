"""Heads: how examples become inputs, losses, predictions and metrics."""
