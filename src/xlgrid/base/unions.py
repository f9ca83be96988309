"""Entries of a study that can have one of several kinds. The keys of an entry tell which kind it is."""

from collections.abc import Collection, Mapping
from typing import Any

from pydantic import BaseModel, BeforeValidator

from xlgrid.base.names import unknown
from xlgrid.base.settings import unknown_keys


def by_key(what: str, members: Mapping[str, type[BaseModel]], other: type[BaseModel] | None = None) -> BeforeValidator:
    """The validator of a union of schemas. An entry is read as the schema whose key stands in it, so that its mistakes are those of
    this schema alone.

    Args:
        what: an entry in words, such as "an encoder".
        members: key -> the schema of the entries that have this key. A key with the value null counts as absent.
        other: the schema of the entries with none of these keys; None if there are no such entries.
    """
    of_all = set.intersection(*(_required(schema) for schema in members.values()))
    names = [_with_others(key, _required(schema) - of_all) for key, schema in members.items()]
    known = f"{'at most' if other else 'exactly'} one of {', '.join(names[:-1])} and {names[-1]}"
    schemas = [*members.values(), *([other] if other else [])]

    def misplaced(key: str, schema: type[BaseModel], present: list[str]) -> str:
        """The message about a key that the schema of an entry lacks."""
        having = [f"`{member}`" for member, each in members.items() if key in each.model_fields]
        fitting = [f"with {' or '.join(having)}"] if having else []
        if other and key in other.model_fields:
            fitting.append(f"without {' and '.join(f'`{member}`' for member in members)}")
        if not fitting:
            return unknown("key", key, schema.model_fields)
        advice = (
            f", and this one has `{present[0]}`: leave it out" if present else ": add that key, or leave this one out"
        )
        return f"key {key!r} is for {what} {' or '.join(fitting)}{advice}"

    def read(fields: Any) -> Any:
        if not isinstance(fields, Mapping):
            return fields
        stated = {key: value for key, value in fields.items() if key not in members or value is not None}
        present = [key for key in members if key in stated]
        every_key = {key: None for schema in schemas for key in schema.model_fields}
        if not present and (strange := [str(key) for key in stated if key not in every_key]):
            raise unknown_keys({key: unknown("key", key, every_key) for key in strange})
        schema = members[present[0]] if len(present) == 1 else None if present else other
        if schema is None:
            advice = ": leave out all but one" * bool(present)
            raise ValueError(f"{what} has {known}, got {' and '.join(present) or 'none'}{advice}")
        problems = {str(key): misplaced(str(key), schema, present) for key in stated if key not in schema.model_fields}
        if problems:
            raise unknown_keys(problems)
        return schema.model_validate(stated)

    return BeforeValidator(read)


def _required(schema: type[BaseModel]) -> set[str]:
    return {name for name, field in schema.model_fields.items() if field.is_required()}


def _with_others(key: str, required: Collection[str]) -> str:
    """A key, and the other keys that its schema requires and others do not."""
    others = sorted({*required} - {key})
    return f"{key} (with {' and '.join(others)})" if others else key
