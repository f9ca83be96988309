"""What a run stores comes back into a model, after the weights of the runs with which it began."""

import json
from pathlib import Path

import pytest
import torch
from models_fixture import model_of, write_run
from safetensors.torch import save_file

from xlgrid.base.errors import Damaged
from xlgrid.heads import HEADS
from xlgrid.methods import make
from xlgrid.models import deltas

WEIGHT, BIAS = (f"bert.encoder.layer.0.attention.self.query.{name}" for name in ("weight", "bias"))


def filled(name: str, number: float) -> dict[str, torch.Tensor]:
    return {name: torch.full((16, 16) if name == WEIGHT else (16,), number)}


def mlm_runs(folder: Path) -> tuple[Path, Path]:
    """Two MLM runs, of which the second began with the first and has trained the bias alone."""
    first, second = folder / "first", folder / "second"
    for run in (first, second):
        run.mkdir()
    write_run(first, filled(WEIGHT, 1) | filled(BIAS, 2))
    write_run(second, filled(BIAS, 3))
    record = json.loads((second / "run.json").read_text())
    (second / "run.json").write_text(json.dumps(record | {"start": str(first)}))
    return first, second


def test_an_mlm_run_comes_after_the_one_with_which_it_began(tmp_path: Path) -> None:
    _, second = mlm_runs(tmp_path)
    model = model_of("bert-sequence")
    deltas.load_mlm_run(second, model, make("bitfit", {}))
    assert (model.get_parameter(WEIGHT) == 1).all() and (model.get_parameter(BIAS) == 3).all()


def test_of_both_mlm_runs_only_what_is_wanted_is_loaded(tmp_path: Path) -> None:
    _, second = mlm_runs(tmp_path)
    model = model_of("bert-sequence")
    before = model.get_parameter(WEIGHT).detach().clone()
    deltas.load_mlm_run(second, model, make("bitfit", {}), lambda name: name == BIAS)
    assert torch.equal(model.get_parameter(WEIGHT), before) and (model.get_parameter(BIAS) == 3).all()


def test_weights_of_another_training_than_the_record_are_refused(tmp_path: Path) -> None:
    first, _ = mlm_runs(tmp_path)
    save_file(filled(BIAS, 2), first / "delta.safetensors", {"digest": "other"})
    with pytest.raises(Damaged, match=r"is of recipe other, the run\.json beside it of d: delete") as refused:
        deltas.load_mlm_run(first, model_of("bert-sequence"), make("bitfit", {}))
    assert refused.value.paths == (first,)


def test_an_mlm_run_stores_no_language_modelling_head() -> None:
    names = set(deltas.kept(model_of("bert-mlm"), make("full-ft", {}), HEADS["mlm"]))
    assert names and all(name.startswith("bert.") for name in names)


def test_a_run_with_cells_stores_the_language_modelling_head_that_it_has_trained() -> None:
    model = model_of("bert-mlm")
    names = set(deltas.kept(model, make("full-ft", {}), HEADS["perplexity"]))
    assert names == {name for name, _ in model.named_parameters()}


def test_weights_without_the_digest_of_a_recipe_are_refused(tmp_path: Path) -> None:
    model = model_of("bert-sequence")
    save_file({n: p.detach().clone() for n, p in model.named_parameters()}, tmp_path / "delta.safetensors")
    with pytest.raises(ValueError, match=r"belongs to recipe None, the run\.json beside it to d"):
        deltas.load_delta(tmp_path / "delta.safetensors", model, make("full-ft", {}), HEADS["sequence"], "d")


def test_a_head_is_stored_though_it_does_not_train() -> None:
    """Its weights were drawn at random, and no cell could draw them again."""
    method = make("bitfit", {"bert_head": "biases"})
    assert not method.trains("classifier.weight")
    assert "classifier.weight" in deltas.kept(model_of("bert-sequence"), method, HEADS["sequence"])


@pytest.mark.parametrize("record", ["[]", "{}", '{"recipe": {}, "digest": "0"}'])
def test_a_record_without_its_entries_is_damaged(record: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(record, encoding="utf-8")
    with pytest.raises(ValueError, match=r"run.json is damaged \(entries are missing\): delete it and rerun training"):
        deltas.read_run(tmp_path)
