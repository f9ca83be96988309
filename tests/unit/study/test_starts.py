"""Which MLM run a run begins with, and with which its cells are evaluated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from xlgrid.languages.sources import Source, Target
from xlgrid.products.evaluate import Cell
from xlgrid.products.train import Run
from xlgrid.study.starts import AnyStart, StartEntry
from xlgrid.training.recipe import Start

PAIRS = ("en-fr", "en-de", "en-zh")


def read(**keys: object) -> StartEntry:
    start: StartEntry = TypeAdapter(AnyStart).validate_python({"task": "mlm", "method": "query"} | keys)
    return start


def pairs(**options: str) -> StartEntry:
    return read(pairs=PAIRS, **options)


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
    assert pairs(**options).of_target(Target(target), Source("en+en-fr")) == expected


@given(st.sampled_from(["en", "en+en-de", "fr", "en-zh"]), st.sampled_from(["en", "en-fr", "it-en"]))
def test_one_for_all_is_the_same_for_every_source_and_target(source: str, target: str) -> None:
    start = read(source="en-fr+en-de")
    assert start.of_source(source) == start.of_target(target, source) == "en-fr+en-de"


def test_a_source_without_a_pair_begins_with_none_and_one_with_several_is_refused() -> None:
    assert pairs().of_source(Source("en")) is None
    with pytest.raises(ValueError, match="en-fr and en-de"):
        pairs().of_source(Source("en-fr+en-de"))


def test_without_source_and_pairs_every_language_has_one_of_its_own() -> None:
    every = read()
    assert (every.of_source(Source("en")), every.of_target(Target("qu"), Source("en"))) == ("en", "qu")
    with pytest.raises(ValueError, match="en and qu"):
        every.of_source(Source("en+qu"))


def test_a_start_is_one_for_all_or_one_for_each() -> None:
    with pytest.raises(ValueError, match="a start has at most one of source and pairs, got source and pairs"):
        read(source="en-fr", pairs=PAIRS)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"source": "en", "at": "target"},
            "key 'at' is for a start with `pairs` or without `source` and `pairs`, and this one has `source`: leave it out",
        ),
        ({"pairs": PAIRS, "at": "target"}, "Input should be 'both' or 'source'"),
        ({"missing": "none"}, "key 'missing' is for a start with `pairs`: add that key, or leave this one out"),
    ],
)
def test_a_key_that_is_for_other_starts_is_refused(keys: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(**keys)


@pytest.mark.parametrize(
    ("at", "source", "run", "cell"),
    [
        ("both", "en", "en", "qu"),
        ("source", "en", "en", "en"),
        ("target", "en@qu", "qu", "qu"),
    ],
)
def test_at_says_whose_text_a_run_and_a_cell_have(at: str, source: str, run: str, cell: str) -> None:
    start = read(method="mlm", at=at)
    run_on_task = Run("s", "ner", "e", "m", source, 5)
    cell_of_task = Cell(*run_on_task[:-1], "qu", run_on_task.seed)
    assert run_on_task.on_text(start) == [Run("s", "mlm", "e", "mlm", run, 1)]
    assert cell_of_task.on_text(start) == [Run("s", "mlm", "e", "mlm", cell, 1)]
    early = cell_of_task._replace(target=Target("qu@1000"))
    assert early.on_text(start) == cell_of_task.on_text(start), "a checkpoint is of the same run"


@pytest.mark.parametrize("at", ["both", "source"])
@pytest.mark.parametrize("source", ["en", "en-fr", "en+en-de"])
def test_the_start_of_a_run_is_that_of_its_source_and_knows_no_other_pairs(source: str, at: str) -> None:
    whole, run = pairs(at=at), Source(source)
    start, more = whole.for_run(run), whole.model_copy(update={"pairs": (*whole.pairs, Source("en-it"))}).for_run(run)
    assert start == more and (start is None) is (source == "en")
    assert (start and start.source) == whole.of_run(run)


def test_a_start_that_every_language_has_is_in_the_recipe_as_it_is() -> None:
    for keys in ({"at": "target"}, {"source": "en-fr"}):
        assert read(**keys).for_run(Source("en")) == Start(task="mlm", method="query", **keys)
