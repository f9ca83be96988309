"""The verdicts of claims, the report, and the files in its folder."""

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from xlgrid.products.exhibits import Exhibit, PublishedExhibit
from xlgrid.products.product import Inputs, Product, Settings, Templated

if TYPE_CHECKING:
    from xlgrid.plan.plan import Plan
    from xlgrid.study.schema import Study


@dataclass(frozen=True)
class Claims(Product):
    """The verdicts of a study's claims."""

    template = "results/{study}/claims{file}"
    files = (".html", ".md", ".csv", ".svg")
    stage = "report"
    rules = ("claims",)
    shows_results = True
    study: str

    def inputs(self, plan: "Plan") -> Inputs:
        return {"results": [cell.path for cell in plan.cells_of_claims]}

    def settings(self, study: "Study") -> Settings:
        return {"settings": study.claims_settings}

    def is_in(self, plan: "Plan") -> bool:
        return bool(plan.study.claims)

    def problem(self, plan: "Plan") -> str | None:
        return (
            None
            if self.is_in(plan)
            else f"study {plan.study.name} has no claims: its file would list them under `claims`"
        )


@dataclass(frozen=True)
class Summary(Product):
    """The scores of all cells. The command that runs the notebook of the report writes them."""

    template = "results/{study}/summary.csv"
    stage = "report"
    rules = ("report_notebook",)
    shows_results = True
    study: str

    def inputs(self, plan: "Plan") -> Inputs:
        study = plan.study
        shown_cells = {cell for exhibit in study.exhibits.values() for cell in exhibit.cells(plan.cells, study.facts)}
        compared = [name for name, exhibit in study.exhibits.items() if exhibit.is_compared]
        return {
            # The cells that exhibits show are inputs already, through the exhibits.
            "cells": [cell.path for cell in plan.cells if cell not in shown_cells],
            "exhibits": [Exhibit(self.study, name).path for name in study.exhibits],
            "comparisons": [PublishedExhibit(self.study, name).path for name in compared],
            "claims": [Claims(self.study).path] if study.claims else [],
        }

    def settings(self, study: "Study") -> Settings:
        return {"settings": study.report_settings}


@dataclass(frozen=True)
class Report(Product):
    """The report as a page."""

    template = "results/{study}/report.html"
    stage = "report"
    rules = ("report_html",)
    shows_results = True
    study: str

    def inputs(self, plan: "Plan") -> Inputs:
        return {"summary": Summary(self.study).path}


@dataclass(frozen=True)
class StudyCopy(Templated):
    """A copy of the study file, or of a file that it extends, so that the results can be read without the project."""

    template = "results/{study}/study/{name}.yaml"
    study: str
    name: str


@dataclass(frozen=True)
class Partial(Templated):
    """A list of failures, and what the cells that exist show: exhibits and claims, and a report if one is asked for."""

    template = "results/{study}/partial/failed.txt"
    study: str

    def path_of(self, file: str) -> str:
        """The path of a file of the study, such as that of its report, for the cells that exist."""
        return f"{self.folder}/{PurePath(file).relative_to(Report(self.study).folder)}"
