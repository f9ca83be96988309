"""Find the architecture of an encoder from scratch by its name in the study.

`ALL_ARCHITECTURES` has the architecture `plain` (BERT and XLM-R), and the entry points of the group
`xlgrid.architectures` that the papers and other installed packages declare. Only this module loads them, because their
modules import the other modules of this package.
"""

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Annotated, Any, get_args

from pydantic import BeforeValidator, SerializeAsAny, WithJsonSchema

from xlgrid.architectures.architecture import Architecture
from xlgrid.architectures.plain import Plain
from xlgrid.base.names import unknown
from xlgrid.base.plugins import Extensible
from xlgrid.base.settings import unknown_keys


def _fits(name: str, value: Any) -> bool:
    """Whether an object is the class of the architecture with this name."""
    if not (isinstance(value, type) and issubclass(value, Architecture)):
        return False
    # This resolves annotations that name a type before its definition.
    value.model_rebuild(raise_errors=False)
    return value.__pydantic_complete__ and name in get_args(value.model_fields["architecture"].annotation)


ALL_ARCHITECTURES = Extensible[type[Architecture]](
    "architecture",
    "xlgrid.architectures",
    {"plain": Plain},
    fits=_fits,
    expected="a subclass of xlgrid.architectures.Architecture with the name of the entry point as `architecture: Literal[...]`, and with "
    "settings whose types pydantic can resolve",
)


def architecture_of(fields: Any) -> Any:
    """The architecture that a mapping from a study describes. Any other value, such as an `Architecture`, is returned.

    Raises:
        ValueError: there is no such architecture, or its settings are wrong.
    """
    if not isinstance(fields, Mapping):
        return fields
    name = fields.get("architecture", "plain")
    if not isinstance(name, str):
        got = "null" if name is None else repr(name)
        known = ", ".join(ALL_ARCHITECTURES.names())
        raise ValueError(f"architecture must be one of {known}, got {got}: name one, or leave it out for plain")
    own = ALL_ARCHITECTURES.find(name)
    problems = {}
    for key in fields:
        if key not in own.model_fields:
            others = sorted(other for other, each in ALL_ARCHITECTURES.own.items() if key in each.model_fields)
            advice = (
                "leave it out"
                if "architecture" in fields
                else f"leave it out, or set `architecture: {' or '.join(others or [name])}`"
            )
            problems[str(key)] = (
                f"key {key!r} is for architecture {' and '.join(others)}, and this one is {name}: {advice}"
                if others
                else unknown("key", str(key), own.model_fields)
            )
    if problems:
        raise unknown_keys(problems)
    return own.model_validate(fields)


# The JSON schema, for editors, of an architecture from another package. xlgrid does not know its settings.
_OfAPackage = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {
            "type": "object",
            "properties": {"architecture": {"type": "string", "not": {"enum": [*ALL_ARCHITECTURES.own]}}},
            "required": ["architecture"],
        }
    ),
]

_Described: Any = reduce(or_, [*ALL_ARCHITECTURES.own.values(), _OfAPackage])

Scratch = Annotated[SerializeAsAny[Architecture], BeforeValidator(architecture_of, json_schema_input_type=_Described)]
