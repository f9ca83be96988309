"""Exhibits (tables and figures), and their comparisons with published numbers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from xlgrid.products.product import Inputs, Product, Settings

if TYPE_CHECKING:
    from xlgrid.plan.plan import Plan
    from xlgrid.study.schema import Study

# The suffixes of the files of a table, of a figure, and of a comparison with published numbers.
TABLE = (".csv", ".md", ".tex", ".html")
FIGURE = (".csv", ".md", ".tex", ".png", ".svg", ".pdf")
COMPARISON = ("-published.csv", "-published.md", "-published.html")


@dataclass(frozen=True)
class Exhibit(Product):
    """A table or figure."""

    template = "results/{study}/exhibits/{exhibit}{file}"
    files = tuple(dict.fromkeys((*TABLE, *FIGURE)))
    stage = "exhibits"
    rules: ClassVar[tuple[str, ...]] = ("table", "figure")
    shows_results = True
    compares: ClassVar[bool] = False
    study: str
    exhibit: str

    def inputs(self, plan: "Plan") -> Inputs:
        study, exhibit = plan.study, plan.study.exhibit(self.exhibit)
        results = [cell.path for cell in exhibit.cells(plan.cells, study.facts)]
        results += [plan.owned(result).path for result in exhibit.products(plan.cells)]
        return {
            "results": results,
            "encoders": [plan.owned(encoder).path for encoder in exhibit.encoders_read(study)],
            "files": exhibit.files(study, self.compares),
        }

    def settings(self, study: "Study") -> Settings:
        return {"settings": study.exhibit(self.exhibit).settings(study)}

    def outputs(self, study: "Study") -> list[str]:
        return [self.file(suffix) for suffix in study.exhibit(self.exhibit).suffixes]

    @classmethod
    def makers(cls, study: "Study") -> Mapping[str, Iterable[str]]:
        exhibits = study.exhibits.items()
        return {
            "table": [f"exhibits/{name}" for name, exhibit in exhibits if exhibit.is_table],
            "figure": [f"exhibits/{name}" for name, exhibit in exhibits if not exhibit.is_table],
        }

    def names(self, study: "Study") -> Mapping[str, Iterable[str]]:
        return {"exhibit": study.exhibits}


@dataclass(frozen=True)
class PublishedExhibit(Exhibit):
    """The comparison of an exhibit with published numbers."""

    template = "results/{study}/exhibits/{exhibit}{file}"
    files = COMPARISON
    rules = ("published",)
    compares = True

    def outputs(self, study: "Study") -> list[str]:
        return Product.outputs(self, study)

    @classmethod
    def makers(cls, study: "Study") -> Mapping[str, Iterable[str]]:
        compared = [name for name, exhibit in study.exhibits.items() if exhibit.is_compared]
        return {"published": [f"exhibits/{name}-published" for name in compared]}
