"""MLM runs in a tokenizer other than the encoder's, and the runs and cells that begin with them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from scratch_fixture import encoder_of

from xlgrid.data import batches
from xlgrid.data.encoders import token_ids
from xlgrid.data.text import TextSettings, make_text
from xlgrid.data.tokenize import tokenize
from xlgrid.data.tokenizer import TrainedTokenizer, make_tokenizer
from xlgrid.evaluation import cell, trained
from xlgrid.methods import ALL_METHODS
from xlgrid.models import deltas
from xlgrid.training.loop import Loop, train
from xlgrid.training.recipe import Recipe

pytestmark = pytest.mark.usefixtures("one_thread")

NAMES = {
    "study": "s",
    "encoder": "e",
    "seed": 1,
    "training": {"steps": 3, "batch_size": 4, "lr": 0.05, "evaluations": 1},
}
METHODS = {"full-ft": {}, "madx": {"tune": "language", "init": "bert"}}
INSTALLED = [base for base in METHODS if base in ALL_METHODS.names()]


@pytest.fixture(scope="module", params=["bert", "xlmr"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder of English and French, a tokenizer of an artificial language, and text of this language in its tokens."""
    folder: Path = tmp_path_factory.mktemp("tokenizers")
    encoder_of(folder, request.param).rename(folder / "encoder")
    for code in ("qa1", "qa2"):
        make_text(code, folder / f"{code}.parquet", TextSettings(sentences=60, seed=0))
    spec = TrainedTokenizer(kind=request.param, languages=("qa1", "qa2"), size=400)
    make_tokenizer(spec, [folder / f"{code}.parquet" for code in ("qa1", "qa2")], folder / "tokenizer")
    for code in ("qa1", "qa2"):
        text = folder / f"{code}.parquet"
        tokenize([text], folder / "tokenizer", "mlm", 64, folder / f"{code}.arrow", split="train")
    (folder / "en.jsonl").write_text(
        "".join(
            json.dumps({"tokens": ["Bob", "is", "kind"][: 1 + i % 3], "ner_tags": [1, 0, 0][: 1 + i % 3]}) + "\n"
            for i in range(8)
        )
    )
    for name, tokenizer in (("task", "tokenizer"), ("task-encoder", "encoder")):
        tokenize([folder / "en.jsonl"], folder / tokenizer, "wikiann", 64, folder / f"{name}.arrow")
    return folder


def on_text(world: Path, out: Path, base: str, code: str = "qa1", tokenizer: bool = True) -> Path:
    keys = {"task": "mlm", "kind": "mlm", "method": "text", "base": base, "source": code, "options": METHODS[base]}
    tokens = [world / f"{code}.arrow"]
    folder = world / "tokenizer" if tokenizer else None
    train(Recipe.model_validate(NAMES | keys), world / "encoder", tokens, tokens, out, tokenizer=folder)
    return out


def on_task(world: Path, out: Path, base: str, start: Path, source: str = "qa1") -> Path:
    keys: dict[str, Any] = {"task": "t", "kind": "wikiann", "method": "m", "base": base, "source": source}
    keys["start"] = {"task": "mlm", "method": "text"}
    tokens = [world / "task.arrow"]
    train(Recipe.model_validate(NAMES | keys), world / "encoder", tokens, tokens, out, start)
    return out


def embeddings(folder: Path) -> torch.Tensor:
    [rows] = [p for name, p in load_file(folder).items() if name.endswith("word_embeddings.weight")]
    return rows


def test_shared_tokens_keep_their_embeddings_and_the_decoder_s_bias(world: Path, tmp_path: Path) -> None:
    keys = {"task": "mlm", "kind": "mlm", "method": "text", "base": "full-ft", "source": "qa1"}
    tokens = [world / "qa1.arrow"]
    recipe = Recipe.model_validate(NAMES | keys)
    folders = world / "encoder", tokens, tokens, tmp_path
    model = Loop(recipe, *folders, tokenizer=world / "tokenizer").model
    before, after = token_ids(world / "encoder"), token_ids(world / "tokenizer")
    shared = sorted(before.keys() & after.keys())
    assert 5 < len(shared) < len(after) and any(before[token] != after[token] for token in shared)
    old, new = embeddings(world / "encoder/model.safetensors"), model.get_input_embeddings().weight
    bias = model.get_output_embeddings().bias
    [old_bias] = [
        p
        for name, p in load_file(world / "encoder/model.safetensors").items()
        if name.endswith(("predictions.bias", "lm_head.bias"))
    ]
    assert len(new) == len(bias) == len(after) and model.get_output_embeddings().weight is new
    for token in shared:
        assert torch.equal(new[after[token]], old[before[token]]) and bias[after[token]] == old_bias[before[token]]
    fresh = [number for token, number in after.items() if token not in before]
    assert not bias[fresh].any() and float(new[fresh].detach().std()) == pytest.approx(0.02, rel=0.2)


@pytest.mark.parametrize("base", INSTALLED)
def test_a_run_in_another_tokenizer_trains_its_embeddings_and_what_begins_with_it_loads_them(
    world: Path, tmp_path: Path, base: str
) -> None:
    text = on_text(world, tmp_path / "text", base)
    stored = embeddings(text / deltas.DELTA)
    assert len(stored) == len(token_ids(world / "tokenizer"))
    run = on_task(world, tmp_path / "run", base, text)
    for target, of_target in (("qa1", text), ("qa2", on_text(world, tmp_path / "other", base, "qa2"))):
        data = batches.read(world / "task.arrow", target)
        model = trained.model_of(trained.read(run), world / "encoder", data, of_target)
        expected = run if base == "full-ft" and of_target == text else of_target
        assert torch.equal(model.get_input_embeddings().weight, embeddings(expected / deltas.DELTA)), target
        cell.evaluate(
            run, world / "encoder", world / "task.arrow", {"target": target}, tmp_path / "cell.json", of_target
        )
        assert json.loads((tmp_path / "cell.json").read_text())["n"] == 8
    with_target = embeddings(tmp_path / "other" / deltas.DELTA)
    assert not torch.equal(stored, with_target)
    if base == "madx":
        assert not any("word_embeddings" in name for name in load_file(run / deltas.DELTA)), (
            "the task trains adapters only"
        )


def test_a_run_that_begins_with_the_encoder_can_be_evaluated_in_the_tokenizer_of_a_target(
    world: Path, tmp_path: Path
) -> None:
    """The embeddings belong to the target's MLM run (`missing: none`)."""
    keys: dict[str, Any] = {"task": "t", "kind": "wikiann", "method": "m", "base": "bitfit", "source": "en"}
    tokens = [world / "task-encoder.arrow"]
    train(Recipe.model_validate(NAMES | keys), world / "encoder", tokens, tokens, tmp_path / "run")
    text = on_text(world, tmp_path / "text", "full-ft")
    run, data = trained.read(tmp_path / "run"), batches.read(world / "task.arrow", "qa1")
    with_text = trained.model_of(run, world / "encoder", data, text)
    assert torch.equal(with_text.get_input_embeddings().weight, embeddings(text / deltas.DELTA))
    without = trained.model_of(run, world / "encoder", batches.read(tokens[0], "en"))
    kept = embeddings(world / "encoder/model.safetensors")
    assert torch.equal(without.get_input_embeddings().weight, kept), "cells of other languages stay as they are"


def test_an_interrupted_run_in_another_tokenizer_goes_on_with_the_same_bytes(world: Path, tmp_path: Path) -> None:
    whole = on_text(world, tmp_path / "whole", "full-ft")
    keys = {"task": "mlm", "kind": "mlm", "method": "text", "base": "full-ft", "source": "qa1"}
    tokens = [world / "qa1.arrow"]
    recipe = Recipe.model_validate(NAMES | keys)
    loop = Loop(recipe, world / "encoder", tokens, tokens, tmp_path / "cut", tokenizer=world / "tokenizer")
    loop.advance(np.arange(4))
    loop.save()
    resumed = Loop(recipe, world / "encoder", tokens, tokens, tmp_path / "cut", tokenizer=world / "tokenizer")
    assert resumed.step == 1
    table = loop.model.get_input_embeddings().weight
    assert torch.equal(resumed.model.get_input_embeddings().weight, table)
    assert not torch.equal(table[:5], embeddings(whole / deltas.DELTA)[:5])


def test_a_tokenizer_with_another_padding_is_refused(world: Path, tmp_path: Path) -> None:
    """Positions of XLM-R count from the id of padding."""
    other = "xlmr" if "[CLS]" in token_ids(world / "encoder") else "bert"
    spec = TrainedTokenizer(kind=other, languages=("qa1",), size=400)  # type: ignore[arg-type]
    make_tokenizer(spec, [world / "qa1.parquet"], tmp_path / "v")
    keys = {"task": "mlm", "kind": "mlm", "method": "text", "base": "full-ft", "source": "qa1"}
    tokens = [world / "qa1.arrow"]
    recipe = Recipe.model_validate(NAMES | keys)
    with pytest.raises(ValueError, match="has the id"):
        Loop(recipe, world / "encoder", tokens, tokens, tmp_path / "run", tokenizer=tmp_path / "v")
