"""Training repeats to the bit, and a killed run ends as an uninterrupted one."""

import json
import math
import random
import shlex
import shutil
import signal
import subprocess
import sys
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import forked
import numpy as np
import pyarrow as pa
import pytest
import surprisal
import torch
from safetensors.torch import load_file, save_file
from tokens_fixture import write
from transformers import BertForSequenceClassification

from xlgrid.base import provenance
from xlgrid.data import batches
from xlgrid.heads import HEADS
from xlgrid.methods import Method
from xlgrid.models import deltas, prediction
from xlgrid.models.load import load_model
from xlgrid.results.learning import Learning
from xlgrid.training import loop as loop_module
from xlgrid.training import processes
from xlgrid.training.loop import Loop, Stopped, learning_rate, train
from xlgrid.training.recipe import Recipe, Training
from xlgrid.training.state import INPUTS
from xlgrid.training.taken import Taken

RESULTS = ("delta.safetensors", "run.json", "curve.jsonl")
# Trains in a process that kills itself at given optimiser steps, as a node that dies would.
KILLED = """
import os, signal, sys
from pathlib import Path
from xlgrid.training import loop as module
from xlgrid.training.recipe import Recipe
recipe, encoder, tokens, folder, at, number = sys.argv[1:]
advance = module.Loop.advance
def doomed(self, chosen):
    if self.step == int(at):
        os.kill(os.getpid(), int(number))
    return advance(self, chosen)
module.Loop.advance = doomed
module.train(Recipe.model_validate_json(recipe), Path(encoder), [Path(tokens)], [Path(tokens)], Path(folder))
"""


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(1)
    ids = [[2, *rng.integers(5, 40, rng.integers(3, 20)).tolist(), 3] for _ in range(60)]
    ids = [[2 + row[1] % 2, *row] for row in ids]
    return write(tmp_path_factory.mktemp("tokens") / "t.arrow", ids)


def recipe(base: str = "full-ft", **training: Any) -> Recipe:
    names = {"study": "s", "task": "t", "kind": "ruletaker", "encoder": "e", "method": "m", "source": "en", "seed": 1}
    settings = {"steps": 30, "batch_tokens": 128, "lr": 5e-3, "evaluations": 5, "checkpoint_seconds": 1e-9, **training}
    return Recipe.model_validate({**names, "base": base, "training": Training.model_validate(settings)})


def result(folder: Path) -> tuple[bytes, list[Any], dict[str, float]]:
    lines = [json.loads(line) for line in (folder / "curve.jsonl").read_text().splitlines()]
    return (
        (folder / "delta.safetensors").read_bytes(),
        [[v for k, v in line.items() if k != "seconds"] for line in lines],
        json.loads((folder / "run.json").read_text())["loss"],
    )


def remains(folder: Path) -> list[str]:
    """The names of files, but of the fingerprint of the inputs: it is there if the inputs were written more than a minute ago."""
    return sorted(path.name for path in folder.iterdir() if path.name != INPUTS)


def killed(
    at: int, number: int, run_recipe: Recipe, encoder: Path, tokens: Path, folder: Path
) -> subprocess.CompletedProcess:
    return forked.python(KILLED, run_recipe.model_dump_json(), encoder, tokens, folder, at, int(number))


@pytest.fixture(scope="module")
def plain(encoder: Path, tokens: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain")
    train(recipe(), encoder, [tokens], [tokens], folder)
    return folder


def test_the_best_of_a_metric_that_is_better_when_lower_is_the_lowest(
    encoder: Path, tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    surprisal.register(monkeypatch)
    table = pa.ipc.open_file(tokens).read_all()
    ids, labels = table["input_ids"].to_pylist(), table["label"].to_pylist()
    # A third of the dev set is mislabelled, so that its surprisal goes down, and up again as the model grows certain.
    wrong = [1 - label if row % 3 == 0 else label for row, label in enumerate(labels)]
    files = [write(tmp_path / name, ids, "surprisal", labels=of) for name, of in (("train", labels), ("dev", wrong))]
    train(recipe(evaluations=10), encoder, files[:1], files[1:], tmp_path / "run")
    curve = [json.loads(line) for line in (tmp_path / "run" / "curve.jsonl").read_text().splitlines()]
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    scores = {line["step"]: line["score"] for line in curve}
    best = min(scores, key=scores.__getitem__)
    assert best not in (min(scores), max(scores)), "the first or the last one would show nothing"
    assert (record["best_step"], record["dev_score"], record["metric"]) == (best, scores[best], "surprisal")


def test_two_runs_are_identical(
    plain: Path, encoder: Path, tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With another commit of xlgrid and another command, too, which are in the record alone."""
    monkeypatch.setattr(provenance, "commit", lambda: "c" * 40)
    monkeypatch.setattr(sys, "argv", ["xlgrid", "train", "elsewhere"])
    torch.rand(5)  # What ran before in the process must not matter.
    train(recipe(), encoder, [tokens], [tokens], tmp_path)
    assert result(tmp_path) == result(plain)
    first, second = (json.loads((folder / "run.json").read_text()) for folder in (plain, tmp_path))
    differ = {name for name in first | second if first.get(name) != second.get(name)}
    assert differ - {"seconds", "cpu_seconds"} == {"commit", "command"}


def test_the_random_numbers_are_those_of_manual_seed(
    plain: Path, encoder: Path, tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step seeds the generators of its device alone, which takes no traceback of each other kind of device."""
    monkeypatch.setattr(loop_module, "seed_generators", lambda device, seed: torch.manual_seed(seed))
    train(recipe(), encoder, [tokens], [tokens], tmp_path)
    assert result(tmp_path) == result(plain)


def test_it_learns(plain: Path) -> None:
    losses = [json.loads(line)["loss"] for line in (plain / "curve.jsonl").read_text().splitlines()]
    assert losses[-1] < 0.8 * losses[0], losses


def test_the_record_says_what_shows_that_something_was_learnt(plain: Path, encoder: Path, tokens: Path) -> None:
    """A new head begins with the loss of a guess among three labels."""
    record = json.loads((plain / "run.json").read_text())
    curve = [json.loads(line) for line in (plain / "curve.jsonl").read_text().splitlines()]
    labels = pa.ipc.open_file(tokens).read_all()["label"].to_pylist()
    assert record["loss"]["first"] == pytest.approx(math.log(3), abs=0.2)
    assert record["loss"]["last"] == curve[-1]["loss"]
    most = 100 * max(labels.count(0), labels.count(1)) / len(labels)
    assert record["chance"]["accuracy"] == pytest.approx(most)
    assert Learning().nothing({"run": plain}) == ""


@pytest.mark.parametrize(("base", "rate"), [("bitfit", 1000.0), ("full-ft", 3.0)])
def test_a_learning_rate_that_ends_above_the_first_loss_has_learnt_nothing(
    base: str, rate: float, encoder: Path, tokens: Path, tmp_path: Path
) -> None:
    train(recipe(base, lr=rate, steps=8, evaluations=1), encoder, [tokens], [tokens], tmp_path)
    assert "loss" in Learning().nothing({"run": tmp_path})


def test_the_record_has_the_seconds_of_the_cpu_beside_those_of_the_clock(plain: Path) -> None:
    record = json.loads((plain / "run.json").read_text())
    # One thread computes.
    assert 0 < record["cpu_seconds"] < record["seconds"] + 1


@pytest.mark.slow
def test_a_run_killed_and_resumed_is_identical(plain: Path, encoder: Path, tokens: Path, tmp_path: Path) -> None:
    steps = sorted(random.Random("steps to die at").sample(range(2, 30), 2))
    for at in steps:
        died = killed(at, signal.SIGKILL, recipe(), encoder, tokens, tmp_path)
        assert died.returncode == -signal.SIGKILL, died.stderr
        assert not [name for name in RESULTS if (tmp_path / name).exists()]
    train(recipe(), encoder, [tokens], [tokens], tmp_path)
    assert result(tmp_path) == result(plain)


@pytest.mark.parametrize(
    ("base", "options"),
    [
        ("lora", {"dropout": 0.3}),
        ("ia3", {}),
        ("prefix-tuning", {"length": 3}),
    ],
)
def test_a_resumed_run_with_parameters_of_peft_is_identical(
    base: str, options: dict[str, Any], encoder: Path, tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = recipe(base, steps=8, evaluations=2).model_copy(update={"options": options})
    train(one, encoder, [tokens], [tokens], tmp_path / "whole")
    with monkeypatch.context() as patch:
        advance = Loop.advance
        patch.setattr(Loop, "advance", lambda self, chosen: 1 / 0 if self.step == 5 else advance(self, chosen))
        with pytest.raises(ZeroDivisionError):
            train(one, encoder, [tokens], [tokens], tmp_path / "resumed")
    train(one, encoder, [tokens], [tokens], tmp_path / "resumed")
    assert result(tmp_path / "resumed") == result(tmp_path / "whole")


def test_a_method_begins_when_the_model_has_the_weights_of_its_start(
    encoder: Path, tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, torch.Tensor]] = []

    def begin(self: Method, model: Any) -> None:
        seen.append({name: p.detach().clone() for name, p in deltas.named_parameters(model).items()})

    monkeypatch.setattr(Method, "begin", begin)
    one = recipe(steps=2, evaluations=1)
    train(one, encoder, [tokens], [tokens], tmp_path / "first")
    later = one.model_copy(update={"first": "t", "task": "u"})
    train(later, encoder, [tokens], [tokens], tmp_path / "later", first=tmp_path / "first")
    trained = load_file(tmp_path / "first" / "delta.safetensors")
    own, of_later = seen
    assert not all(torch.equal(own[name], tensor) for name, tensor in trained.items())
    assert all(torch.equal(of_later[name], tensor) for name, tensor in trained.items())


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR2])
def test_a_run_told_to_stop_saves_says_so_and_resumes(
    number: signal.Signals,
    plain: Path,
    encoder: Path,
    tokens: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    patient = recipe(checkpoint_seconds=3600)
    died = killed(17, number, patient, encoder, tokens, tmp_path)
    assert died.returncode == 75, died.stderr
    assert f"stopped by {number.name} before step 19 of 30" in died.stderr
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    assert state["cpu_seconds"] > 0 and state["seconds"] > 0
    torch.save(state | {"seconds": 1000.0, "cpu_seconds": 3000.0}, tmp_path / "state.pt")
    train(patient, encoder, [tokens], [tokens], tmp_path)
    assert "resumes after step 18 of 30" in capfd.readouterr().err
    record, whole = (json.loads((folder / "run.json").read_text()) for folder in (tmp_path, plain))
    assert 1000 < record["seconds"] < 1300 and 3000 < record["cpu_seconds"] < 3300
    assert 0 < whole["cpu_seconds"] < 300
    weights = [load_file(folder / "delta.safetensors") for folder in (tmp_path, plain)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[1])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-200]), "truncated or damaged"),
        (lambda path: torch.save({"digest": "another", "inputs": ""}, path), "another recipe"),
    ],
)
def test_a_useless_state_starts_over(
    spoil: Any,
    message: str,
    plain: Path,
    encoder: Path,
    tokens: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    Loop(recipe(), encoder, [tokens], [tokens], tmp_path).save()
    spoil(tmp_path / "state.pt")
    (tmp_path / ".state.1.pt").write_bytes(b"half")
    train(recipe(), encoder, [tokens], [tokens], tmp_path)
    assert message in capfd.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(RESULTS)
    assert result(tmp_path) == result(plain)


def test_a_state_of_another_encoder_starts_over(
    plain: Path, encoder: Path, tokens: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    shutil.copytree(encoder, other)
    weights = load_file(other / "model.safetensors")
    save_file({name: tensor + 1 for name, tensor in weights.items()}, other / "model.safetensors", {"format": "pt"})
    Loop(recipe(), other, [tokens], [tokens], tmp_path / "run").save()
    train(recipe(), encoder, [tokens], [tokens], tmp_path / "run")
    assert "the encoder or the data have changed" in capfd.readouterr().err
    assert result(tmp_path / "run") == result(plain)


def test_one_process_reads_the_inputs_for_all(
    encoder: Path, tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes.Processes, "from_first", lambda *_: "from the first")
    assert Loop(recipe(), encoder, [tokens], [tokens], tmp_path).inputs == "from the first"


STEPS = (5, 12, 30)


def checkpoints(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("step*"))}


@pytest.fixture(scope="module")
def kept(encoder: Path, tokens: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept")
    train(recipe(checkpoints=STEPS), encoder, [tokens], [tokens], folder)
    return folder


def test_checkpoints_are_the_weights_as_of_their_steps(kept: Path, plain: Path, encoder: Path, tokens: Path) -> None:
    assert list(checkpoints(kept)) == ["step12.safetensors", "step30.safetensors", "step5.safetensors"]
    last, checkpoint = recipe(keep="last"), load_file(kept / "step30.safetensors")
    train(last, encoder, [tokens], [tokens], kept / "last")
    assert all(
        torch.equal(checkpoint[name], tensor) for name, tensor in load_file(kept / "last" / "delta.safetensors").items()
    )
    early = load_file(kept / "step5.safetensors")
    assert early.keys() == checkpoint.keys() and not all(
        torch.equal(early[name], checkpoint[name]) for name in checkpoint
    )
    weights = [load_file(folder / "delta.safetensors") for folder in (kept, plain)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[1]), "they change the training"


@pytest.mark.slow
def test_the_checkpoints_of_a_run_killed_and_resumed_are_identical(
    kept: Path, encoder: Path, tokens: Path, tmp_path: Path
) -> None:
    (tmp_path / "step7.safetensors").write_bytes(b"of an earlier training")
    run_recipe = recipe(checkpoints=STEPS)
    assert killed(20, signal.SIGKILL, run_recipe, encoder, tokens, tmp_path).returncode == -signal.SIGKILL
    assert list(checkpoints(tmp_path)) == ["step12.safetensors", "step5.safetensors"]
    (tmp_path / ".step12.1.safetensors").write_bytes(b"half")
    train(run_recipe, encoder, [tokens], [tokens], tmp_path)
    assert checkpoints(tmp_path) == checkpoints(kept)
    assert result(tmp_path) == result(kept)
    assert not list(tmp_path.glob(".step*"))


def stopped(at: int, run_recipe: Recipe, encoder: Path, tokens: Path, folder: Path) -> Loop:
    """A run that was told to stop as soon as it had done step `at`, which it saved."""
    loop = Loop(run_recipe, encoder, [tokens], [tokens], folder)

    class After:
        def __bool__(self) -> bool:
            return loop.step == at

    with pytest.raises(Stopped):
        loop.go(After())  # type: ignore[arg-type]
    loop.save()
    return loop


@pytest.mark.parametrize(("at", "written"), [(5, True), (12, False)], ids=["after it", "before it, in an evaluation"])
def test_a_run_stopped_at_the_step_of_a_checkpoint_writes_the_same(
    at: int, written: bool, kept: Path, encoder: Path, tokens: Path, tmp_path: Path
) -> None:
    run_recipe = recipe(checkpoints=STEPS)
    stopped(at, run_recipe, encoder, tokens, tmp_path)
    assert (tmp_path / f"step{at}.safetensors").exists() is written
    train(run_recipe, encoder, [tokens], [tokens], tmp_path)
    assert checkpoints(tmp_path) == checkpoints(kept)


def test_a_checkpoint_that_is_gone_is_made_again(
    kept: Path, encoder: Path, tokens: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run_recipe = recipe(checkpoints=STEPS)
    stopped(13, run_recipe, encoder, tokens, tmp_path)
    (tmp_path / "step12.safetensors").unlink()
    train(run_recipe, encoder, [tokens], [tokens], tmp_path)
    assert "step12.safetensors is missing" in capfd.readouterr().err
    assert checkpoints(tmp_path) == checkpoints(kept)


def test_a_checkpoint_after_the_end_is_refused(encoder: Path, tokens: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`checkpoints` has step 31"):
        train(recipe(checkpoints=(5, 31)), encoder, [tokens], [tokens], tmp_path)
    assert remains(tmp_path) == []


def staged(folder: Path, task: str, first: str | None, **changes: Any) -> tuple[Recipe, Path]:
    """The recipe of a task, whose runs begin with those of task `first`, and the folder of its run."""
    fields = {**recipe(steps=4, evaluations=1, **changes).model_dump(), "task": task, "first": first}
    return Recipe.model_validate(fields), folder / task


def test_a_second_stage_begins_with_all_that_the_first_ended_with(encoder: Path, tokens: Path, tmp_path: Path) -> None:
    siqa, folder = staged(tmp_path, "siqa", None)
    train(siqa, encoder, [tokens], [tokens], folder)
    copa, second = staged(tmp_path, "copa", "siqa")
    loop = Loop(copa, encoder, [tokens], [tokens], second, first=folder)
    stored = load_file(folder / "delta.safetensors")
    assert "classifier.weight" in stored
    assert all(torch.equal(p, stored[name]) for name, p in deltas.kept(loop.model, loop.method, loop.head).items())


def test_a_second_stage_starts_over_when_the_first_has_changed(
    encoder: Path, tokens: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    copa, second = staged(tmp_path, "copa", "siqa")
    for changes in ({}, {"lr": 1e-2}):
        siqa, folder = staged(tmp_path, "siqa", None, **changes)
        train(siqa, encoder, [tokens], [tokens], folder)
        Loop(copa, encoder, [tokens], [tokens], second, first=folder).save()
    assert "have changed since" in capfd.readouterr().err


def test_the_first_stage_comes_after_the_text(encoder: Path, tokens: Path, tmp_path: Path) -> None:
    """The parameters that a method trains are those of the first stage, all others those of the MLM run."""
    query = "bert.encoder.layer.0.attention.self.query"
    query_on_text = {f"{query}.weight": torch.full((16, 16), 0.1), f"{query}.bias": torch.full((16,), 0.2)}
    text = tmp_path / "text"
    text.mkdir()
    save_file(query_on_text, text / "delta.safetensors", {"digest": "d"})
    (text / "run.json").write_text(json.dumps({"recipe": {"source": "en"}, "digest": "d", "labels": [], "start": None}))
    biases = {"base": "bitfit", "start": {"task": "mlm", "method": "mlm"}}
    siqa, folder = staged(tmp_path, "siqa", None)
    train(Recipe.model_validate(siqa.model_dump() | biases), encoder, [tokens], [tokens], folder, text)
    copa, second = staged(tmp_path, "copa", "siqa")
    loop = Loop(Recipe.model_validate(copa.model_dump() | biases), encoder, [tokens], [tokens], second, text, folder)
    stored = load_file(folder / "delta.safetensors")
    now = dict(loop.model.named_parameters())
    assert torch.equal(now[f"{query}.weight"], query_on_text[f"{query}.weight"]) and f"{query}.weight" not in stored
    assert torch.equal(now[f"{query}.bias"], stored[f"{query}.bias"])
    assert not torch.equal(query_on_text[f"{query}.bias"], stored[f"{query}.bias"])


def short_of_memory(
    monkeypatch: pytest.MonkeyPatch, fails: Callable[[int, int], bool], backward: bool = False
) -> list[int]:
    """A device whose memory runs out when `fails`, given the number of the forward pass, from 1, and its tokens with
    padding, says so; the tokens of every pass."""
    sizes: list[int] = []
    forward = BertForSequenceClassification.forward

    def fail(*_: Any) -> None:
        # As torch.AcceleratorError does, which earlier versions lack; torch.OutOfMemoryError is one of those below.
        raise RuntimeError(
            "CUDA error: out of memory\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."
        )

    def limited(self: Any, input_ids: torch.Tensor, **more: Any) -> Any:
        sizes.append(input_ids.numel())
        failing = fails(len(sizes), sizes[-1])
        if failing and not backward:
            fail()
        output = forward(self, input_ids, **more)
        if failing:
            output.logits.register_hook(fail)
        return output

    monkeypatch.setattr(BertForSequenceClassification, "forward", limited)
    return sizes


@pytest.mark.parametrize(
    ("fails", "backward", "setting"),
    [
        (lambda number, tokens: tokens > 50, False, None),
        (lambda number, tokens: number == 1, True, None),
        # The gradients of the first part are there by then, and must go.
        (lambda number, tokens: number == 2, False, 64),
        (lambda number, tokens: number == 2, True, 64),
    ],
)
def test_out_of_memory_ends_as_if_the_limit_had_been_asked_for(
    fails: Callable[[int, int], bool],
    backward: bool,
    setting: int | None,
    encoder: Path,
    tokens: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """To the bit, with dropout, which the same seed and parts draw alike."""
    run_recipe = recipe(steps=6, evaluations=2, micro_batch_tokens=setting)
    with monkeypatch.context() as patch:
        short_of_memory(patch, fails, backward)
        train(run_recipe, encoder, [tokens], [tokens], tmp_path / "halved")
    record = json.loads((tmp_path / "halved" / "run.json").read_text())
    limit = record["micro_batch_tokens"]
    printed = capfd.readouterr().err
    assert "out of memory at step 1 of 6" in printed and f"{limit} tokens" in printed
    assert limit < (setting or 128)
    assert record["recipe"]["training"]["micro_batch_tokens"] == setting and record["digest"] == run_recipe.digest()
    train(recipe(steps=6, evaluations=2, micro_batch_tokens=limit), encoder, [tokens], [tokens], tmp_path / "asked")
    weights = [load_file(tmp_path / name / "delta.safetensors") for name in ("halved", "asked")]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[1])
    assert result(tmp_path / "halved")[1] == result(tmp_path / "asked")[1]


def test_out_of_memory_leaves_the_batch_as_it_was(
    encoder: Path, tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_recipe = recipe(dropout=0.0, steps=4, evaluations=4)
    train(run_recipe, encoder, [tokens], [tokens], tmp_path / "roomy")
    sizes = short_of_memory(monkeypatch, lambda number, tokens: tokens > 50)
    train(run_recipe, encoder, [tokens], [tokens], tmp_path / "tight")
    losses = [[line[1] for line in result(tmp_path / name)[1]] for name in ("roomy", "tight")]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert sum(size > 50 for size in sizes) == 2, f"128, then 64, then never again, but: {sizes}"


def test_a_resumed_run_keeps_the_limit(
    encoder: Path, tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    run_recipe = recipe(steps=6, evaluations=2)
    short_of_memory(monkeypatch, lambda number, tokens: tokens > 50)
    train(run_recipe, encoder, [tokens], [tokens], tmp_path / "through")
    loop = Loop(run_recipe, encoder, [tokens], [tokens], tmp_path / "stopped")
    stop: list[signal.Signals] = []

    def last(chosen: batches.Ints) -> dict[str, float]:
        losses = Loop.advance(loop, chosen)
        stop.append(signal.SIGTERM)
        return losses

    monkeypatch.setattr(loop, "advance", last)
    with pytest.raises(Stopped):
        loop.go(stop)
    loop.save()
    capfd.readouterr()
    train(run_recipe, encoder, [tokens], [tokens], tmp_path / "stopped")
    messages = capfd.readouterr().err
    assert "resumes after step 1 of 6" in messages and "out of memory" not in messages
    records = [json.loads((tmp_path / name / "run.json").read_text()) for name in ("through", "stopped")]
    assert records[0]["micro_batch_tokens"] == records[1]["micro_batch_tokens"] == loop.limit
    assert result(tmp_path / "through") == result(tmp_path / "stopped")


def test_a_run_resumes_with_fewer_tokens_at_once_if_the_setting_is_lowered(
    encoder: Path, tokens: Path, tmp_path: Path
) -> None:
    loop = Loop(recipe(micro_batch_tokens=60), encoder, [tokens], [tokens], tmp_path)
    loop.save()
    for setting, expected in ((40, 40), (80, 60), (None, 60)):
        assert Loop(recipe(micro_batch_tokens=setting), encoder, [tokens], [tokens], tmp_path).limit == expected


def test_an_example_too_long_for_memory_is_told(
    encoder: Path, tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = short_of_memory(monkeypatch, lambda number, tokens: True)
    with pytest.raises(
        ValueError,
        match=r"one example at a time, .* \d+ tokens: lower .*`max_length`.*torch says: CUDA error: out of memory",
    ):
        train(recipe(checkpoint_seconds=3600), encoder, [tokens], [tokens], tmp_path)
    assert len(sizes) <= 4 and sizes[-1] <= 22, f"none after single examples, but: {sizes}"
    assert remains(tmp_path) == []


def test_the_memory_of_a_failed_attempt_is_free_before_the_next(
    encoder: Path, tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = Loop(recipe(), encoder, [tokens], [tokens], tmp_path)
    accumulate = loop.accumulate
    held: list[weakref.ref[torch.Tensor]] = []

    def once(parts: list[batches.Ints]) -> float:
        if held:
            assert held[0]() is None, "the first attempt's tensors are alive"
            return accumulate(parts)
        activations = torch.zeros(3)
        held.append(weakref.ref(activations))
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(loop, "accumulate", once)
    loop.advance(np.arange(9))
    assert held


def test_an_optimiser_out_of_memory_ends_the_run(
    encoder: Path, tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of its state may be there: the step must be neither done again nor saved."""
    calls = []

    def fail(*_: Any) -> None:
        calls.append(1)
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(torch.optim.AdamW, "step", fail)
    with pytest.raises(ValueError, match=r"optimiser ran out of memory at step 1 of 30.* use a larger GPU"):
        train(recipe(checkpoint_seconds=3600), encoder, [tokens], [tokens], tmp_path)
    assert len(calls) == 1 and remains(tmp_path) == []


def test_an_evaluation_out_of_memory_goes_on_with_less_at_once(
    plain: Path, encoder: Path, tokens: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    read = batches.read(tokens)
    # Wrong labels here and there, so that an outcome in another's place shows.
    labels = read.columns["label"] ^ (np.random.default_rng(1).random(len(read)) < 0.3)
    data = replace(read, columns={"label": labels})
    model = load_model(encoder, HEADS[data.head], len(data.label_names))
    model.load_state_dict(load_file(plain / "delta.safetensors"))
    expected = prediction.outcomes_on(model, Method(), data, 128)
    assert 10 < sum(gold == predicted for gold, predicted in expected) < 50, "outcomes all alike would show nothing"
    # The fourth pass is amid the examples; those done by then are not done again.
    sizes = short_of_memory(monkeypatch, lambda number, tokens: number == 4 or (number > 4 and tokens > 40))
    assert prediction.outcomes_on(model, Method(), data, 128) == expected
    messages = capfd.readouterr().err.splitlines()
    assert len(messages) == 2 and all("out of memory in evaluation: goes on with" in line for line in messages), (
        messages
    )
    assert max(sizes[5:]) <= 40, sizes


def test_a_loss_that_is_not_finite_ends_the_run_without_a_result(encoder: Path, tokens: Path, tmp_path: Path) -> None:
    """The first step sets the weights to sizes with which the second overflows."""
    with pytest.raises(FloatingPointError, match=r"at step 2 of 30, learning rate .*lower `lr`"):
        train(recipe(lr=1e30, clip=1e30), encoder, [tokens], [tokens], tmp_path)
    assert not [name for name in RESULTS if (tmp_path / name).exists()]


def spoilt(monkeypatch: pytest.MonkeyPatch, steps: set[int], only: Callable[[Loop], bool]) -> None:
    """Let the loss and the gradient of these steps, from 0, be NaN in loops for which `only` is true."""
    differentiate = Loop.differentiate

    def spoil(loop: Loop, chosen: batches.Ints) -> dict[str, torch.Tensor]:
        losses = differentiate(loop, chosen)
        if loop.step not in steps or not only(loop):
            return losses
        for weight in loop.weights.values():
            if weight.grad is not None:
                weight.grad.fill_(math.nan)
        return {name: loss * math.nan for name, loss in losses.items()}

    monkeypatch.setattr(Loop, "differentiate", spoil)


def test_a_step_is_read_when_the_next_one_is_taken_and_before_anything_is_saved(
    encoder: Path, tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU then never waits for its host, and what is saved is finite."""
    done: list[str] = []

    def noted(owner: Any, name: str, say: Callable[..., str]) -> None:
        whole = getattr(owner, name)

        def note(self: Any, *args: Any, **kwargs: Any) -> Any:
            done.append(say(self))
            return whole(self, *args, **kwargs)

        monkeypatch.setattr(owner, name, note)

    noted(Loop, "take_step", lambda loop: f"take {loop.step}")
    noted(Taken, "read", lambda taken: f"read {taken.number}")
    noted(Loop, "score", lambda loop: "evaluate")
    train(recipe(steps=4, evaluations=2, checkpoint_seconds=3600), encoder, [tokens], [tokens], tmp_path)
    half = ["take 0", "take 1", "read 0", "read 1", "evaluate"]
    assert done == [*half, *(word.replace("0", "2").replace("1", "3") for word in half)]


@pytest.mark.parametrize("at", [3, 5, 29])
def test_a_loss_that_is_not_finite_is_of_its_step_and_is_not_saved(
    at: int, encoder: Path, tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoilt(monkeypatch, {at}, lambda loop: True)
    loop = Loop(recipe(checkpoint_seconds=3600), encoder, [tokens], [tokens], tmp_path)
    with pytest.raises(FloatingPointError, match=f"the loss is nan and the gradient norm nan at step {at + 1} of 30"):
        loop.go([])
    with pytest.raises(FloatingPointError, match=f"at step {at + 1} of 30"):
        loop.save()
    assert remains(tmp_path) == []
    assert all(weight.isfinite().all() for weight in loop.weights.values())


@pytest.mark.parametrize("at", [{3}, {3, 4}, {5}, {0, 29}], ids=str)
def test_a_step_that_is_not_finite_in_bf16_is_taken_again_in_fp32(
    at: set[int], encoder: Path, tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.setattr(loop_module, "uses_bf16", lambda device, precision: precision == "bf16")
    run_recipe = recipe(precision="bf16", dropout=0.1)
    differentiate = Loop.differentiate

    def with_some_in_fp32(loop: Loop, chosen: batches.Ints) -> dict[str, torch.Tensor]:
        loop.bf16 = loop.step not in at
        losses = differentiate(loop, chosen)
        loop.bf16 = True
        return losses

    with monkeypatch.context() as patch:
        patch.setattr(Loop, "differentiate", with_some_in_fp32)
        train(run_recipe, encoder, [tokens], [tokens], tmp_path / "expected")
    spoilt(monkeypatch, at, lambda loop: loop.bf16)
    capfd.readouterr()
    train(run_recipe, encoder, [tokens], [tokens], tmp_path / "run")
    assert result(tmp_path / "run") == result(tmp_path / "expected")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["steps_in_fp32"] == len(at)
    messages = capfd.readouterr().err
    assert messages.count("is taken again in fp32") == 1
    assert f"warning: {len(at)} of 30 steps were not finite in bf16" in messages


def test_a_step_that_is_not_finite_in_fp32_either_ends_the_run(
    encoder: Path, tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_module, "uses_bf16", lambda device, precision: True)
    spoilt(monkeypatch, {3}, lambda loop: True)
    with pytest.raises(FloatingPointError, match="at step 4 of 30"):
        train(recipe(precision="bf16", checkpoint_seconds=3600), encoder, [tokens], [tokens], tmp_path)
    assert remains(tmp_path) == []


@pytest.mark.slow
def test_a_full_disk_is_told_and_leaves_what_stood_there(
    plain: Path, encoder: Path, tokens: Path, tmp_path: Path
) -> None:
    """No file of the process may grow beyond 20 kB, less than a state: to the writer that is a disk that is full."""
    files = ["--encoder", encoder, "--train", tokens, "--dev", tokens, "--output", tmp_path]
    limited = f"ulimit -f 20; exec {shlex.join(map(str, [Path(sys.executable).parent / 'xlgrid', 'train', *files]))}"
    command = ["bash", "-c", limited + ' --recipe "$1"', "bash", recipe().model_dump_json()]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert process.returncode == 1, process.stderr
    last = process.stderr.splitlines()[-1]
    assert last.startswith("error: ") and f"cannot write {tmp_path / 'state.pt'}" in last, process.stderr
    assert remains(tmp_path) == []
    train(recipe(), encoder, [tokens], [tokens], tmp_path)
    assert result(tmp_path) == result(plain)


def test_bitfit_saves_only_what_it_trains(encoder: Path, tokens: Path, tmp_path: Path) -> None:
    train(recipe("bitfit", steps=3, evaluations=1), encoder, [tokens], [tokens], tmp_path)
    names = load_file(tmp_path / "delta.safetensors")
    assert names and all(".bias" in name or "pooler" in name or "classifier" in name for name in names)
    counts = json.loads((tmp_path / "run.json").read_text())["parameters"]
    assert counts["trained"] == sum(tensor.numel() for tensor in names.values()) < counts["total"]


def test_the_best_checkpoint_is_the_earliest_of_the_highest(plain: Path) -> None:
    record = json.loads((plain / "run.json").read_text())
    lines = [json.loads(line) for line in (plain / "curve.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [6, 12, 18, 24, 30]
    best = max(line["score"] for line in lines)
    assert (record["dev_score"], record["best_step"]) == (
        best,
        next(line["step"] for line in lines if line["score"] == best),
    )


def test_the_last_checkpoint_is_kept_if_the_recipe_says_so(encoder: Path, tokens: Path, tmp_path: Path) -> None:
    loop = Loop(recipe(keep="last", checkpoint_seconds=3600), encoder, [tokens], [tokens], tmp_path)
    loop.best_score = 101.0  # As if a score that no later one reaches had come before.
    loop.go([])
    loop.finish()
    record = json.loads((tmp_path / "run.json").read_text())
    last = json.loads((tmp_path / "curve.jsonl").read_text().splitlines()[-1])
    assert (record["best_step"], record["dev_score"]) == (last["step"], last["score"]) and last["step"] == 30
    saved = load_file(tmp_path / "delta.safetensors")
    assert saved and all(torch.equal(tensor, loop.weights[name]) for name, tensor in saved.items())


AVERAGE = {"keep": "average", "averaged": 3, "steps": 8, "evaluations": 4}


def test_an_average_run_has_the_mean_of_the_last_weights_and_their_score(
    encoder: Path, tokens: Path, tmp_path: Path
) -> None:
    train(recipe(checkpoints=(2, 4, 6, 8), **AVERAGE), encoder, [tokens], [tokens], tmp_path)
    of_steps = [load_file(tmp_path / f"step{step}.safetensors") for step in (4, 6, 8)]
    mean = load_file(tmp_path / "delta.safetensors")
    for name, tensor in mean.items():
        expected = torch.stack([weights[name] for weights in of_steps]).mean(0)
        torch.testing.assert_close(tensor, expected, rtol=1e-5, atol=1e-7)
    record, data = json.loads((tmp_path / "run.json").read_text()), batches.read(tokens)
    model = load_model(encoder, HEADS[data.head], len(data.label_names))
    model.load_state_dict(mean)
    outcomes = prediction.outcomes_on(model, Method(), data, 128)
    assert (record["best_step"], record["dev_score"]) == (
        8,
        pytest.approx(100 * np.mean([gold == predicted for gold, predicted in outcomes])),
    )


def test_an_average_run_that_was_stopped_between_evaluations_ends_the_same(
    encoder: Path, tokens: Path, tmp_path: Path
) -> None:
    train(recipe(**AVERAGE), encoder, [tokens], [tokens], tmp_path / "whole")
    stopped(5, recipe(**AVERAGE), encoder, tokens, tmp_path / "stopped")
    train(recipe(**AVERAGE), encoder, [tokens], [tokens], tmp_path / "stopped")
    assert result(tmp_path / "stopped") == result(tmp_path / "whole")


def test_a_mean_is_not_in_the_checkpoint_of_the_last_step(encoder: Path, tokens: Path, tmp_path: Path) -> None:
    for keep in ("average", "last"):
        settings = {**AVERAGE, "keep": keep, "checkpoints": (8,)}
        train(recipe(**settings), encoder, [tokens], [tokens], tmp_path / keep)
    averaged, last = (load_file(tmp_path / keep / "step8.safetensors") for keep in ("average", "last"))
    assert all(torch.equal(averaged[name], tensor) for name, tensor in last.items())


def test_the_learning_rate_rises_and_falls_linearly() -> None:
    settings = Training(lr=1.0, warmup=0.2)
    rates = [learning_rate(settings, step, 10) for step in range(10)]
    assert rates == pytest.approx([1 / 3, 2 / 3, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8])


@pytest.mark.parametrize(
    ("more", "runs", "message"),
    [
        (
            {"start": {"task": "mlm", "method": "m"}},
            {},
            r"`start` is the run of en.*: add --start",
        ),
        ({"first": "siqa"}, {}, "`first` is the run of siqa.*: add --first"),
        ({}, {"start": Path("text")}, "has no `start`, but the call names the run in text: leave out --start"),
        ({}, {"first": Path("run")}, "has no `first`, but the call names the run in run: leave out --first"),
    ],
)
def test_the_runs_to_begin_with_are_those_of_the_recipe(
    more: dict[str, Any], runs: dict[str, Path], message: str, encoder: Path, tokens: Path, tmp_path: Path
) -> None:
    run_recipe = Recipe.model_validate(recipe().model_dump() | more)
    with pytest.raises(ValueError, match=message):
        train(run_recipe, encoder, [tokens], [tokens], tmp_path, **runs)


def test_an_operation_without_a_deterministic_algorithm_is_computed_again_without_one(
    plain: Path, encoder: Path, tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    forward, calls = BertForSequenceClassification.forward, 0

    def lacking(self: Any, **inputs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise RuntimeError("put_ does not have a deterministic implementation, but you set 'torch.use_determin")
        return forward(self, **inputs)

    monkeypatch.setattr(BertForSequenceClassification, "forward", lacking)
    try:
        train(recipe(), encoder, [tokens], [tokens], tmp_path)
    finally:
        torch.use_deterministic_algorithms(False)
    assert result(tmp_path) == result(plain)
    assert "put_ does not have a deterministic implementation" in capsys.readouterr().err


def test_evaluation_finds_out_once_how_much_memory_there_is(
    encoder: Path, tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    forward = BertForSequenceClassification.forward

    def limited(self: Any, **inputs: Any) -> Any:
        if not self.training and inputs["input_ids"].numel() > 64:
            raise torch.OutOfMemoryError("no room")
        return forward(self, **inputs)

    monkeypatch.setattr(BertForSequenceClassification, "forward", limited)
    train(recipe(evaluations=5), encoder, [tokens], [tokens], tmp_path)
    assert capsys.readouterr().err.count("out of memory in evaluation: goes on") == 1


def test_training_goes_on_for_twenty_times_as_long_as_the_last_save_took(
    encoder: Path, tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step takes one second and a save two, which are asked for every five seconds."""
    now, saves = 0.0, []

    class Slow(Loop):
        def advance(self, chosen: Any) -> Any:
            nonlocal now
            now += 1
            return super().advance(chosen)

        def save(self) -> None:
            nonlocal now
            saves.append(now)
            now += 2

    slow = Slow(recipe(steps=100, checkpoint_seconds=5), encoder, [tokens], [tokens], tmp_path)
    monkeypatch.setattr(loop_module, "time", SimpleNamespace(monotonic=lambda: now))
    slow.go([])
    assert saves == [5, 47, 89]
