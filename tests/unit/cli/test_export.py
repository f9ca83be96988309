"""The command that exports results names the study, the files and what is missing."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from xlgrid.cli.app import app

STUDY = """\
title: Tiny
languages: [qa1, qa2]
encoders: {tiny: {scratch: {kind: bert, languages: [qa1, qa2]}}}
tasks: {ner: {kind: wikiann}}
methods: {full-ft: {}}
grids: {main: {task: [ner], encoder: [tiny], method: [full-ft], source: [qa1], target: [mono], seed: [1]}}
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("studies").mkdir()
    Path("studies/tiny.yaml").write_text(STUDY)


def test_the_cells_go_below_the_results_of_the_study_unless_a_file_is_named() -> None:
    result = CliRunner().invoke(app, ["export", "tiny"])
    assert result.output == "wrote results/tiny/cells.parquet: 0 of 2 planned cells have a result\n"
    assert Path("results/tiny/cells.parquet").exists()
    result = CliRunner().invoke(app, ["export", "tiny", "--output", "mine/all.parquet"])
    assert result.exit_code == 0 and Path("mine/all.parquet").exists()


def test_learning_curves_are_counted_too() -> None:
    result = CliRunner().invoke(app, ["export", "tiny", "--tensorboard", "tb"])
    assert result.output.splitlines() == [
        "wrote the learning curves of 0 of 2 planned trainings to tb",
        "wrote results/tiny/cells.parquet: 0 of 2 planned cells have a result",
    ]


def test_a_study_that_does_not_exist_is_told_in_a_line() -> None:
    result = CliRunner().invoke(app, ["export", "tinny"])
    assert result.exit_code == 1 and "did you mean 'tiny'" in result.output
