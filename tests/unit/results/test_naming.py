"""Values that a study names on the axes of cells, as YAML writes them."""

import pytest
import yaml
from pydantic import TypeAdapter, ValidationError

from xlgrid.results.naming import Published, Values

VALUES = TypeAdapter(Values)


@pytest.mark.parametrize(
    ("written", "values"), [("en", ("en",)), ("[en, fr]", ("en", "fr")), ("3", (3,)), ("'no'", ("no",))]
)
def test_one_value_and_a_list_of_values_are_read_alike(written: str, values: tuple[str | int, ...]) -> None:
    assert VALUES.validate_python(yaml.safe_load(written)) == values


@pytest.mark.parametrize("written", ["no", "[en, no]", "on"])
def test_norwegian_needs_quotes(written: str) -> None:
    with pytest.raises(ValidationError, match="should be a valid string"):
        VALUES.validate_python(yaml.safe_load(written))


def test_no_values_are_refused() -> None:
    with pytest.raises(ValidationError, match="at least 1 item"):
        VALUES.validate_python([])


def test_published_numbers_are_a_file_of_a_paper() -> None:
    assert str(Published(file="doe2026/table03").path) == "reference/doe2026/table03.csv"


@pytest.mark.parametrize("file", ["table03", "doe2026/tables/03"])
def test_another_depth_of_folders_is_refused(file: str) -> None:
    with pytest.raises(ValidationError, match="pattern"):
        Published(file=file)
