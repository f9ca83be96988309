"""The parameters of encoders, and those that a run trains, stores and computes with, are as many as by hand."""

import pytest
import torch
from transformers import (
    AutoConfig,
    AutoModel,
)

from xlgrid.data.published import HUB


@pytest.mark.parametrize(
    ("encoder", "expected"),
    [
        ("google-bert/bert-base-multilingual-cased", 177_853_440),
        ("intfloat/multilingual-e5-small", 117_653_760),
        ("FacebookAI/xlm-roberta-base", 278_043_648),
        ("FacebookAI/xlm-roberta-large", 559_890_432),
        # Without a pooler; the sum by hand of the sizes in config.json.
        ("jhu-clsp/mmBERT-base", 256_000 * 768 + 22 * (4 * 768**2 + 3 * 768 * 1152 + 2 * 768) + 768),
        ("jhu-clsp/mmBERT-small", 256_000 * 384 + 22 * (4 * 384**2 + 3 * 384 * 1152 + 2 * 384) + 384),
        ("EuroBERT/EuroBERT-210m", 128_256 * 768 + 12 * (4 * 768**2 + 3 * 768 * 3072 + 2 * 768) + 768),
        # That of XLM-R base, with more words.
        ("cis-lmu/glot500-base", 278_043_648 + (401_145 - 250_002) * 768),
    ],
)
def test_encoders_of_the_hub_are_as_large_as_the_published_ones(encoder: str, expected: int) -> None:
    """With the pooler, as the published files have it."""
    with torch.device("meta"):
        model = AutoModel.from_config(AutoConfig.for_model(**HUB[encoder]))
    assert sum(p.numel() for p in model.parameters()) == expected
