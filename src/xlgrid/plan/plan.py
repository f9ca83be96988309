"""The plan of a study: its cells and runs, and the study that makes each product: this one or one that it extends."""

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from xlgrid.plan import grid
from xlgrid.products import product_of
from xlgrid.products.choice import Choice
from xlgrid.products.encode import Encoder
from xlgrid.products.evaluate import Cell
from xlgrid.products.exhibits import Exhibit, PublishedExhibit
from xlgrid.products.product import Product, flat
from xlgrid.products.report import Claims, Report, Summary
from xlgrid.products.together import RunGroup
from xlgrid.products.train import Run
from xlgrid.results.claims import terms

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from xlgrid.study.schema import Study

P = TypeVar("P", bound=Product)


@dataclass(frozen=True)
class Plan:
    """A study, and the cells and runs that follow from it.

    A study that extends another often has products with the same settings and inputs as the other study. Such a product
    is made only once, by the study that is extended, and has its path: see `owned`.

    Attributes:
        ancestors: the plans of the studies that this one extends; each comes after the studies that it extends itself.
        path: the file of the study; None if the study is not from a file.
    """

    study: "Study"
    ancestors: tuple["Plan", ...] = ()
    path: Path | None = None
    _made_from: dict[Product, list[Product]] = field(default_factory=dict, repr=False)
    _of_file: dict[str, Product | None] = field(default_factory=dict, repr=False)
    _owned: dict[Product, Product] = field(default_factory=dict, repr=False)
    _equal: dict[tuple[str, "Hashable"], bool] = field(default_factory=dict, repr=False)

    @cached_property
    def cells(self) -> list[Cell]:
        """Every cell of the study, in the order of its grids."""
        return [self.owned(cell) for cell in self._named_cells]

    @cached_property
    def runs(self) -> list[Run]:
        """Every run of the study; a run comes after the runs with which it begins."""
        return [self.owned(run) for run in self.named_runs]

    @property
    def unmade(self) -> "Plan":
        """This plan with cells that have no files, whatever has run: no study is named -."""
        plan = replace(self)
        vars(plan)["cells"] = [cell._replace(study="-") for cell in self.cells]
        return plan

    def runs_of(self, cells: "Iterable[Cell]") -> list[Run]:
        """Every run that some cells of the study need; a run comes after the runs with which it begins."""
        named = (cell.under(self.study.name) for cell in cells)
        return [self.owned(run) for run in grid.runs(self.study, named)]

    @property
    def cells_of_claims(self) -> list[Cell]:
        """The cells that claims compare, each once.

        Raises:
            ValueError: a claim compares cells that no grid has.
        """
        study = self.study
        judged = [terms(name, claim, self.cells, study.belongs) for name, claim in study.claims.items()]
        return list(dict.fromkeys(term.cell for claim in judged for term in claim))

    @cached_property
    def choices(self) -> list[Choice]:
        """The choices of settings on which runs of the study depend, under its own name."""
        return [*dict.fromkeys(choice for run in self.named_runs if (choice := self.study.choice(run)))]

    @cached_property
    def run_groups(self) -> list[RunGroup]:
        """The groups of runs that train together, under the name of this study."""
        return [*dict.fromkeys(group for run in self.named_runs if (group := self.study.group(run)))]

    @cached_property
    def encoders_read(self) -> list[Encoder]:
        """The encoders whose files exhibits read, each once."""
        read = (encoder for exhibit in self.study.exhibits.values() for encoder in exhibit.encoders_read(self.study))
        return [*dict.fromkeys(map(self.owned, read))]

    @property
    def shown(self) -> list[Product]:
        """The results besides cells that exhibits show."""
        exhibits = self.study.exhibits.values()
        return [self.owned(result) for exhibit in exhibits for result in exhibit.products(self.cells)]

    @cached_property
    def products(self) -> list[Product]:
        """The report and everything from which it is made: one product for each job, each after its inputs."""
        return [*self.rests_on(*self.runs, *self.cells, *self.shown, *self.encoders_read), *self.pages]

    @property
    def pages(self) -> list[Product]:
        """The report, and the exhibits, comparisons and verdicts in it, each after its inputs."""
        study = self.study
        exhibits = [Exhibit(study.name, name) for name in study.exhibits]
        comparisons = [
            PublishedExhibit(study.name, name) for name, exhibit in study.exhibits.items() if exhibit.is_compared
        ]
        claims = [Claims(study.name)] if study.claims else []
        return [*exhibits, *comparisons, *claims, Summary(study.name), Report(study.name)]

    @cached_property
    def needed(self) -> list[Product]:
        """Everything from which the cells and exhibits are made, each after its inputs.

        If runs differ only by their seed, the list has the inputs of one of them.
        """
        cells = {cell._replace(seed=0): cell for cell in self.cells}.values()
        return self.rests_on(*cells, *self.encoders_read)

    @cached_property
    def results(self) -> frozenset[Run | Cell]:
        """All runs and cells of this study, under its own name, even if another study makes them."""
        return frozenset([*self._named_cells, *self.named_runs])

    @cached_property
    def _named_cells(self) -> list[Cell]:
        return grid.cells(self.study)

    @cached_property
    def named_runs(self) -> list[Run]:
        """Every run of the study, under its own name, even if another study makes it."""
        return grid.runs(self.study, self._named_cells)

    def owned(self, product: P) -> P:
        """The product, with the study that makes it: the first ancestor with an equal product, or else this study.

        Args:
            product: a product, with any study.
        """
        named = product.under(self.study.name)
        if not self.ancestors:
            return named
        if named not in self._owned:
            self._owned[named] = self._owner(named)
        return self._owned[named]  # type: ignore[return-value]

    def refusal(self, product: Product) -> str | None:
        """Why this study does not make a product; None if it does."""
        if problem := product.problem(self):
            return problem
        owned, name = self.owned(product), self.study.name
        if owned.study == name:
            return None
        return (
            f"study {name} extends {owned.study} and changes nothing that this file depends on, so {owned.study} makes the "
            f"file: ask for {owned.path}"
        )

    def _owner(self, product: P) -> P:
        """The result of `owned`, for a product with this study."""
        # The inputs in this study come first, because the grids of an ancestor may be large.
        if product.shows_results or not product.is_in(self) or product.has_own_input(self):
            return product
        for ancestor in self.ancestors:
            same = product.under(ancestor.study.name)
            if same.is_in(ancestor) and self._equals(ancestor, product):
                return same
        return product

    def _equals(self, ancestor: "Plan", product: Product) -> bool:
        """Whether an ancestor makes a product with the same name, equal inputs and equal settings."""
        name = ancestor.study.name
        key = name, product.alike(self)
        if key not in self._equal:
            same = product.under(name)
            # A recipe contains the name of its study, which changes no result.
            namesake = self.study.model_copy(update={"name": name})
            self._equal[key] = product.inputs(self) == same.inputs(ancestor) and same.settings(
                namesake
            ) == same.settings(ancestor.study)
        return self._equal[key]

    @cached_property
    def shared(self) -> str:
        """A sentence on the cells and runs that other studies make; empty if there are none.

        For example: "224 of 296 cells and 32 of 44 runs are those of demo".
        """
        counts: dict[str, list[str]] = {}
        for kind, results in (("cells", self.cells), ("runs", self.runs)):
            for study, number in Counter(result.study for result in results).items():
                counts.setdefault(study, []).append(f"{number:,} of {len(results):,} {kind}")
        counts.pop(self.study.name, None)
        return "; ".join(f"{' and '.join(of_kinds)} are those of {study}" for study, of_kinds in counts.items())

    def rests_on(self, *products: Product) -> list[Product]:
        """Products and everything from which they are made: one product for each job, each after its inputs."""
        found: dict[Product, None] = {}

        def add(product: Product) -> None:
            if product not in found:
                for needed in self.made_from(product):
                    add(needed)
                found[product] = None

        for product in products:
            add(product.of_job(self.study))
        return [*found]

    def made_from(self, product: Product) -> list[Product]:
        """The products that are inputs of a product: one product for each job, in the order of the inputs."""
        product = product.of_job(self.study)
        if product not in self._made_from:
            needed = filter(None, map(self._job_of, flat(product.inputs(self))))
            self._made_from[product] = [*dict.fromkeys(needed)]
        return self._made_from[product]

    def _job_of(self, file: str) -> Product | None:
        """The product that represents the job that makes an input; None for a file that no job of this plan makes."""
        if file not in self._of_file:
            product = product_of(file)
            # The `path` of an encoder may be in results/, without being a product of this plan.
            is_made = product and product.under(self.study.name).is_in(self) and self.owned(product) == product
            self._of_file[file] = product.of_job(self.study) if product and is_made else None
        return self._of_file[file]
