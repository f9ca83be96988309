"""Settings that refuse unknown keys, and their errors in one line."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from xlgrid.base.names import unknown

# The range that every library takes which draws random numbers here.
Seed = Annotated[int, Field(ge=0, lt=2**32)]
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


def _name(value: str) -> str:
    if not NAME.fullmatch(value) or value.endswith("."):
        raise ValueError(f"{value!r} cannot be a name: it becomes part of a path; use letters, digits and . _ + -")
    return value


# What a study calls its parts.
Name = Annotated[str, AfterValidator(_name)]


class Strict(BaseModel):
    """A frozen schema. An unknown key raises a `ValidationError` of type `unknown_keys` that names the nearest known key."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, data: Any) -> Any:
        wrong = [key for key in data if key not in cls.model_fields] if isinstance(data, dict) else []
        if wrong:
            keys = {str(key): unknown("key", key, cls.model_fields) for key in wrong}
            raise PydanticCustomError("unknown_keys", "{text}", {"text": "; ".join(keys.values()), "keys": keys})
        return data


def plainly(error: ValidationError) -> str:
    """All problems of a `ValidationError` in one line: the place of each, what is wrong, and the value that was given."""
    lines = []
    for problem in error.errors():
        where = ".".join(map(str, problem["loc"]))
        text = problem["msg"].removeprefix("Value error, ")
        # Messages of this project state the value themselves.
        value = "" if problem["type"] in ("unknown_keys", "value_error") else f", got {problem['input']!r}"
        lines.append(": ".join([where] * bool(where) + [text]) + value)
    return "; ".join(lines)
