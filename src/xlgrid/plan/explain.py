"""Why a study does not make a file: which part of the path is unknown, what is near it, and what exists."""

import difflib
from operator import itemgetter, ne
from typing import TYPE_CHECKING

from xlgrid.base.names import unknown
from xlgrid.data.sources import SPLITS
from xlgrid.languages.sources import Source, Target
from xlgrid.plan.products import (
    CLAIMS_FILES,
    Claims,
    Contrast,
    Data,
    Exhibit,
    Meanings,
    Product,
    Text,
    Tokens,
    product_of,
)
from xlgrid.results.identity import Cell, Run
from xlgrid.study.axes import definitions, unknown_or_unused

if TYPE_CHECKING:
    from xlgrid.plan.grid import Plan

# The folder of Snakemake's measurements of jobs, which are files of the rules, too.
_BENCHMARKS = "benchmarks"


def explain(plan: "Plan", path: str) -> str | None:
    """Why the study does not make the file; None if it does."""
    product = product_of(path)
    if product is None or (isinstance(product, Exhibit) and not _is_file_of_exhibit(plan, path, product)):
        return None if path.split("/")[2:3] == [_BENCHMARKS] else _nothing_makes(plan, path)
    if problem := lacking(plan, product):
        return f"{path}: {problem}"
    return None


def lacking(plan: "Plan", product: Product) -> str | None:
    """Which part of a product the study does not have; None if the study makes the product."""
    study = plan.study
    match product:
        case Run() | Cell():
            return None if product in plan.results else _no_result(plan, product)
        case Contrast():
            return None if plan.results.issuperset(product.cells) else _no_result(plan, product)
        case Claims():
            return (
                None if study.claims else f"study {study.name} has no claims: its file would list them under `claims`"
            )
    known: dict[str, list[str]] = {
        "encoder": [*study.encoders],
        "exhibit": [*study.exhibits],
        "language": study.languages,
    }
    match product:
        case Meanings():
            known["task"] = [name for name, entry in study.tasks.items() if entry.is_generated]
        case Data():
            known |= {"task": [name for name, entry in study.tasks.items() if not entry.from_text], "split": [*SPLITS]}
        case Tokens():
            entry = study.tasks.get(product.task)
            known |= {"task": [*study.tasks], "split": [*(entry.splits if entry else ())]}
    for axis, value in vars(product).items():
        # Data and tokens may be in a pair of languages; text never is.
        values = Target(value).languages if axis == "language" and not isinstance(product, Text) else [value]
        for each in values if axis in known else ():
            if each not in known[axis]:
                return unknown(axis, each, known[axis])
    return None


def _no_result(plan: "Plan", result: Run | Cell | Contrast) -> str:
    """Why the study has no such run, cell or contrast."""
    study = plan.study
    # Runs on text, and those of a first task, have no cells.
    there: list[Run] | list[Cell] = plan.runs if isinstance(result, Run) else plan.cells
    defined = definitions(study)
    for field, value in result._asdict().items():
        axis = "target" if field == "other" else field
        values = dict.fromkeys(str(getattr(each, axis)) for each in there)
        if str(value) not in values:
            return unknown_or_unused(axis, str(value), values, defined.get(axis, ()))
    text = f"each part exists, but no grid of study {study.name} has this combination: see studies/{study.name}.yaml"
    # The source en of a method that has runs for each target is near en@qu, more than another method is.
    beside = [(sum(map(_differ, each, result)), each) for each in there if sum(map(ne, each, result)) == 1]
    if beside and not isinstance(result, Contrast):
        nearest = min(beside, key=itemgetter(0))[1]
        text += f"; the nearest is {nearest.folder if isinstance(nearest, Run) else nearest.path}"
    return text


def _differ(first: object, second: object) -> bool:
    if isinstance(first, Source) and isinstance(second, Source):
        return first.data != second.data
    return first != second


def _is_file_of_exhibit(plan: "Plan", path: str, exhibit: Exhibit) -> bool:
    drawn = plan.study.exhibits.get(exhibit.exhibit)
    return drawn is not None and path in (exhibit.file(suffix) for suffix in drawn.suffixes)


def _nothing_makes(plan: "Plan", path: str) -> str:
    study = plan.study
    pages = [*(CLAIMS_FILES if study.claims else ()), "summary.csv", "report.html"]
    match path.split("/"):
        case [_, _, "runs", task, encoder, method, source, seed, _] if (
            run := product_of(f"results/{study.name}/runs/{task}/{encoder}/{method}/{source}/{seed}/run.json")
        ) in plan.results:
            assert isinstance(run, Run)
            return f"{path} is a file that no run has: ask for {run.folder}/run.json"
        case [_, _, _]:
            files = [f"results/{study.name}/{page}" for page in pages]
        case _:
            exhibits = {Exhibit(study.name, name): drawn for name, drawn in study.exhibits.items()}
            files = [exhibit.file(suffix) for exhibit, drawn in exhibits.items() for suffix in drawn.suffixes]
            files += [cell.path for cell in plan.cells] if "/cells/" in path else []
            if "/attention/" in path:
                files += [each.path for drawn in study.exhibits.values() for each in drawn.contrasts(plan.cells)]
    near = difflib.get_close_matches(path, files, n=1, cutoff=0.6)
    hint = f" The nearest file is {near[0]}." if near else ""
    kinds = ["cells/", "runs/", "attention/", "data/", "text/", "encoders/", "tokens/", "exhibits/", *pages]
    return f"nothing makes {path}.{hint} Study {study.name} makes, under results/{study.name}/: {', '.join(kinds)}"
