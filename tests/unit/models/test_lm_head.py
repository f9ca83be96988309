"""Whether an encoder has a language-modelling head, and how a new one begins, in the layouts of several families."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    BertConfig,
    DebertaV2Config,
    DistilBertConfig,
    ElectraConfig,
    EuroBertConfig,
    ModernBertConfig,
    XLMRobertaConfig,
    XmodConfig,
)

from xlgrid.heads.families import FAMILIES
from xlgrid.models import lm_head

SIZES = {"vocab_size": 30, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
CONFIGS = {
    "bert": BertConfig(**SIZES),
    "xlm-roberta": XLMRobertaConfig(**SIZES),
    "xmod": XmodConfig(**SIZES, languages=["en_XX"], default_language="en_XX"),
    "distilbert": DistilBertConfig(vocab_size=30, dim=8, n_layers=1, n_heads=2, hidden_dim=8),
    "modernbert": ModernBertConfig(**SIZES, **IDS),
    "deberta-v2": DebertaV2Config(**SIZES),
}

MISSING = {
    "bert": "cls.predictions.*",
    "xlm-roberta": "lm_head.*",
    "xmod": "lm_head.*",
    "distilbert": "vocab_projector.*",
    "modernbert": "decoder.*",
    "deberta-v2": "cls.predictions.*",
}


@pytest.mark.parametrize("kind", [kind for kind in CONFIGS if kind in FAMILIES])
def test_a_head_is_missing_where_the_model_of_transformers_has_none(kind: str, tmp_path: Path) -> None:
    for maker in (AutoModel, AutoModelForSequenceClassification, AutoModelForMaskedLM):
        maker.from_config(CONFIGS[kind]).save_pretrained(tmp_path / maker.__name__)
    assert lm_head.lacking(tmp_path / "AutoModel") == MISSING[kind]
    assert lm_head.lacking(tmp_path / "AutoModelForSequenceClassification") == MISSING[kind]
    assert lm_head.lacking(tmp_path / "AutoModelForMaskedLM") is None


@pytest.mark.parametrize("maker", [AutoModel, AutoModelForMaskedLM])
def test_a_head_may_be_missing_or_there_in_weights_in_several_files(maker: Any, tmp_path: Path) -> None:
    maker.from_config(CONFIGS["bert"]).save_pretrained(tmp_path, max_shard_size="2KB")
    assert len([*tmp_path.glob("model-*.safetensors")]) > 1
    assert lm_head.lacking(tmp_path) == (MISSING["bert"] if maker is AutoModel else None)


def test_nothing_is_said_of_output_embeddings_without_weights_of_their_own(tmp_path: Path) -> None:
    config = ModernBertConfig(**SIZES, **IDS, decoder_bias=False, tie_word_embeddings=True)
    AutoModelForMaskedLM.from_config(config).save_pretrained(tmp_path)
    assert lm_head.lacking(tmp_path) is None


def test_nothing_is_said_of_other_families_and_of_what_is_not_there(tmp_path: Path) -> None:
    AutoModel.from_config(ElectraConfig(**SIZES, embedding_size=4)).save_pretrained(tmp_path)
    assert lm_head.lacking(tmp_path) is None and lm_head.lacking(tmp_path / "nowhere") is None
    (tmp_path / "model.safetensors").write_bytes(b"cut short")
    assert lm_head.lacking(tmp_path) is None


@pytest.mark.parametrize("kind", ["bert", "xlm-roberta", "distilbert", "modernbert", "deberta-v2"])
def test_the_linear_layer_of_a_new_head_is_the_identity(kind: str) -> None:
    model = AutoModelForMaskedLM.from_config(CONFIGS[kind])
    before = {name: tensor.clone() for name, tensor in model.base_model.state_dict().items()}
    lm_head.begin_at_identity(model)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.base_model.state_dict().items())
    of_encoder = {*model.base_model.modules()}
    layers = [each for each in model.modules() if isinstance(each, torch.nn.Linear) and each not in of_encoder]
    transforms = [each for each in layers if each is not model.get_output_embeddings()]
    assert len(transforms) == 1 and torch.equal(transforms[0].weight, torch.eye(8))
    assert not any(each.bias.any() for each in layers if each.bias is not None)


def test_a_new_head_compares_states_with_embeddings() -> None:
    """Without the activation and the norm after the linear layer, the logits are products of states and embeddings."""
    model = AutoModelForMaskedLM.from_config(CONFIGS["bert"]).eval()
    lm_head.begin_at_identity(model)
    transform = model.cls.predictions.transform
    transform.transform_act_fn = transform.LayerNorm = torch.nn.Identity()
    ids = torch.tensor([[3, 4, 5]])
    with torch.no_grad():
        states, table = model.base_model(ids).last_hidden_state, model.get_input_embeddings().weight
        torch.testing.assert_close(model(ids).logits, states @ table.T)


def test_output_embeddings_that_are_not_tied_begin_as_those_of_the_input() -> None:
    model = AutoModelForMaskedLM.from_config(EuroBertConfig(**SIZES, num_key_value_heads=2, **IDS))
    table, output = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    assert output is not table and not torch.equal(output, table)
    lm_head.begin_at_identity(model)
    assert torch.equal(output, table)
    assert lm_head.is_of_head(model, "lm_head.weight") and not lm_head.is_of_head(model, "model.embed_tokens.weight")


def test_many_names_are_counted() -> None:
    assert lm_head.listed(["a", "b"]) == "a, b"
    assert lm_head.listed([str(number) for number in range(5)], 3) == "0, 1, 2 and 2 more"
