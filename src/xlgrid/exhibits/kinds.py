"""All kinds of exhibits.

A kind is a subclass of `xlgrid.exhibits.exhibit.Exhibit`. Papers and other installed packages add kinds as entry points
of the group `xlgrid.exhibits`, named by their `kind`. Their modules import modules of this package, so only this module
loads them.
"""

from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import Field, WrapValidator

from xlgrid.base.plugins import Extensible
from xlgrid.exhibits.bars import Bars
from xlgrid.exhibits.benchmark import Benchmark
from xlgrid.exhibits.curve import Curve
from xlgrid.exhibits.exhibit import Exhibit
from xlgrid.exhibits.heatmap import Heatmap
from xlgrid.exhibits.languages import Languages
from xlgrid.exhibits.multiples import Multiples
from xlgrid.exhibits.pairs.clusters import Clusters
from xlgrid.exhibits.pairs.ranking import Ranking
from xlgrid.exhibits.pairs.ranks import Ranks
from xlgrid.exhibits.pairs.scatter import Scatter
from xlgrid.exhibits.seeds import Seeds
from xlgrid.exhibits.table import Table

KINDS: dict[str, type[Exhibit]] = {
    "table": Table,
    "heatmap": Heatmap,
    "heatmaps": Multiples,
    "curve": Curve,
    "bars": Bars,
    "seeds": Seeds,
    "languages": Languages,
    "benchmark": Benchmark,
    "scatter": Scatter,
    "clusters": Clusters,
    "ranking": Ranking,
    "ranks": Ranks,
}


def _fits(name: str, value: Any) -> bool:
    is_kind = isinstance(value, type) and issubclass(value, Exhibit)
    return is_kind and name in get_args(value.model_fields["kind"].annotation)


ALL_KINDS = Extensible(
    "kind of exhibit",
    "xlgrid.exhibits",
    KINDS,
    _fits,
    expected="a subclass of xlgrid.exhibits.exhibit.Exhibit with a literal field `kind` of this name",
)


def _of_packages(fields: Any, validate: Callable[[Any], Exhibit]) -> Exhibit:
    """The exhibit that a study describes. The kinds of other packages are loaded when a study names them."""
    kind = fields.get("kind") if isinstance(fields, Mapping) else None
    if isinstance(kind, str) and kind not in ALL_KINDS.own and (other := ALL_KINDS.get(kind)):
        return other.model_validate(fields)
    return validate(fields)


_Own: Any = reduce(or_, ALL_KINDS.own.values())

if TYPE_CHECKING:
    AnyExhibit = Exhibit
else:
    AnyExhibit = Annotated[Annotated[_Own, Field(discriminator="kind")], WrapValidator(_of_packages)]
