"""Replaces names in everything that a study inherits, so that a miniature states only what it changes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import Field

from xlgrid.base.names import unknown
from xlgrid.base.settings import Strict

# Keys of a study with names of encoders and languages, in their values or in the keys of their values.
_ENCODERS = ("encoder", "encoders")
_LANGUAGES = ("languages", "source", "target", "targets", "dev_targets", "pairs", "once")
_GROUPS = ("group", "groups")
Rename = Callable[[str], str | None]


class Replace(Strict):
    """New names for encoders and languages of the extended study, in everything that is inherited; null removes a name.

    A language that is neither a key of `languages` here nor in the study's own `languages` is removed, too. A removed
    name disappears from lists, and from a mix that is not in a list. If nothing would be left, the old name stays and
    is an error, until the study states another value or removes the exhibit or claim. A key of `languages` is a
    language, or a whole pair or mix.
    """

    encoders: dict[str, str | None] = Field(default={}, description="old name of an encoder: new name, or null")
    languages: dict[str, str | None] = Field(default={}, description="old language, pair or mix: new one, or null")


def replaced(keys: Mapping[str, Any], names: Replace, languages: Sequence[str]) -> dict[str, Any]:
    """The keys of a study with its names replaced.

    The entries of replaced encoders are dropped, and exhibits compare the new encoders with the published numbers of
    the old ones. Published numbers of a replaced language are not compared with the new language.

    Args:
        languages: the languages of the study that extends this one; empty if it has the same languages.

    Raises:
        ValueError: the study has no such encoder or language.
    """
    for what, asked, known in (
        ("encoder", names.encoders, keys.get("encoders", {})),
        ("language", names.languages, keys.get("languages", [])),
    ):
        for name in asked:
            if missing := [part for part in name.replace("+", "-").split("-") if {name, part}.isdisjoint(known)]:
                raise ValueError(f"replace.{what}s: {unknown(what, missing[0], known)}")
    dropped = {code: None for code in keys.get("languages", []) if languages and code not in languages}
    names = names.model_copy(update={"languages": dropped | names.languages})
    renames = _renames(names, keys.get("groups", {}))
    rest = {key: value for key, value in keys.items() if key not in ("encoders", "replace")}
    result: dict[str, Any] = _walk(rest, renames)
    kept = {name: entry for name, entry in keys.get("encoders", {}).items() if name not in names.encoders}
    result["encoders"] = _walk(kept, renames)
    if any(names.languages.values()):
        return _without_published(result)
    if "published" in result:
        published = {new: old for old, new in names.encoders.items() if new}
        shown = result["published"].get("names", {})
        result["published"] = result["published"] | {"names": shown | {"encoder": published | shown.get("encoder", {})}}
    return result


def _renames(names: Replace, groups: Mapping[str, Any]) -> dict[str, Rename]:
    """Key of a study -> a function from a name under this key to the new name, or to None if the name is removed."""

    def encoder(name: str) -> str | None:
        return names.encoders.get(name, name)

    def language(value: str) -> str | None:
        if value in groups or value in names.languages:
            return names.languages.get(value, value)
        parts = [[names.languages.get(code, code) for code in part.split("-")] for part in value.split("+")]
        if any(code is None for part in parts for code in part):
            return None
        return "+".join("-".join(map(str, part)) for part in parts)

    def group(value: str) -> str | None:
        relation, colon, targets = value.rpartition(":")
        if targets[:2] == "X-" or targets[-2:] == "-X":
            new = language(targets)
            return None if new is None else f"{relation}{colon}{new}"
        return value

    by_keys = {_ENCODERS: encoder, _LANGUAGES: language, _GROUPS: group}
    return {key: rename for keys, rename in by_keys.items() for key in keys}


def _walk(value: Any, renames: Mapping[str, Rename]) -> Any:
    """A part of a study with its names replaced."""
    if isinstance(value, list):
        return [_walk(item, renames) for item in value]
    if not isinstance(value, dict):
        return value
    result: dict[str, Any] = {}
    for key, item in value.items():
        if key == "groups" and isinstance(item, dict):
            # The study's own groups: name -> languages.
            result[key] = {name: _renamed(members, renames["languages"]) for name, members in item.items()}
        elif key == "pairs" and isinstance(item, dict):
            # The study's tables of pairs: name -> table.
            result[key] = item
        elif key in ("files", "modules") and isinstance(item, dict):
            # `files` of the text and `modules` of an X-MOD have languages as keys.
            result[key] = _renamed(item, renames["languages"])
        elif key == "bitext" and isinstance(item, list):
            pairs = ([renames["languages"](code) for code in pair] for pair in item)
            result[key] = [pair for pair in pairs if None not in pair]
        else:
            result[key] = _renamed(item, renames[key]) if key in renames else _walk(item, renames)
    return result


def _renamed(value: Any, rename: Rename) -> Any:
    """A name, the names of a list, or the keys of a mapping replaced."""
    if isinstance(value, str):
        if (new := rename(value)) is None:
            # A single mix loses parts; a list of mixes loses whole mixes.
            new = "+".join(part for each in value.split("+") if (part := rename(each)))
        return new or value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return [*dict.fromkeys(new for item in value if (new := rename(item)) is not None)] or value
    if isinstance(value, dict):
        return {new: item for name, item in value.items() if (new := rename(name)) is not None}
    return value


def _without_published(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_published(item) for key, item in value.items() if key != "published"}
    return [_without_published(item) for item in value] if isinstance(value, list) else value


def merge(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """Merge two mappings key by key. Other values, such as lists, are replaced; a null deletes the key."""
    merged = dict(base)
    for key, value in change.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(base.get(key), dict):
            merged[key] = merge(base[key], value)
        else:
            merged[key] = value
    return merged
