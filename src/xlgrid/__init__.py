"""Whole experiment grids of cross-lingual transfer, in which every cell is a file."""
