"""The configuration of an encoder is that of its files where they are, and what the study says where they are not."""

from pathlib import Path

import pytest
from transformers import BertConfig

from xlgrid.training.encoders import EncoderEntry, configuration

MINI = EncoderEntry(scratch={"languages": ("qa1",), "vocab": 123})  # type: ignore[arg-type]


def test_an_encoder_that_is_made_is_as_its_files_say(tmp_path: Path) -> None:
    assert configuration(MINI, tmp_path).vocab_size == 123
    BertConfig(vocab_size=77).save_pretrained(tmp_path)
    assert configuration(MINI, tmp_path).vocab_size == 77


def test_an_encoder_in_a_folder_is_as_that_folder_says(tmp_path: Path) -> None:
    BertConfig(vocab_size=77).save_pretrained(tmp_path / "mine")
    assert configuration(EncoderEntry(path=str(tmp_path / "mine")), tmp_path / "not yet").vocab_size == 77


def test_an_encoder_of_the_hub_is_known_or_has_to_be_fetched(tmp_path: Path) -> None:
    known = EncoderEntry(hub="FacebookAI/xlm-roberta-base")
    assert configuration(known, tmp_path).vocab_size == 250002
    with pytest.raises(ValueError, match=rf"size of the encoder a/b is not known .* {tmp_path}/model\.safetensors"):
        configuration(EncoderEntry(hub="a/b"), tmp_path)
    BertConfig(vocab_size=77).save_pretrained(tmp_path)
    assert configuration(EncoderEntry(hub="a/b"), tmp_path).vocab_size == 77
    assert configuration(known, tmp_path).vocab_size == 250002, "a table would depend on what has been fetched"
