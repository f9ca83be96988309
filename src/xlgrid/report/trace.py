"""From a number of a table to everything from which it was made: results, recipes, versions, hashes, locks, commands."""

import hashlib
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from xlgrid.base.names import unknown
from xlgrid.base.provenance import commit, version
from xlgrid.data.downloads import find
from xlgrid.data.lock import read_lock
from xlgrid.exhibits.claims import interval
from xlgrid.exhibits.drawing.labels import label, labelled
from xlgrid.exhibits.drawing.sheet import PRINTED, number
from xlgrid.plan.explain import explain
from xlgrid.plan.load import file_in, named, options_of, read_plan
from xlgrid.plan.plan import Plan
from xlgrid.preflight.fetch import project_lock
from xlgrid.products import product_of
from xlgrid.products.exhibits import Exhibit
from xlgrid.products.product import Product, flat
from xlgrid.products.report import Claims
from xlgrid.products.train import OfGrids, Run
from xlgrid.report.page import read_runs
from xlgrid.report.status import console
from xlgrid.report.verdicts import read as read_verdicts
from xlgrid.results import records
from xlgrid.results.claims import terms
from xlgrid.results.units import DIFFERENCE
from xlgrid.training.results import fingerprint_of

# The versions of all packages, in a project.
PACKAGES = Path("envs/lock.txt")
EXAMPLE = "a table, such as results/demo/exhibits/table03.csv, the claims, a run, or a cell"
# The settings of a recipe that a reader asks for first, and what a trace has of the record of a result.
SETTINGS = ("steps", "lr", "batch_tokens", "batch_size", "epochs", "warmup", "weight_decay", "dropout", "precision")
# Setting -> the one that wins over it.
OVERRIDDEN = {"epochs": "steps", "batch_tokens": "batch_size"}
RECORDED = {
    *(
        *records.IDENTITY,
        *SETTINGS,
        "n",
        "best_step",
        "dev_score",
        "n_train",
        "n_dev",
        "parameters",
        "run",
        "digest",
        "inputs",
    ),
    *("seconds", "cpu_seconds", "device", "threads", "commit", "versions", "command"),
}
# The inputs of a run in the order in which its record has their fingerprint.
FINGERPRINTED = ("encoder", "train", "dev", "start", "first", "tokenizer")
# The columns of a table on the screen, and the most lines. The JSON has all.
SHOWN = (
    *(
        *records.IDENTITY,
        "row",
        "column",
        "text",
        "metric",
        "score",
        "n",
        "chance",
        "steps",
        "lr",
        "batch_tokens",
        "n_train",
    ),
    *("digest", "seconds", "SHA-256", "name", "value", "file"),
)
MOST = 12


def trace(file: str | Path, rows: Sequence[str] = (), columns: Sequence[str] = ()) -> dict[str, Any]:
    """Everything behind some entries of a table. docs/how-to/trace.md describes the keys.

    Args:
        file: a file of an exhibit, of its comparison with published numbers, or of claims; or a result, such as a cell.
        rows, columns: names of the entries, or what the table prints for them, each of one key or of all keys, joined by
            blanks. An entry must have all of them; without any, all rows or columns count.

    Raises:
        FileNotFoundError: the study does not exist.
        ValueError: no study makes the file; the table has no such row or column, and the message has the nearest one; or a
            result is damaged.
    """
    path = os.path.relpath(file)
    if (product := product_of(path)) is None:
        raise ValueError(f"{file} is no file of a study: name {EXAMPLE}")
    plan = read_plan(file_in(Path(), product.study))
    if problem := explain(plan, path):
        raise ValueError(problem)
    every, notes = _entries(plan, product)
    labels = plan.study.printed
    entries = _chosen(_chosen(every, "row", rows, labels), "column", columns, labels)
    found = dict.fromkeys(result["path"] for entry in entries for result in entry["results"])
    results = {path: record for path in found if (record := read_record(path))}
    if missing := len(found) - len(results):
        notes.append(f"{missing} of {len(found)} results do not exist, and no number depends on them.")
    folders = dict.fromkeys(str(run) for record in results.values() if (run := record.get("run")))
    runs = {run: record for folder in folders if (record := read_record(run := f"{folder}/{Run.files[0]}"))}
    runs |= {path: record for path, record in results.items() if "recipe" in record}
    for entry in entries:
        entry["results"] = [{**each, **_recorded(each, results.get(each["path"]))} for each in entry["results"]]
    read = product.inputs(plan).get("encoders", []) if isinstance(product, Exhibit) else []
    files = made_from(plan, filter(None, map(product_of, [*results, *runs, *read])), read)
    made_by = software([*results.values(), *runs.values()])
    differ = {name: values for name, values in made_by.items() if len(values) > 1}
    notes += [f"The results differ in {name}: {', '.join(values)}." for name, values in differ.items()]
    return {
        "file": path,
        "study": plan.study.name,
        "study_file": str(plan.path),
        "entries": entries,
        "runs": [{"path": path, **_recorded({"path": path}, record)} for path, record in runs.items()],
        "made_by": made_by,
        "here": {"xlgrid": version(), "commit": commit()},
        "files": {path: sha256(path) for path in files},
        "locks": {str(lock): sha256(lock) for lock in (PACKAGES, Path(project_lock())) if lock.is_file()},
        "locked": locked(plan, files),
        # Without files, Snakemake would make the whole study again.
        "commands": ({"results": again(plan, found)} if found else {}) | {"file": again(plan, [path])},
        "notes": [*notes, *_changes(plan, runs)],
    }


def _entries(plan: Plan, product: Product) -> tuple[list[dict[str, Any]], list[str]]:
    """The entries of a table with the paths of their results, and notes on the table."""
    study = plan.study
    if isinstance(product, Claims):
        return [*_of_claims(plan, read_verdicts(Path(product.file(".csv"))))], []
    if isinstance(product, OfGrids):
        return [{"row": {}, "column": {}, "text": "", "results": _each([product.path])}], []
    if not isinstance(product, Exhibit):
        raise ValueError(f"{product.path} is no table, and no result: name {EXAMPLE}")
    rendering, csv, notes = (
        study.exhibit(product.exhibit).rendering(plan),
        Path(Exhibit(study.name, product.exhibit).path),
        [],
    )
    if not csv.exists() or csv.read_text(encoding="utf-8") != rendering.csv:
        state = "differs from what the results give now" if csv.exists() else "does not exist"
        notes = [f"{csv} {state}: the entries here are those of now, and the second command makes the file again."]
    entries, keys = [], {"row": rendering.sheet.rows, "column": rendering.sheet.axes}
    for entry in rendering.sheet.entries.to_dict("records"):
        sides = {side: {name: str(label(entry[name])) for name in names} for side, names in keys.items()}
        statistics = _known(entry, but=(*PRINTED, *keys["row"], *keys["column"]))
        # Where a kind of exhibit does not say what is behind an entry, everything is that the exhibit reads.
        results = _each(flat({"results": product.inputs(plan)["results"]}))
        if (behind := rendering.behind_entry(entry)) is not None:
            known = behind.dropna(subset="path").filter(["path", "metric", "score"])
            results = [*map(_known, known.to_dict("records"))]
        entries.append({**sides, "text": entry["text"], "statistics": statistics, "results": results})
    return entries, notes


def _of_claims(plan: Plan, judged: Any) -> Iterator[dict[str, Any]]:
    """An entry for each claim, with its verdict if there is one."""
    rows = {} if judged is None else {row.claim: row for row in judged.itertuples(index=False)}
    for name, claim in plan.study.claims.items():
        row, behind = rows.get(name), terms(name, claim, plan.cells, plan.study.belongs)
        verdict = f"{row.verdict}, {interval(row, '')}" if row else "not judged"
        results = _each(term.cell.path for term in behind)
        texts = {"row": {"claim": name}, "column": {}, "text": f"{verdict}: {claim.says}"}
        yield {**texts, "statistics": _known(row._asdict()) if row else {}, "results": results}


def _known(row: Mapping[Any, Any], but: Sequence[str] = ()) -> dict[str, Any]:
    """The values of a row of a table, without those that are missing, for which JSON has no number."""
    return {str(name): value for name, value in row.items() if name not in but and not pd.isna(value)}


def _each(paths: Iterable[str]) -> list[dict[str, Any]]:
    return [{"path": path} for path in dict.fromkeys(paths)]


def _chosen(
    entries: list[dict[str, Any]], side: str, texts: Sequence[str], labels: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The entries that have all of some texts in their row or column: names, or the labels that are printed for them.

    Raises:
        ValueError: no entry has them.
    """
    for text in texts:
        keys = [[*entry[side].values()] for entry in entries]
        known = [
            [form for each in (of, [labelled(key, labels) for key in of]) for form in (" ".join(each), *each)]
            for of in keys
        ]
        if not any(text in forms for forms in known):
            raise ValueError(unknown(side, text, [*(forms[0] for forms in known), *chain(*known)]))
        entries = [entry for entry, forms in zip(entries, known, strict=True) if text in forms]
    return entries


def read_record(path: str) -> dict[str, Any] | None:
    """The JSON of a result; None if the file does not exist."""
    return next(iter(read_runs([path])), None)


def _recorded(result: Mapping[str, Any], record: Mapping[str, Any] | None) -> dict[str, Any]:
    """What the record of a result says about it."""
    if record is None:
        return {"exists": False}
    stated, recipe = record.get("metric"), record.get("recipe", {})
    named = result.get("metric") or (stated["name"] if isinstance(stated, dict) else stated)
    metric = str(named).removesuffix(DIFFERENCE)
    used = {**record, **recipe} | settings_used(recipe.get("training", {}))
    found = {name: value for name, value in used.items() if name in RECORDED}
    found |= {name: record[name] for name in record if name in RECORDED and name not in records.IDENTITY}
    if "score" not in result and "scores" in record:
        found["score"] = records.score(result["path"], record, metric)
    return found | {"metric": metric, "chance": record.get("chance", {}).get(metric)}


def settings_used(training: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `SETTINGS` that a training has and uses, so not those over which another one wins."""
    own = (name for name in SETTINGS if training.get(OVERRIDDEN.get(name, "")) is None)
    return {name: training[name] for name in own if name in training}


def software(made: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """What made some results: package, `commit` of xlgrid or `device` -> the values in the records, each once."""
    found: dict[str, dict[str, None]] = {}
    for record in made:
        own = {name: record.get(name) for name in ("commit", "device")}
        for name, value in (record.get("versions", {}) | record.get("packages", {}) | own).items():
            found.setdefault(name, {})[str(value)] = None
    return {name: [*values] for name, values in found.items()}


def packages(made: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The packages that made some results, each with its versions."""
    return {name: values for name, values in software(made).items() if name not in ("commit", "device")}


def made_from(plan: Plan, results: Iterable[Product], read: Iterable[str] = ()) -> list[str]:
    """The existing files that the jobs read which make results, and all before them, after the files `read`."""
    inputs = (flat(product.inputs(plan)) for product in plan.rests_on(*results))
    return [file for file in dict.fromkeys([*read, *chain(*inputs)]) if Path(file).is_file()]


def sha256(path: str | Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits; an unchanged file is read once."""
    stat = os.stat(path)
    return _sha256(str(path), stat.st_size, stat.st_mtime_ns)


@cache
def _sha256(path: str, size: int, changed: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def locked(plan: Plan, files: Iterable[str]) -> dict[str, str]:
    """The entries of the lock file that concern some files: commits on the Hub, and checksums of downloads."""
    lock, wanted = read_lock(project_lock()), []
    for file in files:
        product, download = product_of(file), find(plan.study.downloads, file)
        repository = product and product.under(plan.study.name).repository(plan.study)
        wanted += [repository.key] if repository else []
        wanted += download.urls if download else []
    return {key: lock[key] for key in dict.fromkeys(wanted) if key in lock}


def again(plan: Plan, files: Iterable[str]) -> str:
    """The command that makes some files of a study again."""
    return shlex.join(["snakemake", "--cores", "all", *options_of(named(plan)), "--force", "--", *files])


def _changes(plan: Plan, runs: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Notes on runs whose inputs are other files now than in the training."""
    for path, record in runs.items():
        run = Run.parse(path)
        files = run.under(plan.study.name).inputs_alone(plan) if run else {}
        if "train" not in files or not all(map(os.path.exists, flat(files))):
            continue
        read = (file for name in FINGERPRINTED for file in flat({name: files.get(name, [])}))
        # Runs share large files, so a file is read once.
        inputs = fingerprint_of(bytes.fromhex(sha256(file)) for file in read)
        if inputs != record["inputs"]:
            yield f"{path}: its inputs have changed since the training, and the first command would train on other ones."


def show(traced: Mapping[str, Any]) -> None:
    """Print the result of `trace`."""
    from rich import box
    from rich.table import Table

    terminal, here = console(), traced["here"]
    results = {each["path"]: {**each, "file": each["path"]} for entry in traced["entries"] for each in entry["results"]}
    named = [
        {"row": " ".join(each["row"].values()), "column": " ".join(each["column"].values()), "text": each["text"]}
        for each in traced["entries"]
    ]
    parts: dict[str, list[dict[str, Any]]] = {
        f"{traced['file']}, of {traced['study_file']}": named,
        f"Results: {len(results)}": [*results.values()],
        f"Runs: {len(traced['runs'])}": [{**run, "file": run["path"]} for run in traced["runs"]],
        f"Made by (here: xlgrid {here['xlgrid']}, commit {here['commit']})": [
            {"name": name, "value": ", ".join(values)} for name, values in traced["made_by"].items()
        ],
        f"Made from {len(traced['files'])} files": [
            {"SHA-256": f"{digest[:16]}…", "file": path} for path, digest in traced["files"].items()
        ],
        "Locks": [{"name": name, "value": value} for key in ("locks", "locked") for name, value in traced[key].items()],
    }
    for title, lines in parts.items():
        terminal.print(title, style="bold", markup=False)
        columns = [name for name in SHOWN if any(line.get(name) not in (None, "") for line in lines)]
        table = Table(*columns, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
        for line in lines[:MOST]:
            table.add_row(*(_text(line.get(name)) for name in columns))
        if columns:
            terminal.print(table)
        if len(lines) > MOST:
            terminal.print(f"and {len(lines) - MOST:,} more: --json lists all")
    terminal.print("Made again by: the results, and the file from its results", style="bold")
    many = f"snakemake with the {len(results):,} results: --json has the command"
    commands = [
        many if name == "results" and len(results) > MOST else text for name, text in traced["commands"].items()
    ]
    for text in (*commands, *(f"Note: {note}" for note in traced["notes"])):
        terminal.print(text, soft_wrap=True, markup=False)


def _text(value: Any) -> str:
    return "" if value is None else number(value, 3) if isinstance(value, float) else str(value)
