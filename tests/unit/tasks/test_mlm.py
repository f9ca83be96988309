"""The options of masked language modelling, and the columns and metric of the task."""

import pytest
from pydantic import ValidationError

from xlgrid.tasks import task
from xlgrid.tasks.mlm import Options


@pytest.mark.parametrize("option", [{"documents": "cuts"}, {"document": "cut"}])
def test_an_option_or_value_that_does_not_exist_is_refused(option: dict[str, object]) -> None:
    [name] = option
    with pytest.raises(ValidationError, match=name):
        Options.model_validate(option)


def test_a_text_has_neither_target_nor_labels_and_is_not_generated_as_data() -> None:
    text = task("mlm")
    assert (text.inputs, text.target, text.labels, text.generator) == (("text",), "", (), None)
    assert text.metrics == ("accuracy",)
