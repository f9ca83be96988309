"""A run stores what it trained, and a file that does not belong is refused."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification

from xlgrid.methods import make
from xlgrid.models import deltas

CONFIG = BertConfig(
    vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, num_labels=3
)
BITFIT = make("bitfit", {})


@pytest.fixture
def model() -> BertForSequenceClassification:
    torch.manual_seed(1)
    return BertForSequenceClassification(CONFIG)


def write(folder: Path, model: BertForSequenceClassification, digest: str = "d") -> Path:
    """A run's folder, as training leaves it, with every stored number doubled."""
    tensors = {name: 2 * p.detach() for name, p in deltas.kept(model, BITFIT).items()}
    folder.mkdir()
    save_file(tensors, folder / deltas.DELTA, {"digest": digest})
    (folder / "run.json").write_text(json.dumps({"recipe": {}, "digest": "d", "labels": [], "start": None}))
    return folder


def test_bitfit_stores_biases_and_the_head(model: BertForSequenceClassification) -> None:
    kept = set(deltas.kept(model, BITFIT))
    assert {"classifier.weight", "bert.pooler.dense.weight", "bert.encoder.layer.0.output.dense.bias"} <= kept
    assert "bert.encoder.layer.0.output.dense.weight" not in kept


def test_a_run_on_text_stores_no_language_modelling_head() -> None:
    kept = deltas.kept(BertForMaskedLM(CONFIG), make("full-ft", {}))
    assert kept and not any(name.startswith("cls.") for name in kept)


def test_a_run_comes_back_whole(model: BertForSequenceClassification, tmp_path: Path) -> None:
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    deltas.load_run(write(tmp_path / "run", model), model, BITFIT)
    stored = deltas.kept(model, BITFIT)
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name] * (2 if name in stored else 1)), name


def test_weights_of_another_recipe_are_refused(model: BertForSequenceClassification, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"belongs to recipe other, the run\.json beside it to d: delete both"):
        deltas.load_run(write(tmp_path / "run", model, "other"), model, BITFIT)


def test_weights_of_another_encoder_are_refused(model: BertForSequenceClassification, tmp_path: Path) -> None:
    run = write(tmp_path / "run", model)
    larger = BertForSequenceClassification(BertConfig.from_dict({**CONFIG.to_dict(), "intermediate_size": 9}))
    with pytest.raises(
        ValueError, match=r"does not fit the encoder: 1 tensors .* 'bert\.encoder\.layer\.0\.intermediate"
    ):
        deltas.load_run(run, larger, BITFIT)


def test_a_damaged_file_of_a_run_is_named(model: BertForSequenceClassification, tmp_path: Path) -> None:
    run = write(tmp_path / "run", model)
    path = run / deltas.DELTA
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ValueError, match=r"delta\.safetensors is truncated or damaged .* delete it and rerun training"):
        deltas.load_run(run, model, BITFIT)
    path.unlink()
    with pytest.raises(
        FileNotFoundError, match=r"delta\.safetensors does not exist: check the path, or rerun training"
    ):
        deltas.load_run(run, model, BITFIT)
    (run / "run.json").write_text('{"recipe": {}}')
    with pytest.raises(ValueError, match=r"run\.json is damaged \(entries are missing\)"):
        deltas.read_run(run)


def test_a_record_says_with_which_run_on_text_a_run_began(tmp_path: Path) -> None:
    assert deltas.start_of(tmp_path, {"start": "results/s/runs/mlm"}) == Path("results/s/runs/mlm")
    assert deltas.start_of(tmp_path, {"start": None}) is None
    with pytest.raises(ValueError, match="does not say with which run on text"):
        deltas.start_of(tmp_path, {})
