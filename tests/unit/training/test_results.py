"""The files of a finished run, and the fingerprint of what it was made from."""

import json
from pathlib import Path

import torch
from safetensors import safe_open

from xlgrid.training import results
from xlgrid.training.recipe import Recipe, Training

RECIPE = Recipe.model_validate(
    {"study": "s", "task": "t", "kind": "xnli", "encoder": "e", "method": "full-ft", "base": "full-ft", "source": "en"}
    | {"seed": 1, "training": Training(steps=2)}
)


def test_a_run_leaves_its_record_its_curve_and_its_weights(tmp_path: Path) -> None:
    results.write_results(tmp_path, RECIPE, {"labels": ["é"]}, [{"step": 1, "score": 50.0}], {"w": torch.ones(2)})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curve.jsonl", "delta.safetensors", "run.json"]
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["digest"] == RECIPE.digest() and record["labels"] == ["é"] and "commit" in record
    assert Recipe.model_validate(record["recipe"]) == RECIPE
    with safe_open(tmp_path / "delta.safetensors", framework="pt") as stored:
        assert stored.metadata() == {"digest": RECIPE.digest()}


def test_a_fingerprint_follows_the_contents_and_not_the_names(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("one")
    second.write_text("one")
    assert results.fingerprint([first]) == results.fingerprint([second, tmp_path / "missing"])
    second.write_text("two")
    assert results.fingerprint([first]) != results.fingerprint([second])
    assert results.fingerprint([first, second]) != results.fingerprint([second, first])
