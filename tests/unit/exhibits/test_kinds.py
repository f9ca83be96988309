"""The kinds of exhibit that a study can name: those of the core, of papers and of packages."""

from pathlib import Path

import pytest
from plugin_fixture import install
from pydantic import TypeAdapter, ValidationError

from xlgrid.exhibits.exhibit import Exhibit
from xlgrid.exhibits.kinds import ALL_KINDS, AnyExhibit

PLAIN = """
from typing import Literal

from xlgrid.exhibits.exhibit import Exhibit, Rendering
from xlgrid.plan.plan import Plan


class Plain(Exhibit):
    kind: Literal["plain"] = "plain"
    size: int = 1

    def rendering(self, plan: Plan) -> Rendering:
        raise NotImplementedError
"""
ADAPTER: TypeAdapter[Exhibit] = TypeAdapter(AnyExhibit)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = {"xlgrid.exhibits": {"plain": "my_exhibits:Plain", "other": "my_exhibits:Plain"}}
    monkeypatch.syspath_prepend(install(tmp_path, "my-exhibits", "1", PLAIN, points))
    ALL_KINDS.imported.pop("plain", None)


@pytest.mark.usefixtures("package")
def test_a_package_adds_a_kind_with_keys_of_its_own() -> None:
    described = ADAPTER.validate_python({"kind": "plain", "title": "T", "size": 2})
    assert type(described).__name__ == "Plain" and described.model_dump()["size"] == 2
    with pytest.raises(ValidationError, match="sizes"):
        ADAPTER.validate_python({"kind": "plain", "title": "T", "sizes": 2})


@pytest.mark.usefixtures("package")
def test_a_kind_of_another_name_than_its_own_is_refused() -> None:
    with pytest.raises(ValueError, match="the kind of exhibit 'other' of the package my-exhibits 1"):
        ADAPTER.validate_python({"kind": "other", "title": "T"})


def test_a_kind_that_nothing_has_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValidationError, match="'table', 'heatmap'"):
        ADAPTER.validate_python({"kind": "tabel", "title": "T"})
