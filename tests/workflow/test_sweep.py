"""The real Snakemake on a study with a sweep: every setting is a run, and the winner is chosen on the dev set of the source."""

import json
from pathlib import Path
from typing import Any

import pytest
from project import blocks, commands, first, planned, project, refused, shell, succeeds, write

from xlgrid.methods.variants import variant
from xlgrid.results.records import read_cell

LRS, SEEDS, SELECTION = [1e-3, 3e-2], [1, 2], [2, 3]
RUNS, REPORT = "results/first/runs/ner/mini-xlmr", "results/first/report.html"
CHOICE = "results/first/choices/ner/mini-xlmr/bitfit/qa1.json"
# On this rate, the loss is not a number.
DIVERGES = 1e30


def swept(**changes: Any) -> dict[str, Any]:
    """The study `first`, cut down, with a sweep whose seeds of selection are not those of the grid."""
    study = first()
    study["training"] = [{"set": {"steps": 6, "batch_tokens": 256, "evaluations": 2}}]
    study["grids"]["all"] |= {"method": ["bitfit"], "target": ["qb1"], "seed": SEEDS}
    study["sweep"] = [{"set": {"lr": LRS}, "seeds": SELECTION, "cells": "all", **changes}]
    surface = {"kind": "table", "title": "F1 by learning rate", "rows": ["lr"], "columns": "target"}
    study["exhibits"]["surface"] = surface
    return study


def record(folder: Path, method: str, seed: int) -> dict[str, Any]:
    contents: dict[str, Any] = json.loads((folder / RUNS / method / "qa1" / f"seed{seed}" / "run.json").read_text())
    return contents


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = project(tmp_path_factory.mktemp("project"), swept(), "first")
    jobs = planned(folder, REPORT)
    assert (jobs["train"], jobs["choose"], jobs["take_winner"], jobs["evaluate"]) == (5, 1, 1, 6)
    succeeds(folder, f"snakemake --profile laptop {REPORT}")
    return folder


def test_the_winner_has_the_best_mean_dev_score_of_its_runs(built: Path) -> None:
    choice = json.loads((built / CHOICE).read_text())
    means = {
        lr: sum(record(built, variant("bitfit", {"lr": lr}), seed)["dev_score"] for seed in SELECTION) / len(SELECTION)
        for lr in LRS
    }
    assert {each["settings"]["lr"]: each["mean"] for each in choice["tried"]} == pytest.approx(means)
    assert choice["chosen"]["lr"] == max(LRS, key=means.__getitem__), "the first of equal means wins"
    assert (choice["runs"], choice["dev"], choice["seeds"]) == (4, ["qa1"], SELECTION)


def test_a_run_is_that_of_the_winner_or_trains_with_its_settings(built: Path) -> None:
    chosen = json.loads((built / CHOICE).read_text())["chosen"]
    name = variant("bitfit", chosen)
    trained, taken = (record(built, "bitfit", seed) for seed in SEEDS)
    assert taken["taken_from"] == f"{RUNS}/{name}/qa1/seed2"
    for file in ("delta.safetensors", "curve.jsonl"):
        parts = Path(RUNS, "bitfit", "qa1", "seed2", file), Path(RUNS, name, "qa1", "seed2", file)
        assert len({(built / part).read_bytes() for part in parts}) == 1
    assert "taken_from" not in trained and trained["seconds"] > 0
    for run in (trained, taken):
        assert run["recipe"]["training"]["lr"] == run["recipe"]["sweep"]["chosen"]["lr"] == chosen["lr"]
        assert run["recipe"]["method"] == "bitfit"


def test_a_cell_of_a_winner_that_was_taken_is_that_of_its_variant(built: Path) -> None:
    name = variant("bitfit", json.loads((built / CHOICE).read_text())["chosen"])
    cells = built / "results/first/cells/ner/mini-xlmr"
    own, other = (read_cell(cells / method / "qa1" / "qb1" / "seed2.json") for method in ("bitfit", name))
    assert (own["scores"], own["outcomes"]) == (other["scores"], other["outcomes"])
    assert own["sweep"]["choose_on"] == "source" and "sweep" not in other


def test_exhibits_and_the_report_show_winners_and_the_surface(built: Path) -> None:
    exhibits = built / "results/first/exhibits"
    assert "lr=" not in (exhibits / "transfer.csv").read_text()
    rates = [line.split(",")[0] for line in (exhibits / "surface.csv").read_text().splitlines()[1:]]
    assert [float(rate) for rate in rates] == LRS
    page = (built / REPORT).read_text()
    assert (
        "Runs tried: 4. Sweeps that are finished: 1 of 1." in page
        and "Mean dev score of each setting that was tried" in page
    )


def test_nothing_is_made_again(built: Path) -> None:
    assert planned(built, REPORT) == {}


def test_a_choice_that_was_deleted_is_made_again_with_the_study(built: Path) -> None:
    (built / CHOICE).rename(built / "aside")
    jobs = planned(built, "--config", "study=first")
    (built / "aside").rename(built / CHOICE)
    assert (jobs["choose"], jobs["take_winner"], jobs["train"]) == (1, 1, 1)


def test_a_further_value_that_fails_trains_alone_and_leaves_the_choice_open(built: Path) -> None:
    study = swept()
    study["sweep"][0]["set"]["lr"] = [*LRS, DIVERGES]
    write(built, study, "first")
    jobs = planned(built, REPORT)
    assert (jobs["train"], jobs["choose"], jobs["take_winner"]) == (3, 1, 1)
    output = refused(built, f"snakemake --profile laptop {CHOICE}")
    assert "bitfit@lr=1e+30" in output
    status = shell(built, "xlgrid status first").stdout
    assert "failed" in status and "bitfit@lr=1e+30" in status
    missing = refused(
        built,
        f"xlgrid choose --sweep '{json.dumps({'set': {'lr': [1e-3, 1e30]}, 'seeds': [2]})}' "
        f"{RUNS}/bitfit@lr=1e+30/qa1/seed2/run.json --output choice.json",
    )
    assert "error: " in missing and "bitfit@lr=1e+30/qa1/seed2/run.json does not exist" in missing


def test_the_commands_of_the_page_run(tmp_path: Path) -> None:
    page = "docs/how-to/sweep.md"
    folder = project(tmp_path, first(), "first")
    study, *_ = blocks(page, "yaml")
    (folder / "studies" / "rates.yaml").write_text(study)
    check, cost, made = commands(page)
    succeeds(folder, check, cost, made.replace("--cores all", "--dry-run"))
