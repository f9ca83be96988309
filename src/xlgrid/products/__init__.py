"""Everything that a study makes: a class for each kind of product, in the order in which data flow."""

from functools import cache

from xlgrid.base.plugins import Extensible, is_subclass_of
from xlgrid.products.choice import Choice
from xlgrid.products.data import Data, Meanings, Text
from xlgrid.products.encode import Encoder, Tokenizer, Tokens
from xlgrid.products.evaluate import Cell
from xlgrid.products.exhibits import Exhibit, PublishedExhibit
from xlgrid.products.product import Product
from xlgrid.products.report import Claims, Report, Summary
from xlgrid.products.together import RunGroup
from xlgrid.products.train import Run

# The path of a comparison is that of its exhibit with a suffix (`table03-published`). It must be tried first, since
# `Exhibit` would match it, too.
_CORE = (
    Meanings,
    Data,
    Text,
    Tokenizer,
    Encoder,
    Tokens,
    Choice,
    RunGroup,
    Run,
    Cell,
    PublishedExhibit,
    Exhibit,
    Claims,
    Summary,
    Report,
)

ALL_PRODUCTS = Extensible[type[Product]](
    "product",
    "xlgrid.products",
    {kind.__name__.lower(): kind for kind in _CORE},
    fits=is_subclass_of(Product),
    expected="a subclass of xlgrid.products.product.Product",
)


@cache
def kinds() -> tuple[type[Product], ...]:
    """All kinds of product: those of the core, of the papers, and of other installed packages."""
    return tuple(map(ALL_PRODUCTS.find, ALL_PRODUCTS.names()))


def product_of(path: str) -> Product | None:
    """The product of any study to which a file belongs; None if the file belongs to no product."""
    return next((product for kind in kinds() if (product := kind.parse(path))), None)
