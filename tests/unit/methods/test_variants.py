"""Names of variants, both ways, and where an exhibit shows a variant."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xlgrid.base.settings import NAME
from xlgrid.methods.variants import is_shown, plain, settings_of, variant
from xlgrid.results.records import COLUMNS
from xlgrid.training.recipe import Training

NAMES = st.from_regex(NAME, fullmatch=True).filter(lambda name: not name.endswith("."))
KEYS = st.sampled_from([*Training.model_fields])
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = NUMBERS | st.booleans() | st.sampled_from(["last", "bf16", "all"])
SETTINGS = st.dictionaries(KEYS, VALUES, max_size=4)


@given(NAMES, SETTINGS)
def test_the_name_of_a_variant_gives_its_method_and_its_settings(method: str, settings: dict[str, object]) -> None:
    name = variant(method, settings)
    assert plain(name) == method
    assert settings_of(name) == settings
    assert all(isinstance(value, bool) == isinstance(settings[key], bool) for key, value in settings_of(name).items())


@given(NAMES, SETTINGS)
def test_a_name_is_one_word_of_a_shell_and_one_folder(method: str, settings: dict[str, object]) -> None:
    name = variant(method, settings)
    assert shlex.quote(name) == name and "/" not in name and "," not in name


@given(NAMES, SETTINGS, SETTINGS)
def test_a_variant_of_a_variant_has_the_settings_of_both_whatever_their_order(
    method: str, first: dict[str, object], second: dict[str, object]
) -> None:
    assert variant(variant(method, first), second) == variant(method, dict(reversed([*{**first, **second}.items()])))


def test_an_example() -> None:
    assert variant("bitfit", {"lr": 2e-5, "epochs": 5.0}) == "bitfit@epochs=5@lr=2e-05"


@pytest.mark.parametrize(
    "value", ["true", "1e5", "12", "a b", "", "x@y", "x=y", "x/y", float("nan"), float("inf"), "-1"]
)
def test_a_value_that_a_name_would_change_or_no_path_can_have_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="cannot be part of a name"):
        variant("bitfit", {"keep": value})  # type: ignore[dict-item]


def test_no_setting_of_training_has_the_name_of_a_column_of_exhibits() -> None:
    """Settings of variants are columns, too."""
    assert not {*Training.model_fields} & {*COLUMNS}


@pytest.mark.parametrize(
    ("method", "methods", "settings", "shown"),
    [
        ("bitfit", None, (), True),
        ("bitfit", {"bitfit"}, (), True),
        ("bitfit@lr=1", None, (), False),
        ("bitfit@lr=1", {"bitfit"}, (), False),
        ("bitfit@lr=1", {"bitfit@lr=1"}, (), True),
        ("bitfit", {"bitfit@lr=1"}, (), False),
        ("bitfit@lr=1", None, {"lr"}, True),
        ("bitfit@lr=1", {"full-ft"}, {"lr"}, False),
        ("bitfit", None, {"lr"}, False),
        ("bitfit@epochs=2@lr=1", None, {"lr"}, False),
        ("bitfit@epochs=2@lr=1", {"bitfit"}, {"lr", "epochs"}, True),
    ],
)
def test_a_variant_is_shown_only_where_its_name_or_all_of_its_settings_are_named(
    method: str, methods: set[str] | None, settings: set[str], shown: bool
) -> None:
    assert is_shown(method, methods, settings) == shown
