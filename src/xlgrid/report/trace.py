"""From a number of a table to everything from which it was made: results, recipes, versions, hashes, locks, commands."""

import hashlib
import json
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.base.errors import Damaged
from xlgrid.base.names import unknown
from xlgrid.base.provenance import commit, version
from xlgrid.data.downloads import find
from xlgrid.data.lock import read_lock
from xlgrid.exhibits.drawing.sheet import PRINTED, label, number
from xlgrid.exhibits.exhibit import Rendering
from xlgrid.plan.explain import explain
from xlgrid.plan.load import file_in, named, options_of, read_plan
from xlgrid.plan.plan import Plan
from xlgrid.preflight.fetch import project_lock
from xlgrid.products import product_of
from xlgrid.products.exhibits import Exhibit
from xlgrid.products.product import Product, flat
from xlgrid.products.report import Claims
from xlgrid.products.train import OfGrids, Run
from xlgrid.report.status import console
from xlgrid.results import records
from xlgrid.results.claims import terms
from xlgrid.training.results import fingerprint

if TYPE_CHECKING:
    from rich.table import Table

# The versions of all packages, in a project.
PACKAGES = Path("envs/lock.txt")
# The entries of a record that say what a result is and how it was made.
IDENTITY = ("task", "encoder", "method", "source", "target", "seed")
RECORDED = ("n", "run", "digest", "seconds", "cpu_seconds", "device", "threads", "commit", "versions", "command")
# Entries of the record of a run, and the settings of its recipe that a reader asks for first.
OF_RUN = ("steps", "best_step", "dev_score", "n_train", "n_dev", "parameters", "inputs")
SETTINGS = ("lr", "batch_tokens", "batch_size", "epochs", "warmup", "weight_decay", "dropout", "precision")
# The inputs of a run in the order in which its record has their fingerprint.
FINGERPRINTED = ("encoder", "train", "dev", "start", "first", "tokenizer")
# The columns of a table on the screen: those that are always shown, and those of which only the JSON has all.
OF_RESULTS = (*IDENTITY, "row", "column", "text", "metric", "score", "n", "chance")
SHOWN = (*OF_RESULTS, "lr", "batch_tokens", "steps", "n_train", "digest")
HIDDEN = ("command", "versions", "parameters", "threads", "cpu_seconds", "run", "commit", "device", "inputs", "path")
EXAMPLE = "a table, such as results/demo/exhibits/table03.csv, the claims, a run, or a cell"
# The most lines of a list on the screen. The JSON has all.
MOST = 12


def trace(file: str | Path, rows: Sequence[str] = (), columns: Sequence[str] = ()) -> dict[str, Any]:
    """Everything behind some entries of a table. docs/how-to/trace.md describes the keys.

    Args:
        file: a file of an exhibit, of its comparison with published numbers, or of claims; or a result, such as a cell.
        rows, columns: labels of the entries as the table prints them, each of one key or of all keys, joined by blanks. An
            entry must have all of them; without a label, all rows or columns count.

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
    entries = _labelled(_labelled(every, "row", rows), "column", columns)
    found = {result["path"]: None for entry in entries for result in entry["results"]}
    results = {path: record for path in found if (record := read_record(path))}
    if len(results) < len(found):
        notes.append(
            f"{len(found) - len(results)} of {len(found)} results do not exist, and no number depends on them."
        )
    folders = dict.fromkeys(str(run) for record in results.values() if (run := record.get("run")))
    runs = {run: record for folder in folders if (record := read_record(run := f"{folder}/{Run.files[0]}"))}
    runs |= {path: record for path, record in results.items() if "recipe" in record}
    for entry in entries:
        entry["results"] = [_shown(result, results.get(result["path"])) for result in entry["results"]]
    files = made_from(plan, filter(None, map(product_of, [*results, *runs])))
    made_by = software([*results.values(), *runs.values()])
    notes += [
        f"The results differ in {name}: {', '.join(values)}." for name, values in made_by.items() if len(values) > 1
    ]
    return {
        "file": path,
        "study": plan.study.name,
        "study_file": str(plan.path),
        "entries": entries,
        "runs": [{"path": path, **_of_run(record)} for path, record in runs.items()],
        "made_by": made_by,
        "here": {"xlgrid": version(), "commit": commit()},
        "files": {path: sha256(path) for path in files},
        "locks": {str(lock): sha256(lock) for lock in (PACKAGES, Path(project_lock())) if lock.is_file()},
        "locked": locked(plan, files),
        "commands": {"results": again(plan, results), "file": again(plan, [path])},
        "notes": [*notes, *_changes(plan, runs)],
    }


def _entries(plan: Plan, product: Product) -> tuple[list[dict[str, Any]], list[str]]:
    """The entries of a table with the paths of their results, and notes on the table."""
    if isinstance(product, Claims):
        claims = plan.study.claims
        of_claims = {name: terms(name, claim, plan.cells, plan.study.belongs) for name, claim in claims.items()}
        paths = {name: dict.fromkeys(term.cell.path for term in each) for name, each in of_claims.items()}
        return [_entry({"claim": name}, {}, claim.says, paths[name]) for name, claim in claims.items()], []
    if not isinstance(product, Exhibit):
        if not isinstance(product, OfGrids):
            raise ValueError(f"{product.path} is no table, and no result: name {EXAMPLE}")
        return [_entry({}, {}, "", [product.path])], []
    rendering = plan.study.exhibit(product.exhibit).rendering(plan)
    csv, notes = Path(Exhibit(product.study, product.exhibit).path), []
    if not csv.exists() or csv.read_text(encoding="utf-8") != rendering.csv:
        state = "differs from what the results give now" if csv.exists() else "does not exist"
        notes = [f"{csv} {state}: the entries here are those of now, and the second command makes the file again."]
    return [_of_sheet(plan, product, rendering, entry) for entry in rendering.sheet.entries.to_dict("records")], notes


def _of_sheet(plan: Plan, product: Product, rendering: Rendering, entry: Mapping[Any, Any]) -> dict[str, Any]:
    rows, axes = rendering.sheet.rows, rendering.sheet.axes
    row, column = ({name: str(label(entry[name])) for name in names} for names in (rows, axes))
    statistics = {name: value for name, value in entry.items() if name not in (*PRINTED, *rows, *axes)}
    behind = rendering.behind_entry(entry)
    if behind is None:
        # The exhibit computes each entry from everything that it reads.
        results: Sequence[Any] = flat({"results": product.inputs(plan)["results"]})
    else:
        known = behind.dropna(subset="path")
        # The metric of a difference of scores is named after it.
        metrics = known["metric"].str.removesuffix("-difference") if "metric" in known else [None] * len(known)
        scored = zip(known["path"], metrics, known["score"], strict=True)
        results = [{"path": path, "metric": metric, "score": score} for path, metric, score in scored]
    return _entry(row, column, entry["text"], results) | {"statistics": statistics}


def _entry(row: Mapping[str, str], column: Mapping[str, str], text: str, results: Iterable[Any]) -> dict[str, Any]:
    paths = [result if isinstance(result, dict) else {"path": result} for result in results]
    return {"row": row, "column": column, "text": text, "results": paths}


def _labelled(entries: Sequence[dict[str, Any]], side: str, labels: Sequence[str]) -> list[dict[str, Any]]:
    """The entries that have all of some labels in their row or column.

    Raises:
        ValueError: no entry has them.
    """
    kept = [*entries]
    for text in labels:
        whole = [(entry, " ".join(entry[side].values())) for entry in kept]
        kept = [entry for entry, joined in whole if text == joined or text in entry[side].values()]
        if not kept:
            single = [label for entry, _ in whole for label in entry[side].values()]
            raise ValueError(unknown(side, text, [*(joined for _, joined in whole), *single]))
    return kept


def read_record(path: str) -> dict[str, Any] | None:
    """The JSON of a result; None if the file does not exist.

    Raises:
        ValueError: the file is damaged.
    """
    try:
        return dict(json.loads(Path(path).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise Damaged(f"{path} is damaged ({error}): delete it and run the study again", path) from error


def _shown(result: Mapping[str, Any], record: Mapping[str, Any] | None) -> dict[str, Any]:
    """A result with what its record says about it."""
    if record is None:
        return {**result, "exists": False}
    if "metric" not in result and "scores" in record:
        name = record["metric"]["name"]
        result = {**result, "metric": name, "score": records.score(result["path"], record, name)}
    elif not result.get("metric") and isinstance(record.get("metric"), str):
        result = {**result, "metric": record["metric"]}
    named = record.get("recipe", record)
    known = {name: named[name] for name in IDENTITY if name in named}
    chance = record.get("chance", {}).get(result.get("metric"))
    recorded = {name: record[name] for name in RECORDED if name in record}
    return {"path": result["path"], **known, **result, "chance": chance, **recorded}


def _of_run(record: Mapping[str, Any]) -> dict[str, Any]:
    settings = {name: record["recipe"]["training"].get(name) for name in SETTINGS}
    named = {name: record["recipe"][name] for name in IDENTITY if name in record["recipe"]}
    return {**named, **settings, **{name: record[name] for name in (*OF_RUN, *RECORDED) if name in record}}


def software(made: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """What made some results: package, `commit` of xlgrid or `device` -> the values in the records, each once."""
    found: dict[str, dict[str, None]] = {}
    for record in made:
        versions = record.get("versions", {}) | record.get("packages", {})
        for name, value in {**versions, **{key: record.get(key) for key in ("commit", "device")}}.items():
            found.setdefault(name, {})[str(value)] = None
    return {name: [*values] for name, values in found.items()}


def made_from(plan: Plan, results: Iterable[Product]) -> list[str]:
    """The existing files from which results are made, other than themselves: outputs of jobs, and files from outside."""
    wanted = {*results}
    products = [product for product in plan.rests_on(*wanted) if product not in wanted]
    outputs = [file for product in products for file in product.outputs(plan.study)]
    outside = [file for product in products for file in flat(product.inputs(plan)) if not file.startswith("results/")]
    return [file for file in dict.fromkeys([*outputs, *outside]) if Path(file).is_file()]


@cache
def sha256(path: str | Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with Path(path).open("rb") as file:
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
        inputs = fingerprint(Path(file) for name in FINGERPRINTED for file in flat({name: files.get(name, [])}))
        if inputs != record["inputs"]:
            yield f"{path}: its inputs have changed since the training, and the first command would train on other ones."


def show(traced: Mapping[str, Any]) -> None:
    """Print the result of `trace`."""
    terminal = console()
    entries, files = traced["entries"], traced["files"]
    results = {result["path"]: result for entry in entries for result in entry["results"]}
    about = [
        {"row": " ".join(entry["row"].values()), "column": " ".join(entry["column"].values()), "text": entry["text"]}
        for entry in entries
    ]
    hashes = [{"SHA-256": f"{digest[:16]}…", "file": path} for path, digest in files.items()]
    made_by = [{"name": name, "version": ", ".join(values)} for name, values in traced["made_by"].items()]
    here = f"xlgrid {traced['here']['xlgrid']}, commit {traced['here']['commit']}"
    locks = [{"lock": key, "value": value} for kind in ("locks", "locked") for key, value in traced[kind].items()]
    for title, lines in (
        (f"{traced['file']}, of {traced['study_file']}", about if any(entry["text"] for entry in entries) else []),
        (f"Results: {len(results)}", [{**result, "file": path} for path, result in results.items()]),
        (f"Runs: {len(traced['runs'])}", [{**run, "file": run["path"]} for run in traced["runs"]]),
        (f"Made by (here: {here})", made_by),
        (f"Made from {len(files)} files", hashes),
        ("Locks", locks),
    ):
        if lines or lines is about:
            terminal.print(title, style="bold", markup=False)
        if lines:
            terminal.print(_table(lines))
        if len(lines) > MOST:
            terminal.print(f"and {len(lines) - MOST:,} more: --json lists all")
    terminal.print("Made again by: the results, and the file from its results", style="bold")
    many = f"snakemake with the {len(results):,} results: --json has the command"
    commands = [many if len(results) > MOST else traced["commands"]["results"], traced["commands"]["file"]]
    for line in (*commands, *(f"Note: {note}" for note in traced["notes"])):
        terminal.print(line, soft_wrap=True, markup=False)


def _table(lines: Sequence[Mapping[str, Any]]) -> "Table":
    """A table of the first lines. Of lines of results and runs, it has the columns of `SHOWN`, and those in which lines differ."""
    from rich import box
    from rich.table import Table

    names = [name for name in dict.fromkeys(name for line in lines for name in line) if name not in HIDDEN]
    if len(names) > 3:
        names = [name for name in names if name in (*SHOWN, "file") or len({str(line.get(name)) for line in lines}) > 1]
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for name in names:
        table.add_column(name, overflow="fold")
    for line in lines[:MOST]:
        table.add_row(*(_text(line.get(name)) for name in names))
    return table


def _text(value: Any) -> str:
    return "" if value is None else number(value, 3) if isinstance(value, float) else str(value)
