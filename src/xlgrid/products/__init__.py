"""Everything that a study makes: a class for each kind of product, in the order in which data flow."""

from xlgrid.products.data import Data, Meanings, Text, Unlabelled
from xlgrid.products.encode import Encoder, Tokens, Vocabulary
from xlgrid.products.evaluate import Cell, Contrast
from xlgrid.products.exhibits import Comparison, Exhibit
from xlgrid.products.product import Product
from xlgrid.products.report import Claims, Report, Summary
from xlgrid.products.train import Run

# The comparison of an exhibit is named as the exhibit with more behind, so it comes first.
PRODUCTS: tuple[type[Product], ...] = (
    Meanings,
    Data,
    Unlabelled,
    Text,
    Vocabulary,
    Encoder,
    Tokens,
    Run,
    Cell,
    Contrast,
    Comparison,
    Exhibit,
    Claims,
    Summary,
    Report,
)


def product_of(path: str) -> Product | None:
    """The product, of whatever study, to which a file belongs; None if the file belongs to none."""
    return next((product for kind in PRODUCTS if (product := kind.parse(path))), None)
