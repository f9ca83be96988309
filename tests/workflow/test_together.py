"""The real Snakemake on a study whose runs train together."""

import json
from pathlib import Path
from typing import Any

import pytest
from project import blocks, commands, first, planned, project, succeeds

RUNS, REPORT = "results/first/runs/ner/mini-xlmr/bitfit", "results/first/report.html"
GROUP = "results/first/together/ner/mini-xlmr/bitfit/qa1/seed1.tar"
SEEDS, SOURCES = (1, 2), ("qa1", "qb1")


def grouped(**changes: Any) -> dict[str, Any]:
    """The study `first`, cut down; four runs of BitFit train together."""
    study = first()
    study["training"] = [
        {"set": {"steps": 6, "batch_tokens": 256, "evaluations": 2}},
        {"when": {"method": "bitfit"}, "set": {"together": 4, **changes}},
    ]
    study["grids"]["all"] |= {
        "method": ["full-ft", "bitfit"],
        "source": [*SOURCES],
        "target": ["qb1"],
        "seed": [*SEEDS],
    }
    return study


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = project(tmp_path_factory.mktemp("project"), grouped(), "first")
    jobs = planned(folder, REPORT)
    assert (jobs["train"], jobs["train_many"], jobs["take_run"], jobs["evaluate"]) == (4, 1, 4, 8)
    succeeds(folder, f"snakemake --profile laptop {REPORT}")
    return folder


def record(folder: Path, source: str, seed: int) -> dict[str, Any]:
    contents: dict[str, Any] = json.loads((folder / RUNS / source / f"seed{seed}" / "run.json").read_text())
    return contents


def test_a_record_says_with_whom_the_run_trained(built: Path) -> None:
    names = [f"bitfit/{source}/{seed}" for seed in SEEDS for source in SOURCES]
    for source in SOURCES:
        for seed in SEEDS:
            run = record(built, source, seed)
            assert run["together"] == run["recipe"]["together"] == names
            assert run["recipe"]["source"] == source and run["recipe"]["seed"] == seed
    digests = {record(built, source, seed)["digest"] for source in SOURCES for seed in SEEDS}
    assert len(digests) == 4


def test_a_missing_run_is_taken_from_its_group_again(built: Path) -> None:
    place = built / RUNS / "qb1/seed2/delta.safetensors"
    before = place.read_bytes()
    place.unlink()
    jobs = planned(built, str(place.relative_to(built)))
    assert jobs["take_run"] == 1 and "train_many" not in jobs
    succeeds(built, f"snakemake --profile laptop {place.relative_to(built)}")
    assert place.read_bytes() == before


def test_without_its_file_a_group_trains_again_and_gives_the_same_runs(built: Path) -> None:
    place = built / RUNS / "qa1/seed1/delta.safetensors"
    before = place.read_bytes()
    (built / GROUP).unlink()
    place.unlink()
    succeeds(built, f"snakemake --profile laptop {place.relative_to(built)}")
    assert place.read_bytes() == before


def test_the_commands_of_the_page_run(tmp_path: Path) -> None:
    page = "docs/how-to/together.md"
    folder = project(tmp_path, first(), "first")
    study, *_ = blocks(page, "yaml")
    (folder / "studies" / "faster.yaml").write_text(study)
    check, made = commands(page)[:2]
    succeeds(folder, check, made.replace("--cores all", "--dry-run"))
