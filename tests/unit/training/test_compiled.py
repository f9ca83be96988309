"""Runs whose layers torch compiles."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from test_loop import recipe
from tokens_fixture import write
from transformers import BertConfig, BertForPreTraining

from xlgrid.heads.families import FAMILIES, layers_of
from xlgrid.methods import make
from xlgrid.training.compiled import Compile
from xlgrid.training.loop import train
from xlgrid.training.recipe import Training

pytestmark = pytest.mark.usefixtures("one_thread")

LAYERS = 3


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder")
    torch.manual_seed(1)
    size = {"hidden_size": 16, "num_hidden_layers": LAYERS, "num_attention_heads": 2, "intermediate_size": 16}
    BertForPreTraining(BertConfig(vocab_size=40, max_position_embeddings=40, **size)).save_pretrained(folder)
    return folder


def curve(folder: Path) -> list[float]:
    lines = [json.loads(line) for line in (folder / "curve.jsonl").read_text().splitlines()]
    return [line[name] for line in lines for name in ("loss", "score")]


@pytest.mark.thorough
@pytest.mark.parametrize(("base", "options"), [("full-ft", {}), ("bitfit", {})])
def test_a_compiled_run_has_the_losses_and_weights_of_another_one(
    base: str, options: dict[str, Any], encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With dropout, in steps of many shapes, with padding and without."""
    rng = np.random.default_rng(1)
    ids = [[2, *rng.integers(5, 40, rng.integers(3, 20)).tolist(), 3] for _ in range(60)]
    tokens = [write(tmp_path / "t.arrow", ids)]
    torch._dynamo.utils.counters.clear()
    for name, added in (("plain", {}), ("compiled", {"compile": True})):
        run = recipe(base, steps=20, evaluations=4, checkpoint_seconds=3600, lr=1e-3, **added)
        train(run, encoder, tokens, tokens, tmp_path / name)
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    assert 0 < graphs <= 8, "the layers share what is compiled, whatever the lengths"
    assert curve(tmp_path / "compiled") == pytest.approx(curve(tmp_path / "plain"), rel=1e-5)
    plain, compiled = (load_file(tmp_path / name / "delta.safetensors") for name in ("plain", "compiled"))
    assert plain.keys() == compiled.keys()
    for name, weight in plain.items():
        torch.testing.assert_close(compiled[name], weight, rtol=1e-4, atol=1e-5)


def test_each_layer_is_compiled_and_no_name_of_a_weight_changes(encoder: Path) -> None:
    model = BertForPreTraining.from_pretrained(encoder)
    names = [*model.state_dict()]
    Compile(True).complete(model)
    assert [layer._compiled_call_impl is not None for layer in layers_of(model)] == [True] * LAYERS
    assert [*model.state_dict()] == names


def test_runs_with_layers_of_their_own_are_not_compiled() -> None:
    assert Training(compile=True, together=2).conflict == (  # type: ignore[call-arg]
        "compile",
        "`compile` is for runs that train alone: leave out `compile` or `together`",
    )
    assert Training(compile=True).conflict is None  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_the_layers_of_an_unknown_type_are_refused(kind: str) -> None:
    problem = Compile(True).unfit(make("full-ft", {}), {"model_type": kind})
    assert (problem is None) == (kind in FAMILIES)
    assert Compile(True).unfit(make("full-ft", {}), {}) is None
