"""The options of masked language modelling, and the metrics of the task."""

import inspect

import pytest
from pydantic import ValidationError

from xlgrid.data.tokenize_text import tokenize_text
from xlgrid.tasks import task
from xlgrid.tasks.mlm import Options


def test_the_defaults_are_those_of_the_function_that_tokenizes_text() -> None:
    parameters = inspect.signature(tokenize_text).parameters
    assert {name: parameters[name].default for name in Options.model_fields} == Options().model_dump()


@pytest.mark.parametrize("option", [{"documents": "cuts"}, {"dev_inputs": 0}, {"dev_input": 10}])
def test_an_option_or_value_that_does_not_exist_is_refused(option: dict[str, object]) -> None:
    [name] = option
    with pytest.raises(ValidationError, match=name):
        Options.model_validate(option)


def test_a_text_has_no_target_and_cannot_be_generated_as_data() -> None:
    text = task("mlm")
    assert (text.columns, text.labels, text.generator) == (("text", "depth", "id"), (), None)
    assert text.metrics == ("accuracy",)
