"""The training of a language-modelling head for an encoder without one; test_head_families.py has every family."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from scratch_fixture import TINY, encoder_of, inputs, killed, texts_of
from transformers import AutoModel, AutoModelForMaskedLM

from xlgrid.architectures.scratch import architecture_of
from xlgrid.data.encoders import add_tokenizer
from xlgrid.models import lm_head
from xlgrid.study.encoders import EncoderWithHead
from xlgrid.training import pretraining
from xlgrid.training.new_head import LmHead
from xlgrid.training.recipe import Recipe

pytestmark = pytest.mark.usefixtures("one_thread")


def recipe(**training: Any) -> Recipe:
    entry = {"of": "bare", "lm_head": {"languages": ["en", "fr"], "seed": 3}}
    settings = {"steps": 80, "batch_size": 16, "evaluations": 4, "lr": 0.03, **training}
    return EncoderWithHead.model_validate({**entry, "training": settings}).recipe("s", "with-head")


class World:
    """A sentence encoder in fp16, without a head, and the tokens of texts in its tokenizer."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bare = folder, folder / "bare"
        whole = encoder_of(folder, "xlmr")
        AutoModel.from_pretrained(whole).half().save_pretrained(self.bare)
        add_tokenizer(whole, self.bare)
        described = architecture_of({"kind": "xlmr", "languages": ("en", "fr"), **TINY})
        self.files = inputs(described, texts_of(folder), folder / "again")

    def train(self, name: str, **training: Any) -> Path:
        pretraining.pretrain(recipe(**training), *self.files, self.folder / name, self.bare)
        return self.folder / name


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("heads"))


@pytest.fixture(scope="module")
def trained(world: World) -> Path:
    return world.train("trained")


def test_transformers_reads_it_as_a_language_model_with_tied_embeddings(world: World, trained: Path) -> None:
    model, about = AutoModelForMaskedLM.from_pretrained(trained, output_loading_info=True, dtype=torch.float32)
    assert not about["missing_keys"]
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    ids = torch.tensor([[5, 6, 7, 8]])
    bare = AutoModel.from_pretrained(world.bare, dtype=torch.float32).eval()
    with torch.no_grad():
        states = [each(ids).last_hidden_state for each in (bare, model.base_model.eval())]
    assert torch.equal(*states)
    configs = [json.loads((folder / "config.json").read_text()) for folder in (world.bare, trained)]
    assert configs[0] | {"architectures": configs[1]["architectures"]} == configs[1]
    assert json.loads((trained / "encoder.json").read_text())["source"] == "lm_head"


def test_killed_twice_it_has_the_same_bytes(world: World, trained: Path) -> None:
    head_recipe, folder = recipe(checkpoint_seconds=1e-9), world.folder / "killed"
    for at, number, status in ((3, signal.SIGKILL, -signal.SIGKILL), (20, signal.SIGTERM, os.EX_TEMPFAIL)):
        ended = killed(head_recipe, world.files, folder, at, number, world.bare)
        assert ended.returncode == status, ended.stderr
        assert not (folder / "model.safetensors").exists()
    assert (folder / "state.pt").stat().st_size < (world.bare / "model.safetensors").stat().st_size * 4
    world.train("killed", checkpoint_seconds=1e-9)
    for name in ("model.safetensors", "config.json", "encoder.json", "tokenizer.json"):
        assert (folder / name).read_bytes() == (trained / name).read_bytes(), name
    ours, theirs = ((path / "curve.jsonl").read_text().splitlines() for path in (folder, trained))
    assert [json.loads(line) | {"seconds": 0} for line in ours] == [
        json.loads(line) | {"seconds": 0} for line in theirs
    ]


def test_an_encoder_with_a_head_needs_no_other(world: World, trained: Path) -> None:
    assert lm_head.lacking(trained) is None and lm_head.lacking(world.bare)
    with pytest.raises(ValueError, match="trained has a language-modelling head: use it as it is, without `lm_head`"):
        pretraining.pretrain(recipe(), *world.files, world.folder / "again-trained", trained)


def test_a_head_is_of_an_encoder(world: World) -> None:
    with pytest.raises(ValueError, match="add --begin"):
        pretraining.pretrain(recipe(), *world.files, world.folder / "alone")


def test_a_language_is_named_once() -> None:
    with pytest.raises(ValidationError, match="`languages` has en twice"):
        LmHead(languages=("en", "fr", "en"))  # type: ignore[call-arg]
