"""Groups of runs that train together: one file with the results of all runs of a group."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xlgrid.languages.sources import Source
from xlgrid.products.product import Inputs, Product, Settings
from xlgrid.products.train import Run

if TYPE_CHECKING:
    from xlgrid.plan.plan import Plan
    from xlgrid.study.schema import Study


@dataclass(frozen=True)
class RunGroup(Product):
    """The runs of a group, in a file with the name of the first of them."""

    template = "results/{study}/together/{task}/{encoder}/{method}/{source}/seed{seed}.tar"
    stage = "train"
    rules = ("train_many",)
    study: str
    task: str
    encoder: str
    method: str
    source: str
    seed: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", int(self.seed))

    def runs(self, study: "Study") -> list[Run]:
        """The runs of the group."""
        first = Run(self.study, self.task, self.encoder, self.method, self.source, self.seed)
        return [Run(self.study, *axes) for axes in study.groups_of_runs.get((*first[1:],), ())]

    def inputs(self, plan: "Plan") -> Inputs:
        inputs: Inputs = {}
        for run in self.runs(plan.study):
            for name, files in run.inputs_alone(plan).items():
                # All runs have one encoder, and a rule names it as one file.
                known = inputs.setdefault(name, files if isinstance(files, str) else [])
                if isinstance(known, list):
                    known += [file for file in files if file not in known]
        return inputs

    def settings(self, study: "Study") -> Settings:
        return {"recipes": [study.recipe(*run[1:]).identity() for run in self.runs(study)]}

    def files_of_runs(self, plan: "Plan") -> list[str]:
        """The files of each run and its settings that change no result, as JSON for `xlgrid train-many`."""
        return [
            json.dumps({"pace": plan.study.recipe(*run[1:]).pace(), **run.inputs_alone(plan)}, ensure_ascii=False)
            for run in self.runs(plan.study)
        ]

    def is_in(self, plan: "Plan") -> bool:
        return self in plan.run_groups

    def problem(self, plan: "Plan") -> str | None:
        return None if self.is_in(plan) else "no group of runs that train together begins with this run"

    @property
    def languages(self) -> tuple[str, ...]:
        return Source(self.source).languages
