"""The package of docs/how-to/head.md, installed as the page says: a loss of its own, and metrics of all outcomes at once."""

import csv
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from project import commands, installed, project, shown, succeeds, tiny
from safetensors.torch import load_file
from sklearn import metrics
from transformers import XLMRobertaForSequenceClassification

from xlgrid.data import batches
from xlgrid.heads import ALL_HEADS, Head
from xlgrid.results import records

PAGE = "docs/how-to/head.md"
RUNS = "results/reviews/runs/stars/mini-xlmr/full-ft/en"
CELLS = "results/reviews/cells/stars/mini-xlmr/full-ft/en"
WORDS = {
    "en": ("the", "dog", "cat", "runs", "sleeps", "sees", "a", "house", "big", "small"),
    "de": ("der", "Hund", "Katze", "rennt", "schläft", "sieht", "ein", "Haus", "groß", "klein"),
}
SEEDS = (1, 2)


def write_rows(path: Path, language: str, rows: int) -> None:
    """Texts, and one star more than they have words of the first four."""
    draw = random.Random(str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "stars"])
        for _ in range(rows):
            words = draw.sample(WORDS[language], 4)
            writer.writerow([" ".join(words), 1 + len({*words} & {*WORDS[language][:4]})])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project in which the package is installed and the table of the page's study, cut down, is made."""
    study = tiny(yaml.safe_load(shown(PAGE)), steps=40)
    study["training"][0]["set"] |= {"lr": 5e-3, "evaluations": 4}
    study["grids"]["all"]["seed"] = [*SEEDS]
    sides = [{"target": "en"}, {"target": "de"}]
    study["claims"] = {"harder": {"says": "German is harder than English.", "compare": sides, "expect": "greater"}}
    folder = project(tmp_path_factory.mktemp("project"), study, "reviews")
    for language in WORDS:
        for split, rows in {"train": 200, "dev": 60, "test": 60}.items():
            write_rows(folder / "reviews" / language / f"{split}.csv", language, rows)
    with installed(PAGE, folder):
        succeeds(folder, *commands(PAGE), "snakemake --profile laptop results/reviews/claims.md")
        yield folder


@pytest.fixture
def head(built: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Head]:
    monkeypatch.syspath_prepend(built / "installed")
    yield ALL_HEADS.find("ordinal")
    ALL_HEADS.imported.clear()


def cell(built: Path, target: str, seed: int) -> tuple[dict[str, Any], np.ndarray]:
    """The contents of a cell, and its outcomes, [examples, 2]."""
    path = built / CELLS / target / f"seed{seed}.json"
    contents = records.read_cell(path)
    return contents, np.array(records.outcomes(path, contents))


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return [*csv.DictReader(file)]


@pytest.mark.parametrize("target", WORDS)
def test_the_scores_of_a_cell_are_those_of_scikit_learn(built: Path, target: str) -> None:
    contents, outcomes = cell(built, target, 1)
    expected = {
        "kappa": 100 * metrics.cohen_kappa_score(*outcomes.T, weights="quadratic"),
        "distance": metrics.mean_absolute_error(*outcomes.T),
    }
    assert contents["scores"] == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_the_outcomes_are_in_the_order_of_the_rows(built: Path) -> None:
    _, outcomes = cell(built, "de", 1)
    stars = [int(row["stars"]) for row in read_csv(built / "reviews" / "de" / "test.csv")]
    assert (outcomes[:, 0] + 1).tolist() == stars


def test_the_loss_and_the_predictions_are_those_of_a_model_in_transformers(built: Path, head: Head) -> None:
    encoder = built / "results/reviews/encoders/mini-xlmr"
    model = XLMRobertaForSequenceClassification.from_pretrained(encoder, num_labels=4).eval()
    weights = load_file(built / RUNS / "seed1" / "delta.safetensors")
    assert not model.load_state_dict(weights, strict=False).unexpected_keys
    tokens = batches.read(built / "results/reviews/tokens/stars/mini-xlmr/de/test.arrow", "de")
    batch = head.collate(tokens, np.arange(len(tokens)), False)
    labels = batch["labels"]
    with torch.no_grad():
        steps = model(**{name: tensor for name, tensor in batch.items() if name != "labels"}).logits
        right = torch.stack([labels > step for step in range(4)], 1)
        expected = -torch.where(right, steps, -steps).sigmoid().log().mean()
        torch.testing.assert_close(head.loss(model, batch) / head.terms(batch), expected)
    _, outcomes = cell(built, "de", 1)
    assert outcomes[:, 1].tolist() == (steps > 0).sum(1).tolist()


def test_the_kappa_on_the_dev_set_chooses_the_weights(built: Path) -> None:
    record, points = records.read_curve(built / RUNS / "seed1") or ({}, [])
    assert record["metric"] == "kappa"
    assert record["dev_score"] == max(point["score"] for point in points)


def test_the_model_learns(built: Path) -> None:
    record, _ = records.read_curve(built / RUNS / "seed1") or ({}, [])
    assert record["loss"]["last"] < record["loss"]["first"]


def test_the_table_has_the_mean_over_seeds_of_both_metrics(built: Path) -> None:
    rows = read_csv(built / "results/reviews/exhibits/transfer.csv")
    means = {(row["target"], row["column"]): float(row["mean"]) for row in rows}
    expected = {
        (target, name): np.mean([cell(built, target, seed)[0]["scores"][name] for seed in SEEDS])
        for target in WORDS
        for name in ("kappa", "distance")
    }
    assert means == pytest.approx(expected)


def test_a_claim_is_judged_by_the_main_metric(built: Path) -> None:
    [verdict] = read_csv(built / "results/reviews/claims.csv")
    by_seed = [
        cell(built, "en", seed)[0]["scores"]["kappa"] - cell(built, "de", seed)[0]["scores"]["kappa"] for seed in SEEDS
    ]
    assert verdict["metric"] == "kappa"
    assert float(verdict["effect"]) == pytest.approx(np.mean(by_seed))


def test_the_run_and_the_cell_name_the_package(built: Path) -> None:
    record, _ = records.read_curve(built / RUNS / "seed1") or ({}, [])
    contents, _ = cell(built, "de", 1)
    assert record["packages"] == contents["packages"] == {"xlgrid-ordinal": "0.1"}


def test_the_kappa_of_equal_labels_is_zero(head: Head) -> None:
    """JSON has no number for what is not defined."""
    assert head.metric(("1", "2"), "kappa").score([[1, 1], [1, 1]]) == 0
