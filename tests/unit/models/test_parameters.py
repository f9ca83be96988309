"""Parameters of models are counted without their weights."""

from typing import Any

import pytest

from xlgrid.heads import HEADS
from xlgrid.models import parameters


@pytest.mark.parametrize(
    ("hub", "expected"),
    [("google-bert/bert-base-multilingual-cased", 177_853_440), ("FacebookAI/xlm-roberta-base", 278_043_648)],
)
def test_encoders_of_the_hub_have_their_real_sizes(hub: str, expected: int) -> None:
    from transformers import AutoConfig

    counted = parameters.count(AutoConfig.for_model(**parameters.HUB[hub]), HEADS["sequence"], 3, "full-ft", {})
    assert counted.total == expected + 3 * 768 + 3
    assert counted.passed == 12 * (12 * 768**2 + 13 * 768), "the layers, without embeddings"


@pytest.mark.parametrize(("head", "expected"), [("span", 2 * (8 + 1)), ("choice", 8 + 1)])
@pytest.mark.parametrize("family", ["bert", "xlm-roberta"])
def test_a_head_has_its_parameters_whatever_the_labels(family: str, head: str, expected: int) -> None:
    """Two scores a token, or one an input, beside what an encoder comes with: its pooler."""
    from transformers import AutoConfig

    size = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = AutoConfig.for_model(family, vocab_size=50, **size)
    pooler = 8 * 8 + 8 if head == "choice" else 0
    assert parameters.count(config, HEADS[head], 3, "full-ft", {}).total - _encoder(config) == expected + pooler


def _encoder(config: Any) -> int:
    """Parameters of embeddings and layers."""
    import torch
    from transformers import AutoModel

    with torch.device("meta"):
        model = AutoModel.from_config(config, add_pooling_layer=False)
    return sum(parameter.numel() for parameter in model.parameters())
