"""Sources and targets: every text that can be composed comes apart into what it was composed of."""

import copy
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from xlgrid.base.settings import Strict
from xlgrid.languages.sources import NONE, Source, Target, accompanied, unaccompanied

codes = st.from_regex(r"[a-z]{2,3}[0-9]{0,2}", fullmatch=True)
ends = st.lists(codes, min_size=1, max_size=2).map(tuple)
steps = st.none() | st.integers(1, 10**6)


def written(languages: tuple[str, ...], step: int | None = None) -> str:
    return "-".join(languages) + ("" if step is None else f"@{step}")


@given(ends, steps)
def test_a_target_comes_apart_into_languages_and_step(languages: tuple[str, ...], step: int | None) -> None:
    target = Target(written(languages, step))
    assert (target.languages, target.step) == (languages, step)
    assert target.is_pair == (len(languages) == 2)
    assert target.data == written(languages)
    assert target.data.data is target.data
    assert target.reverse == written(languages[::-1])


@given(st.lists(ends, min_size=1, max_size=4), st.none() | st.tuples(ends, steps))
def test_a_source_comes_apart_into_parts_and_target(
    parts: list[tuple[str, ...]], aim: tuple[tuple[str, ...], int | None] | None
) -> None:
    data = "+".join(map(written, parts))
    source = Source(data if aim is None else f"{data}@{written(*aim)}")
    assert [part.languages for part in source.parts] == parts
    assert source.languages == tuple(dict.fromkeys(code for part in parts for code in part))
    assert source.for_target == (None if aim is None else written(*aim))
    assert source.data == data
    if aim is not None:
        assert source.data.aimed_at(Target(written(*aim))) is source


def test_equal_texts_are_one_frozen_value_that_is_its_text() -> None:
    source = Source("en+en-fr@qu@1000")
    assert Source("en+en-fr@qu@1000") is source is Source(source)
    assert pickle.loads(pickle.dumps(source)) is source is copy.deepcopy(source)
    assert source == "en+en-fr@qu@1000" and {source: 1}["en+en-fr@qu@1000"] == 1
    assert f"runs/{source}" == "runs/en+en-fr@qu@1000" and json.dumps([source]) == '["en+en-fr@qu@1000"]'
    with pytest.raises(AttributeError, match="'parts' cannot be set"):
        source.parts = ()


@pytest.mark.parametrize("text", ["", "en-fr-de", "en-", "-en", "en+", "+en", "en++fr", "en@qu@", "en@qu@new", "en@"])
def test_what_is_no_source_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"neither a language|after @ comes a step"):
        Source(text)


@pytest.mark.parametrize("text", ["qu@", "qu@new", "qu@-1", "qu@0", "qu@007", "qu@1@2", "qu@²"])
def test_what_is_no_step_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=f"target '{text}': after @ comes a step of its MLM run, as in qu@1000"):
        Target(text)


def test_pydantic_parses_and_writes_them() -> None:
    class Settings(Strict):
        source: Source
        targets: tuple[Target, ...] = ()

    settings = Settings.model_validate_json('{"source": "en+fr@qu", "targets": ["en-fr", "qu@10"]}')
    assert settings.source.parts == ("en", "fr") and settings.targets[1].step == 10
    assert settings.model_dump_json() == '{"source":"en+fr@qu","targets":["en-fr","qu@10"]}'
    assert type(settings.model_dump()["source"]) is Source
    with pytest.raises(ValidationError, match="neither a language"):
        Settings(source="en-fr-de")


def test_the_source_of_cells_without_training_has_no_parts_and_is_no_language() -> None:
    source = Source(NONE)
    assert (source, source.parts, source.languages, source.data) == ("none", (), (), "none")
    for text in ("none", "en-none", "none@5"):
        with pytest.raises(ValueError, match="`none` is no language"):
            Target(text)
    for text in ("en+none", "none+en", "none@en"):
        with pytest.raises(ValueError, match="`none` is no language"):
            Source(text)


def test_data_with_parallel_examples_have_both_languages_in_their_name() -> None:
    assert [accompanied("fr", parallel) for parallel in ("en", None)] == ["fr~en", "fr"]
    assert [unaccompanied(name) for name in ("fr~en", "en-fr")] == [("fr", "en"), ("en-fr", None)]
