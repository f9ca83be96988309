"""Settings that refuse unknown keys, and their errors in one line."""

import os
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import date
from functools import cache
from types import EllipsisType, UnionType
from typing import Annotated, Any, Self, Union, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from xlgrid.base.names import unknown

# Type of a problem that pydantic reports -> the type that a value must have, in the words of YAML instead of those of Python.
TYPES = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list, [...]",
    "tuple_type": "a list, [...]",
    "dict_type": "keys with values, {key: ...}",
    "model_type": "keys with values, {key: ...}",
    "model_attributes_type": "keys with values, {key: ...}",
}
# The last part of the place of a problem, in pydantic's reports, if the key is wrong and not the value.
_OF_KEY = "[key]"
# The most characters of a value that a message shows.
_SHOWN = 80

# The range that every library takes which draws random numbers here.
Seed = Annotated[int, Field(ge=0, lt=2**32)]
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


def _name(value: str) -> str:
    if not NAME.fullmatch(value) or value.endswith("."):
        raise ValueError(f"{value!r} cannot be a name: it becomes part of a path; use letters, digits and . _ + -")
    return value


# A path that a study or the settings name, in which ~ is the user's home.
LocalPath = Annotated[str, AfterValidator(os.path.expanduser)]
# What a study calls its parts.
Name = Annotated[str, AfterValidator(_name)]


class Strict(BaseModel):
    """A frozen schema. An unknown key raises a `ValidationError` of type `unknown_keys` that names the nearest known key.

    True and False are not accepted as numbers, although Python and pydantic take True as 1.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        types = _types(cls)
        if wrong := [key for key in data if key not in types]:
            raise unknown_keys({str(key): unknown("key", key, types) for key in wrong})
        names = (name for name in types if name in data)
        if problems := [problem for name in names for problem in _truths(data[name], types[name], (name,))]:
            raise ValidationError.from_exception_data(cls.__name__, problems)
        return data

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy the fields. A cached property may depend on what `update` changes."""
        copied = super().model_copy(update=update, deep=deep)
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied


def unknown_keys(problems: Mapping[str, str]) -> PydanticCustomError:
    """The error that names keys which a schema lacks, for a validator to raise.

    Args:
        problems: key -> the message about it.
    """
    return PydanticCustomError("unknown_keys", "{text}", {"text": "; ".join(problems.values()), "keys": {**problems}})


@cache
def _types(schema: type[BaseModel]) -> dict[str, list[Any]]:
    """Field -> the types that it may have. Plans read thousands of recipes."""
    return {name: [*_alternatives(field.annotation)] for name, field in schema.model_fields.items()}


def _alternatives(annotation: Any) -> Iterator[Any]:
    """The types that an annotation allows."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from _alternatives(arguments[0])
    elif origin in (Union, UnionType):
        for argument in arguments:
            yield from _alternatives(argument)
    elif not isinstance(annotation, EllipsisType):
        yield annotation


def _truths(value: Any, types: Sequence[Any], place: tuple[str | int, ...]) -> Iterator[InitErrorDetails]:
    """A problem for each truth value in place of a number.

    Args:
        types: the types that the value may have.
        place: the keys and indices that lead to the value in the schema.
    """
    if isinstance(value, bool):
        if not {int, float}.isdisjoint(types) and bool not in types:
            names = {str: "string_type", int: "int_type", float: "float_type"}
            for kind in types:
                if kind in names:
                    yield InitErrorDetails(type=names[kind], loc=place, input=value)
    elif isinstance(value, list | tuple | dict):
        is_mapping = isinstance(value, dict)
        inner = [get_args(each) for each in types if (get_origin(each) is dict) == is_mapping]
        of_items = [each for arguments in inner for item in arguments[is_mapping:] for each in _alternatives(item)]
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _truths(item, of_items, (*place, key))


def plainly(error: ValidationError) -> str:
    """All problems of a `ValidationError` in one line: the place of each, and `wording`."""
    lines = []
    for problem in error.errors():
        where = ".".join(str(part) for part in problem["loc"] if part != _OF_KEY)
        lines.append(": ".join([where] * bool(where) + [wording(problem)]))
    return "; ".join(lines)


def wording(problem: Any, *others: Any, word: str = "") -> str:
    """A sentence about one problem: the value that was given, and the values that are allowed.

    Args:
        word: the value as the file has it, where YAML reads it as something else than a text.
        problem: one of `ValidationError.errors()`.
        others: further type errors of the same value, one for each type that is allowed and that it does not have.
    """
    kind, value, context = problem["type"], problem["input"], problem.get("ctx", {})
    if kind in TYPES:
        types = [*dict.fromkeys(TYPES[each["type"]] for each in (problem, *others))]
        if word and TYPES["string_type"] in types:
            got = quoted(word, value)
        elif word and isinstance(value, bool):
            got = f"{word}, which YAML reads as {_shown(value)}"
        else:
            got = f"{_shown(value)}{_quotes(types, value)}"
        return f"must be {' or '.join(types)}, got {got}"
    if kind == "literal_error" and (names := re.findall("'([^']*)'", context["expected"])):
        return unknown("key" if problem["loc"][-1] == _OF_KEY else "value", value, names)
    if kind == "union_tag_invalid":
        return unknown("kind", context["tag"], re.findall("'([^']*)'", context["expected_tags"]))
    if kind in ("missing", "union_tag_not_found"):
        name = problem["loc"][-1] if kind == "missing" else "kind"
        return (
            f"`{name}` is missing: add it"
            if isinstance(name, str)
            else f"must have {name + 1} entries or more, got {_shown(value)}"
        )
    if kind in ("unknown_keys", "value_error"):
        # Messages of this project state the value themselves.
        return str(problem["msg"].removeprefix("Value error, "))
    text = re.sub(r"^\w+ should (be )?", lambda match: "must be " if match[1] else "must ", problem["msg"])
    return f"{re.sub(' after validation, not .*', '', text)}, got {_shown(value)}"


def quoted(word: str, value: Any) -> str:
    """A word of a YAML file that is meant as text, the value that YAML reads in its place, and how to write the text."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    reads = "nothing" if value is None else str(value).lower()
    if word == reads:
        return f"{word}: write it in quotes"
    return f'{word}, which YAML reads as {reads}: write {f"{reads}, or " * is_number}"{word}" in quotes'


def _shown(value: Any) -> str:
    """A value as a study file has it."""
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    text = str(value) if isinstance(value, date) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 4]} ..."


def _quotes(types: Container[str], value: Any) -> str:
    """The advice about a value that YAML does not take for a text."""
    is_text = TYPES["string_type"] in types and isinstance(value, bool | int | float | date)
    return ": write it in quotes" if is_text else ""
