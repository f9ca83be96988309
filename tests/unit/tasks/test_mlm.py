"""The options, columns and metric of masked language modelling, and the rows of a text that are for the dev set."""

from collections.abc import Iterable

import pytest
from pydantic import ValidationError

from xlgrid.data.origins.origin import SPLITS
from xlgrid.tasks import task
from xlgrid.tasks.mlm import HoldOut, Options, split_sizes


@pytest.mark.parametrize("option", [{"documents": "cuts"}, {"document": "cut"}, {"lines": "segment"}])
def test_an_option_or_value_that_does_not_exist_is_refused(option: dict[str, object]) -> None:
    [name] = option
    with pytest.raises(ValidationError, match=name):
        Options.model_validate(option)


def test_a_text_has_neither_target_nor_labels_and_is_not_generated_as_data() -> None:
    text = task("mlm")
    assert (text.inputs, text.target, text.labels, text.generator) == (("text",), "", (), None)
    assert text.metrics == ("accuracy",)


@pytest.mark.parametrize("dev_rows", [1, 2, 10])
def test_the_sizes_of_splits_count_the_rows_of_each(dev_rows: int) -> None:
    for rows in (0, 1, 49, 50, 51, 100, 101, 700):
        splits = [*map(HoldOut(dev_rows).split_of, range(rows))]
        assert split_sizes(rows, dev_rows) == tuple(splits.count(split) for split in SPLITS)


def held_out(ids: Iterable[int]) -> list[tuple[int, str]]:
    hold_out = HoldOut(3)
    return [(number, split) for number in ids if (split := hold_out.split_of(number)) != "train"]


def test_dev_and_test_take_turns_every_25_rows() -> None:
    assert held_out(range(700)) == [(0, "dev"), (25, "test"), (50, "dev"), (75, "test"), (100, "dev"), (125, "test")]


def test_where_a_row_is_missing_the_next_one_is_held_out() -> None:
    odd = held_out(range(1, 700, 2))
    assert odd == [(1, "dev"), (25, "test"), (51, "dev"), (75, "test"), (101, "dev"), (125, "test")]


def test_texts_of_which_each_lacks_another_row_hold_out_the_same_ones() -> None:
    first, second = (held_out(number for number in range(700) if number != missing) for missing in (10, 60))
    assert first == second


@pytest.mark.parametrize("documents", ["split", "pack"])
def test_segments_are_those_of_whole_rows(documents: str) -> None:
    with pytest.raises(ValidationError, match="`lines: segments` goes with `documents: cut`"):
        Options.model_validate({"documents": documents, "lines": "segments"})
