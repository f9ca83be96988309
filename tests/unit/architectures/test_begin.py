"""A new model takes the weights of the encoder that it begins with."""

from pathlib import Path

import torch
from transformers import BertConfig, BertForMaskedLM, BertModel

from xlgrid.architectures.begin import misfit, take_weights


def test_it_may_begin_with_an_encoder_without_a_head(tmp_path: Path) -> None:
    """All weights train, so that a head that the encoder lacks is drawn once."""
    config = BertConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    encoder, model = BertModel(config, add_pooling_layer=False), BertForMaskedLM(config)
    encoder.save_pretrained(tmp_path)
    take_weights(model, tmp_path, print)
    assert all(torch.equal(p, model.bert.get_parameter(name)) for name, p in encoder.named_parameters())


def test_a_size_that_is_not_known_does_not_speak_against_a_beginning() -> None:
    ours = {"model_type": "bert", "hidden_size": 8, "num_hidden_layers": 2}
    assert misfit(ours, {"model_type": "bert", "hidden_size": 8, "intermediate_size": 16}) is None
