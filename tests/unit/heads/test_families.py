"""The table of families: every path in it leads to a part of the classes of transformers."""

from typing import Any

import pytest
import torch
import transformers
from torch import nn
from transformers import AutoConfig

from xlgrid.heads import HEADS, families
from xlgrid.heads.families import EMBEDDINGS, FAMILIES, Family, has_modules, is_pretrained_module, module_of, part

SMALL = {"vocab_size": 40, "num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16, "pad_token_id": 1}
# The names of DistilBERT are others, but its configuration knows these, too.
TYPES = [name for name in FAMILIES if not has_modules(name)]


def empty(kind: str, suffix: str = "MaskedLM") -> Any:
    config = AutoConfig.for_model(kind, **SMALL)
    with torch.device("meta"):
        return getattr(transformers, f"{FAMILIES[kind].stem}For{suffix}")(config)


@pytest.mark.parametrize("kind", TYPES)
def test_paths_lead_to_the_parts_of_an_encoder(kind: str) -> None:
    model, family = empty(kind), FAMILIES[kind]
    encoder, layers = model.base_model, families.layers_of(model)
    assert len(layers) == model.config.num_hidden_layers == 2
    assert part(encoder, family.word_embeddings) is model.get_input_embeddings()
    assert part(model, family.decoder) is model.get_output_embeddings()
    assert part(encoder, family.embedded) is not None
    for layer in layers:
        assert part(layer, family.feed_forward) is not None
        if family.attention:
            attention = part(layer, family.attention)
            assert isinstance(part(attention, family.query), nn.Linear)
            assert isinstance(part(attention, family.key), nn.Linear)
        assert family.norm == "" or isinstance(part(layer, family.norm), nn.LayerNorm)
    if not family.norm:
        assert part(layers[1], family.next_norm) is not None and part(encoder, family.last_norm) is not None
    assert all(isinstance(getattr(model, name), nn.Module) for name in family.lm_head)
    assert any(f"{model.base_model_prefix}.{name}".endswith(EMBEDDINGS) for name, _ in encoder.named_parameters())


@pytest.mark.parametrize("kind", TYPES)
def test_entries_of_config_json_are_those_of_the_configuration(kind: str) -> None:
    written, family = AutoConfig.for_model(kind, **SMALL).to_dict(), FAMILIES[kind]
    assert {*family.dropout, *family.biases} <= written.keys()
    parameters = dict(empty(kind).base_model.named_parameters())
    assert families.has_biases(written) is any(name.endswith("bias") for name in parameters)
    for entry in family.biases:
        assert families.has_biases({"model_type": kind, entry: True})


@pytest.mark.parametrize("kind", TYPES)
def test_classes_that_transformers_lacks_are_those_of_the_table(kind: str) -> None:
    stem = FAMILIES[kind].stem
    for head in HEADS.values():
        if head.model_suffix:
            name, problem = f"{stem}For{head.model_suffix}", FAMILIES[kind].problem(head)
            assert (problem is None) is hasattr(transformers, name)
            assert problem is None or name in problem


@pytest.mark.parametrize("kind", TYPES)
def test_parameters_are_told_apart_by_name(kind: str) -> None:
    model, prefix = empty(kind), f"{empty(kind).base_model_prefix}."
    names = [name for name, _ in model.named_parameters()]
    for name in names:
        layer = families.layer_of(name)
        assert not (families.is_embedding(name) and layer is not None)
        assert families.is_language_head(name) is (
            not name.startswith(prefix) and name != f"{FAMILIES[kind].decoder}.weight"
        )
    assert {families.layer_of(name) for name in names} == {None, 0, 1}
    assert families.is_embedding(f"{prefix}{FAMILIES[kind].word_embeddings}.weight")


def test_a_type_that_is_not_in_the_table_is_taken_for_bert_or_xlmr() -> None:
    with torch.device("meta"):
        electra = transformers.ElectraModel(AutoConfig.for_model("electra", num_hidden_layers=1))
        camembert = transformers.CamembertForMaskedLM(AutoConfig.for_model("camembert", num_hidden_layers=1))
    assert families.family_of(electra) is families.BERT and len(families.layers_of(electra)) == 1
    assert families.family_of(camembert) is families.XLMR
    assert part(camembert, families.XLMR.decoder) is camembert.get_output_embeddings()
    assert families.has_biases({"model_type": "electra"})


def test_a_path_that_leads_nowhere_is_none() -> None:
    assert part(nn.Identity(), "encoder.layer") is None
    assert part(nn.Identity(), Family("Stem").layers) is None


@pytest.mark.parametrize("layer", ["encoder.layer.0.output.dense", "embeddings.word_embeddings"])
def test_a_parameter_of_the_encoder_is_of_no_module(layer: str) -> None:
    name = f"roberta.{layer}.weight"
    assert module_of(name) is None and not is_pretrained_module(name)
