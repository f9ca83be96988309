"""Counts of parameters are kept between commands, which then need neither torch nor transformers."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from shipped import STUDIES

from xlgrid.heads import HEADS
from xlgrid.plan import counts
from xlgrid.plan.estimate import Estimate
from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan

COST = """
import sys
from xlgrid.plan.estimate import Estimate
from xlgrid.plan.load import load_plan
Estimate(load_plan(sys.argv[1])).stages()
print(*{"torch", "transformers"} & {*sys.modules})
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(counts, "FOLDER", tmp_path / "xlgrid" / "counts")
    return counts.FOLDER


def refused(*arguments: Any) -> None:
    raise AssertionError("it is counted again")


def everything(plan: Plan) -> tuple[Any, ...]:
    estimate = Estimate(plan)
    return estimate.stages(), estimate.exhibits(), [estimate.count(run) for run in plan.runs]


@pytest.mark.parametrize(
    "study", ["demo", "foroutan2023-mini", "pfeiffer2020-mini", "pfeiffer2022-mini", "luo2021-mini", "africa"]
)
def test_what_is_kept_is_what_was_counted(study: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every architecture, head and method of these studies, and encoders of the Hub."""
    plan = load_plan(str(STUDIES[study]))
    counted = everything(plan)
    monkeypatch.setattr(counts, "count", refused)
    assert everything(plan) == counted


def test_a_second_command_needs_neither_torch_nor_transformers() -> None:
    study = str(STUDIES["demo"])
    Estimate(load_plan(study)).stages()
    command = [sys.executable, "-c", COST, study]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "\n"


def test_other_models_and_other_code_are_counted_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = load_plan(str(STUDIES["first"]))

    def trained(labels: int = 2, **more: Any) -> int:
        return counts.counted(plan, "mini-xlmr", HEADS["token"], labels, "full-ft", {}, **more)[0].trained

    hidden = plan.study.encoders["mini-xlmr"].planned_configuration(plan, "mini-xlmr").hidden_size
    first = trained()
    assert trained(labels=3) == first + hidden + 1
    assert trained(entries=400) - trained(entries=300) == 100 * hidden
    [code] = folder.iterdir()
    assert len([*code.iterdir()]) == 4
    monkeypatch.setattr(counts, "_code", lambda: "another")
    assert trained() == first
    assert [path.name for path in folder.iterdir()] == ["another"], "those of the other code are not needed any more"


def test_a_damaged_file_is_counted_again(folder: Path) -> None:
    estimate = Estimate(load_plan(str(STUDIES["first"])))
    run = estimate.plan.runs[0]
    counted = estimate.count(run)
    for path in folder.rglob("*.json"):
        path.write_text("[[1, 2]")
    assert Estimate(estimate.plan).count(run) == counted


def test_nothing_is_kept_where_nothing_can_be_written(folder: Path) -> None:
    folder.parent.mkdir()
    folder.write_text("a file where the folder would be")
    estimate = Estimate(load_plan(str(STUDIES["first"])))
    assert estimate.count(estimate.plan.runs[0]).trained > 0
