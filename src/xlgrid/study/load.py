"""Reading a study file and the files that it extends, and naming the file and line of every mistake in them."""

from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import ValidationError

from xlgrid.base.files import SHIPPED
from xlgrid.base.names import unknown
from xlgrid.study.replace import Replace, merge, replaced
from xlgrid.study.schema import Study

# Where each key of a study stands: location -> (file, line).
Lines = dict[tuple[str, ...], tuple[Path, int]]


class StudyFile(NamedTuple):
    """A study as its file and those that the file extends say, and the line of each key."""

    path: Path
    study: Study
    lines: Lines


def read_lineage(path: Path) -> list[StudyFile]:
    """Read a study file, then the one that it extends, and so on.

    Only the schema is checked: `xlgrid.plan.load` also checks that the parts of each study fit together.

    Raises:
        FileNotFoundError: there is no such study; the message names those that exist.
        ValueError: a file is no study; the message names each mistake with its file and line.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no study file {path}: {unknown('study', path.stem, _near(path))}")
    return [_checked(*read) for read in _read(path)]


def _checked(path: Path, keys: dict[str, Any], lines: Lines) -> StudyFile:
    try:
        return StudyFile(path, Study(**{**keys, "name": path.stem}), lines)
    except ValidationError as error:
        mistakes = [text for mistake in error.errors() for text in _explain(mistake, lines, path)]
        raise ValueError("\n".join(mistakes)) from None


def located(problem: str, lines: Lines, path: Path) -> str:
    """The problem, written as `key.of.the.study: text`, after the file and the line of that key."""
    places = {".".join(place): place for place in lines}
    return _located(places.get(problem.partition(": ")[0], ()), problem, lines, path)


def _near(path: Path) -> list[str]:
    """The studies beside a file, and those that come with xlgrid."""
    return sorted({other.stem for folder in (path.parent, SHIPPED / "studies") for other in folder.glob("*.yaml")})


def _extended(path: Path, name: str) -> Path:
    """The file of a study that the study in `path` extends: beside it, or one that comes with xlgrid."""
    beside, shipped = path.with_name(f"{name}.yaml"), SHIPPED / "studies" / f"{name}.yaml"
    return shipped if shipped.is_file() and not beside.is_file() else beside


def _read(path: Path, extending: tuple[Path, ...] = ()) -> list[tuple[Path, dict[str, Any], Lines]]:
    """A study file, then the one that it extends, and so on: the keys of each, merged with those that it extends, and the
    lines of these keys.

    Args:
        extending: the files that extend this one, the outermost first.
    """
    if path in extending:
        raise ValueError(
            f"{path}: studies extend one another in a circle: {' -> '.join(p.name for p in (*extending, path))}"
        )
    if not path.is_file():
        raise FileNotFoundError(
            f"{extending[-1]}: extends a study that is not there: {unknown('study', path.stem, _near(path))}"
        )
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), yaml.SafeLoader)
        keys = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: not valid YAML: {error}") from None
    if not isinstance(keys, dict):
        raise ValueError(f"{path}: a study is a mapping (title: ..., grids: ...), got {type(keys).__name__}")
    lines: Lines = {}
    _locate(node, (), path, lines)
    extended = []
    if "extends" in keys:
        extended = _read(_extended(path, keys["extends"]), (*extending, path))
        _, parent, parent_lines = extended[0]
        try:
            parent = replaced(parent, Replace.model_validate(keys.get("replace", {})), keys.get("languages", []))
        except ValidationError as error:
            mistakes = [text for mistake in error.errors() for text in _explain(mistake, lines, path, ("replace",))]
            raise ValueError("\n".join(mistakes)) from None
        except ValueError as error:
            raise ValueError(located(str(error), lines, path)) from None
        keys, lines = merge(parent, keys), parent_lines | lines
    elif "replace" in keys:
        raise ValueError(
            located("replace: there is no study in which names could be replaced: add `extends`", lines, path)
        )
    return [(path, keys, lines), *extended]


def _locate(node: yaml.Node | None, at: tuple[str, ...], path: Path, lines: Lines) -> None:
    """Add the lines of all keys and list items below `node` to `lines`."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*at, str(key.value))
            if here in lines:
                raise ValueError(
                    f"{path}:{key.start_mark.line + 1}: {'.'.join(here)} stands twice (first in line {lines[here][1]})"
                )
            lines[here] = (path, key.start_mark.line + 1)
            _locate(value, here, path, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines[(*at, str(index))] = (path, item.start_mark.line + 1)
            _locate(item, (*at, str(index)), path, lines)


def _explain(mistake: Any, lines: Lines, path: Path, place: tuple[str, ...] = ()) -> list[str]:
    """The texts of one mistake that pydantic reports below `place`, each with its file and line."""
    for part in map(str, mistake["loc"]):
        # Pydantic adds the kind of an exhibit or of data, which is no key of the file.
        if (*place, part) in lines:
            place = (*place, part)
    if mistake["type"] == "unknown_keys":
        return [_located((*place, key), text, lines, path) for key, text in mistake["ctx"]["keys"].items()]
    if mistake["type"] == "missing":
        return [_located(place, f"`{mistake['loc'][-1]}` is missing", lines, path)]
    return [_located(place, mistake["msg"].removeprefix("Value error, "), lines, path)]


def _located(place: tuple[str, ...], text: str, lines: Lines, path: Path) -> str:
    file, line = lines.get(place, (path, 1))
    where = ".".join(place)
    return f"{file}:{line}: {text if text.startswith(where) else f'{where}: {text}'}"
