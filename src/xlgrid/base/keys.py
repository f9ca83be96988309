"""Keys that papers and other installed packages add to a schema of the study file."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import GetJsonSchemaHandler, create_model
from pydantic_core import core_schema

from xlgrid.base.names import unknown
from xlgrid.base.plugins import Extensible
from xlgrid.base.settings import unknown_keys


def apart(
    fields: Mapping[Any, Any], known: Iterable[str], added: Extensible[Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema's own keys with their values, and the keys of packages with their parsed values.

    A key of a package with the value null counts as absent.

    Args:
        known: the keys of the schema itself.
        added: key -> class of pydantic, of the packages.

    Raises:
        ValueError: a key is unknown (the message names the nearest), or a value is wrong.
    """
    own = {*known}
    others = [key for key in fields if key not in own]
    if not others:
        return {**fields}, {}
    if strange := {
        str(key): unknown("key", str(key), [*known, *added.names()]) for key in others if not added.get(key)
    }:
        raise unknown_keys(strange)
    kinds = {key: (added.find(key), ...) for key in others if fields[key] is not None}
    # Errors of a model with these keys name the key.
    read: Any = create_model("Added", **kinds)  # type: ignore[call-overload]
    model = read.model_validate({key: fields[key] for key in kinds})
    return {key: fields[key] for key in fields if key in own}, {key: getattr(model, key) for key in kinds}


def describe(schema: dict[str, Any], handler: GetJsonSchemaHandler, field: str, added: Extensible[Any]) -> None:
    """Put the keys of papers in place of the field that holds them in a JSON Schema. Their classes state the meaning as `about`."""
    del schema["properties"][field]
    for key, kind in added.own.items():
        core = kind.__pydantic_core_schema__
        if "ref" in core:
            # Without this, pydantic would write the schema of a model in the place of a reference to it.
            core = core_schema.definitions_schema(core_schema.definition_reference_schema(core["ref"]), [core])
        value = handler(core)
        # The schema of a root model is that of its value.
        value = handler.resolve_ref_schema(value) if kind.__pydantic_root_model__ else value
        values = [*value.get("anyOf", [value]), {"type": "null"}]
        schema["properties"][key] = {"anyOf": values, "default": None, "description": kind.about}
