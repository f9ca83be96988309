"""The job that merges runs: the runs that it writes, and the runs that it refuses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForPreTraining

from xlgrid.heads import HEADS, Head
from xlgrid.merging.merge import merge
from xlgrid.methods import make
from xlgrid.models import deltas, load
from xlgrid.training.recipe import Recipe
from xlgrid.training.results import write_record, write_tensors

Tensors = dict[str, torch.Tensor]
AXES = {"study": "s", "encoder": "e", "source": "en", "training": {}}
# BERT's pooler belongs to the head: an encoder may lack it, and a language model has none.
HEAD = {f"{module}.{name}" for module in ("classifier", "bert.pooler.dense") for name in ("weight", "bias")}


def recipe(kind: str, method: str, seed: int = 1, base: str = "full-ft", **more: Any) -> Recipe:
    return Recipe.model_validate(
        AXES | {"task": kind, "kind": kind, "method": method, "base": base, "seed": seed} | more
    )


def merged(
    by: str, *members: tuple[Recipe, float], options: dict[str, float] | None = None, base: str = "full-ft"
) -> Recipe:
    described = [
        {**member.model_dump(include={"task", "encoder", "method", "source", "seed"}), "recipe": "x"}
        for member, _ in members
    ]
    weights = [[weight for _, weight in members]]
    derived = {"by": by, "options": options or {}, "members": described, "weights": weights}
    return recipe("sequence", "merged", base=base, derived=derived)


Write = Callable[..., Path]


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    torch.manual_seed(1)
    size = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    BertForPreTraining(BertConfig(vocab_size=20, max_position_embeddings=8, **size)).save_pretrained(
        tmp_path / "encoder"
    )
    return tmp_path / "encoder"


@pytest.fixture
def write(tmp_path: Path, encoder: Path) -> Write:
    """A function that writes a run with random weights."""

    def run(of: Recipe, labels: tuple[str, ...] = ("a", "b", "c"), folder: str = "") -> Path:
        head: Head = HEADS[of.kind]
        labels = labels if head.has_cells else ()
        model = load.load_model(encoder, head, len(labels))
        tensors = {
            name: torch.randn(p.shape, generator=torch.Generator().manual_seed(of.seed + i))
            for i, (name, p) in enumerate(deltas.kept(model, make(of.base, of.options), head).items())
        }
        path = tmp_path / (folder or f"{of.task}-{of.method}-{of.seed}")
        write_tensors(path / deltas.DELTA, of, tensors)
        write_record(path, of, {"labels": list(labels), "start": None}, [])
        return path

    return run


ONE, TWO = recipe("sequence", "ft", 1), recipe("sequence", "ft", 2)
TEXT = recipe("mlm", "text", 7)


def read(folder: Path) -> Tensors:
    return load_file(folder / deltas.DELTA)


def begins(encoder: Path) -> Tensors:
    return load_file(encoder / "model.safetensors")


def test_an_average_of_runs_is_their_mean_with_the_head(tmp_path: Path, encoder: Path, write: Write) -> None:
    runs = [write(ONE), write(TWO)]
    merge(merged("average", (ONE, 0.25), (TWO, 0.75)), encoder, runs, tmp_path / "out")
    one, two, out = (read(folder) for folder in (*runs, tmp_path / "out"))
    assert out.keys() == one.keys() and out.keys() >= HEAD
    for name in out:
        assert out[name].equal((0.25 * one[name].double() + 0.75 * two[name].double()).float())


@pytest.mark.parametrize("by", ["sum", "average"])
def test_a_sum_with_weights_1_and_0_has_the_bytes_of_the_run(
    tmp_path: Path, encoder: Path, write: Write, by: str
) -> None:
    runs = [write(ONE), write(TWO)]
    tensors = read(runs[0])
    # An addition of 0 would make a negative zero positive.
    tensors["bert.pooler.dense.bias"] = torch.full((8,), -0.0)
    write_tensors(runs[0] / deltas.DELTA, ONE, tensors)
    merge(merged(by, (ONE, 1.0), (TWO, 0.0)), encoder, runs, tmp_path / "out")
    one, out = ((folder / deltas.DELTA).read_bytes() for folder in (runs[0], tmp_path / "out"))
    # The header ends with the names of the tensors; before it is the digest of each recipe.
    assert one[one.index(b"}}") :] == out[out.index(b"}}") :]
    assert len(one) == len(out)


def test_a_merge_twice_has_the_same_bytes(tmp_path: Path, encoder: Path, write: Write) -> None:
    runs = [write(ONE), write(TWO)]
    of = merged("dare", (ONE, 0.5), (TWO, 0.5), options={"rate": 0.5})
    for name in ("first", "second"):
        merge(of, encoder, runs, tmp_path / name)
    first, second = ((tmp_path / name / deltas.DELTA).read_bytes() for name in ("first", "second"))
    assert first == second


@pytest.mark.parametrize("by", ["average", "ties", "task-arithmetic"])
def test_blocks_of_any_size_give_the_same_bytes(
    tmp_path: Path, encoder: Path, write: Write, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, of = [write(ONE), write(TWO)], merged(by, (ONE, 0.5), (TWO, 0.5))
    merge(of, encoder, runs, tmp_path / "whole")
    monkeypatch.setattr("xlgrid.merging.merge.BLOCK", 7)
    merge(of, encoder, runs, tmp_path / "blocks")
    assert (tmp_path / "whole" / deltas.DELTA).read_bytes() == (tmp_path / "blocks" / deltas.DELTA).read_bytes()


def test_an_mlm_run_adds_to_the_encoder_and_not_to_the_head(tmp_path: Path, encoder: Path, write: Write) -> None:
    runs = [write(ONE), write(TEXT)]
    merge(merged("task-arithmetic", (ONE, 0.5), (TEXT, 2.0)), encoder, runs, tmp_path / "out")
    task, text, out, begin = (*(read(folder) for folder in (*runs, tmp_path / "out")), begins(encoder))
    assert {name for name in task if name not in text} == HEAD
    for name, tensor in out.items():
        if name in HEAD:
            assert tensor.equal(task[name])
            continue
        first = begin[name].double()
        vector = text[name].double() - first if name in text else 0
        torch.testing.assert_close(
            tensor.double(), first + 0.5 * (task[name].double() - first) + 2 * vector, rtol=0, atol=1e-6
        )


def test_ties_trims_over_all_parameters_at_once(tmp_path: Path, encoder: Path, write: Write) -> None:
    """Of one run, the values with the largest differences from the encoder stay, wherever they are."""
    runs = [write(ONE)]
    merge(merged("ties", (ONE, 1.0), options={"density": 0.1}), encoder, runs, tmp_path / "out")
    one, out, begin = read(runs[0]), read(tmp_path / "out"), begins(encoder)
    names = [name for name in out if name not in HEAD]
    sizes, stays = (torch.cat([(of[name] - begin[name]).abs().flatten() for name in names]) for of in (one, out))
    kept = stays > 0
    assert abs(int(kept.sum()) - 0.1 * len(sizes)) <= 1
    assert sizes[kept].min() >= sizes[~kept].max() - 1e-6
    shares = {name: float((out[name] != begin[name]).float().mean()) for name in names}
    assert max(shares.values()) - min(shares.values()) > 0.1, "the share differs between parameters"


def test_task_vectors_add_up_and_heads_are_averaged(tmp_path: Path, encoder: Path, write: Write) -> None:
    biases = [recipe("sequence", "bias", seed, "bitfit") for seed in (1, 2)]
    runs = [write(of) for of in biases]
    merge(merged("task-arithmetic", *((of, 1.0) for of in biases), base="bitfit"), encoder, runs, tmp_path / "out")
    one, two, out, begin = (*(read(folder) for folder in (*runs, tmp_path / "out")), begins(encoder))
    for name, tensor in out.items():
        together = one[name].double() + two[name].double()
        expected = together / 2 if name in HEAD else together - begin[name].double()
        torch.testing.assert_close(tensor.double(), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("problem", ["labels", "shape", "missing", "order", "digest"])
def test_runs_that_do_not_fit_are_refused(tmp_path: Path, encoder: Path, write: Write, problem: str) -> None:
    runs = [write(ONE), write(TWO, ("a", "b", "d") if problem == "labels" else ("a", "b", "c"))]
    tensors = read(runs[1])
    if problem == "shape":
        tensors["classifier.bias"] = torch.zeros(7)
    if problem == "missing":
        del tensors["bert.pooler.dense.bias"]
    save_file(tensors, runs[1] / deltas.DELTA, {"digest": "x" if problem == "digest" else TWO.digest()})
    message = {
        "labels": "has the labels a, b, d, and another run a, b, c",
        "shape": "'classifier.bias' is missing, unknown or of another shape",
        "missing": "'bert.pooler.dense.bias' is missing",
        "order": "has seed 2, expected 1",
        "digest": "has a run.json of another recipe",
    }[problem]
    with pytest.raises(ValueError, match=message):
        given = runs[::-1] if problem == "order" else runs
        merge(merged("average", (ONE, 0.5), (TWO, 0.5)), encoder, given, tmp_path / "out")
    assert not (tmp_path / "out").exists()
