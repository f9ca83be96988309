"""Encoders are loaded with the head of a task, and a damaged folder is named."""

from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, XLMRobertaConfig, XLMRobertaForMaskedLM

from xlgrid.heads import HEADS
from xlgrid.models.load import has_segments, head_of_lm, load_model, shapes

SIZE = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}


@pytest.fixture
def xlmr(tmp_path: Path) -> Path:
    config = XLMRobertaConfig(**SIZE, max_position_embeddings=16, type_vocab_size=1)
    XLMRobertaForMaskedLM(config).save_pretrained(tmp_path / "xlmr")
    return tmp_path / "xlmr"


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    BertForMaskedLM(BertConfig(**SIZE, max_position_embeddings=16)).save_pretrained(tmp_path / "bert")
    return tmp_path / "bert"


@pytest.mark.parametrize(
    ("head", "labels", "outputs"), [("sequence", 3, (3, 8)), ("token", 5, (5, 8)), ("span", 0, (2, 8))]
)
def test_a_head_has_as_many_outputs_as_the_task_needs(
    bert: Path, head: str, labels: int, outputs: tuple[int, int]
) -> None:
    model = load_model(bert, HEADS[head], labels)
    [weight] = [p for name, p in model.named_parameters() if name in ("classifier.weight", "qa_outputs.weight")]
    assert tuple(weight.shape) == outputs


def test_a_new_head_comes_from_the_seed_and_the_encoder_from_its_file(bert: Path) -> None:
    torch.manual_seed(1)
    first = load_model(bert, HEADS["sequence"], 3).state_dict()
    torch.manual_seed(2)
    second = load_model(bert, HEADS["sequence"], 3).state_dict()
    differ = {name.split(".")[0] for name in first if not torch.equal(first[name], second[name])}
    # BERT's file has no pooler, since it was saved with a language-modelling head.
    assert differ == {"classifier", "bert"}
    assert {name for name in first if "bert" in name and not torch.equal(first[name], second[name])} == {
        "bert.pooler.dense.weight"
    }


def test_dropout_replaces_the_rates_of_the_encoder(bert: Path) -> None:
    model = load_model(bert, HEADS["sequence"], 3, dropout=0.25)
    rates = {module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)}
    assert rates == {0.25}


def test_a_model_of_shapes_has_no_numbers() -> None:
    model = shapes(BertConfig(**SIZE), HEADS["choice"])
    assert {parameter.device.type for parameter in model.parameters()} == {"meta"}


def test_the_dense_layer_of_the_language_model_starts_the_classifier(xlmr: Path, bert: Path) -> None:
    model = load_model(xlmr, HEADS["sequence"], 3)
    head_of_lm(model, xlmr)
    stored = XLMRobertaForMaskedLM.from_pretrained(xlmr).lm_head.dense
    assert torch.equal(model.classifier.dense.weight, stored.weight)
    assert torch.equal(model.classifier.dense.bias, stored.bias)
    with pytest.raises(ValueError, match="`head: lm-head` is for XLM-R"):
        head_of_lm(load_model(bert, HEADS["sequence"], 3), bert)


def test_segments_are_those_of_the_embeddings(xlmr: Path, bert: Path) -> None:
    assert has_segments(load_model(bert, HEADS["sequence"], 3))
    assert not has_segments(load_model(xlmr, HEADS["sequence"], 3))


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_or_damaged_file_is_named(bert: Path, name: str) -> None:
    path = bert / name
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ValueError, match=r"bert.* is damaged .* delete it and make or fetch"):
        load_model(bert, HEADS["sequence"], 3)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=rf"{name} does not exist: make or fetch the encoder again"):
        load_model(bert, HEADS["sequence"], 3)
