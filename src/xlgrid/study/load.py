"""Reads a study file and the files that it extends, and reports every mistake with its file and line."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import ValidationError

from xlgrid.base.names import unknown
from xlgrid.base.papers import shipped_studies, study_file
from xlgrid.base.settings import NAME, TYPES, quoted, wording
from xlgrid.base.yaml_files import Word, read_yaml, word_of
from xlgrid.study.replace import Replace, merge, replaced
from xlgrid.study.schema import Study


class Spot(NamedTuple):
    """The place of a key or a list item in a study file.

    Attributes:
        word: the value, if YAML reads it as another type than it seems to have, such as `no` (false).
    """

    path: Path
    line: int
    word: Word | None = None


# Sections of a study with data; and keys of `data` whose values are compared as text, whatever their type.
_OF_DATA = ("tasks", "text")
_COMPARED = frozenset(("labels", "where"))
# Keys whose values are paths, and keys with mappings to paths.
_PATHS, _OF_PATHS = ("local", "path", "file"), ("files", "pairs")
# Path of a key -> its place.
Lines = dict[tuple[str, ...], Spot]


class StudyFile(NamedTuple):
    """A study, merged with the studies that it extends, and the place of each key."""

    path: Path
    study: Study
    lines: Lines


def read_lineage(path: Path) -> list[StudyFile]:
    """Read a study file, then the study file that it extends, and so on.

    This checks only the schema: `xlgrid.plan.load` also checks that the parts of each study fit together.

    Raises:
        FileNotFoundError: there is no such study; the message names the studies that exist.
        ValueError: a file is not a valid study; the message names each mistake with its file and line.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no study file {path}: {unknown('study', path.stem, _near(path))}")
    return [file for file, _ in _read(path)]


def _checked(path: Path, keys: dict[str, Any], lines: Lines) -> StudyFile:
    if mistakes := [
        _located(
            place, f"{'must be a text, ' * (not spot.word.is_number_in_disguise)}got {quoted(*spot.word)}", lines, path
        )
        for place, spot in lines.items()
        if spot.word and _is_text(place, spot.word)
    ]:
        raise ValueError("\n".join(mistakes))
    if "name" in keys:
        raise ValueError(_located(("name",), "a study has the name of its file: leave this key out", lines, path))
    try:
        return StudyFile(path, Study.model_validate({**keys, "name": path.stem}), lines)
    except ValidationError as error:
        raise ValueError("\n".join(_explain(error, lines, path))) from None


def _is_text(place: Sequence[str], word: Word) -> bool:
    """Whether a value at a place must be text, or would be taken for another number, although the schema accepts it.

    The schema itself refuses other types where it expects text. This function is for `labels` and `where`, whose values
    may be numbers but are compared as text, and for lists, which never contain truth values.
    """
    is_compared = place[0] in _OF_DATA and not _COMPARED.isdisjoint(place)
    is_item = place[-1].isdecimal() and (word.value is None or isinstance(word.value, bool))
    return word.is_number_in_disguise or is_compared or is_item


def located(problem: str, lines: Lines, path: Path) -> str:
    """The problem (`key.of.the.study: text`) after the file and line of the key, or of the nearest key above it."""
    places = {".".join(place): place for place in lines}
    key = problem.partition(": ")[0]
    while key and key not in places:
        key = key.rpartition(".")[0]
    return _located(places.get(key, ()), problem, lines, path)


def _near(path: Path) -> list[str]:
    """The names of the studies in the folder of a file, and of the studies that come with xlgrid."""
    return sorted({other.stem for other in (*path.parent.glob("*.yaml"), *shipped_studies())})


def _extended(path: Path, name: str) -> Path:
    """The file that the study in `path` extends.

    A path begins at the folder of `path`; of a copy with the results, the extended file is a copy beside it. A name is that
    of a study in the same folder, or of one that comes with xlgrid.
    """
    if _is_path(name):
        there = Path(_from_file(os.path.expanduser(name), path))
        beside = path.with_name(there.name)
        return beside if beside.is_file() and not there.is_file() else there
    beside, other = path.with_name(f"{name}.yaml"), study_file(name)
    return other if other.is_file() and not beside.is_file() else beside


def _is_path(name: str) -> bool:
    return "/" in name or name.endswith(".yaml")


def _from_file(place: str, path: Path) -> str:
    """A path from the working directory, given as one from the folder of the study file `path`; outside of the working
    directory, an absolute one. So it does not depend on how a command names the study."""
    whole = Path(os.path.normpath(Path.cwd() / path.parent / place))
    return str(whole.relative_to(Path.cwd()) if whole.is_relative_to(Path.cwd()) else whole)


def _placed(value: Any, path: Path, key: str = "", above: str = "") -> Any:
    """A part of the study file `path`, in which paths that begin with ./ or ../ begin at the file's folder."""
    if isinstance(value, dict):
        return {inner: _placed(item, path, str(inner), key) for inner, item in value.items()}
    if isinstance(value, list):
        return [_placed(item, path, key, above) for item in value]
    is_path = isinstance(value, str) and (key in _PATHS or above in _OF_PATHS) and value.startswith(("./", "../"))
    return _from_file(value, path) if is_path else value


def _read(path: Path, extending: tuple[Path, ...] = ()) -> list[tuple[StudyFile, dict[str, Any]]]:
    """A study file, then the study file that it extends, and so on, each with its keys after merging.

    Args:
        extending: the files that extend this one, the outermost first.
    """
    node, keys = read_yaml(path)
    if not isinstance(keys, dict):
        got = "an empty file" if keys is None else "a list" if isinstance(keys, list) else f"{str(keys)[:40]!r}"
        raise ValueError(
            f"{path}: a study has keys (title: ..., grids: ...), got {got}: `xlgrid new study NAME` writes a starting point"
        )
    lines: Lines = {}
    _locate(node, (), path, lines)
    keys = _placed(keys, path)
    extended = []
    if "extends" in keys:
        name = str(keys["extends"])
        if not NAME.fullmatch(Path(name).stem if _is_path(name) else name) or (
            _is_path(name) and Path(name).suffix != ".yaml"
        ):
            wanted = "the name of a study, such as demo, or the path of a file from the folder of this one, such as ../demo.yaml"
            raise ValueError(located(f"extends: expected {wanted}, got {keys['extends']!r}", lines, path))
        other, files = _extended(path, name), (*extending, path)
        if other.resolve() in [file.resolve() for file in files]:
            circle = " -> ".join(file.name for file in (*files, other))
            problem = f"extends: studies extend one another in a circle: {circle}: leave `extends` out of one of them"
            raise ValueError(located(problem, lines, path))
        if namesake := next((file for file in files if file.stem == other.stem), None):
            problem = f"extends: {other} and {namesake} would both make results/{other.stem}/: rename one of them"
            raise ValueError(located(problem, lines, path))
        if not other.is_file():
            problem = f"extends: there is no such study: {unknown('study', other.stem, _near(other))}"
            raise FileNotFoundError(located(problem, lines, path))
        extended = _read(other, files)
        (_, _, parent_lines), parent = extended[0]
        try:
            parent = replaced(parent, Replace.model_validate(keys.get("replace", {})), keys.get("languages", []))
        except ValidationError as error:
            raise ValueError("\n".join(_explain(error, lines, path, ("replace",)))) from None
        except ValueError as error:
            raise ValueError(located(str(error), lines, path)) from None
        own = keys.get("downloads")
        keys, lines = merge(parent, keys), parent_lines | lines
        if isinstance(own, dict) and isinstance(entries := keys["downloads"], dict):
            # If several patterns match a file, the first one wins.
            keys["downloads"] = {entry: entries[entry] for entry in (own | entries) if entry in entries}
    elif "replace" in keys:
        raise ValueError(
            located("replace: there is no study in which names could be replaced: add `extends`", lines, path)
        )
    return [(_checked(path, keys, lines), keys), *extended]


def _locate(node: yaml.Node | None, at: tuple[str, ...], path: Path, lines: Lines) -> None:
    """Add the lines of all keys and list items below `node` to `lines`."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*at, str(key.value))
            if word := word_of(key):
                where = f"{path}:{key.start_mark.line + 1}: {'.'.join(at)}{': ' * bool(at)}"
                raise ValueError(f"{where}got the key {quoted(*word)}")
            if here in lines:
                raise ValueError(
                    f"{path}:{key.start_mark.line + 1}: {'.'.join(here)} is there twice (first in line "
                    f"{lines[here].line}): remove or "
                    "rename one of the two"
                )
            word = word_of(value)
            # A null deletes the key of the extended study.
            lines[here] = Spot(path, key.start_mark.line + 1, word if word and word.value is not None else None)
            _locate(value, here, path, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines[(*at, str(index))] = Spot(path, item.start_mark.line + 1, word_of(item))
            _locate(item, (*at, str(index)), path, lines)


def _explain(error: ValidationError, lines: Lines, path: Path, place: tuple[str, ...] = ()) -> list[str]:
    """The mistakes that pydantic reports below `place`, each with its file and line."""
    by_place: dict[tuple[str, ...], list[Any]] = {}
    for mistake in error.errors():
        here = place
        for part in map(str, mistake["loc"]):
            # Pydantic adds the kind of an exhibit or of data to the place, but the file has no such key.
            if (*here, part) in lines:
                here = (*here, part)
        by_place.setdefault(here, []).append(mistake)
    texts = []
    for here, mistakes in by_place.items():
        # Pydantic reports one mistake for each type that a value may have. This reports one mistake in all, or only the
        # mistakes in parts of the value.
        of_type = [mistake for mistake in mistakes if mistake["type"] in TYPES]
        if of_type and not any(there[: len(here)] == here for there in by_place if len(there) > len(here)):
            # If a key is not text, the input of pydantic's error is the key, not the value.
            word = lines[here].word if here in lines else None
            stood = word.text if word and word.value == of_type[0]["input"] else ""
            texts.append(_located(here, wording(*of_type, word=stood), lines, path))
        for mistake in mistakes:
            if mistake["type"] == "unknown_keys":
                keys = mistake["ctx"]["keys"]
                texts += [_located((*here, key), text, lines, path) for key, text in keys.items()]
            elif mistake["type"] not in TYPES:
                texts.append(_located(here, wording(mistake), lines, path))
    return texts


def _located(place: tuple[str, ...], text: str, lines: Lines, path: Path) -> str:
    text = text.removeprefix(f"{'.'.join(place)}: ")
    key, colon, rest = text.partition(": ")
    while colon and (*place, key) in lines:
        place, text = (*place, key), rest
        key, colon, rest = text.partition(": ")
    spot = lines.get(place, Spot(path, 1))
    where = ".".join(place)
    # A text about a key that the file does not state names the whole key.
    where = "" if not where or text.startswith(f"{where}.") else f"{where}: "
    return f"{spot.path}:{spot.line}: {where}{text}"
