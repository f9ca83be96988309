"""The parameters that methods add are as many as papers print."""

from typing import Any

import pytest
import torch
from transformers import (
    AutoConfig,
    XLMRobertaForTokenClassification,
)

from xlgrid.methods import make
from xlgrid.models import parameters
from xlgrid.models.parameters import HUB


def shape_of(encoder: str) -> Any:
    config = AutoConfig.for_model(**HUB[encoder])
    with torch.device("meta"):
        return XLMRobertaForTokenClassification(config)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 8_257_536),
        ({"invertible": False}, 7_962_624),
        ({"invertible": False, "language": False}, 884_736),
    ],
)
def test_weights_are_as_many_as_in_table_5(options: dict[str, Any], expected: int) -> None:
    """Of XLM-R base; biases are not counted there. The largest is printed as 8.25M, cut off."""
    model = shape_of("FacebookAI/xlm-roberta-base")
    before = {id(p) for p in model.parameters()}
    with torch.device("meta"):
        make("madx", options).install(model)
    added = [(name, p) for name, p in model.named_parameters() if id(p) not in before]
    assert sum(p.numel() for name, p in added if name.endswith(".weight")) == expected


def test_no_weights_are_added_to_a_last_layer_that_is_left_out() -> None:
    """Of XLM-R base: language and task adapters in 11 layers, and the invertible one."""
    found = parameters.added(
        AutoConfig.for_model(**HUB["FacebookAI/xlm-roberta-base"]), "madx", {"leave_out_last": True}
    )
    assert found.weights == 11 * 2 * 768 * (384 + 48) + 2 * 2 * 384 * 192


def test_a_published_language_adapter_is_as_large_as_ours() -> None:
    """29,551,104 bytes of floats: the 29.6 MB of those of mBERT on the Hub."""
    model = shape_of("FacebookAI/xlm-roberta-base")
    with torch.device("meta"):
        make("madx", {"tune": "language"}).install(model)
    names = [name for name, _ in model.named_parameters() if make("madx", {"tune": "language"}).trains(name)]
    assert sum(dict(model.named_parameters())[name].numel() for name in names) == 7_387_776
