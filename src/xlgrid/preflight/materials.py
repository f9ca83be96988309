"""What a study takes from outside: products that are fetched from the Hub, or read from files of one's own."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from xlgrid.data.downloads import Found, find
from xlgrid.data.published import Repository
from xlgrid.plan.plan import Plan
from xlgrid.products.product import Product


class Material(NamedTuple):
    """A product that is not computed from others.

    Attributes:
        product: under the study that makes it.
        named: the same product under the study that is checked.
        repository: the repository that it is fetched from; None if it is read from files.
        files: the files of one's own that it is read from.
    """

    product: Product
    named: Product
    repository: Repository | None
    files: tuple[str, ...]

    @property
    def is_there(self) -> bool:
        """Whether the product has been made."""
        return Path(self.product.path).exists()

    @property
    def missing(self) -> list[str]:
        """The files that do not exist, or are folders."""
        return [file for file in self.files if not Path(file).is_file()]


def needed_products(plan: Plan) -> list[Product]:
    """Everything on which the cells and exhibits of a study rest, each after what it is made from."""
    # Runs that differ by their seeds alone rest on the same data and encoders.
    cells = {cell._replace(seed=0): cell for cell in plan.cells}.values()
    needed: dict[Product, None] = {product: None for cell in cells for product in plan.rests_on(cell)}
    needed |= {product: None for encoder in plan.encoders_read for product in plan.rests_on(encoder)}
    return [*needed]


def materials(plan: Plan, needed: Iterable[Product]) -> list[Material]:
    """The products that are fetched or read.

    Args:
        needed: see `needed_products`.
    """
    taken = []
    for product in needed:
        named = product.under(plan.study.name)
        repository = named.repository(plan.study)
        made_from = named.inputs(plan)
        files = tuple(file for kind in ("files", "adapter") for file in made_from.get(kind, ()))
        if repository or files:
            taken.append(Material(product, named, repository, files))
    return taken


def downloads_of(plan: Plan, materials: Iterable[Material]) -> dict[str, Found]:
    """The files among the materials of a study that have an entry in its `downloads`."""
    files = dict.fromkeys(file for material in materials for file in material.files)
    found = {file: find(plan.study.downloads, file) for file in files}
    return {file: entry for file, entry in found.items() if entry}
