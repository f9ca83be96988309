"""Choices: the settings of training that win in a sweep."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xlgrid.languages.sources import Source
from xlgrid.methods.variants import variant
from xlgrid.products.evaluate import Cell
from xlgrid.products.product import Inputs, Product, Settings
from xlgrid.products.train import Run
from xlgrid.training.sweep import Swept

if TYPE_CHECKING:
    from xlgrid.plan.plan import Plan
    from xlgrid.study.schema import Study


@dataclass(frozen=True)
class Choice(Product):
    """The settings that were tried for the runs of a method on a source, with their dev scores, and those that won."""

    template = "results/{study}/choices/{task}/{encoder}/{method}/{source}.json"
    stage = "train"
    rules = ("choose",)
    study: str
    task: str
    encoder: str
    method: str
    source: str

    def swept(self, study: "Study") -> Swept | None:
        """The sweep; None if the study has none for these runs."""
        return study.sweep_of(self.task, self.encoder, self.method, self.source)

    def tried(self, study: "Study") -> list[Run]:
        """The runs of all variants with all seeds of selection."""
        swept = self.swept(study)
        assert swept
        return [
            Run(self.study, self.task, self.encoder, variant(self.method, settings), self.source, seed)
            for settings in swept.tried
            for seed in swept.seeds
        ]

    def cells(self, study: "Study", cell: Cell) -> Iterator[Cell]:
        """The cells of the variants on the target of a cell of the winner, if the study asks for them."""
        if (swept := self.swept(study)) and swept.has_cells:
            yield from (cell._replace(method=run.method, seed=run.seed) for run in self.tried(study))

    def taken(self, study: "Study", seed: int) -> list[Run]:
        """The runs of which the run of the method with a seed is one; empty if it trains with the settings of the winner."""
        return [run for run in self.tried(study) if run.seed == seed]

    def inputs(self, plan: "Plan") -> Inputs:
        return {"runs": [plan.owned(run).path for run in self.tried(plan.study)]}

    def settings(self, study: "Study") -> Settings:
        swept = self.swept(study)
        return {"sweep": swept.model_dump_json(exclude_defaults=True)} if swept else {}

    def is_in(self, plan: "Plan") -> bool:
        return self in plan.choices

    def problem(self, plan: "Plan") -> str | None:
        return None if self.is_in(plan) else "no entry of `sweep` is for such runs"

    @property
    def languages(self) -> tuple[str, ...]:
        return Source(self.source).languages
