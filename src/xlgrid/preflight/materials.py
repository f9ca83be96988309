"""What a study takes from outside: products that are fetched from the Hub, or read from files of one's own."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from xlgrid.data.downloads import Found, find
from xlgrid.data.sources import Origin
from xlgrid.plan.needs import inputs
from xlgrid.plan.plan import Plan, under
from xlgrid.plan.products import Data, Product, Text, Unlabelled, Vocabulary
from xlgrid.results.identity import Encoder, Run

if TYPE_CHECKING:
    from xlgrid.study.schema import Study


class Repository(NamedTuple):
    """A repository on the Hub.

    Attributes:
        kind: "model" or "dataset".
    """

    kind: Any
    name: str
    revision: str


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
        named = under(plan.study.name, product)
        repository = repository_of(plan.study, named)
        made_from = inputs(plan, named)
        files = tuple(file for kind in ("files", "adapter") for file in made_from.get(kind, ()))
        if repository or files:
            taken.append(Material(product, named, repository, files))
    return taken


def downloads_of(plan: Plan, materials: Iterable[Material]) -> dict[str, Found]:
    """The files among the materials of a study that have an entry in its `downloads`."""
    files = dict.fromkeys(file for material in materials for file in material.files)
    found = {file: find(plan.study.downloads, file) for file in files}
    return {file: entry for file, entry in found.items() if entry}


def origin_of(study: "Study", product: Product) -> Origin | None:
    """The source of data or of a text; None if it is generated, or if the product is something else."""
    match product:
        case Data():
            data = study.tasks[product.task].data
            return data.of(product.split, product.language) if data and not _is_labelled(study, product) else None
        case Unlabelled():
            data = study.tasks[product.task].data
            return data.labelled if data else None
        case Text():
            return study.text.data if study.text.fetches(product.language) else None
    return None


def _is_labelled(study: "Study", product: Data) -> bool:
    """Whether a run of the study labels the data, so that they are computed."""
    data = study.tasks[product.task].data
    return bool(data and data.labelled_in(product.split, product.language))


def repository_of(study: "Study", product: Product) -> Repository | None:
    """The repository from which a product is fetched; None if it comes from elsewhere."""
    match product:
        case Text() if not study.text.is_from_hub(product.language):
            return None
        case Data() | Unlabelled() | Text():
            origin = origin_of(study, product)
            return Repository("dataset", origin.hub, origin.revision) if origin and origin.hub else None
        case Vocabulary():
            vocabulary = study.all_vocabularies[product.vocabulary]
            return Repository("model", vocabulary.hub, vocabulary.revision) if vocabulary.hub else None
        case Encoder():
            encoder = study.encoders[product.encoder]
            return Repository("model", encoder.hub, encoder.revision) if encoder.hub else None
        case Run():
            imported = study.methods[product.method].imported
            if imported and imported.hub:
                return Repository("model", imported.place(product.source, product.encoder), imported.revision)
    return None
