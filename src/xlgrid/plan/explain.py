"""The reason why a study does not make a file: the part of the path that is unknown, the nearest name, and all that exist."""

import difflib
from collections.abc import Iterable
from operator import ne
from typing import TYPE_CHECKING, get_args

from xlgrid.base.names import unknown, unknown_or_unused
from xlgrid.plan.products import (
    Benchmark,
    Claims,
    Comparison,
    Contrast,
    Exhibit,
    Product,
    Report,
    Summary,
    product_of,
    unknown_name,
)
from xlgrid.results.identity import Cell, Run
from xlgrid.study.axes import definitions

if TYPE_CHECKING:
    from xlgrid.plan.plan import Plan


def explain(plan: "Plan", path: str) -> str | None:
    """Why the study does not make the file; None if it does."""
    product = product_of(path)
    if product is None or (isinstance(product, Exhibit | Comparison) and path not in _exhibit_files(plan)):
        return None if Benchmark.parse(path) else _nothing_makes(plan, path)
    if problem := refusal(plan, product):
        return f"{path}: {problem}"
    return None


def refusal(plan: "Plan", product: Product) -> str | None:
    """Why the study does not make the product; None if it does."""
    study = plan.study
    if not plan.has(product):
        if isinstance(product, Run | Cell | Contrast):
            return _no_result(plan, product)
        absent = unknown_name(study, product)
        return unknown(*absent) if absent else None
    if isinstance(product, Claims) and not study.claims:
        return f"study {study.name} has no claims: its file would list them under `claims`"
    owned = plan.owned(product)
    if owned.study != study.name:
        return (
            f"study {study.name} extends {owned.study} and changes nothing that this file depends on, so the file is the one "
            f"of {owned.study}: ask for {owned.path}"
        )
    return None


def _no_result(plan: "Plan", result: Run | Cell | Contrast) -> str:
    """Why the study has no such run, cell or contrast."""
    study = plan.study
    if isinstance(result, Run) and (entry := study.methods.get(result.method)) and not entry.is_trained:
        return f"method {result.method} trains nothing and has no runs: ask for a cell"
    # Runs on text, and those of a first task, have no cells.
    planned: list[Run] | list[Cell] = plan.runs if isinstance(result, Run) else plan.cells
    defined = definitions(study)
    for field, value in list(result._asdict().items())[1:]:
        axis = "target" if field == "other" else field
        values = dict.fromkeys(str(getattr(each, axis)) for each in planned)
        if str(value) not in values:
            return unknown_or_unused(axis, str(value), values, defined.get(axis, ()))
    problem = f"each part exists, but no grid of study {study.name} has this combination: see {plan.path}"
    if isinstance(result, Contrast):
        return problem
    near = _nearest(result.path, (each.path for each in planned if sum(map(ne, each[1:], result[1:])) == 1))
    return f"{problem}; the nearest is {near}" if near else problem


def _exhibit_files(plan: "Plan") -> list[str]:
    exhibits = {Exhibit(plan.study.name, name): exhibit for name, exhibit in plan.study.exhibits.items()}
    return [product.file(suffix) for product, exhibit in exhibits.items() for suffix in exhibit.suffixes]


def _nothing_makes(plan: "Plan", path: str) -> str:
    """The message for a path that no kind of product has."""
    study = plan.study
    root = f"{Report(study.name).folder}/"
    pages: list[Product] = [*([Claims(study.name)] if study.claims else []), Summary(study.name), Report(study.name)]
    results: list[Product] = [*plan.runs, *plan.cells]
    shown = (contrast for exhibit in study.exhibits.values() for contrast in exhibit.contrasts(plan.cells))
    results += [plan.owned(contrast) for contrast in shown]
    page_files, result_files = ([each.file(name) for each in kind for name in each.files] for kind in (pages, results))
    # A path with another number of folders is not near, and comparing hundreds of thousands of paths takes minutes.
    files = [*page_files, *_exhibit_files(plan), *result_files]
    near = _nearest(path.removeprefix(root), (f.removeprefix(root) for f in files if f.count("/") == path.count("/")))
    hint = f" The nearest file is {root}{near}." if near else ""
    folders = dict.fromkeys(parts[2] for kind in get_args(Product) if len(parts := kind.template.split("/")) > 3)
    there = [*(f"{folder}/" for folder in folders), *(file.removeprefix(root) for file in page_files)]
    return f"nothing makes {path}.{hint} Study {study.name} makes, under {root}: {', '.join(there)}"


def _nearest(path: str, paths: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(path, list(paths), n=1)), None)
