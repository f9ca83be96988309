"""The files of a finished run."""

import json
from pathlib import Path

import pytest
import torch
from plugin_fixture import guessing as guessing
from safetensors import safe_open

from xlgrid.training.recipe import Recipe
from xlgrid.training.results import fingerprint, packages, write_record, write_tensors

NAMES = {"study": "s", "task": "t", "kind": "ruletaker", "encoder": "e", "method": "m", "source": "en", "seed": 1}


def test_the_files_of_a_run_carry_its_recipe_and_digest(tmp_path: Path) -> None:
    recipe = Recipe.model_validate({**NAMES, "base": "full-ft", "training": {}})
    write_record(tmp_path, recipe, {"labels": ["a"]}, [{"step": 1}, {"step": 2}])
    write_tensors(tmp_path / "delta.safetensors", recipe, {"x": torch.ones(2)})
    record = json.loads((tmp_path / "run.json").read_text())
    assert Recipe.model_validate(record["recipe"]) == recipe
    assert (record["digest"], record["labels"]) == (recipe.digest(), ["a"])
    assert (tmp_path / "curve.jsonl").read_text() == '{"step": 1}\n{"step": 2}\n'
    with safe_open(tmp_path / "delta.safetensors", framework="pt") as delta:
        assert delta.metadata() == {"digest": recipe.digest()} and torch.equal(delta.get_tensor("x"), torch.ones(2))


def test_a_fingerprint_differs_with_the_contents_of_any_file(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    prints = {fingerprint(paths)}
    for path in (*paths, paths[0]):
        path.write_text(f"{path.name}{len(prints)}")
        prints.add(fingerprint(paths))
    assert len(prints) == 4 and all(len(text) == 16 for text in prints)


@pytest.mark.parametrize(
    ("kind", "head", "expected"),
    [
        ("xnli", "sequence", {}),
        ("riddles", "guess", {"packages": {"my-guessing": "0.3"}}),
        ("guess", "guess", {"packages": {"my-guessing": "0.3"}}),
    ],
)
def test_a_run_names_the_packages_that_it_uses(guessing: None, kind: str, head: str, expected: dict[str, str]) -> None:
    recipe = Recipe.model_validate({**NAMES, "kind": kind, "base": "full-ft", "training": {}})
    assert packages(recipe, head) == expected
