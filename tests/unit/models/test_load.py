"""Models with a head, with weights and without."""

from pathlib import Path
from typing import Any

import pytest
import transformers
from transformers import ElectraConfig, XLMRobertaConfig

from xlgrid.base.errors import Damaged
from xlgrid.heads import HEADS
from xlgrid.models import load


@pytest.mark.parametrize("kind", [XLMRobertaConfig, ElectraConfig])
@pytest.mark.parametrize("head", HEADS)
def test_shapes_are_those_of_the_model(kind: Any, head: str) -> None:
    """Of a family whose class is known by its name, and of one that is not."""
    config = kind(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    maker = getattr(transformers, f"AutoModelFor{HEADS[head].model_suffix}")
    expected = {name: p.shape for name, p in maker.from_config(config).named_parameters()}
    found = dict(load.shapes(config, HEADS[head]).named_parameters())
    assert {name: p.shape for name, p in found.items()} == expected
    assert {p.device.type for p in found.values()} == {"meta"}


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_folder_that_lacks_a_file_is_named(name: str, tmp_path: Path) -> None:
    for there in {"config.json", "model.safetensors"} - {name}:
        (tmp_path / there).write_text("{}")
    with pytest.raises(Damaged, match=f"{name} does not exist: make or fetch the encoder again") as refused:
        load.load_model(tmp_path, HEADS["sequence"], 2)
    assert refused.value.paths == (tmp_path,), "nothing asks Snakemake for one missing file of an encoder"
