"""The files of a run whose settings were chosen."""

import json
from pathlib import Path
from typing import Any

import pytest

from xlgrid.methods.variants import variant
from xlgrid.training.recipe import Recipe, Training
from xlgrid.training.sweep import Swept
from xlgrid.training.winner import make_winner

SWEPT = Swept(set={"lr": (1e-5, 5e-5)}, seeds=(1, 2), choose_on="target")


def recipe(seed: int, method: str = "bitfit", **changes: Any) -> Recipe:
    fields = {
        "study": "s",
        "task": "ner",
        "kind": "token",
        "encoder": "e",
        "base": "bitfit",
        "source": "en",
        "seed": seed,
    }
    return Recipe.model_validate({**fields, "method": method, "training": {"warmup": 0.2}, "sweep": SWEPT, **changes})


@pytest.fixture
def choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A choice of the second value, with the files of the runs of both variants."""
    monkeypatch.chdir(tmp_path)
    tried = []
    for lr in (1e-5, 5e-5):
        lines = []
        for seed in (1, 2):
            own = recipe(
                seed, variant("bitfit", {"lr": lr}), sweep=None, training={"warmup": 0.2, "lr": lr}, study="parent"
            )
            folder = Path("runs", own.method, f"seed{seed}")
            folder.mkdir(parents=True)
            (folder / "delta.safetensors").write_bytes(f"{lr} {seed}".encode())
            (folder / "step10.safetensors").write_bytes(b"a checkpoint")
            (folder / "curve.jsonl").write_text(f"{lr} {seed}")
            record = {"recipe": own.model_dump(mode="json"), "digest": own.digest(), "labels": ["O"], "seconds": 9.0}
            (folder / "run.json").write_text(json.dumps(record | {"dev_score": 80.0}))
            lines.append({"seed": seed, "run": str(folder)})
        tried.append({"settings": {"lr": lr}, "runs": lines})
    made = {**SWEPT.model_dump(mode="json"), "chosen": {"lr": 5e-5}, "tried": tried}
    Path("choice.json").write_text(json.dumps(made))
    return Path("choice.json")


def never(recipe: Recipe) -> None:
    raise AssertionError("nothing trains")


def test_a_run_with_a_seed_of_selection_is_that_of_the_winner(choice: Path) -> None:
    make_winner(recipe(2), choice, Path("out"), never)
    theirs = Path("runs/bitfit@lr=5e-05/seed2")
    for name in ("delta.safetensors", "step10.safetensors", "curve.jsonl"):
        assert Path("out", name).read_bytes() == (theirs / name).read_bytes()
        assert Path("out", name).stat().st_ino != (theirs / name).stat().st_ino
    record, other = (json.loads((folder / "run.json").read_text()) for folder in (Path("out"), theirs))
    assert (record["recipe"]["method"], record["recipe"]["study"]) == ("bitfit", "s")
    assert record["recipe"]["training"] == other["recipe"]["training"]
    assert record["recipe"]["sweep"]["chosen"] == {"lr": 5e-5}
    assert record["recipe"]["sweep"]["choose_on"] == "target"
    assert (record["taken_from"], record["seconds"], record["cpu_seconds"]) == (str(theirs), 0.0, 0.0)
    assert (record["digest"], record["dev_score"]) == (other["digest"], 80.0)
    assert Recipe.model_validate(record["recipe"]).training.lr == 5e-5


def test_any_other_run_trains_with_the_settings_of_the_winner(choice: Path) -> None:
    trained: list[Recipe] = []
    make_winner(recipe(7), choice, Path("out"), trained.append)
    [own] = trained
    assert own.training == Training(lr=5e-5, warmup=0.2)
    assert (own.method, own.seed) == ("bitfit", 7)
    assert own.sweep == SWEPT.model_copy(update={"chosen": {"lr": 5e-5}})
    assert not Path("out").exists()


@pytest.mark.parametrize("changed", [{"seeds": (1,)}, {"choose_on": "source"}, {"set": {"lr": (1e-5, 1e-4)}}])
def test_the_choice_of_another_sweep_is_refused(choice: Path, changed: dict[str, Any]) -> None:
    with pytest.raises(
        ValueError, match=r"choice.json is the choice of another sweep than that of the recipe: delete it"
    ):
        make_winner(recipe(2, sweep=SWEPT.model_copy(update=changed)), choice, Path("out"), never)


def test_a_sweep_changes_the_identity_of_a_recipe() -> None:
    with_sweep, without = recipe(1), recipe(1, sweep=None)
    assert without.digest() != with_sweep.digest()
    assert '"sweep"' in with_sweep.identity() and '"sweep"' not in without.identity()
    assert Recipe.parse(with_sweep.identity(), with_sweep.pace()) == with_sweep
