"""Winners that were chosen on the dev sets of targets are called oracles by everything that shows them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from xlgrid.evaluation.cell import pack
from xlgrid.exhibits import claims
from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.report import export, page

STUDY = """\
title: Oracles
languages: [en, fr]
encoders: {e: {path: e}}
tasks: {nli: {kind: xnli, max_length: 128}}
methods: {full-ft: {}, bitfit: {}}
training: [{when: {method: bitfit}, set: {dev_targets: [fr]}}]
sweep:
  - {when: {method: bitfit}, set: {lr: [1.0e-4, 1.0e-3]}, choose_on: target}
  - {when: {method: full-ft}, set: {lr: [1.0e-5, 1.0e-4]}}
grids:
  g: {task: [nli], encoder: [e], method: [full-ft, bitfit], source: [en], target: [en, fr], seed: [1, 2, 3]}
exhibits:
  table: {kind: table, title: Accuracy, caption: By method., rows: [method], columns: target}
  heatmap: {kind: heatmap, title: Accuracy, method: bitfit}
  difference: {kind: heatmap, title: Accuracy, difference: [full-ft, bitfit]}
  curve: {kind: curve, title: Accuracy, x: step, lines: method}
  honest: {kind: table, title: Accuracy, caption: By method., rows: [method], columns: target, select: {method: full-ft}}
claims:
  both: {says: BitFit is worse., compare: [{method: full-ft}, {method: bitfit}], expect: greater}
  one: {says: It learns., select: {method: full-ft}, against: 33, expect: greater}
"""
MARK = "Accuracy ‡ oracle: bitfit"


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plan]:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(STUDY)
    plan = load_plan("s.yaml")
    for cell in plan.cells:
        record = {
            **cell._asdict(),
            "scores": {"accuracy": 50.0},
            "metric": {"name": "accuracy"},
            "head": "embed",
            "labels": [],
            "n": 2,
        }
        Path(cell.path).parent.mkdir(parents=True, exist_ok=True)
        Path(cell.path).write_text(json.dumps(record | {"outcomes": pack([1, 0])}))
    for run in plan.runs:
        recipe = plan.study.recipe(*run[1:]).model_dump(mode="json")
        Path(run.folder).mkdir(parents=True)
        Path(run.folder, "run.json").write_text(json.dumps({"recipe": recipe}))
        Path(run.folder, "curve.jsonl").write_text('{"step": 1, "score": 50.0}\n{"step": 2, "score": 50.0}\n')
    yield plan


@pytest.mark.parametrize("name", ["table", "heatmap", "difference", "curve"])
def test_every_file_of_an_exhibit_with_an_oracle_says_so(name: str, plan: Plan) -> None:
    exhibit = plan.study.exhibit(name)
    exhibit.render(name, plan, ".")
    for suffix in exhibit.suffixes:
        if suffix not in (".csv", ".png", ".pdf"):
            text = Path(f"{name}{suffix}").read_text()
            assert "oracle: bitfit" in text and ("‡" in text or suffix == ".tex"), suffix
    assert "so that no score of bitfit is zero-shot" in Path(f"{name}.md").read_text()


def test_an_exhibit_without_an_oracle_is_as_the_study_states(plan: Plan) -> None:
    plan.study.exhibit("honest").render("honest", plan, ".")
    text = Path("honest.md").read_text()
    assert text.startswith("**Accuracy** By method.\n") and "oracle" not in text


def test_a_claim_about_an_oracle_says_so(plan: Plan) -> None:
    claims.render(plan.study, plan.cells, ".")
    both, one = [line for line in Path("claims.md").read_text().splitlines() if line.startswith(("| both", "| one"))]
    assert "BitFit is worse. ‡ oracle: some settings were chosen on the dev sets of targets" in both
    assert "oracle" not in one
    assert "oracle" in Path("claims.html").read_text()


def test_the_report_says_which_sweep_is_an_oracle(plan: Plan) -> None:
    text = str(page.sweeps(page.load("s.yaml")))
    assert "Runs tried: 12. Sweeps that are finished: 0 of 2." in text
    assert "bitfit ‡" in text and "full-ft ‡" not in text


def test_exported_cells_say_which_of_them_are_oracles(plan: Plan, tmp_path: Path) -> None:
    export.export_cells(plan, tmp_path / "cells.parquet")
    cells = pq.read_table(tmp_path / "cells.parquet").to_pylist()
    assert {(cell["method"], cell["oracle"]) for cell in cells} == {("bitfit", True), ("full-ft", False)}
