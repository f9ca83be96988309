"""Masked language modelling: the options, the columns and metric of the task, and the rows for the dev set."""

import pytest
from pydantic import ValidationError

from xlgrid.tasks import task
from xlgrid.tasks.mlm import Options, is_for_dev, split_sizes


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
        dev = sum(is_for_dev(row, dev_rows) for row in range(rows))
        assert split_sizes(rows, dev_rows) == (rows - dev, dev)
