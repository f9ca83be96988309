"""Cells: one evaluation each."""

import os
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from xlgrid.heads.families import EMBEDDINGS
from xlgrid.languages.sources import Source, Target, accompanied, unaccompanied
from xlgrid.methods.variants import is_shown
from xlgrid.products.encode import Tokens
from xlgrid.products.product import Inputs
from xlgrid.products.train import OfGrids, Run, inputs_on_text

if TYPE_CHECKING:
    from xlgrid.plan.plan import Plan
    from xlgrid.study.schema import Study
    from xlgrid.study.starts import StartEntry


class _CellAxes(NamedTuple):
    study: str
    task: str
    encoder: str
    method: str
    source: Source
    target: Target
    seed: int


class Cell(OfGrids, _CellAxes):
    """One evaluation: a run on a target. The target is a language or a pair. `qu@1000` is the language `qu` with the
    checkpoint of its MLM run after step 1000.

    Raises:
        ValueError: the source or the target cannot be parsed, or the seed is not a number.
    """

    __slots__ = ()
    template = "results/{study}/cells/{task}/{encoder}/{method}/{source}/{target}/seed{seed}.json"
    stage = "evaluate"
    rules = ("evaluate",)

    def __new__(
        cls, study: str, task: str, encoder: str, method: str, source: str, target: str, seed: int | str
    ) -> "Cell":
        return super().__new__(cls, study, task, encoder, method, Source(source), Target(target), int(seed))

    @classmethod
    def of_file(cls, path: Path) -> "Cell":
        """The cell of a file, whose folder `results` may be anywhere.

        Raises:
            ValueError: the file is not that of a cell.
        """
        if cell := cls.parse("/".join(path.parts[-len(Path(cls.template).parts) :])):
            return cell
        raise ValueError(
            f"the file of a cell names what it evaluates, as in {cls('demo', 'ner', 'mini', 'full-ft', 'en', 'de', 1).path} "
            f"below any folder, got {path}"
        )

    @property
    def run(self) -> Run:
        return Run(self.study, self.task, self.encoder, self.method, self.source, self.seed)

    @property
    def shown(self) -> "Cell":
        """The cell as exhibits and claims name it: in its source and target, `@` and the text after it are removed."""
        # Every exhibit asks this of every cell, so the common case returns at once.
        if self.source.for_target is None and self.target.step is None:
            return self
        return self._replace(source=self.source.data, target=self.target.data)

    def inputs(self, plan: "Plan") -> Inputs:
        texts = inputs_on_text(plan, mlm_run=self)
        trained = [plan.owned(self.run).delta] if plan.study.methods[self.method].is_trained else []
        runs = [*trained, *texts["mlm_run"]]
        # Snakemake copies each list of files several times, for each of many cells.
        return {
            "runs": runs[0] if len(runs) == 1 else runs,
            "encoder": plan.owned(self.encoder_in(plan.study)).path,
            "tokens": plan.owned(self.tokens(plan)).path,
            **({"earlier": texts["earlier"]} if texts["earlier"] else {}),
        }

    def planned(self, plan: "Plan") -> "list[Cell]":
        return plan.cells

    def alike(self, plan: "Plan") -> Hashable:
        # Cells that differ only by their seeds have the same inputs except for their runs, and their runs are alike if
        # one study makes them.
        return self._replace(seed=0), plan.owned(self.run).study

    def has_own_input(self, plan: "Plan") -> bool:
        # A study has many cells, so this checks only the run of each cell, not its other inputs.
        return self.run in plan.results and plan.owned(self.run) == self.run

    def _text(self, start: "StartEntry") -> str | None:
        return start.of_cell(self.source, self.target.data)

    def mlm_runs(self, study: "Study") -> list[Run]:
        """The MLM runs with which the run of the cell began, and then the MLM runs of the target."""
        return list(dict.fromkeys([*self.run.mlm_runs(study), *super().mlm_runs(study)]))

    def texts_read(self, plan: "Plan") -> list[Run]:
        # A method may count embeddings among the parameters of a language. Then a cell uses the tokenizer of its
        # target's MLM run, or the encoder's tokenizer if the target has no MLM run.
        method = plan.study.methods[self.method].method
        is_exchanged = any(map(method.is_language_specific, EMBEDDINGS))
        return super().mlm_runs(plan.study) if is_exchanged else self.mlm_runs(plan.study)

    def check_tokens(self, path: str | Path) -> None:
        """Raise a ValueError if a file in results/ has the tokens of another language than the cell's target."""
        tokens = Tokens.parse(os.path.relpath(path))
        if tokens and (language := unaccompanied(tokens.language)[0]) != self.target.data:
            raise ValueError(
                f"the cell has the target {self.target}, and {path} has tokens of {language}: name the tokens of the target, or "
                "another cell"
            )

    def tokens(self, plan: "Plan") -> Tokens:
        """The tokens on which the cell is evaluated."""
        language = accompanied(self.target.data, self.second_language(plan))
        return Tokens(self.study, self.task, self.tokenizer(plan), language, "test")


def with_values(
    cells: Iterable[Cell], select: Mapping[str, Iterable[object]], varied: Collection[str] = ()
) -> Iterator[Cell]:
    """The cells with selected values on their axes, as exhibits and claims name them. Cells of a variant of a method are
    left out, unless `select` has its name or `varied` has its settings.

    Args:
        select: axis -> allowed values. A cell must have an allowed value on every axis in `select`.
        varied: the settings of variants that an exhibit names.
    """
    # This must be fast: loading a study calls it for every exhibit and claim, with all cells.
    chosen = [(Cell._fields.index(axis), frozenset(values)) for axis, values in select.items() if axis != "method"]
    methods = frozenset(select["method"]) if "method" in select else None

    @cache
    def has_method(method: str) -> bool:
        return is_shown(method, methods, varied)

    for cell in cells:
        if not has_method(cell.method):
            continue
        shown = cell.shown
        for at, values in chosen:
            if shown[at] not in values:
                break
        else:
            yield cell
