"""The study, the wildcards that it allows, and the input functions of more than one rule file."""

import json
from pathlib import Path

from snakemake.exceptions import WorkflowError

from xlgrid.exhibits import needed, suffixes
from xlgrid.grid import Cell, Run, cells, constraint, explain, runs
from xlgrid.study import load_study

STUDY_FILE = f"studies/{config['study']}.yaml"
try:
    STUDY = load_study(STUDY_FILE)
    CELLS = cells(STUDY)
except (ValueError, FileNotFoundError) as error:
    raise WorkflowError(str(error)) from None
RUNS = set(runs(STUDY))
KNOWN = set(CELLS)


def among(names):
    """A wildcard's values; a wildcard without any matches nothing."""
    return constraint(names) or "(?!)"


def from_origin(origin):
    return among(name for name, encoder in STUDY.encoders.items() if getattr(encoder, origin) is not None)


wildcard_constraints:
    study=among([STUDY.name]),
    task=among(STUDY.tasks),
    encoder=among(STUDY.encoders),
    method=among(STUDY.methods),
    source=among(cell.source for cell in CELLS),
    target=among(cell.target for cell in CELLS),
    language=among({c for cell in CELLS for c in (cell.target, *cell.source.split("+"))} | set(STUDY.languages)),
    split="train|dev|test",
    seed=among(str(cell.seed) for cell in CELLS),
    exhibit=among(STUDY.exhibits),


MADE = {cell.path for cell in CELLS}
MADE |= {f"{run.folder}/{name}" for run in RUNS for name in ("delta.safetensors", "run.json", "curve.jsonl")}
MADE |= {
    f"results/{STUDY.name}/exhibits/{name}{suffix}"
    for name, exhibit in STUDY.exhibits.items()
    for suffix in suffixes(exhibit)
}


def misspelt(path):
    # Asked about every path; one that the study makes is left to the rule that makes it.
    if path not in MADE:
        raise WorkflowError(explain(path, STUDY))
    return []


def token_files(task, encoder, languages, split):
    return [f"results/{STUDY.name}/tokens/{task}/{encoder}/{language}/{split}.arrow" for language in languages]


def recipe(wildcards):
    run = Run(**{axis: getattr(wildcards, axis) for axis in Run._fields[:-1]}, seed=int(wildcards.seed))
    if run not in RUNS:
        raise WorkflowError(explain(run.folder, STUDY))
    return STUDY.recipe(run.task, run.encoder, run.method, run.source, run.seed).model_dump_json(exclude_defaults=True)


def test_tokens(wildcards):
    cell = Cell(**{axis: getattr(wildcards, axis) for axis in Cell._fields[:-1]}, seed=int(wildcards.seed))
    if cell not in KNOWN:
        raise WorkflowError(explain(cell.path, STUDY))
    return token_files(cell.task, cell.encoder, [cell.target], "test")
