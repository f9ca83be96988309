"""Runs that train together have the gradients and weights of runs that train alone, and do not disturb one another."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from stand_in import DEVICE, stand_in
from together_fixture import METHODS, MODELS, RUNS, recipe

from xlgrid.models import deltas
from xlgrid.training import schedule
from xlgrid.training.loop import Loop, Stopped
from xlgrid.training.together import stack
from xlgrid.training.together.group import Files, Group, Member

pytestmark = pytest.mark.usefixtures("one_thread")

# A gradient of the key biases of attention is zero but for rounding, so that differences are compared with whole norms.
NEAR = 1e-10


def members(
    base: str, encoder: Path, of: Callable[[str, str], Path], folder: Path, head: str = "sequence", **more: Any
) -> list[Member]:
    recipes = [recipe(base, **{**run, **more}) for run in RUNS]
    data = [[of(head, str(each.source))] for each in recipes]
    return [
        Member(each, encoder, Files(own, own), folder / str(number))
        for number, (each, own) in enumerate(zip(recipes, data, strict=True))
    ]


def vector(tensors: Any) -> torch.Tensor:
    return torch.cat([tensor.detach().flatten() for tensor in tensors])


def gradients(loop: Loop, names: list[str]) -> torch.Tensor:
    parameters = deltas.named_parameters(loop.model)
    return vector(parameters[name].grad for name in names if parameters[name].grad is not None)


def batches(loop: Loop) -> Any:
    return schedule.stream(loop.train, loop.settings, loop.recipe.seed, loop.plan, loop.step)


@pytest.mark.parametrize("head", ["sequence", "token"])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("base", METHODS)
def test_gradients_and_weights_are_those_of_separate_runs(
    base: str, kind: str, head: str, encoders: dict[str, Path], tokens: Callable[[str, str], Path], tmp_path: Path
) -> None:
    # With dropout, each run computes its own attention; without, rows of several runs are computed at once.
    more = {"dropout": 0.0} if kind == "xlm-roberta" else {}
    runs = members(base, encoders[kind], tokens, tmp_path / "together", head, **more)
    data = [[tokens(head, str(each.recipe.source))] for each in runs]
    singles = [
        Loop(each.recipe, encoders[kind], own, own, tmp_path / str(number))
        for number, (each, own) in enumerate(zip(runs, data, strict=True))
    ]
    for loop in (*runs, *singles):
        loop.model.double().train()
    group, streams = Group(runs, tmp_path), [batches(single) for single in singles]
    for step in range(20):
        chosen = {number: next(streams[number]) for number, single in enumerate(singles) if step < single.steps}
        group.advance(chosen)
        for number, rows in chosen.items():
            singles[number].advance(rows)
            names = [*singles[number].weights]
            ours, theirs = (gradients(loop, names) for loop in (runs[number], singles[number]))
            assert (ours - theirs).norm() < NEAR * theirs.norm()
    for run, single in zip(runs, singles, strict=True):
        ours, theirs = (
            vector(deltas.named_parameters(loop.model)[name] for name in single.weights) for loop in (run, single)
        )
        assert (ours - theirs).norm() < NEAR * theirs.norm()
        assert run.score() == pytest.approx(single.score(), rel=NEAR)


@pytest.mark.parametrize("head", ["sequence", "token"])
def test_attention_of_long_rows_is_that_of_short_ones(
    head: str, encoders: dict[str, Path], tokens: Callable[[str, str], Path], tmp_path: Path, monkeypatch: Any
) -> None:
    found = []
    for short in (stack.SHORT, 0):
        monkeypatch.setattr(stack, "SHORT", short)
        runs = members("bitfit", encoders["bert"], tokens, tmp_path / str(short), head, dropout=0.0)
        for run in runs:
            run.model.double().train()
        Group(runs, tmp_path).advance({number: next(batches(run)) for number, run in enumerate(runs)})
        found.append([gradients(run, [*deltas.named_parameters(run.model)]) for run in runs])
    for ours, theirs in zip(*found, strict=True):
        assert (ours - theirs).norm() < NEAR * theirs.norm()


def test_products_are_those_of_torch_up_to_rounding() -> None:
    generator = torch.Generator().manual_seed(1)
    states, weight, bias = (torch.randn(*size, generator=generator) for size in ((100, 24), (8, 24), (8,)))
    exact = torch.nn.functional.linear(states.double(), weight.double(), bias.double())
    assert torch.allclose(stack.product(states, weight, bias).double(), exact, rtol=0, atol=1e-5)
    assert torch.equal(stack.product(states.double(), weight.double(), bias.double()), exact)


def test_models_of_a_group_share_what_does_not_train(
    encoders: dict[str, Path], tokens: Callable[[str, str], Path], tmp_path: Path
) -> None:
    runs = members("bitfit", encoders["bert"], tokens, tmp_path)
    Group(runs, tmp_path)
    first, *others = (dict(run.model.base_model.named_parameters()) for run in runs)
    frozen = [name for name, parameter in first.items() if not parameter.requires_grad]
    # The pooler trains, as a part of the head.
    assert frozen == [name for name in first if not name.endswith("bias") and not name.startswith("pooler")]
    assert all(other[name] is first[name] for other in others for name in frozen)


def train(group: Group, until: int | None = None) -> None:
    """Train to the end, or until the first run has taken so many steps."""

    class Signals(list[Any]):
        def __bool__(self) -> bool:
            return until is not None and group.members[0].step >= until

    try:
        group.go(Signals())
    except Stopped:
        group.save()


def results(run: Loop) -> tuple[dict[str, bytes], list[Any]]:
    lines = [{key: value for key, value in line.items() if key != "seconds"} for line in run.curve]
    return {name: tensor.numpy().tobytes() for name, tensor in run.best.items()}, lines


def test_a_group_that_was_stopped_ends_with_the_same_bytes(
    encoders: dict[str, Path], tokens: Callable[[str, str], Path], tmp_path: Path
) -> None:
    def group(folder: Path) -> Group:
        return Group(members("lora", encoders["bert"], tokens, folder), folder)

    whole = group(tmp_path / "whole")
    train(whole)
    train(group(tmp_path / "parts"), until=7)
    resumed = group(tmp_path / "parts")
    assert [run.step for run in resumed.members] == [7, 7, 7, 7]
    train(resumed)
    assert [results(run) for run in resumed.members] == [results(run) for run in whole.members]


@pytest.mark.parametrize("base", METHODS)
def test_a_run_whose_loss_is_not_a_number_changes_no_other(
    base: str, encoders: dict[str, Path], tokens: Callable[[str, str], Path], tmp_path: Path
) -> None:
    """Until the run ends, and afterwards up to rounding, the others are those of a group in which nothing fails."""

    def group(name: str) -> Group:
        runs = members(base, encoders["bert"], tokens, tmp_path / name)
        for run in runs:
            run.model.double()
        return Group(runs, tmp_path / name)

    well, ill = group("well"), group("ill")

    def broken(batch: Any, totals: Mapping[str, float]) -> dict[str, torch.Tensor]:
        shares = Loop.shares(ill.members[1], batch, dict(totals))
        return {name: share * (float("nan") if ill.members[1].step == 5 else 1) for name, share in shares.items()}

    ill.members[1].shares = broken  # type: ignore[method-assign]
    train(well)
    train(ill)
    assert [*ill.failed] == [1] and "step 6 of 20" in ill.failed[1]
    for number in (0, 2, 3):
        ours, theirs = (vector(each.members[number].weights.values()) for each in (ill, well))
        assert torch.isfinite(ours).all()
        assert (ours - theirs).norm() < NEAR * theirs.norm()


def test_runs_of_an_attention_of_their_own_are_refused(
    encoders: dict[str, Path], tokens: Callable[[str, str], Path], tmp_path: Path
) -> None:
    runs = members("bitfit", encoders["bert"], tokens, tmp_path)
    runs[0].model.set_attn_implementation("eager")
    with pytest.raises(ValueError, match=r"attention of its own.*leave out `together`"):
        Group(runs, tmp_path)


def test_less_memory_gives_the_same_gradients(
    encoders: dict[str, Path], tokens: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def group(name: str) -> Group:
        runs = members("bitfit", encoders["bert"], tokens, tmp_path / name)
        for run in runs:
            run.model.double().train()
        return Group(runs, tmp_path / name)

    roomy, narrow = group("roomy"), group("narrow")
    forward = Group._forward

    def limited(self: Group, batches: Mapping[int, Any], totals: Any) -> Any:
        if len(batches) > 2:
            raise torch.OutOfMemoryError("out of memory")
        return forward(self, batches, totals)

    chosen = {number: next(batches(run)) for number, run in enumerate(roomy.members)}
    roomy.advance(chosen)
    monkeypatch.setattr(Group, "_forward", limited)
    narrow.advance(chosen)
    assert narrow.width == 2
    for ours, theirs in zip(narrow.members, roomy.members, strict=True):
        own, other = (vector(weight.grad for weight in run.weights.values()) for run in (ours, theirs))
        assert (own - other).norm() < NEAR * other.norm()


def test_a_record_has_the_share_of_the_time_and_the_names_of_the_group(
    encoders: dict[str, Path], tokens: Callable[[str, str], Path], tmp_path: Path
) -> None:
    group = Group(members("bitfit", encoders["bert"], tokens, tmp_path), tmp_path)
    train(group)
    run = group.members[2]
    run.finish()
    record = json.loads((run.folder / "run.json").read_text())
    assert record["together"] == ["m/en/1", "m/en/2", "m/fr/3", "m/fr/4"]
    assert record["steps"] == 16 and record["seconds"] < run.clock.read()["seconds"] / 3
    assert (run.folder / deltas.DELTA).exists()


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("head", ["sequence", "token"])
@pytest.mark.parametrize("base", METHODS)
def test_a_group_trains_on_a_device_that_is_not_the_cpu(
    base: str, head: str, dropout: float, encoders: dict[str, Path], tokens: Callable[[str, str], Path], tmp_path: Path
) -> None:
    """A tensor on another device than the others is an error."""
    with stand_in():
        runs = members(base, encoders["bert"], tokens, tmp_path, head, dropout=dropout)
        group = Group(runs, tmp_path)
        group.advance({number: next(batches(run)) for number, run in enumerate(runs)})
    assert group.device == DEVICE and not group.failed and all(run.step == 1 for run in runs)
