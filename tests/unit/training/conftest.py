"""The encoder that tests of the loop train."""

from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertForPreTraining


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder")
    torch.manual_seed(1)
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertForPreTraining(BertConfig(vocab_size=40, max_position_embeddings=40, **size)).save_pretrained(folder)
    return folder
