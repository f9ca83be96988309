"""Files of results that no training has made."""

import json
from pathlib import Path
from typing import Any

from status_fixture import STUDY, write

from xlgrid.evaluation.cell import pack
from xlgrid.plan.load import load_plan
from xlgrid.products.evaluate import Cell
from xlgrid.products.product import flat
from xlgrid.products.train import Run
from xlgrid.training.recipe import Recipe
from xlgrid.training.results import fingerprint

EXHIBITS = """\
exhibits:
  means: {kind: table, title: Means, rows: [source], columns: target, average: true}
  groups: {kind: languages, title: Languages, columns: {all: {x: ours}}}
groups: {ours: [qa1]}
claims:
  near: {says: "It is nearer.", compare: [{target: qa2}, {target: qb1}], select: {source: qa1}, expect: greater}
"""
SCORES = {"qa1": 90.0, "qa2": 70.0, "qb1": 40.0}


def result(cell: Cell, scores: dict[str, float], **changes: Any) -> None:
    """Write the file of a cell."""
    record = {
        **cell._asdict(),
        "run": cell.run.folder,
        "digest": "d1",
        "seconds": 2.5,
        "cpu_seconds": 3.5,
        "head": "token",
        "labels": [],
        "scores": scores,
        "metric": {"name": next(iter(scores)), "implementation": "i"},
        "n": 2,
        "versions": {"python": "3.11.7", "torch": "2.13"},
        "device": "cuda (A100)",
        "threads": 4,
        "outcomes": pack([1, 1]),
    }
    write(cell.path, json.dumps(record | changes))


def make_results() -> None:
    """The study `tiny` with an exhibit of each of two kinds and a claim. The cells of source qa1 have results, and those of qa2 have none."""
    write("studies/tiny.yaml", STUDY + EXHIBITS)
    plan = load_plan("tiny")
    for cell in plan.cells:
        if cell.source == "qa1":
            changes = {"commit": f"c{cell.seed}", "chance": {"f1": 1.5}, "command": "xlgrid evaluate"}
            result(cell, {"f1": SCORES[cell.target] + cell.seed}, **changes)
    for run in plan.runs:
        if run.source == "qa1":
            trained(run)
    plan.study.exhibit("means").render("means", plan, Path("results/tiny/exhibits"))


def trained(run: Run) -> None:
    """Write the inputs and the record of a run."""
    plan = load_plan("tiny")
    files = plan.owned(run).inputs(plan)
    for file in flat(files):
        write(file, file)
    inputs = fingerprint(Path(file) for name in ("encoder", "train", "dev") for file in flat({name: files[name]}))
    recipe: Recipe = plan.study.recipe(*run[1:])
    record = {
        "recipe": recipe.model_dump(mode="json"),
        "digest": "d1",
        "inputs": inputs,
        "metric": "f1",
        "device": "cpu",
        "dev_score": 95.0,
        "n_train": 1000,
        "n_dev": 100,
        "parameters": {"trained": 50, "total": 2000},
        "seconds": 60.0,
        "versions": {"torch": "2.13"},
    }
    write(run.path, json.dumps(record))
