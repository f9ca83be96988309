"""The package of docs/how-to/head.md, installed as the page says: a loss that is no cross entropy, and metrics of all outcomes at once."""

import csv
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
import yaml
from project import commands, installed, project, shown, succeeds, tiny
from safetensors.torch import load_file
from scipy import stats
from transformers import XLMRobertaForSequenceClassification

from xlgrid.data import batches
from xlgrid.heads import ALL_HEADS, Head
from xlgrid.results import records
from xlgrid.tasks import task

PAGE = "docs/how-to/head.md"
RUNS = "results/sts/runs/sts/mini-xlmr/full-ft/en"
CELLS = "results/sts/cells/sts/mini-xlmr/full-ft/en"
WORDS = {
    "en": ("the", "dog", "cat", "runs", "sleeps", "sees", "a", "house", "big", "small"),
    "de": ("der", "Hund", "Katze", "rennt", "schläft", "sieht", "ein", "Haus", "groß", "klein"),
}
SEEDS = (1, 2)


def write_rows(path: Path, language: str, rows: int) -> None:
    """Pairs of sentences and the number of words that they share, of which many are equal."""
    draw = random.Random(str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        writer = csv.writer(file)
        writer.writerow(["sentence1", "sentence2", "score"])
        for _ in range(rows):
            first, second = draw.sample(WORDS[language], 4), draw.sample(WORDS[language], 4)
            writer.writerow([" ".join(first), " ".join(second), len({*first} & {*second})])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project in which the package is installed and the table of the page's study, cut down, is made."""
    study = tiny(yaml.safe_load(shown(PAGE)), steps=40)
    study["training"][0]["set"] |= {"lr": 5e-3, "evaluations": 4}
    study["grids"]["all"]["seed"] = [*SEEDS]
    sides = [{"target": "en"}, {"target": "de"}]
    study["claims"] = {"harder": {"says": "German is harder than English.", "compare": sides, "expect": "greater"}}
    folder = project(tmp_path_factory.mktemp("project"), study, "sts")
    for language in WORDS:
        for split, rows in {"train": 200, "dev": 60, "test": 60}.items():
            write_rows(folder / "sts" / language / f"{split}.csv", language, rows)
    with installed(PAGE, folder):
        succeeds(folder, *commands(PAGE), "snakemake --profile laptop results/sts/claims.md")
        yield folder


@pytest.fixture
def head(built: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Head]:
    monkeypatch.syspath_prepend(built / "installed")
    yield ALL_HEADS.find("regression")
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
def test_the_scores_of_a_cell_are_those_of_scipy(built: Path, target: str) -> None:
    contents, outcomes = cell(built, target, 1)
    expected = {
        "spearman": 100 * stats.spearmanr(*outcomes.T).statistic,
        "pearson": 100 * stats.pearsonr(*outcomes.T).statistic,
    }
    assert contents["scores"] == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_the_outcomes_are_in_the_order_of_the_rows(built: Path) -> None:
    _, outcomes = cell(built, "de", 1)
    assert outcomes[:, 1].tolist() == [float(row["score"]) for row in read_csv(built / "sts" / "de" / "test.csv")]


def test_the_loss_and_the_predictions_are_those_of_a_regression_in_transformers(built: Path, head: Head) -> None:
    encoder = built / "results/sts/encoders/mini-xlmr"
    model = XLMRobertaForSequenceClassification.from_pretrained(encoder, num_labels=1).eval()
    weights = load_file(built / RUNS / "seed1" / "delta.safetensors")
    assert not model.load_state_dict(weights, strict=False).unexpected_keys
    tokens = batches.read(built / "results/sts/tokens/sts/mini-xlmr/de/test.arrow", "de")
    batch = head.collate(tokens, np.arange(len(tokens)), False)
    with torch.no_grad():
        expected = model(**batch)
        torch.testing.assert_close(head.loss(model, batch) / head.terms(batch), expected.loss)
    _, outcomes = cell(built, "de", 1)
    np.testing.assert_allclose(outcomes[:, 0], expected.logits.squeeze(1), rtol=1e-4, atol=1e-5)


def test_the_rank_correlation_on_the_dev_set_chooses_the_weights(built: Path) -> None:
    record, points = records.read_curve(built / RUNS / "seed1") or ({}, [])
    assert record["metric"] == "spearman"
    assert record["dev_score"] == max(point["score"] for point in points)


def test_the_model_learns(built: Path) -> None:
    record, _ = records.read_curve(built / RUNS / "seed1") or ({}, [])
    assert record["loss"]["last"] < record["loss"]["first"]


def test_the_table_has_the_mean_over_seeds_of_both_metrics(built: Path) -> None:
    rows = read_csv(built / "results/sts/exhibits/transfer.csv")
    means = {(row["target"], row["column"]): float(row["mean"]) for row in rows}
    expected = {
        (target, name): np.mean([cell(built, target, seed)[0]["scores"][name] for seed in SEEDS])
        for target in WORDS
        for name in ("spearman", "pearson")
    }
    assert means == pytest.approx(expected)


def test_a_claim_is_judged_by_the_main_metric(built: Path) -> None:
    [verdict] = read_csv(built / "results/sts/claims.csv")
    by_seed = [
        cell(built, "en", seed)[0]["scores"]["spearman"] - cell(built, "de", seed)[0]["scores"]["spearman"]
        for seed in SEEDS
    ]
    assert verdict["metric"] == "spearman"
    assert float(verdict["effect"]) == pytest.approx(np.mean(by_seed))


def test_the_run_and_the_cell_name_the_package(built: Path) -> None:
    record, _ = records.read_curve(built / RUNS / "seed1") or ({}, [])
    contents, _ = cell(built, "de", 1)
    assert record["packages"] == contents["packages"] == {"xlgrid-regression": "0.1"}


@pytest.mark.parametrize("score", ["high", "nan"])
def test_a_score_that_is_no_number_is_refused_with_its_row(head: Head, score: str) -> None:
    described = task("regression", {"inputs": ["first", "second"], "target": "score"})
    table = pa.table({"first": ["a", "b"], "second": ["a", "b"], "score": ["1", score]})
    with pytest.raises(ValueError, match=f"row 2, column 'score': '{score}' is no score"):
        described.check(table, "data")


def test_a_correlation_of_a_constant_is_zero(head: Head) -> None:
    """JSON has no number for what is not defined."""
    for metric in head.all_metrics:
        assert metric.score([[0.5, 1.0], [0.5, 2.0]]) == 0
