"""Moves what has been computed for a task, an encoder or a method to a new name, so that nothing is computed again.

A path below `results/STUDY/` names the parts of a study in fixed places, which the templates of products define. Logs and
benchmarks have the same paths, in folders of their own.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from xlgrid.base.errors import Damaged
from xlgrid.base.files import write_text
from xlgrid.base.names import unknown
from xlgrid.plan.plan import Plan
from xlgrid.products import kinds, product_of
from xlgrid.products.evaluate import Cell
from xlgrid.products.report import Report
from xlgrid.products.train import Run

Part = Literal["task", "encoder", "method"]
# Part -> the fields of templates that have its name. A tokenizer has the name of its encoder, if it has none of its own.
_FIELDS = {"task": {"{task}"}, "encoder": {"{encoder}", "{tokenizer}"}, "method": {"{method}"}}
# Part -> the entries of records that have its name.
_ENTRIES = {"task": {"task", "first"}, "encoder": {"encoder"}, "method": {"method", "together"}}
# The most paths that are listed.
_LISTED = 10


class Renaming(NamedTuple):
    """A part of a study, with its old and its new name."""

    part: Part
    old: str
    new: str

    def name(self, name: str) -> str:
        """The new name of a part, or of a variant of a method; other names stay."""
        plain, mark, settings = name.partition("@")
        return self.new + mark + settings if plain == self.old else name

    def path(self, path: str) -> str:
        """The new path of a file or folder below `results/`."""
        parts = path.split("/")
        # Logs are in `logs/`, and benchmarks in `benchmarks/`, with the path of the product behind it.
        begin = 3 if parts[2:3] in (["logs"], ["benchmarks"]) else 2
        template = _templates().get(parts[begin], []) if len(parts) > begin else []
        for at, (field, part) in enumerate(zip(template, parts[begin:], strict=False), start=begin):
            if field in _FIELDS[self.part]:
                parts[at] = self.name(part)
        return "/".join(parts)

    def record(self, value: Any, entry: str = "") -> Any:
        """The contents of a JSON file under the new name. `command` stays, because it says what was run."""
        if isinstance(value, dict):
            return {key: each if key == "command" else self.record(each, key) for key, each in value.items()}
        if isinstance(value, list):
            return [self.record(each, entry) for each in value]
        if not isinstance(value, str):
            return value
        if value.startswith("results/"):
            return self.path(value)
        # The members of a group are written as METHOD/SOURCE/SEED.
        name, slash, rest = value.partition("/")
        return self.name(name) + slash + rest if entry in _ENTRIES[self.part] else value


@cache
def _templates() -> dict[str, list[str]]:
    """The folder of a kind of product -> the parts of its path, from this folder on."""
    paths = (kind.template.split("/")[2:] for kind in kinds())
    return {parts[0]: parts for parts in sorted(paths, key=len)}


def rename(plan: Plan, renaming: Renaming) -> str:
    """Move the files of a part of a study to the new name of the part, which the study has already.

    The records of runs and cells get the new name. The exhibits and the report are deleted, and the next run makes them
    again from the moved cells. A run whose settings differ from those of the study stays where it is, and so do its
    cells. A second call continues a call that was killed.

    Returns:
        What was moved, and the command that tells Snakemake.

    Raises:
        ValueError: the study lacks the new name, still has the old one, or a file is at a new path already; or
            Snakemake is running.
    """
    study, (part, old, new) = plan.study, renaming
    names: dict[Part, list[str]] = {
        "task": [*study.tasks],
        "encoder": [*study.encoders],
        "method": [*study.methods],
    }
    if new not in names[part]:
        raise ValueError(
            f"{unknown(part, new, names[part])}: write the new name in {plan.path} first, in place of {old!r} everywhere, and run this "
            "command then"
        )
    if old in names[part]:
        raise ValueError(f"study {study.name} still has the {part} {old!r}: rename it in {plan.path} first")
    if any(Path(".snakemake/locks").glob("*")):
        raise ValueError(
            "Snakemake is running in this folder: wait until it ends, or `snakemake --unlock` if it was killed"
        )
    files = [str(file) for file in sorted(Path("results", study.name).rglob("*")) if file.is_file()]
    stay = {path: why for file in files for path, why in _stale(plan, renaming, file)}
    files = [file for file in files if file not in stay and os.path.dirname(file) not in stay]
    moves = {file: path for file in files if (path := renaming.path(file)) != file}
    if there := [path for path in moves.values() if Path(path).exists()]:
        raise ValueError(
            f"{there[0]} exists already, with {len(there) - 1} others: delete what you need less, and run this again"
        )
    for file in files:
        if file.endswith(".json"):
            _rewrite(Path(file), renaming)
        elif (product := product_of(file)) and product.shows_results:
            Path(file).unlink()
    for file, path in moves.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        os.replace(file, path)
        _remove_empty(Path(file).parent)
    counts = Counter(
        type(product).__name__.lower() for product in {product_of(path) for path in moves.values()} if product
    )
    moved = ", ".join(f"{kind} {number:,}" for kind, number in counts.items())
    lines = [f"moved from {old} to {new}: {moved or 'nothing'}"]
    lines += [f"stays: {path}: {why}" for path, why in islice(stay.items(), _LISTED)]
    lines += [f"and {len(stay) - _LISTED:,} others stay"] if len(stay) > _LISTED else []
    if moves:
        command = f"snakemake --touch --forceall --cores 1 {Report(study.name).path}"
        lines.append(f"Snakemake keeps the settings of each file. Tell it that the new ones are up to date: {command}")
    return "\n".join(lines)


def _stale(plan: Plan, renaming: Renaming, file: str) -> Iterator[tuple[str, str]]:
    """The file that cannot be moved, or the folder of the run, and why: the study would make its contents anew."""
    if (path := renaming.path(file)) == file or not (product := product_of(path)):
        return
    kept = os.path.dirname(file) if isinstance(product, Run) else file
    if problem := product.problem(plan):
        yield kept, problem
    if not isinstance(product, Run | Cell) or path != product.path:
        return
    run = product if isinstance(product, Run) else product.run
    digest = _read(Path(file)).get("digest")
    # A run whose settings a sweep has chosen has the digest of the run of its winner.
    if digest and not plan.study.choice(run) and digest != plan.study.recipe(*run[1:]).digest():
        yield kept, "its recipe has other settings than the study"


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise Damaged(f"{path} is damaged ({error}): delete it and run this command again", path) from error


def _rewrite(path: Path, renaming: Renaming) -> None:
    """Write the new name into a record. Its time stays, because its contents mean the same."""
    record = _read(path)
    if (renamed := renaming.record(record)) != record:
        times = path.stat()
        write_text(path, json.dumps(renamed, ensure_ascii=False, indent=1) + "\n")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def _remove_empty(folder: Path) -> None:
    while not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
