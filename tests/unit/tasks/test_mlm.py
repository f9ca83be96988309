"""The options, columns and metric of masked language modelling, and the rows of a text that are for the dev set."""

import pytest
from pydantic import ValidationError

from xlgrid.data.sources import SPLITS
from xlgrid.tasks import task
from xlgrid.tasks.mlm import Options, split_of, split_sizes


@pytest.mark.parametrize("option", [{"documents": "cuts"}, {"document": "cut"}])
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
        splits = [split_of(row, dev_rows) for row in range(rows)]
        assert split_sizes(rows, dev_rows) == tuple(splits.count(split) for split in SPLITS)


def test_dev_and_test_take_turns_every_25_rows() -> None:
    held_out = [(row, split) for row in range(700) if (split := split_of(row, 3)) != "train"]
    assert held_out == [(0, "dev"), (25, "test"), (50, "dev"), (75, "test"), (100, "dev"), (125, "test")]
