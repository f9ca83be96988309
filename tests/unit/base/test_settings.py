"""Strict settings refuse what they do not know, and say so in one line."""

from functools import cached_property

import pytest
from pydantic import Field, PositiveInt, ValidationError, field_validator

from xlgrid.base.settings import Strict, plainly


class Inner(Strict):
    steps: int = Field(1, gt=0)

    @field_validator("steps")
    @classmethod
    def _even(cls, steps: int) -> int:
        if steps % 2 and steps > 1:
            raise ValueError(f"steps must be even, got {steps}")
        return steps


class Outer(Strict):
    inner: Inner = Inner()
    rate: float = 0.1
    layers: list[PositiveInt] = []
    sizes: dict[str, int | None] = {}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"inner": {"setps": 2}}, "inner: unknown key 'setps', did you mean 'steps'? (there are: steps)"),
        ({"inner": {"steps": 3}}, "inner.steps: steps must be even, got 3"),
        ({"rate": True}, "rate: must be a number, got true"),
        ({"inner": {"steps": True}}, "inner.steps: must be a whole number, got true"),
        ({"layers": [2, True]}, "layers.1: must be a whole number, got true"),
        ({"sizes": {"en": False}}, "sizes.en: must be a whole number, got false"),
        ({"rate": "fast"}, "rate: must be a number, got 'fast'"),
        (
            {"inner": {"steps": 3}, "rate": None},
            "inner.steps: steps must be even, got 3; rate: must be a number, got nothing",
        ),
        (
            {"x": 1, "rat": 2},
            "unknown key 'x' (there are: inner, rate, layers, sizes); unknown key 'rat', did you mean 'rate'? (there are: inner, rate, layers, sizes)",
        ),
    ],
)
def test_every_problem_stands_in_one_line_with_its_place(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Outer.model_validate(values)
    assert plainly(raised.value) == message


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Outer().rate = 0.2  # type: ignore[misc]


class Length(Strict):
    words: list[str]

    @cached_property
    def number(self) -> int:
        return len(self.words)


def test_a_copy_has_properties_of_its_own() -> None:
    length = Length(words=["a"])
    assert length.number == 1
    assert length.model_copy(update={"words": ["a", "b"]}).number == 2
    assert length.number == 1
