"""`xlgrid cost`: the tables that it prints."""

import json
from pathlib import Path

import pytest
from plan_fixture import COSTED as STUDY
from shipped import STUDIES
from typer.testing import CliRunner

from xlgrid.cli.app import app
from xlgrid.plan.estimate import Cost
from xlgrid.report.cost import cost_table

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queries: None) -> None:
    monkeypatch.chdir(tmp_path)
    Path("studies").mkdir()
    Path("studies/tiny.yaml").write_text(STUDY)


def printed(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["cost", *arguments], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    return result.output


def test_each_exhibit_stage_and_method_has_a_row() -> None:
    begins = [line.split("  ")[0].strip() for line in printed("tiny").splitlines()]
    assert {"full", "pairs", "pre-training", "MLM runs", "evaluation", "whole study", "tiny"} <= {*begins}


def test_the_speed_that_is_assumed_or_measured_is_stated() -> None:
    recipe = {"study": "tiny", "task": "rt", "encoder": "tiny", "method": "full-ft", "source": "en", "seed": 1}
    Path("run.json").write_text(json.dumps({"recipe": recipe, "steps": 44, "seconds": 90.0}))
    assert "one A100, assumed" in printed("tiny") and "run.json" in printed("tiny", "--measured", "run.json")


def test_what_another_study_makes_is_stated() -> None:
    Path("studies/more.yaml").write_text("extends: tiny\ngrids: {one: {seed: [1, 2, 3]}}\n")
    assert "another study makes them" in printed("more") and "another study makes them" not in printed("tiny")


@pytest.mark.parametrize(("hours", "unit"), [(2.0, "hours"), (0.5, "minutes"), (0.001, "seconds")])
def test_the_unit_of_time_shows_small_costs(hours: float, unit: str) -> None:
    table = cost_table({"one": Cost(hours=hours)})
    assert f"GPU-{unit}" in [column.header for column in table.columns]


# Files of an encoder that a person has to get are missing here.
STUDIES = sorted({path.stem for path in STUDIES.values()} - {"luo2021-released"})


@pytest.mark.slow
@pytest.mark.parametrize(
    "study", [pytest.param(name, marks=[] if name == "xtreme" else pytest.mark.thorough) for name in STUDIES]
)
def test_a_study_of_this_project_has_a_cost(study: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    printed(study)
