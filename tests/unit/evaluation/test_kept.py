"""A process that keeps an encoder evaluates each cell as a process of its own would."""

import gc
import json
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokens_fixture import write
from transformers import XLMRobertaConfig, XLMRobertaForMaskedLM

from xlgrid.evaluation import trained
from xlgrid.evaluation.cell import evaluate, evaluate_bare
from xlgrid.evaluation.kept import FACTS, Keeper
from xlgrid.models import load, prediction
from xlgrid.training.loop import train
from xlgrid.training.recipe import Recipe

TIMES = ("seconds", "cpu_seconds")
SIZE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
METHODS = ("full-ft", "bitfit", "lora", "prefix-tuning", "madx without language adapters", "qcross")

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two encoders, tokens for two heads, and runs of several methods."""
    folder, rng = tmp_path_factory.mktemp("world"), np.random.default_rng(1)
    for number, name in enumerate(("e", "f")):
        torch.manual_seed(number)
        config = XLMRobertaConfig(vocab_size=50, max_position_embeddings=40, pad_token_id=1, type_vocab_size=1, **SIZE)
        XLMRobertaForMaskedLM(config).save_pretrained(folder / name)
    rows = [rng.integers(5, 50, rng.integers(4, 20)).tolist() for _ in range(40)]
    for head in ("token", "sequence", "perplexity"):
        write(folder / f"{head}.arrow", rows, head)
    for encoder, head, method in [("e", "token", m) for m in METHODS] + [
        ("f", "token", "bitfit"),
        ("e", "sequence", "bitfit"),
    ]:
        options = {"language": False, "invertible": False} if method.startswith("madx") else {}
        names = {"study": "s", "task": "t", "kind": "wikiann" if head == "token" else "ruletaker", "encoder": encoder}
        names |= {"method": method, "base": method.split()[0], "options": options, "source": "en", "seed": 1}
        training = {"steps": 3, "batch_tokens": 128, "lr": 0.05, "evaluations": 1, "keep": "last"}
        tokens = [folder / f"{head}.arrow"]
        train(
            Recipe.model_validate({**names, "training": training}),
            folder / encoder,
            tokens,
            tokens,
            folder / f"{encoder}-{head}-{method}",
        )
    return folder


@pytest.fixture
def keeper(monkeypatch: pytest.MonkeyPatch) -> Keeper:
    """The keeper of a process that serves evaluations."""
    made = Keeper()
    monkeypatch.setattr(trained, "_keeper", made)
    return made


def cell(world: Path, run: str) -> dict[str, Any]:
    """The cell of a run, without its times."""
    encoder, head, *_ = run.split("-")
    tokens, out = world / f"{head}.arrow", world / "cell.json"
    if head == "perplexity":
        identity = {
            "study": "s",
            "task": "t",
            "encoder": encoder,
            "method": "as-is",
            "source": "none",
            "target": "fr",
            "seed": 0,
        }
        evaluate_bare(identity, world / encoder, tokens, out)
    else:
        evaluate(world / run, world / encoder, tokens, {"target": "fr"}, out)
    return {name: value for name, value in json.loads(out.read_text()).items() if name not in TIMES}


def test_cells_of_methods_encoders_and_heads_in_turn_are_those_of_fresh_processes(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [f"e-token-{method}" for method in METHODS]
    runs = [*runs, "f-token-bitfit", "e-perplexity", "e-sequence-bitfit", *reversed(runs)]
    monkeypatch.setattr(trained, "_keeper", None)
    alone = [cell(world, run) for run in runs]
    trained.keep()
    assert [cell(world, run) for run in runs] == alone


def test_an_encoder_is_loaded_once_for_all_methods_and_again_after_another_one(
    world: Path, keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads, load_model = [], load.load_model
    monkeypatch.setattr(load, "load_model", lambda *args: loads.append(args) or load_model(*args))
    for run in [*(f"e-token-{method}" for method in METHODS), "f-token-bitfit", "e-token-bitfit"]:
        cell(world, run)
    assert [Path(args[0]).name for args in loads] == ["e", "f", "e"]


def test_an_encoder_that_was_written_again_is_loaded_again(
    world: Path, keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell(world, "e-token-bitfit")
    loads, load_model = [], load.load_model
    monkeypatch.setattr(load, "load_model", lambda *args: loads.append(args) or load_model(*args))
    (world / "e" / "model.safetensors").touch()
    cell(world, "e-token-bitfit")
    assert len(loads) == 1


def test_out_of_memory_after_other_cells_is_an_error_and_the_first_cell_goes_on_with_smaller_batches(
    world: Path, keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    halves, predictions_on = [], prediction.predictions_on
    monkeypatch.setattr(
        prediction,
        "predictions_on",
        lambda *args, **more: halves.append(more["halves"]) or predictions_on(*args, **more),
    )
    for _ in range(2):
        cell(world, "e-token-bitfit")
    assert halves == [True, False]


def linear() -> Any:
    return torch.nn.Linear(4, 4)


def test_a_weight_that_is_changed_in_place_costs_a_load_and_changes_no_further_model() -> None:
    keeper, first = Keeper(), linear()
    expected = first.weight.detach().clone()
    for made in (first, linear()):
        model: Any = keeper.model("e", lambda made=made: made)
        with torch.no_grad():
            model.weight.zero_()
    assert not first.weight.any(), "the memory is shared"
    again: Any = keeper.model("e", lambda: torch.nn.Linear(4, 4).requires_grad_(False))
    assert again.weight.any() and expected.any()


def test_random_numbers_after_a_load_are_those_of_a_process_that_has_just_begun() -> None:
    torch.manual_seed(5)
    linear()
    expected = torch.rand(3)
    torch.manual_seed(5)
    keeper = Keeper()
    for identity in ("e", "e", "f"):
        torch.manual_seed(9)
        keeper.model(identity, linear)
        assert torch.equal(torch.rand(3), expected), identity


def test_one_model_is_in_memory_at_a_time_even_if_it_refers_to_itself() -> None:
    keeper, models = Keeper(), []
    gc.disable()
    try:
        for _ in range(3):
            model: Any = keeper.model("e", linear)
            model.itself = [model]
            models.append(weakref.ref(model))
            del model
        assert [model() is None for model in models] == [True, True, False]
    finally:
        gc.enable()


def test_the_facts_of_last_use_are_kept() -> None:
    keeper, found = Keeper(), []
    for identity in (0, 1, 0, *range(2, FACTS + 1), 0, 1):
        keeper.fact(identity, lambda identity=identity: found.append(identity))
    assert found == [*range(FACTS + 1), 1], "1 was the oldest"


def test_a_weight_goes_to_a_device_once(monkeypatch: pytest.MonkeyPatch) -> None:
    keeper, device = Keeper(), torch.device("meta")
    placed = []
    for _ in range(2):
        model: Any = keeper.model("e", linear)
        model.bias.data = torch.ones(4)
        keeper.place(model, device)
        placed.append([model.weight, model.bias])
    assert all(weight.device == device for weights in placed for weight in weights)
    assert len(keeper._placed) == 2


# What a run replaces.


def test_the_encoder_itself_is_never_what_a_run_replaces(world: Path, keeper: Keeper) -> None:
    cell(world, "e-token-full-ft")
    encoder = keeper._encoder
    assert encoder is not None
    before = {name: p.clone() for name, p in encoder.named_parameters()}
    for method in METHODS:
        cell(world, f"e-token-{method}")
    assert keeper._encoder is encoder
    assert all(torch.equal(before[name], p) for name, p in encoder.named_parameters())


def test_tokens_that_were_written_again_are_read_again(world: Path, keeper: Keeper) -> None:
    first = cell(world, "e-token-bitfit")
    other = [[5 + number, 6] for number in range(30)]
    write(world / "other.arrow", other, "token").replace(world / "token.arrow")
    assert (first["n"], cell(world, "e-token-bitfit")["n"]) == (40, 30)
