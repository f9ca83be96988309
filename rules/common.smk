"""The study, the wildcards that it allows, and the input functions of more than one rule file."""

import gc
import json
from pathlib import Path

from snakemake.exceptions import WorkflowError

from xlgrid.training import adapterhub
from xlgrid.results.claims import terms
from xlgrid.plan.grid import cells, constraint, explain, files, runs, starting_runs
from xlgrid.results.identity import Cell, Contrast, Run
from xlgrid.tasks import MLM
from xlgrid.languages.sources import data_of
from xlgrid.languages import parts
from xlgrid.study.schema import load_study
from xlgrid.tasks import task

# A study of many cells is millions of objects of Snakemake, which looking for garbage among slows by half.
gc.set_threshold(1_000_000, 50, 1000)

STUDY_FILE = f"studies/{config['study']}.yaml"
try:
    STUDY = load_study(STUDY_FILE)
    CELLS = cells(STUDY)
except (ValueError, FileNotFoundError) as error:
    raise WorkflowError(str(error)) from None
RUNS = set(runs(STUDY))
KNOWN = set(CELLS)
TABLES = [name for name, exhibit in STUDY.exhibits.items() if exhibit.is_table]
FIGURES = [name for name in STUDY.exhibits if name not in TABLES]
COMPARED = [name for name, exhibit in STUDY.exhibits.items() if exhibit.is_compared]


def among(names):
    """A wildcard's values; a wildcard without any matches nothing."""
    return constraint(names) or "(?!)"


def from_origin(origin):
    return among(name for name, encoder in STUDY.encoders.items() if getattr(encoder, origin) is not None)


SOURCES = {run.source for run in RUNS}
LANGUAGES = {code for source in SOURCES for code in data_of(source).split("+")}
LANGUAGES |= {data_of(cell.target) for cell in CELLS} | set(STUDY.languages)
ALLOWED = {
    "study": among([STUDY.name]),
    "task": among([*STUDY.tasks, MLM]),
    "encoder": among(STUDY.encoders),
    "method": among(STUDY.methods),
    "source": among(SOURCES),
    "target": among(cell.target for cell in CELLS),
    "language": among(LANGUAGES),
    "split": "train|dev|test",
    "seed": among(str(run.seed) for run in RUNS),
    "exhibit": among(STUDY.exhibits),
}


wildcard_constraints:
    **ALLOWED,


def misspelt(path):
    raise WorkflowError(explain(path, STUDY))


def source_tokens(wildcards, split):
    task = wildcards.task
    if task != MLM:
        task, _ = STUDY.entry(task, split)
    folder = f"results/{STUDY.name}/tokens/{task}/{wildcards.encoder}"
    return [f"{folder}/{language}/{split}.arrow" for language in data_of(wildcards.source).split("+")]


def named(kind, wildcards):
    return kind(**{axis: getattr(wildcards, axis) for axis in kind._fields[:-1]}, seed=int(wildcards.seed))


def starts(*made):
    found = dict.fromkeys(start for one in made for start in starting_runs(STUDY, one))
    return [f"{start.folder}/delta.safetensors" for start in found]


# Other languages' settings, and what is for tokens, need no other text.
def text_settings(wildcards):
    return json.dumps(STUDY.text.concerning(wildcards.language), separators=(",", ":"), ensure_ascii=False)


def recipe(wildcards):
    run = named(Run, wildcards)
    if run not in RUNS:
        raise WorkflowError(explain(run.folder, STUDY))
    return STUDY.recipe(*run[1:]).model_dump_json(exclude_defaults=True)


# The repository or folder, and what says which of its versions.
def imported_place(wildcards):
    given = STUDY.methods[wildcards.method].imported
    place = given.place(wildcards.source, wildcards.encoder)
    return [place, f"--revision={given.revision}", f"--lock={config['hub_lock']}"] if given.hub else [place]


# Of a folder; which of the files of weights it has is its own choice.
def imported_files(wildcards):
    given = STUDY.methods[wildcards.method].imported
    if given.hub:
        return []
    folder = Path(given.place(wildcards.source, wildcards.encoder))
    weights = [path for path in (folder / name for name in adapterhub.WEIGHTS) if path.is_file()]
    return [f"{folder}/{adapterhub.CONFIG}", *map(str, weights)]


def test_tokens(wildcards):
    cell = named(Cell, wildcards)
    if cell not in KNOWN:
        raise WorkflowError(explain(cell.path, STUDY))
    return cell.tokens


def contrasted_tokens(wildcards):
    contrast = named(Contrast, wildcards)
    if not KNOWN.issuperset(contrast.cells):
        raise WorkflowError(explain(contrast.path, STUDY))
    return [cell.tokens for cell in contrast.cells]


def shown(wildcards):
    exhibit = STUDY.exhibit(wildcards.exhibit)
    results = [*exhibit.cells(CELLS), *exhibit.contrasts(CELLS)]
    return [*(result.path for result in results), *exhibit.references]


def exhibit_settings(wildcards):
    return STUDY.exhibit(wildcards.exhibit).settings(STUDY)


def claimed(wildcards):
    if not STUDY.claims:
        raise WorkflowError(f"study {STUDY.name} has no claims: {STUDY_FILE} would list them under `claims`")
    try:
        found = [terms(name, claim, CELLS, STUDY.belongs) for name, claim in STUDY.claims.items()]
    except ValueError as error:
        raise WorkflowError(str(error)) from None
    return list(dict.fromkeys(term.cell.path for each in found for term in each))
