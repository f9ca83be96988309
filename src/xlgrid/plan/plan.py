"""The plan of a study: its cells and runs, and which of its products are those of a study that it extends."""

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from xlgrid.plan import grid
from xlgrid.plan.needs import flat, inputs, makes_all_splits
from xlgrid.plan.products import Claims, Comparison, Data, Exhibit, Product, Report, Summary, product_of, unknown_name
from xlgrid.plan.settings import settings
from xlgrid.results.identity import Cell, Contrast, Encoder, Run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xlgrid.study.schema import Study

P = TypeVar("P", bound=Product)


@dataclass(frozen=True)
class Plan:
    """A study, and the cells and runs that follow from it.

    A product whose settings and inputs equal those of the same product of a study that this one extends *is* the product of
    that study, and has its path: see `owned`.

    Attributes:
        ancestors: the plans of the studies that this one extends, the first of them first.
        path: the file of the study; None if the study is not from a file.
        chains: product -> that product and everything on which it rests, as far as `rests_on` has been asked.
    """

    study: "Study"
    ancestors: tuple["Plan", ...] = ()
    path: Path | None = None
    chains: dict[Product, list[Product]] = field(default_factory=dict, repr=False)
    _owned: dict[Product, Product] = field(default_factory=dict, repr=False)
    _equal_cells: dict[tuple[str, Cell, str], bool] = field(default_factory=dict, repr=False)

    @cached_property
    def cells(self) -> list[Cell]:
        """Every cell of the study, in the order of its grids."""
        return [self.owned(cell) for cell in self._named_cells]

    @cached_property
    def runs(self) -> list[Run]:
        """Every run of the study; a run comes after those with which it begins."""
        return [self.owned(run) for run in self._named_runs]

    def runs_of(self, cells: "Iterable[Cell]") -> list[Run]:
        """Every run that some cells of the study need; a run comes after those with which it begins."""
        named = (under(self.study.name, cell) for cell in cells)
        return [self.owned(run) for run in grid.runs(self.study, named)]

    @cached_property
    def encoders_read(self) -> list[Encoder]:
        """The encoders whose files exhibits read, each once."""
        read = (encoder for exhibit in self.study.exhibits.values() for encoder in exhibit.encoders_read(self.study))
        return [*dict.fromkeys(map(self.owned, read))]

    @cached_property
    def products(self) -> list[Product]:
        """Everything on which the report rests, and the report: one product for each job, after those that it is made from."""
        study = self.study
        contrasts = [contrast for exhibit in study.exhibits.values() for contrast in exhibit.contrasts(self.cells)]
        results: list[Product] = [*self.runs, *self.cells, *map(self.owned, contrasts), *self.encoders_read]
        products = dict.fromkeys(product for result in results for product in self.rests_on(result))
        exhibits = [Exhibit(study.name, name) for name in study.exhibits]
        comparisons = [Comparison(study.name, name) for name, exhibit in study.exhibits.items() if exhibit.is_compared]
        claims = [Claims(study.name)] if study.claims else []
        return [*products, *exhibits, *comparisons, *claims, Summary(study.name), Report(study.name)]

    @cached_property
    def results(self) -> frozenset[Run | Cell]:
        """All runs and cells under the name of this study, whichever study makes them."""
        return frozenset([*self._named_cells, *self._named_runs])

    @cached_property
    def _named_cells(self) -> list[Cell]:
        return grid.cells(self.study)

    @cached_property
    def _named_runs(self) -> list[Run]:
        return grid.runs(self.study, self._named_cells)

    def owned(self, product: P) -> P:
        """A product under the study that makes it: the first ancestor that has an equal one, or else this study.

        Args:
            product: under any study.
        """
        named = under(self.study.name, product)
        if not self.ancestors:
            return named
        if named not in self._owned:
            self._owned[named] = self._owner(named)
        return self._owned[named]  # type: ignore[return-value]

    def _owner(self, product: P) -> P:
        """`owned`, for a product under the name of this study."""
        if not self.has(product) or settings(self.study, product) is None or self._has_own_input(product):
            return product
        for ancestor in self.ancestors:
            same = under(ancestor.study.name, product)
            if ancestor.has(same) and self._equals(ancestor, product):
                return same
        return product

    def _has_own_input(self, product: Product) -> bool:
        """Whether this study makes an input of a product, so that no ancestor has an equal one.

        It is asked first because the grids of an ancestor may be large, and of cells only by their run because they are many.
        """
        if isinstance(product, Cell):
            return product.run in self.results and self.owned(product.run) == product.run
        folder = f"{Report(self.study.name).folder}/"
        return any(file.startswith(folder) for file in flat(inputs(self, product)))

    def _equals(self, ancestor: "Plan", product: Product) -> bool:
        """Whether an ancestor makes a product of the same name from equal inputs with equal settings."""
        if isinstance(product, Cell):
            # The cells of all seeds have the same inputs but for their runs, of which those of one study are alike.
            group = ancestor.study.name, product._replace(seed=0), self.owned(product.run).study
            if group not in self._equal_cells:
                self._equal_cells[group] = self._compare(ancestor, product)
            return self._equal_cells[group]
        return self._compare(ancestor, product)

    def _compare(self, ancestor: "Plan", product: Product) -> bool:
        name = ancestor.study.name
        same = under(name, product)
        # A recipe says its study, which changes no result.
        namesake = self.study.model_copy(update={"name": name})
        inputs_are_equal = inputs(self, product) == inputs(ancestor, same)
        return inputs_are_equal and settings(namesake, same) == settings(ancestor.study, same)

    @cached_property
    def shared(self) -> str:
        """A sentence on the cells and runs that are those of other studies: "224 of 296 cells and 32 of 44 runs are those of
        demo"; empty if there are none."""
        counts: dict[str, list[str]] = {}
        for kind, results in (("cells", self.cells), ("runs", self.runs)):
            for study, number in Counter(result.study for result in results).items():
                counts.setdefault(study, []).append(f"{number:,} of {len(results):,} {kind}")
        counts.pop(self.study.name, None)
        return "; ".join(f"{' and '.join(of_kinds)} are those of {study}" for study, of_kinds in counts.items())

    def has(self, product: Product) -> bool:
        """Whether the study has a product that is under its name, whichever study makes it."""
        match product:
            case Run() | Cell():
                return product in self.results
            case Contrast():
                return self.results.issuperset(product.cells)
        return unknown_name(self.study, product) is None

    def rests_on(self, product: Product) -> list[Product]:
        """The product and everything from which it is made, each after what it is made from, and one for each job."""
        if isinstance(product, Data) and makes_all_splits(self, product):
            product = replace(product, split="test")
        if product not in self.chains:
            chain: dict[Product, None] = {}
            for file in flat(inputs(self, product)):
                # A file at the `path` of an encoder may be below results, and yet be no product of this plan.
                if (
                    (needed := product_of(file))
                    and self.has(under(self.study.name, needed))
                    and self.owned(needed) == needed
                ):
                    chain |= dict.fromkeys(self.rests_on(needed))
            self.chains[product] = [*chain, product]
        return self.chains[product]


def under(study: str, product: P) -> P:
    """The product of the same name under a study."""
    if product.study == study:
        return product
    named: Any = product
    return named._replace(study=study) if isinstance(product, Run | Cell | Contrast) else replace(named, study=study)
