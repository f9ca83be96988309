"""The architectures that a study can name: those of the core, of papers and of packages."""

from typing import get_args

import pytest
from pydantic import TypeAdapter

from xlgrid.architectures.scratch import ALL_ARCHITECTURES, Scratch, architecture_of


@pytest.mark.parametrize("name", ALL_ARCHITECTURES.own)
def test_an_architecture_describes_encoders_of_its_name(name: str) -> None:
    kind = ALL_ARCHITECTURES.find(name)
    assert name in get_args(kind.model_fields["architecture"].annotation)
    described = architecture_of({"architecture": name, "languages": ["en", "fr"], "bitext": []})
    assert isinstance(described, kind) and described.architecture == name


def test_an_editor_is_told_the_keys_of_every_architecture() -> None:
    described = TypeAdapter(Scratch).json_schema()["$defs"].values()
    keys = {frozenset(each["properties"]) for each in described if "properties" in each}
    assert all({*kind.model_fields} in keys for kind in ALL_ARCHITECTURES.own.values())
