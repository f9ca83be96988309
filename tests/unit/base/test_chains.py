"""Names that follow one another, and checks that rely on one another."""

from collections.abc import Iterator

import pytest

from xlgrid.base.chains import chain, circle, first_mistakes


@pytest.mark.parametrize(
    ("first", "following"), [("a", ["b", "c"]), ("c", []), ("d", ["e", "d"]), ("f", ["f"]), ("g", ["d", "e", "d"])]
)
def test_a_chain_ends_with_the_last_name_or_with_the_first_that_comes_again(first: str, following: list[str]) -> None:
    after = {"a": "b", "b": "c", "d": "e", "e": "d", "f": "f", "g": "d"}
    assert chain(first, after.get) == following


@pytest.mark.parametrize(
    ("first", "way"), [("a", ["a", "c", "a"]), ("b", ["b", "c", "a", "b"]), ("d", []), ("e", ["e", "e"]), ("f", [])]
)
def test_a_circle_is_a_shortest_way_back(first: str, way: list[str]) -> None:
    after = {"a": ["b", "c"], "b": ["c"], "c": ["d", "a"], "e": ["a", "e"], "f": ["a", "e"]}
    assert circle(first, lambda name: after.get(name, [])) == way


def test_a_check_is_not_asked_after_one_that_finds_mistakes() -> None:
    def later() -> Iterator[str]:
        raise AssertionError
        yield

    assert first_mistakes([], iter(["one", "two"]), later()) == ["one", "two"]
    assert first_mistakes([], []) == []
