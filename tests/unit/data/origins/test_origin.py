"""What all origins of data have in common."""

import pytest

from xlgrid.data.origins.origin import is_wanted
from xlgrid.data.sources import origin_of


def test_what_a_source_says_of_other_languages_does_not_concern_one() -> None:
    """Data in a language are not made again because a study has got another language."""
    before = origin_of({"hub": "a/b", "name": "{language}", "names": {"en": "english"}, "languages": ["en", "de"]})
    names = {"en": "english", "fr": "french"}
    after = origin_of({"hub": "a/b", "name": "{language}", "names": names, "languages": ["en", "de", "fr"]})
    for code in ("en", "de"):
        assert after.concerning(code) == before.concerning(code)
    assert after.concerning("fr").configuration("fr") == "french" and after.concerning("fr").names == {"fr": "french"}


def test_a_pair_concerns_the_names_of_the_pair_and_of_its_languages() -> None:
    names = {"en": "english", "fr": "french", "en-fr": "mixed", "de": "german"}
    source = origin_of({"hub": "a/b", "names": names}).concerning("en-fr")
    assert source.names == {"en": "english", "fr": "french", "en-fr": "mixed"} and source.has("en-fr")


def test_a_source_has_a_pair_if_it_has_both_of_its_languages() -> None:
    source = origin_of({"local": "{language}.csv", "languages": ["en", "fr"]})
    assert source.has("en-fr") and not source.has("en-de") and not source.has("de-fr")


@pytest.mark.parametrize(
    ("value", "wanted", "expected"),
    [("01", "01", True), ("01", 1, False), ("1", 1, True), (1.0, 1, True), (True, "true", True), (None, "None", False)],
)
def test_where_compares_text_as_it_is_written_and_numbers_as_numbers(
    value: object, wanted: str | int, expected: bool
) -> None:
    assert is_wanted(value, wanted) is expected
