"""What a study says of a new language-modelling head."""

import pytest
from pydantic import ValidationError

from xlgrid.training.new_head import LmHead


def test_a_head_reads_the_task_of_all_encoders_and_leaves_the_encoder_as_it_is() -> None:
    head = LmHead(languages=("en", "fr"))  # type: ignore[call-arg]
    assert (head.task, head.trains, head.seed) == ("pretraining", "head", 0)


def test_a_language_is_named_once() -> None:
    with pytest.raises(ValidationError, match="`languages` has en twice"):
        LmHead(languages=("en", "fr", "en"))  # type: ignore[call-arg]
