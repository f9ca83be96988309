"""Encoders from scratch: their files, and that kills do not change them."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from scratch_fixture import TINY, contents, inputs, killed_twice, pretrain, recipe, texts_of

from xlgrid.architectures import Architecture
from xlgrid.architectures.scratch import architecture_of
from xlgrid.training import pretraining
from xlgrid.training.loop import Loop
from xlgrid.training.pretraining import take_checkpoint

pytestmark = pytest.mark.usefixtures("one_thread")


def scratch(kind: str = "xlmr", **more: Any) -> Architecture:
    fields = {"kind": kind, "languages": ("en", "fr"), "bitext": (("en", "fr"),), **TINY, **more}
    return architecture_of(fields)


@pytest.mark.parametrize("kind", ["bert", "xlmr"])
def test_transformers_reads_all_weights_of_it(kind: str, tmp_path: Path) -> None:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    pretrain(scratch(kind), texts_of(tmp_path), tmp_path / kind)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / kind)
    model, about = AutoModelForMaskedLM.from_pretrained(tmp_path / kind, output_loading_info=True)
    assert not about["missing_keys"] and not about["unexpected_keys"]
    assert model.config.model_type == ("bert" if kind == "bert" else "xlm-roberta")
    assert model.config.vocab_size == len(tokenizer) <= 300 and model.config.pad_token_id == tokenizer.pad_token_id
    assert model.get_input_embeddings().weight is model.get_output_embeddings().weight
    assert tokenizer.model_max_length == 512


def test_killed_twice_it_has_the_same_bytes(tmp_path: Path) -> None:
    described = scratch("bert", nsp=True)
    files = inputs(described, texts_of(tmp_path, options={"statements": 2}), tmp_path / "e")
    encoder_recipe = recipe(described, steps=8, evaluations=2, checkpoints=(4,), checkpoint_seconds=1e-9)
    whole = killed_twice(encoder_recipe, files, tmp_path)
    other = encoder_recipe.model_copy(update={"seed": 1})
    pretraining.pretrain(other, *files, tmp_path / "other")
    assert contents(tmp_path / "other")["model.safetensors"] != contents(whole)["model.safetensors"]


def test_a_tokenizer_of_the_other_kind_is_refused(tmp_path: Path) -> None:
    tokenizer, train, dev = inputs(scratch("bert"), texts_of(tmp_path), tmp_path / "e")
    with pytest.raises(ValueError, match=r"<s>.*xlmr"):
        pretraining.pretrain(recipe(scratch("xlmr")), tokenizer, train, dev, tmp_path / "e")


def test_a_checkpoint_is_an_encoder_of_its_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import AutoModelForMaskedLM

    embeddings: dict[int, torch.Tensor] = {}
    advance = Loop.advance

    def noted(loop: Loop, chosen: Any) -> dict[str, float]:
        losses = advance(loop, chosen)
        embeddings[loop.step] = loop.model.get_input_embeddings().weight.detach().clone()
        return losses

    monkeypatch.setattr(Loop, "advance", noted)
    pretrain(scratch(), texts_of(tmp_path), tmp_path / "e", steps=4, checkpoints=(2,))
    take_checkpoint(tmp_path / "e", 2, tmp_path / "early")
    model, about = AutoModelForMaskedLM.from_pretrained(tmp_path / "early", output_loading_info=True)
    assert not about["missing_keys"] and torch.equal(model.get_input_embeddings().weight, embeddings[2])
    assert json.loads((tmp_path / "early" / "encoder.json").read_text())["step"] == 2
    with pytest.raises(ValueError, match=r"step3\.safetensors does not exist: only the pre-training can write it"):
        take_checkpoint(tmp_path / "e", 3, tmp_path / "other")
