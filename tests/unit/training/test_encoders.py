"""The configuration of an encoder, from its folder or from what the study says of its origin."""

from pathlib import Path

import pytest
from transformers import BertConfig

from xlgrid.study.schema import EncoderEntry
from xlgrid.training.encoders import configuration
from xlgrid.training.mini import MiniEncoder


def test_a_folder_wins_over_the_origin(tmp_path: Path) -> None:
    origin = EncoderEntry(mini=MiniEncoder(languages=("en",), vocab=300))
    assert configuration(origin, tmp_path).vocab_size == 300
    BertConfig(vocab_size=77).save_pretrained(tmp_path)
    assert configuration(origin, tmp_path).vocab_size == 77


def test_an_encoder_to_be_copied_has_the_configuration_of_its_own_folder(tmp_path: Path) -> None:
    BertConfig(vocab_size=55).save_pretrained(tmp_path / "mine")
    assert configuration(EncoderEntry(path=str(tmp_path / "mine")), tmp_path / "copy").vocab_size == 55


def test_an_encoder_of_the_hub_is_known_or_has_to_be_fetched(tmp_path: Path) -> None:
    assert configuration(EncoderEntry(hub="FacebookAI/xlm-roberta-base"), tmp_path).vocab_size == 250_002
    with pytest.raises(ValueError, match=rf"a/b is not known .* `snakemake --cores 1 {tmp_path}/model\.safetensors`"):
        configuration(EncoderEntry(hub="a/b"), tmp_path)
