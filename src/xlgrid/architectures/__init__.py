"""Architectures of encoders that are pre-trained here, one file for each.

`xlgrid.architectures.scratch` has all of them, also those of papers and of other installed packages.
"""

from xlgrid.architectures.architecture import PRETRAINING, SHAPES, Architecture

__all__ = ["PRETRAINING", "SHAPES", "Architecture"]
