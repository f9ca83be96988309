"""A language-modelling head for an encoder without one: it trains, nothing else changes, and all runs share it."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from scratch_fixture import TINY, encoder_of, inputs, killed, texts_of
from transformers import AutoModel, AutoModelForMaskedLM

from xlgrid.architectures.scratch import architecture_of
from xlgrid.data.encoders import add_tokenizer
from xlgrid.heads import HEADS
from xlgrid.models import lm_head, load
from xlgrid.study.encoders import EncoderWithHead
from xlgrid.training import loop, pretraining
from xlgrid.training.recipe import Recipe

pytestmark = pytest.mark.usefixtures("one_thread")
NAMES = {"bert": "cls.predictions.transform.dense.weight", "xlmr": "lm_head.dense.weight"}


def recipe(trains: str = "head", **training: Any) -> Recipe:
    entry = {"of": "bare", "lm_head": {"languages": ["en", "fr"], "trains": trains, "seed": 3}}
    settings = {"steps": 80, "batch_size": 16, "evaluations": 4, "lr": 0.03, **training}
    return EncoderWithHead.model_validate({**entry, "training": settings}).recipe("s", "with-head")


class World:
    """A sentence encoder in fp16, without a head, and the tokens of texts in its vocabulary."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder, self.kind, self.bare = folder, kind, folder / "bare"
        whole = encoder_of(folder, kind)
        AutoModel.from_pretrained(whole).half().save_pretrained(self.bare)
        add_tokenizer(whole, self.bare)
        described = architecture_of({"kind": kind, "languages": ("en", "fr"), **TINY})
        self.files = inputs(described, texts_of(folder), folder / "again")

    def train(self, name: str, trains: str = "head", **training: Any) -> Path:
        pretraining.pretrain(recipe(trains, **training), *self.files, self.folder / name, self.bare)
        return self.folder / name

    def run_on_text(self, encoder: Path, language: str) -> loop.Loop:
        """A run that trains an adapter of a language, before its first step."""
        _, train, dev = self.files
        options = {"tune": "language", "invertible": False, "lm_head": "frozen"}
        fields = {"study": "s", "task": "text", "kind": "mlm", "encoder": "e", "method": "adapter", "base": "madx"}
        of_run = {"options": options, "source": language, "seed": 1, "training": {"steps": 2, "batch_size": 4}}
        number = ["en", "fr"].index(language)
        parts = [[paths[number]] for paths in (train, dev)]
        return loop.Loop(Recipe.model_validate({**fields, **of_run}), encoder, *parts, self.folder / f"run-{language}")


@pytest.fixture(scope="module", params=["bert", "xlmr"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("heads"), request.param)


@pytest.fixture(scope="module")
def trained(world: World) -> Path:
    return world.train("trained")


def test_the_head_trains_and_nothing_else_changes(world: World, trained: Path) -> None:
    before, after = (load_file(folder / "model.safetensors") for folder in (world.bare, trained))
    prefix = AutoModel.from_pretrained(world.bare).base_model_prefix
    kept = {f"{prefix}.{name}": tensor for name, tensor in before.items()}
    assert all(after[name].dtype == torch.float16 and torch.equal(after[name], kept[name]) for name in kept)
    assert f"{prefix}.pooler.dense.weight" in kept, "fine-tuning reads it, though the language model does not"
    new = after.keys() - kept.keys()
    assert NAMES[world.kind] in new and not any(name.endswith("decoder.weight") for name in new)
    dense = after[NAMES[world.kind]]
    assert not torch.equal(dense, torch.eye(16)), "it trained"
    assert (dense - torch.eye(16)).norm() < torch.eye(16).norm(), "it began at the identity"
    configs = [json.loads((folder / "config.json").read_text()) for folder in (world.bare, trained)]
    assert configs[0] | {"architectures": configs[1]["architectures"]} == configs[1]


def test_with_all_weights_the_pre_training_of_the_encoder_goes_on(world: World) -> None:
    folder = world.train("whole", "all", steps=4, evaluations=1, lr=1e-3)
    before, after = (load_file(each / "model.safetensors") for each in (world.bare, folder))
    prefix = AutoModel.from_pretrained(world.bare).base_model_prefix
    # Attention does not depend on the biases of its keys, which so have no gradient.
    weights = {name: tensor for name, tensor in before.items() if name.endswith("weight")}
    same = {name for name, tensor in weights.items() if torch.equal(after[f"{prefix}.{name}"].half(), tensor)}
    assert same == {"pooler.dense.weight"}, "a language model reads all but the pooler"
    model, about = AutoModelForMaskedLM.from_pretrained(folder, output_loading_info=True, dtype=torch.float32)
    assert not about["missing_keys"]
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    record = json.loads((folder / "run.json").read_text())
    assert record["parameters"]["trained"] == record["parameters"]["total"]


def test_transformers_reads_it_as_a_language_model_with_tied_embeddings(world: World, trained: Path) -> None:
    model, about = AutoModelForMaskedLM.from_pretrained(trained, output_loading_info=True, dtype=torch.float32)
    assert not about["missing_keys"]
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    ids = torch.tensor([[5, 6, 7, 8]])
    bare = AutoModel.from_pretrained(world.bare, dtype=torch.float32).eval()
    with torch.no_grad():
        states = [each(ids).last_hidden_state for each in (bare, model.base_model.eval())]
    assert torch.equal(*states)


def test_fine_tuning_begins_as_without_the_head(world: World, trained: Path) -> None:
    weights = []
    for encoder in (world.bare, trained):
        torch.manual_seed(5)
        weights.append(load.load_model(encoder, HEADS["sequence"], 2).state_dict())
    assert weights[0].keys() == weights[1].keys()
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_the_loss_falls(trained: Path) -> None:
    losses = [json.loads(line)["loss"] for line in (trained / "curve.jsonl").read_text().splitlines()]
    assert losses[-1] < losses[0] - 0.2 and losses == sorted(losses, reverse=True)
    record = json.loads((trained / "run.json").read_text())
    assert record["parameters"]["trained"] < 0.5 * record["parameters"]["total"]
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


def test_the_log_names_the_weights_that_are_missing(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.train("once", steps=1, evaluations=1)
    log = capsys.readouterr().err
    maker = {"bert": "BertForMaskedLM", "xlmr": "XLMRobertaForMaskedLM"}[world.kind]
    assert f"{world.bare} lacks weights of {maker}, which are new: " in log and NAMES[world.kind] in log
    assert f"{world.bare} has weights that {maker} does not take: pooler.dense.bias, pooler.dense.weight" in log


def test_all_runs_on_text_share_the_head(world: World, trained: Path) -> None:
    stored = load_file(trained / "model.safetensors")[NAMES[world.kind]]
    for language in ("en", "fr"):
        model = world.run_on_text(trained, language).model
        assert torch.equal(dict(model.named_parameters())[NAMES[world.kind]], stored)


def test_a_run_on_text_without_a_head_is_refused_with_the_way_out(world: World) -> None:
    with pytest.raises(ValueError, match=r"bare has no language-modelling head: model\.safetensors lacks ") as refused:
        world.run_on_text(world.bare, "en")
    assert NAMES[world.kind] in str(refused.value)
    assert "`encoders: {bare-mlm: {of: bare, lm_head: {languages: [en, fr]}}}`" in str(refused.value)


def test_an_encoder_with_a_head_needs_no_other(world: World, trained: Path) -> None:
    assert lm_head.lacking(trained) is None and lm_head.lacking(world.bare)
    with pytest.raises(ValueError, match="trained has a language-modelling head: use it as it is, without `lm_head`"):
        pretraining.pretrain(recipe(), *world.files, world.folder / "again-trained", trained)


def test_a_head_is_of_an_encoder(world: World) -> None:
    with pytest.raises(ValueError, match="names no folder of one: add --begin"):
        pretraining.pretrain(recipe(), *world.files, world.folder / "alone")
