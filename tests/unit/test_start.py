"""Which run on text a run begins with, and which its cells speak through."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xlgrid.recipe import Start

PAIRS = ("en-fr", "en-de", "en-zh")


def pairs(**options: str) -> Start:
    return Start(method="query", pairs=PAIRS, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "target", "expected"),
    [
        ({}, "en-fr", "en-fr"),
        ({}, "en-zh", "en-zh"),
        ({}, "zh-en", "en-zh"),
        ({"reverse": "none"}, "zh-en", "en-fr"),
        ({}, "en-fa", "en-fr"),
        ({"missing": "none"}, "en-fa", None),
        ({"missing": "none"}, "fa-en", None),
        ({}, "fr", "en-fr"),
    ],
)
def test_a_target_has_its_own_or_what_the_switches_say(
    options: dict[str, str], target: str, expected: str | None
) -> None:
    assert pairs(**options).of_target(target, "en+en-fr") == expected


@given(st.sampled_from(["en", "en+en-de", "fr", "en-zh"]), st.sampled_from(["en", "en-fr", "it-en"]))
def test_one_for_all_is_the_same_for_every_source_and_target(source: str, target: str) -> None:
    start = Start(method="cs", source="en-fr+en-de")
    assert start.of_source(source) == start.of_target(target, source) == "en-fr+en-de"


def test_a_source_without_a_pair_begins_with_none_and_one_with_several_is_refused() -> None:
    assert pairs().of_source("en") is None
    with pytest.raises(ValueError, match="en-fr and en-de"):
        pairs().of_source("en-fr+en-de")


def test_a_start_is_one_for_all_or_one_for_each() -> None:
    for wrong in ({}, {"source": "en-fr", "pairs": PAIRS}):
        with pytest.raises(ValueError, match="exactly one"):
            Start(method="query", **wrong)  # type: ignore[arg-type]
