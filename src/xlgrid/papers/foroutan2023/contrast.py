"""The comparison of a run's attention on two targets, as a product of a study."""

from typing import TYPE_CHECKING, NamedTuple

from xlgrid.languages.sources import Source, Target
from xlgrid.products.encode import Tokenizer
from xlgrid.products.evaluate import Cell
from xlgrid.products.product import Inputs
from xlgrid.products.train import OfGrids, Run, inputs_on_text

if TYPE_CHECKING:
    from xlgrid.plan.plan import Plan


class _ContrastAxes(NamedTuple):
    study: str
    task: str
    encoder: str
    method: str
    source: Source
    target: Target
    other: Target
    seed: int


class Contrast(OfGrids, _ContrastAxes):
    """The comparison of a run's attention on two targets.

    Raises:
        ValueError: the source or a target cannot be parsed, or the seed is not a number.
    """

    __slots__ = ()
    template = "results/{study}/attention/{task}/{encoder}/{method}/{source}/{target}/{other}/seed{seed}.json"
    stage = "evaluate"
    rules = ("attention",)

    def __new__(
        cls, study: str, task: str, encoder: str, method: str, source: str, target: str, other: str, seed: int | str
    ) -> "Contrast":
        targets = Target(target), Target(other)
        return super().__new__(cls, study, task, encoder, method, Source(source), *targets, int(seed))

    @property
    def cells(self) -> tuple[Cell, Cell]:
        """The cells of the two targets."""
        cell = Cell(*self[:5], self.target, self.seed)
        return cell, cell._replace(target=self.other)

    @property
    def run(self) -> Run:
        return self.cells[0].run

    def inputs(self, plan: "Plan") -> Inputs:
        tokens = [cell.tokens(plan) for cell in self.cells]
        return {
            "delta": plan.owned(self.run).delta,
            "encoder": plan.owned(self.run.encoder_in(plan.study)).path,
            "tokenizer": plan.owned(Tokenizer(self.study, tokens[0].tokenizer)).path,
            "tokens": [plan.owned(each).path for each in tokens],
            **inputs_on_text(plan, mlm_run=self.cells[0], other_mlm_run=self.cells[1]),
        }

    def is_in(self, plan: "Plan") -> bool:
        return plan.results.issuperset(self.cells)

    def problem(self, plan: "Plan") -> str | None:
        if problem := next((problem for cell in self.cells if (problem := cell.problem(plan))), None):
            return problem
        if len({cell.tokenizer(plan) for cell in self.cells}) > 1:
            return "it compares targets with different tokenizers: leave one of the two out"
        return None
