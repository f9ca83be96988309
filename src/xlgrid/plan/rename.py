"""Moves what has been computed for a task, an encoder or a method to a new name, so that nothing is computed again.

A path below `results/STUDY/` names the parts of a study in fixed places, which the templates of products define. Logs and
benchmarks have the same paths, in folders of their own. Snakemake's record of a file has the inputs and settings from which
the file was made. It gets the new name, too, so that Snakemake still knows which files are out of date, and why.
"""

import json
import os
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from xlgrid.base.errors import Damaged
from xlgrid.base.files import write_text
from xlgrid.base.names import unknown
from xlgrid.plan.plan import Plan
from xlgrid.products import kinds, product_of
from xlgrid.study.schema import Study

Part = Literal["task", "encoder", "method"]
# Part -> the fields of templates that have its name. A tokenizer has the name of its encoder, if it has none of its own.
_FIELDS = {"task": {"{task}"}, "encoder": {"{encoder}", "{tokenizer}"}, "method": {"{method}"}}
# Part -> the entries of records that have its name.
_ENTRIES = {"task": {"task", "first"}, "encoder": {"encoder"}, "method": {"method", "together"}}
# Snakemake's records. The name of a file here is the path of the file that the record is about, in base64.
_RECORDS = Path(".snakemake", "metadata")
# The most paths that are listed.
_LISTED = 10


class Renaming(NamedTuple):
    """A part of some studies, with its old and its new name."""

    part: Part
    old: str
    new: str
    studies: frozenset[str]

    def name(self, name: str) -> str:
        """The new name of a part, or of a variant of a method; other names stay."""
        plain, mark, settings = name.partition("@")
        return self.new + mark + settings if plain == self.old else name

    def path(self, path: str) -> str:
        """The new path of a file or folder; those that are not below `results/` of the studies stay."""
        parts = path.split("/")
        if parts[0] != "results" or parts[1:2] == [] or parts[1] not in self.studies:
            return path
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
            return {self.path(key): each if key == "command" else self.record(each, key) for key, each in value.items()}
        if isinstance(value, list):
            return [self.record(each, entry) for each in value]
        if not isinstance(value, str):
            return value
        if value.startswith("results/"):
            return self.path(value)
        # The members of a group are written as METHOD/SOURCE/SEED.
        name, slash, rest = value.partition("/")
        return self.name(name) + slash + rest if entry in _ENTRIES[self.part] else value

    def setting(self, text: str) -> str:
        """A setting of a command under the new name: a path, or a recipe, as JSON in the quotes of the shell."""
        entries, old = "|".join(sorted(_ENTRIES[self.part])), re.escape(self.old)
        recipe = re.sub(rf'("(?:{entries})":\[?"){old}(?=["@/])', rf"\g<1>{self.new}", text)
        if self.part == "method":
            # All but the first of the members of a group.
            recipe = re.sub(rf'(?<=,"){old}(?=[@/])', self.new, recipe)
        return re.sub(r"results/[^\s'\"]+", lambda path: self.path(path[0]), recipe)


@cache
def _templates() -> dict[str, list[str]]:
    """The folder of a kind of product -> the parts of its path, from this folder on."""
    paths = (kind.template.split("/")[2:] for kind in kinds())
    return {parts[0]: parts for parts in sorted(paths, key=len)}


def names_of(study: Study, part: Part) -> list[str]:
    """The names of the tasks, encoders or methods of a study."""
    return [*{"task": study.tasks, "encoder": study.encoders, "method": study.methods}[part].keys()]  # type: ignore[attr-defined]


def rename(plan: Plan, part: Part, old: str, new: str) -> str:
    """Move the files of a part of a study to the new name of the part, which the study has already.

    The records of runs and cells, and those of Snakemake, get the new name. The exhibits and the report are deleted, and
    the next run makes them again from the moved cells. A second call continues a call that was killed.

    Returns:
        What was moved, and what the study does not have under the new name and therefore stays.

    Raises:
        ValueError: the study lacks the new name, still has the old one, or a file is at a new path already; or
            Snakemake is running.
    """
    study, names = plan.study, names_of(plan.study, part)
    if new not in names:
        raise ValueError(
            f"{unknown(part, new, names)}: write the new name in {plan.path} first, in place of {old!r} everywhere, and run this "
            "command then"
        )
    if old in names:
        raise ValueError(f"study {study.name} still has the {part} {old!r}: rename it in {plan.path} first")
    if any(Path(".snakemake/locks").glob("*")):
        raise ValueError(
            "Snakemake is running in this folder: wait until it ends, or `snakemake --unlock` if it was killed"
        )
    renamed = {each.study.name for each in (*plan.ancestors, plan) if old not in names_of(each.study, part)}
    renaming = Renaming(part, old, new, frozenset(renamed))
    files = [str(file) for file in sorted(Path("results", study.name).rglob("*")) if file.is_file()]
    moves = {file: path for file in files if (path := renaming.path(file)) != file}
    stay = {
        file: problem
        for file, path in moves.items()
        if (product := product_of(path)) and (problem := product.problem(plan))
    }
    moves = {file: path for file, path in moves.items() if file not in stay}
    if there := [path for path in moves.values() if Path(path).exists()]:
        raise ValueError(
            f"{there[0]} exists already, with {len(there) - 1} others: delete what you need less, and run this again"
        )
    for file in files:
        if file.endswith(".json") and file not in stay:
            _rewrite(Path(file), renaming)
        elif (product := product_of(file)) and product.shows_results:
            Path(file).unlink()
    for file, path in moves.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        os.replace(file, path)
        _remove_empty(Path(file).parent)
    _rewrite_records(study.name, renaming)
    counts = Counter(
        type(product).__name__.lower() for product in {product_of(path) for path in moves.values()} if product
    )
    moved = ", ".join(f"{kind} {number:,}" for kind, number in counts.items())
    lines = [f"moved from {old} to {new}: {moved or 'nothing'}"]
    lines += [f"stays: {path}: {why}" for path, why in islice(stay.items(), _LISTED)]
    lines += [f"and {len(stay) - _LISTED:,} others stay"] if len(stay) > _LISTED else []
    return "\n".join(lines)


def _rewrite(path: Path, renaming: Renaming) -> None:
    """Write the new name into a record. Its time stays, because its contents mean the same."""
    record = _read(path)
    if (renamed := renaming.record(record)) != record:
        times = path.stat()
        write_text(path, json.dumps(renamed, ensure_ascii=False, indent=1) + "\n")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def _rewrite_records(study: str, renaming: Renaming) -> None:
    """Write the new name into Snakemake's records of the files of a study, and move those of files that have moved."""
    for file in [path for path in _RECORDS.rglob("*") if path.is_file()]:
        about = urlsafe_b64decode("".join(part.removeprefix("@") for part in file.relative_to(_RECORDS).parts)).decode()
        if not about.startswith(f"results/{study}/"):
            continue
        record = _read(file)
        changed = renaming.record(record)
        changed["params"] = [renaming.setting(text) for text in record.get("params") or []]
        place = renaming.path(about)
        if place == about or Path(about).exists() or not Path(place).exists():
            place = about
        if changed != record or place != about:
            write_text(_RECORDS / _encoded(place), json.dumps(changed))
            if place != about:
                file.unlink()


def _encoded(path: str) -> Path:
    """The path of a record of Snakemake, in whose folders and file no name is longer than the file system allows."""
    name, most = urlsafe_b64encode(path.encode()).decode(), os.pathconf(_RECORDS, "PC_NAME_MAX") - 1
    pieces = [name[at : at + most] for at in range(0, len(name), most)]
    return Path(*(f"@{piece}" for piece in pieces[:-1]), pieces[-1])


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise Damaged(f"{path} is damaged ({error}): delete it and run this command again", path) from error


def _remove_empty(folder: Path) -> None:
    while not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
