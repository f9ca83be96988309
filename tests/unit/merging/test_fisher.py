"""Merges that read data: Fisher-weighted means, and weights that a dev set chooses, of two runs that have trained."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tokens_fixture import write
from transformers import BertConfig, BertForSequenceClassification, BertModel

from xlgrid.evaluation.cell import evaluate
from xlgrid.heads import HEADS
from xlgrid.merging.fisher import Fisher
from xlgrid.merging.member import Member
from xlgrid.merging.merge import merge
from xlgrid.merging.operation import Parameter
from xlgrid.models.deltas import DELTA
from xlgrid.training.loop import train
from xlgrid.training.recipe import Recipe

pytestmark = pytest.mark.usefixtures("one_thread")

AXES = {"study": "s", "task": "t", "kind": "sequence", "encoder": "e", "source": "en", "base": "full-ft"}


class Trained(NamedTuple):
    """Runs of two seeds, their encoder, and the tokens of the training and of the dev set."""

    encoder: Path
    runs: list[Path]
    tokens: Path
    dev: Path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("trained")
    torch.manual_seed(1)
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertModel(BertConfig(vocab_size=50, max_position_embeddings=40, **size)).save_pretrained(folder / "encoder")
    rng = np.random.default_rng(1)
    paths = []
    for name in ("train", "dev"):
        ids = [rng.integers(5, 40, rng.integers(3, 20)).tolist() for _ in range(40)]
        paths.append(write(folder / f"{name}.arrow", ids))
    runs = []
    for seed in (1, 2):
        settings = {"steps": 20, "batch_tokens": 128, "lr": 5e-3, "evaluations": 2, "dropout": 0.0}
        recipe = Recipe.model_validate({**AXES, "method": "m", "seed": seed, "training": settings})
        train(recipe, folder / "encoder", [paths[0]], [paths[1]], folder / f"run{seed}")
        runs.append(folder / f"run{seed}")
    return Trained(folder / "encoder", runs, *paths)


def recipe(by: str, weights: list[list[float]], options: dict[str, Any] | None = None, **more: Any) -> Recipe:
    members = [
        {"task": "t", "encoder": "e", "method": "m", "source": "en", "seed": seed, "recipe": "x"} for seed in (1, 2)
    ]
    derived = {"by": by, "options": options or {}, "members": members, "weights": weights, **more}
    return Recipe.model_validate({**AXES, "method": "merged", "seed": 1, "training": {}, "derived": derived})


def information(given: Trained, run: Path, rows: list[int]) -> dict[str, torch.Tensor]:
    """The mean of the squared gradients of log p(y | x), from transformers' own model and a loss written out, in float64."""
    import pyarrow as pa

    model = BertForSequenceClassification.from_pretrained(given.encoder, num_labels=3).double().eval()
    with torch.no_grad():
        for name, tensor in load_file(run / DELTA).items():
            model.get_parameter(name).copy_(tensor.double())
    table = pa.ipc.open_file(pa.memory_map(str(given.tokens))).read_all().to_pylist()
    totals = {name: torch.zeros(p.shape, dtype=torch.float64) for name, p in model.named_parameters()}
    for row in rows:
        example = table[row]
        positions = torch.arange(len(example["input_ids"]))[None]
        segments = (positions >= example["context_length"]).long()
        logits = model(torch.tensor([example["input_ids"]]), token_type_ids=segments).logits[0]
        model.zero_grad()
        (logits[example["label"]] - logits.logsumexp(0)).backward()
        for name, parameter in model.named_parameters():
            totals[name] += parameter.grad**2  # type: ignore[operator]
    return {name: total / len(rows) for name, total in totals.items()}


@pytest.mark.parametrize("examples", [7, 1000])
def test_the_information_of_a_run_is_that_of_its_gradients(trained: Trained, examples: int) -> None:
    about = {"task": "t", "encoder": "e", "method": "m", "source": "en", "seed": 2}
    got = Fisher(examples=examples).fact(Member(trained.runs[1], about, trained.encoder, {}, [trained.tokens]))
    rows = np.random.default_rng(2).permutation(40)[:examples].tolist()
    expected = information(trained, trained.runs[1], rows)
    assert got.keys() == expected.keys() and max(float(value.max()) for value in got.values()) > 1e-4
    for name, value in got.items():
        # The model of a run computes in float32.
        torch.testing.assert_close(value, expected[name], rtol=1e-3, atol=1e-9)


def test_a_fisher_weighted_mean_is_that_of_the_paper_with_a_floor() -> None:
    first, second, information = ([2.0, -1.0, 5.0], [4.0, 3.0, 7.0], [[3.0, 0.0, 0.0], [1.0, 2.0, 0.0]])
    values = [torch.tensor(x, dtype=torch.float64) for x in (first, second)]
    facts = [{"x": torch.tensor(x, dtype=torch.float64)} for x in information]
    merged = (
        Fisher(floor=1e-6).merge(Parameter("x", slice(None), torch.zeros(3), values, [0.25, 0.75], facts, 1)).tolist()
    )
    with_floor = [[max(x, 1e-6) for x in each] for each in information]
    expected = [
        (0.25 * f * a + 0.75 * s * b) / (0.25 * f + 0.75 * s)
        for a, b, f, s in zip(first, second, *with_floor, strict=True)
    ]
    assert merged == pytest.approx(expected, rel=1e-12) and merged[2] == pytest.approx(0.25 * 5 + 0.75 * 7)


def test_a_fisher_weighted_merge_reads_the_data_of_each_run(trained: Trained, tmp_path: Path) -> None:
    of = recipe("fisher", [[0.5, 0.5]], {"examples": 10})
    merge(of, trained.encoder, trained.runs, tmp_path, tokens=[trained.tokens, trained.tokens])
    one, two, merged = (load_file(folder / DELTA) for folder in (*trained.runs, tmp_path))
    name = "bert.encoder.layer.0.output.dense.weight"
    rows = [np.random.default_rng(seed).permutation(40)[:10].tolist() for seed in (1, 2)]
    f, s = (
        information(trained, run, of_run)[name].clamp(min=1e-6) for run, of_run in zip(trained.runs, rows, strict=True)
    )
    expected = (f * one[name].double() + s * two[name].double()) / (f + s)
    torch.testing.assert_close(merged[name].double(), expected, rtol=1e-3, atol=1e-4)
    merge(of, trained.encoder, trained.runs, tmp_path / "again", tokens=[trained.tokens, trained.tokens])
    assert (tmp_path / "again" / DELTA).read_bytes() == (tmp_path / DELTA).read_bytes()


def dev_score(given: Trained, run: Path, out: Path) -> float:
    evaluate(run, given.encoder, given.dev, {"target": "en"}, out)
    return float(json.loads(out.read_text())["scores"]["accuracy"])


def test_the_weights_with_the_best_dev_score_are_taken_and_all_are_recorded(trained: Trained, tmp_path: Path) -> None:
    tried = [[0.5, 0.5], [1.0, 0.0], [0.0, 1.0], [5.0, -4.0]]
    merge(recipe("sum", tried), trained.encoder, trained.runs, tmp_path / "chosen", dev=[trained.dev])
    scores = []
    for i, weights in enumerate(tried):
        merge(recipe("sum", [weights]), trained.encoder, trained.runs, tmp_path / str(i))
        scores.append(dev_score(trained, tmp_path / str(i), tmp_path / f"{i}.json"))
    record = json.loads((tmp_path / "chosen" / "run.json").read_text())
    assert record["tried"] == [{"weights": w, "score": score} for w, score in zip(tried, scores, strict=True)]
    best = scores.index(max(scores))
    assert len({*scores}) > 1 and (record["weights"], record["dev_score"]) == (tried[best], scores[best])
    assert (record["metric"], record["n_dev"]) == ("accuracy", 40) and "accuracy" in record["chance"]
    expected, chosen = load_file(tmp_path / str(best) / DELTA), load_file(tmp_path / "chosen" / DELTA)
    assert all(tensor.equal(expected[name]) for name, tensor in chosen.items())


def test_a_score_that_is_not_a_number_never_wins(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = iter([float("nan"), 10.0, float("nan"), 20.0, float("nan")])
    kind = type(HEADS["sequence"].metric(("a", "b", "c"), None))
    monkeypatch.setattr(kind, "score", lambda self, outcomes: next(scores, float("nan")))
    tried = [[float(i), 1.0] for i in range(5)]
    of = recipe("sum", tried)
    merge(of, trained.encoder, trained.runs, tmp_path, dev=[trained.dev])
    assert json.loads((tmp_path / "run.json").read_text())["weights"] == [3.0, 1.0]
    with pytest.raises(ValueError, match=r"no score of the merges on .* is a number"):
        merge(of, trained.encoder, trained.runs, tmp_path / "none", dev=[trained.dev])


def test_the_main_metric_of_the_task_chooses(trained: Trained, tmp_path: Path) -> None:
    tried = [[0.5, 0.5], [1.0, 0.0], [0.0, 1.0], [5.0, -4.0]]
    of = recipe("sum", tried).model_copy(update={"metric": "macro-f1"})
    merge(of, trained.encoder, trained.runs, tmp_path, dev=[trained.dev])
    record = json.loads((tmp_path / "run.json").read_text())
    assert (record["metric"], record["recipe"]["metric"]) == ("macro-f1", "macro-f1")
    assert record["dev_score"] == max(each["score"] for each in record["tried"])


def test_the_first_of_equal_weights_is_taken(trained: Trained, tmp_path: Path) -> None:
    tried = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    merge(recipe("average", tried), trained.encoder, trained.runs, tmp_path, dev=[trained.dev])
    record = json.loads((tmp_path / "run.json").read_text())
    scores = [each["score"] for each in record["tried"]]
    assert scores[0] == scores[2] and record["weights"] == tried[scores.index(max(scores))]


def test_a_run_that_is_merged_without_a_choice_has_no_dev_score(trained: Trained, tmp_path: Path) -> None:
    merge(recipe("sum", [[1.0, 0.0]]), trained.encoder, trained.runs, tmp_path)
    assert "dev_score" not in json.loads((tmp_path / "run.json").read_text())
