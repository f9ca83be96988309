"""Places of data that packages read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from plugin_fixture import install
from pydantic import ValidationError

from xlgrid.data.fetch import read_data
from xlgrid.data.places import ALL_PLACES
from xlgrid.data.sources import DataSource
from xlgrid.data.text import TextSettings
from xlgrid.tasks import task

CODE = """
from typing import Literal

import pyarrow as pa

from xlgrid.data.places import Place


class Shelf(Place):
    kind: Literal["shelf"]
    box: str = "a"

    def files(self, language, split):
        return [f"{self.box}/{language}-{split}"]

    def read(self, language, split):
        texts = [f"{language} {number}" for number in range(3)]
        return pa.table({"first": texts, "second": texts, "label": ["yes", "no", "yes"]})
"""
COLUMNS = {"inputs": ["first", "second"], "target": "label", "labels": ["yes", "no"]}
PLACE = {"kind": "shelf", "box": "b"}


@pytest.fixture(autouse=True)
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    points = {"xlgrid.places": {"shelf": "my_shelf:Shelf", "other": "my_shelf:Shelf"}}
    monkeypatch.syspath_prepend(install(tmp_path / "installed", "my-shelf", "0.1", CODE, points))
    yield
    ALL_PLACES.imported.clear()


def source(**fields: Any) -> DataSource:
    return DataSource.model_validate({"place": PLACE, **fields})


def test_a_place_gets_the_names_that_it_has_for_a_language_and_a_split() -> None:
    named = source(names={"sw": "swa"}, splits={"dev": "validation"})
    assert named.of("dev", "sw").paths_of("sw", "dev") == ["b/swa-validation"]


def test_a_pair_is_joined_from_the_rows_of_its_languages() -> None:
    origin = source().of("test", "en-fr")
    assert origin.paths_of("en-fr", "test") == ["b/en-test", "b/fr-test"]
    [row, *_] = read_data(origin, task("sequence", COLUMNS), "en-fr", "test", "lock").to_pylist()
    assert row == {"first": "en 0", "second": "fr 0", "label": "yes"}


def test_the_settings_of_a_rule_have_the_keys_of_the_place() -> None:
    """A job gets the place as JSON, and a change of its keys reads the data again."""
    written = source().of("test", "en").concerning("en").model_dump_json(exclude_none=True)
    assert DataSource.model_validate_json(written).origin == source().origin


def test_data_have_one_origin() -> None:
    with pytest.raises(ValidationError, match="give exactly one"):
        source(hub="owner/name")


def test_text_has_no_place() -> None:
    with pytest.raises(ValidationError, match="text comes from either `hub` or `local`"):
        TextSettings.model_validate({"data": {"place": PLACE}, "column": "text"})


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({"kind": "shelv"}, "unknown kind of place 'shelv', did you mean 'shelf'"),
        ({"box": "a"}, "`kind` is missing"),
        ({"kind": "shelf", "boxx": "a"}, "did you mean 'box'"),
        ({"kind": "other"}, "expected a subclass of xlgrid.data.places.Place with a literal field `kind` of this name"),
    ],
)
def test_a_place_that_no_package_has_is_refused(place: dict[str, str], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        source(place=place)
