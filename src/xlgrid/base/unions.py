"""Entries of a study that can have one of several kinds. The keys of an entry tell which kind it is."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, BeforeValidator
from pydantic_core import PydanticCustomError

from xlgrid.base.names import unknown


def by_key(what: str, members: Mapping[str, type[BaseModel]]) -> BeforeValidator:
    """The validator of a union of schemas. An entry is read as the schema whose key stands in it, so that its mistakes are those of
    this schema alone.

    Args:
        what: an entry in words, such as "an encoder".
        members: key -> the schema of the entries that have this key. A key with the value null counts as absent.
    """
    names = [_with_others(key, schema) for key, schema in members.items()]
    known = f"{', '.join(names[:-1])} and {names[-1]}"

    def read(fields: Any) -> Any:
        if not isinstance(fields, Mapping):
            return fields
        stated = {key: value for key, value in fields.items() if key not in members or value is not None}
        present = [key for key in members if key in stated]
        every_key = {key: None for schema in members.values() for key in schema.model_fields}
        if not present and (strange := [str(key) for key in stated if key not in every_key]):
            raise _unknown_keys({key: unknown("key", key, every_key) for key in strange})
        if len(present) != 1:
            raise ValueError(f"{what} has exactly one of {known}, got {' and '.join(present) or 'none'}")
        schema = members[present[0]]
        problems = {}
        for key in stated:
            if key not in schema.model_fields:
                others = [f"`{other}`" for other, each in members.items() if key in each.model_fields]
                problems[str(key)] = (
                    f"key {key!r} is for {what} with {' or '.join(others)}, and this one has `{present[0]}`: leave it out"
                    if others
                    else unknown("key", str(key), schema.model_fields)
                )
        if problems:
            raise _unknown_keys(problems)
        return schema.model_validate(stated)

    return BeforeValidator(read)


def _unknown_keys(problems: Mapping[str, str]) -> PydanticCustomError:
    """The error of keys, each with its problem."""
    return PydanticCustomError("unknown_keys", "{text}", {"text": "; ".join(problems.values()), "keys": problems})


def _with_others(key: str, schema: type[BaseModel]) -> str:
    """A key, and the other keys that its schema requires."""
    others = [name for name, field in schema.model_fields.items() if field.is_required() and name != key]
    return f"{key} (with {' and '.join(others)})" if others else key
