"""Exhibits: the tables and figures of a study, one file per kind with its schema, its data and its drawing.

A new kind is a subclass of `xlgrid.exhibits.exhibit.Exhibit` in a file here, imported below and named in `AnyExhibit`.
"""

from typing import Annotated

from pydantic import Field

from xlgrid.exhibits.attention import Attention
from xlgrid.exhibits.benchmark import Benchmark
from xlgrid.exhibits.best import Best
from xlgrid.exhibits.curve import Curve
from xlgrid.exhibits.heatmap import Heatmap
from xlgrid.exhibits.languages import Languages
from xlgrid.exhibits.masks import Masks
from xlgrid.exhibits.pair_attention import PairAttention
from xlgrid.exhibits.parameters import Parameters
from xlgrid.exhibits.table import Table

AnyExhibit = Annotated[
    Table | Heatmap | Best | Curve | Parameters | Masks | Attention | PairAttention | Languages | Benchmark,
    Field(discriminator="kind"),
]

__all__ = [
    "AnyExhibit",
    "Attention",
    "Benchmark",
    "Best",
    "Curve",
    "Heatmap",
    "Languages",
    "Masks",
    "PairAttention",
    "Parameters",
    "Table",
]
