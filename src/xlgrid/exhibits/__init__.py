"""Exhibits: the tables and figures of a study. Each kind has a file with its schema, its data and its drawing.

`xlgrid.exhibits.kinds` has all kinds, including the kinds of papers and of other installed packages.
"""

from xlgrid.exhibits.benchmark import Benchmark
from xlgrid.exhibits.curve import Curve
from xlgrid.exhibits.heatmap import Heatmap
from xlgrid.exhibits.table import Table

__all__ = ["Benchmark", "Curve", "Heatmap", "Table"]
