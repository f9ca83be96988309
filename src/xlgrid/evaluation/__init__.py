"""Cells, and the divergence of attention between two targets."""
