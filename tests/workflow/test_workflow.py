"""The real Snakemake on a study of a minute: what is built, what is built again, and what is refused."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STUDY = """\
title: A study for the tests
languages: [qa1, qb1]
text: {sentences: 200, seed: 1}
encoders:
  tiny: {mini: {kind: bert, languages: [qa1, qb1], vocab: 300, hidden: 16, layers: 1, heads: 2, intermediate: 16, steps: 5}}
tasks:
  ner: {kind: wikiann, options: {n: 100}, max_length: 64}
methods:
  full-ft: {}
  bitfit: {}
training:
  - set: {steps: 4, batch_tokens: 256, evaluations: 2}
grids:
  main: {task: [ner], encoder: [tiny], method: [full-ft, bitfit], source: [qa1], target: [mono], seed: [1]}
exhibits:
  transfer: {kind: heatmap, title: Transfer, method: full-ft}
  scores: {kind: table, title: Scores, rows: [method], columns: target}
"""


def snakemake(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    scripts = str(Path(sys.executable).parent)
    return subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "2", *arguments],
        cwd=folder,
        env={**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=600,
    )


def planned(folder: Path, *arguments: str) -> dict[str, int]:
    """Rule -> jobs that a dry run announces."""
    done = snakemake(folder, "--dry-run", *arguments)
    assert done.returncode == 0, done.stderr
    table = (done.stdout + done.stderr).partition("Job stats:")[2].partition("\n\n")[0]
    rows = [line.split() for line in table.splitlines()]
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdecimal() and row[0] != "total"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the whole study has run."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("rules", "notebooks", "envs"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "Snakefile", folder)
    (folder / "config.yaml").write_text("study: s\nhub_lock: hub.lock.yaml\n")
    (folder / "studies").mkdir()
    (folder / "studies" / "s.yaml").write_text(STUDY)
    done = snakemake(folder)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


def test_everything_promised_is_there(finished: Path) -> None:
    results = finished / "results" / "s"
    wanted = ["report.html", "report.ipynb", "summary.csv", "exhibits/transfer.svg", "exhibits/scores.tex"]
    assert [name for name in wanted if not (results / name).stat().st_size] == []
    assert len(list(results.glob("cells/**/*.json"))) == 4


def test_a_second_run_has_nothing_to_do(finished: Path) -> None:
    assert planned(finished) == {}


def test_a_deleted_cell_is_the_only_one_evaluated_again(finished: Path) -> None:
    cell = finished / "results/s/cells/ner/tiny/full-ft/qa1/qb1/seed1.json"
    aside = cell.with_name("aside")
    cell.rename(aside)
    try:
        jobs = planned(finished)
    finally:
        aside.rename(cell)
    assert (jobs.get("evaluate"), jobs.get("train")) == (1, None)


def test_a_deleted_run_is_trained_again_and_its_cells_evaluated(finished: Path) -> None:
    run = finished / "results/s/runs/ner/tiny/full-ft/qa1/seed1"
    aside = run.with_name("aside")
    run.rename(aside)
    try:
        jobs = planned(finished)
    finally:
        aside.rename(run)
    assert (jobs.get("train"), jobs.get("evaluate")) == (1, 2)


def test_a_method_s_learning_rate_concerns_that_method_only(finished: Path) -> None:
    study = finished / "studies" / "s.yaml"
    study.write_text(STUDY.replace("grids:", "  - {when: {method: bitfit}, set: {lr: 1.0e-3}}\ngrids:"))
    try:
        jobs = planned(finished)
    finally:
        study.write_text(STUDY)
    assert (jobs["train"], jobs["evaluate"]) == (1, 2)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("results/s/cells/ner/tiny/bitfut/qa1/qb1/seed1.json", "did you mean 'bitfit'"),
        ("results/s/cells/ner/tiny/bitfit/qa1/qb1/seed7.json", "unknown seed '7'"),
    ],
)
def test_a_misspelt_target_says_what_exists(finished: Path, target: str, said: str) -> None:
    done = snakemake(finished, "--dry-run", target)
    assert done.returncode != 0
    assert said in done.stdout + done.stderr


def test_an_unknown_study_names_those_that_exist(finished: Path) -> None:
    done = snakemake(finished, "--dry-run", "--config", "study=t")
    assert done.returncode != 0
    assert "there are: s" in done.stdout + done.stderr
