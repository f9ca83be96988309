"""The files of a finished run."""

import hashlib
import json
import time
from pathlib import Path

import pytest
import torch
from plugin_fixture import guessing as guessing
from safetensors import safe_open

from xlgrid.training import results
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


def test_a_fingerprint_is_the_hash_of_the_hashes_of_the_files_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`run.json` of earlier runs has it. The first file is read last."""
    monkeypatch.setattr(results, "BLOCK", 7)
    contents = [b"x" * 50_000, *(bytes([number]) * number for number in range(9))]
    paths = [tmp_path / str(number) for number in range(10)]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    expected = hashlib.sha256(b"".join(hashlib.sha256(content).digest() for content in contents)).hexdigest()[:16]
    assert fingerprint([*paths, tmp_path / "missing"]) == expected


def test_long_reading_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    digest = results._digest

    def slowly(path: Path, blocks: list[int]) -> bytes:
        contents = digest(path, blocks)
        time.sleep(0.5)
        return contents

    (tmp_path / "a").write_bytes(bytes(10**8))
    monkeypatch.setattr(results, "_digest", slowly)
    fingerprint([tmp_path / "a"])
    assert "reads the inputs" not in capsys.readouterr().err
    monkeypatch.setattr(results, "PROGRESS_SECONDS", 0.2)
    fingerprint([tmp_path / "a"])
    assert "reads the inputs: 0.1 of 0.1 GB" in capsys.readouterr().err


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
