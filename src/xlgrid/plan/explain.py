"""Explains why a study does not make a file: the unknown part of the path, the nearest name, and all valid names."""

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from xlgrid.products import kinds, product_of
from xlgrid.products.exhibits import Exhibit
from xlgrid.products.product import Benchmark, Product
from xlgrid.products.report import Claims, Report, Summary

if TYPE_CHECKING:
    from xlgrid.plan.plan import Plan


def explain(plan: "Plan", path: str) -> str | None:
    """Why the study does not make the file; None if it does."""
    product = product_of(path)
    if product is None or (isinstance(product, Exhibit) and path not in _exhibit_files(plan)):
        return None if Benchmark.parse(path) else _nothing_makes(plan, path)
    problem = plan.refusal(product)
    return problem and f"{path}: {problem}"


def _exhibit_files(plan: "Plan") -> list[str]:
    study = plan.study
    return [file for name in study.exhibits for file in Exhibit(study.name, name).outputs(study)]


def _nothing_makes(plan: "Plan", path: str) -> str:
    """The message for a path that does not have the form of any product."""
    study = plan.study
    root = f"{Report(study.name).folder}/"
    pages: list[Product] = [*([Claims(study.name)] if study.claims else []), Summary(study.name), Report(study.name)]
    results: list[Product] = [*plan.runs, *plan.cells]
    results += plan.shown
    page_files, result_files = ([each.file(name) for each in kind for name in each.files] for kind in (pages, results))
    # Only paths with the same number of folders are compared: comparing hundreds of thousands of paths takes minutes.
    files = [*page_files, *_exhibit_files(plan), *result_files]
    near = _nearest(path.removeprefix(root), (f.removeprefix(root) for f in files if f.count("/") == path.count("/")))
    hint = f" The nearest file is {root}{near}." if near else ""
    folders = dict.fromkeys(parts[2] for kind in kinds() if len(parts := kind.template.split("/")) > 3)
    there = [*(f"{folder}/" for folder in folders), *(file.removeprefix(root) for file in page_files)]
    return f"nothing makes {path}.{hint} Study {study.name} makes, under {root}: {', '.join(there)}"


def _nearest(path: str, paths: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(path, list(paths), n=1)), None)
