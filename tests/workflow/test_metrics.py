"""The real Snakemake on a study whose tasks name their main metrics, and which names further ones when its cells exist."""

import csv
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.metrics
from project import FEW, SIZES, dry_run, project, refused, shell, succeeds, write

from xlgrid.results import records

LANGUAGES, SEEDS = ("en", "de"), (1, 2)
TOPICS = ("health", "politics", "sports")
EMOTIONS = ("anger", "joy")
# The words that reveal a topic or an emotion, and words that reveal nothing, in each language.
WORDS = {
    "en": {"health": "doctor", "politics": "vote", "sports": "ball", "anger": "hate", "joy": "love"},
    "de": {"health": "Arzt", "politics": "Wahl", "sports": "Tor", "anger": "Hass", "joy": "Liebe"},
}
FILLERS = {"en": ("the", "a", "of", "and", "in"), "de": ("der", "ein", "von", "und", "im")}
AXES = {"encoder": ["mini"], "source": ["en"], "target": [*LANGUAGES]}
TABLE = "results/news/exhibits/scores.csv"
STUDY: dict[str, Any] = {
    "title": "News",
    "languages": [*LANGUAGES],
    "text": {"sentences": 200},
    "encoders": {"mini": {"scratch": {"kind": "xlmr", "languages": [*LANGUAGES], **SIZES}, "training": FEW}},
    "tasks": {
        "topics": {
            "kind": "sequence",
            "inputs": ["text"],
            "target": "topic",
            "labels": [*TOPICS],
            "metric": "macro-f1",
            "data": {"local": "news/{language}/{split}.csv"},
        },
        "emotions": {
            "kind": "multilabel",
            "inputs": ["text"],
            "target": "emotions",
            "labels": [*EMOTIONS],
            "data": {"local": "news/{language}/{split}.csv"},
        },
        "length": {
            "kind": "regression",
            "inputs": ["text"],
            "target": "words",
            "options": {"scale": 5},
            "data": {"local": "news/{language}/{split}.csv"},
        },
    },
    "methods": {"full-ft": {}, "bitfit": {}},
    "training": [{"set": {"steps": 12, "lr": 5e-3, "batch_tokens": 512, "evaluations": 3}}],
    "grids": {
        "topics": {"task": ["topics"], "method": ["full-ft", "bitfit"], "seed": [*SEEDS], **AXES},
        "others": {"task": ["emotions", "length"], "method": ["full-ft"], "seed": [1], **AXES},
    },
    "exhibits": {"scores": {"kind": "table", "title": "Scores", "rows": ["task", "method"], "columns": "target"}},
    "claims": {
        "tuning": {
            "says": "Tuning all parameters is better for topics.",
            "select": {"task": "topics"},
            "compare": [{"method": "full-ft"}, {"method": "bitfit"}],
            "expect": "greater",
        }
    },
}
LATER: dict[str, Any] = {
    "kind": "table",
    "title": "More metrics",
    "rows": ["method"],
    "columns": "metric",
    "select": {"task": "topics", "target": "de", "metric": ["f1:sports", "mcc", "weighted-f1"]},
}


def write_rows(path: Path, language: str, rows: int) -> None:
    draw = random.Random(str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "topic", *EMOTIONS, "words"])
        for _ in range(rows):
            topic, felt = draw.choices(TOPICS, (5, 2, 1))[0], [draw.random() < 0.4 for _ in EMOTIONS]
            fillers = draw.choices(FILLERS[language], k=draw.randint(1, 5))
            named = [topic, *(name for name, is_felt in zip(EMOTIONS, felt, strict=True) if is_felt)]
            words = [*fillers, *(WORDS[language][name] for name in named)]
            writer.writerow([" ".join(draw.sample(words, len(words))), topic, *map(int, felt), len(words)])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the table and the claims of the study."""
    folder = project(tmp_path_factory.mktemp("project"), STUDY, "news")
    for language in LANGUAGES:
        for split, rows in {"train": 120, "dev": 60, "test": 60}.items():
            write_rows(folder / "news" / language / f"{split}.csv", language, rows)
    succeeds(folder, f"snakemake --profile laptop {TABLE} results/news/claims.md")
    return folder


@pytest.fixture
def later(built: Path) -> Path:
    """The study with an exhibit and a claim on metrics that it did not name before."""
    claim = {**STUDY["claims"]["tuning"], "metric": "f1:sports"}
    write(built, STUDY | {"exhibits": {**STUDY["exhibits"], "later": LATER}, "claims": {"tuning": claim}}, "news")
    return built


def cell(built: Path, task: str, method: str, target: str, seed: int) -> tuple[dict[str, Any], list[Any]]:
    path = built / f"results/news/cells/{task}/mini/{method}/en/{target}/seed{seed}.json"
    contents = records.read_cell(path)
    return contents, records.outcomes(path, contents)


def macro(built: Path, method: str, target: str, seed: int) -> float:
    gold, predicted = zip(*cell(built, "topics", method, target, seed)[1], strict=True)
    return 100 * float(sklearn.metrics.f1_score(gold, predicted, average="macro"))


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return [*csv.DictReader(file)]


def test_the_table_has_the_main_metric_of_each_task(built: Path) -> None:
    rows = read_csv(built / TABLE)
    means = {(row["method"], row["column"]): float(row["mean"]) for row in rows if row["task"] == "topics"}
    expected = {
        (method, target): np.mean([macro(built, method, target, seed) for seed in SEEDS])
        for method in STUDY["methods"]
        for target in LANGUAGES
    }
    assert means == pytest.approx(expected)


def test_the_main_metric_on_the_dev_set_chooses_the_weights(built: Path) -> None:
    for task, name in (("topics", "macro-f1"), ("emotions", "macro-f1"), ("length", "spearman")):
        record, points = records.read_curve(built / f"results/news/runs/{task}/mini/full-ft/en/seed1") or ({}, [])
        assert record["metric"] == name and record["dev_score"] == max(point["score"] for point in points)


def test_a_claim_is_judged_by_the_main_metric(built: Path) -> None:
    [verdict] = read_csv(built / "results/news/claims.csv")
    gains = [
        np.mean([macro(built, "full-ft", code, seed) - macro(built, "bitfit", code, seed) for code in LANGUAGES])
        for seed in SEEDS
    ]
    assert verdict["metric"] == "macro-f1"
    assert float(verdict["effect"]) == pytest.approx(np.mean(gains))


def test_the_labels_of_rows_are_those_of_the_columns(built: Path) -> None:
    _, outcomes = cell(built, "emotions", "full-ft", "de", 1)
    rows = read_csv(built / "news" / "de" / "test.csv")
    expected = [[at for at, name in enumerate(EMOTIONS) if row[name] == "1"] for row in rows]
    assert [gold for gold, _, _ in outcomes] == expected


def test_the_numbers_of_rows_are_those_of_the_file_and_are_learnt(built: Path) -> None:
    _, outcomes = cell(built, "length", "full-ft", "en", 1)
    assert [gold for gold, _ in outcomes] == [float(row["words"]) for row in read_csv(built / "news/en/test.csv")]
    record, _ = records.read_curve(built / "results/news/runs/length/mini/full-ft/en/seed1") or ({}, [])
    assert record["loss"]["last"] < record["loss"]["first"]


def test_a_metric_that_is_named_when_the_cells_exist_needs_no_evaluation(later: Path) -> None:
    jobs, _ = dry_run(later, f"{TABLE} results/news/exhibits/later.csv results/news/claims.md")
    assert {*jobs} == {"table", "claims"}
    succeeds(later, "snakemake --profile laptop results/news/exhibits/later.csv results/news/claims.md")
    means = {
        (row["method"], row["column"]): float(row["mean"])
        for row in read_csv(later / "results/news/exhibits/later.csv")
    }
    of_seeds = []
    for seed in SEEDS:
        gold, predicted = zip(*cell(later, "topics", "full-ft", "de", seed)[1], strict=True)
        each = sklearn.metrics.f1_score(gold, predicted, labels=[2], average=None, zero_division=0)[0]
        of_seeds.append([each, sklearn.metrics.matthews_corrcoef(gold, predicted)])
    assert [means["full-ft", name] for name in ("f1:sports", "mcc")] == pytest.approx(100 * np.mean(of_seeds, 0))
    [verdict] = read_csv(later / "results/news/claims.csv")
    assert verdict["metric"] == "f1:sports"


def test_another_main_metric_trains_again_where_it_chooses_checkpoints(built: Path) -> None:
    tasks = {**STUDY["tasks"], "topics": {**STUDY["tasks"]["topics"], "metric": "mcc"}}
    write(built, STUDY | {"tasks": tasks}, "news")
    jobs, _ = dry_run(built, TABLE)
    assert (jobs["train"], jobs["evaluate"], jobs["table"]) == (4, 8, 1)


def test_a_misspelt_metric_is_an_error_with_the_nearest_name(built: Path) -> None:
    tasks = {**STUDY["tasks"], "topics": {**STUDY["tasks"]["topics"], "metric": "macro-fl"}}
    write(built, STUDY | {"tasks": tasks}, "news")
    assert "did you mean 'macro-f1'" in refused(built, "xlgrid check news")
    write(built, STUDY | {"exhibits": {"later": {**LATER, "select": {"task": "topics", "metric": "f1:sport"}}}}, "news")
    assert "did you mean 'f1:sports'" in refused(built, "xlgrid check news")


def test_status_and_export_have_the_main_metric(built: Path) -> None:
    write(built, STUDY, "news")
    succeeds(built, "xlgrid status news")
    process = shell(built, "xlgrid check news")
    assert process.returncode == 0, process.stdout + process.stderr
    contents, _ = cell(built, "topics", "full-ft", "en", 1)
    assert contents["metric"]["name"] == "macro-f1" and "labels=None" in contents["metric"]["implementation"]
    assert json.loads(Path(built, contents["run"], "run.json").read_text())["recipe"]["metric"] == "macro-f1"
