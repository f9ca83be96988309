"""An mBART from its pre-training to cells of classification and translation, through the one loop."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from scratch_fixture import TINY, inputs, killed_twice, recipe, texts_of
from transformers import MBartConfig, MBartForConditionalGeneration, MBartModel

from xlgrid.architectures import Architecture
from xlgrid.architectures.scratch import architecture_of
from xlgrid.data.encoders import token_ids
from xlgrid.data.tokenize import tokenize
from xlgrid.evaluation import cell
from xlgrid.models.deltas import DELTA
from xlgrid.training import pretraining
from xlgrid.training.loop import train
from xlgrid.training.pretraining import Pretraining, take_checkpoint
from xlgrid.training.recipe import Recipe

pytestmark = pytest.mark.usefixtures("one_thread")
Files = tuple[Path, list[Path], list[Path]]


def scratch(**more: Any) -> Architecture:
    fields = {"kind": "xlmr", "architecture": "mbart", "languages": ("en", "fr"), "bitext": (("en", "fr"),)}
    return architecture_of(fields | {**TINY, "layers": 2, "max_length": 64} | more)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("mbart")
    tokenizer, train_files, dev_files = inputs(scratch(), texts_of(folder), folder / "e")
    return tokenizer, train_files, dev_files


@pytest.fixture(scope="module")
def encoder(files: Files, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder") / "e"
    pretraining.pretrain(recipe(scratch(), steps=40, batch_size=16, lr=0.01, evaluations=2), *files, folder)
    return folder


@torch.no_grad()
def test_transformers_reads_the_folder_and_computes_the_same(files: Files, encoder: Path) -> None:
    loaded, about = MBartForConditionalGeneration.from_pretrained(encoder, output_loading_info=True)
    assert not any(about.values())
    training = Pretraining(recipe(scratch()), *files, encoder.with_name("other"))
    named = dict(training.model.named_parameters())
    for name, tensor in load_file(encoder / "model.safetensors").items():
        named[name].copy_(tensor)
    training.model.eval()
    ids = torch.tensor([[9, 10, 2, loaded.config.vocab_size - 1], [11, 2, loaded.config.vocab_size - 2, 1]])
    logits = training.model(input_ids=ids, attention_mask=(ids != 1).long()).logits
    assert torch.equal(loaded.eval()(input_ids=ids, attention_mask=(ids != 1).long()).logits, logits)
    _, about = MBartModel.from_pretrained(encoder, output_loading_info=True)
    assert not about["missing_keys"] and isinstance(loaded.config, MBartConfig)
    assert loaded.config.languages == ["en", "fr"]
    assert loaded.config.vocab_size == 1 + max(token_ids(encoder).values()) + 2


def test_killed_twice_it_has_the_same_bytes(files: Files, tmp_path: Path) -> None:
    encoder_recipe = recipe(scratch(dropout=0.1), steps=8, evaluations=2, checkpoints=(4,), checkpoint_seconds=1e-9)
    whole = killed_twice(encoder_recipe, files, tmp_path)
    take_checkpoint(whole, 4, tmp_path / "early")
    assert MBartModel.from_pretrained(tmp_path / "early").config.model_type == "mbart"


def test_the_noise_changes_what_is_trained(files: Files, tmp_path: Path) -> None:
    noises = ({}, {"denoising": {"predict": "masked"}}, {"denoising": {"noise": "tokens", "permute": False}})
    weights = []
    for number, noise in enumerate(noises):
        pretraining.pretrain(recipe(scratch(**noise)), *files, tmp_path / str(number))
        weights.append(load_file(tmp_path / str(number) / "model.safetensors")["model.shared.weight"])
    assert not torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])


def fine_tuned(encoder: Path, kind: str, source: str, tokens: Path, **settings: Any) -> dict[str, Any]:
    """The cell of a run on the examples that it has trained on."""
    names = {"study": "s", "task": "t", "kind": kind, "encoder": "e", "method": "full-ft", "base": "full-ft"}
    run_recipe = Recipe.model_validate({**names, "source": source, "seed": 1, "training": settings})
    out = tokens.with_suffix("")
    train(run_recipe, encoder, [tokens], [tokens], out)
    cell.evaluate(out, encoder, tokens, {"target": source}, out / "cell.json")
    record = json.loads((out / "run.json").read_text())
    scored: dict[str, Any] = json.loads((out / "cell.json").read_text())
    assert record["dev_score"] == pytest.approx(scored["scores"][scored["metric"]["name"]])
    assert (out / DELTA).is_file()
    return scored


def test_a_classification_is_learnt(encoder: Path, tmp_path: Path) -> None:
    words = {"entailment": "Bob is kind", "neutral": "Anne likes dogs"}
    rows = [{"premise": text, "hypothesis": "Bob", "label": label} for label, text in words.items()] * 20
    (tmp_path / "nli.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tokenize([tmp_path / "nli.jsonl"], encoder, "xnli", 64, tmp_path / "nli.arrow")
    scored = fine_tuned(encoder, "xnli", "en", tmp_path / "nli.arrow", steps=40, batch_size=8, lr=0.005, evaluations=1)
    assert scored["scores"]["accuracy"] == 100


def test_translations_are_generated(encoder: Path, tmp_path: Path) -> None:
    pairs = [("Bob is kind", "Anne likes dogs and cats"), ("Anne likes dogs", "Bob is kind and likes dogs")]
    rows = [{"source": source, "target": target} for source, target in pairs] * 8
    (tmp_path / "mt.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tokenize([tmp_path / "mt.jsonl"], encoder, "translation", 64, tmp_path / "mt.arrow")
    settings = {"steps": 150, "batch_size": 8, "lr": 0.01, "evaluations": 1, "keep": "last"}
    scored = fine_tuned(encoder, "translation", "en-fr", tmp_path / "mt.arrow", **settings)
    assert scored["metric"]["name"] == "bleu" and scored["n"] == 16
    assert scored["scores"]["bleu"] > 80, "a handful of sentences is learnt by heart"
