"""Exhibits show what the grids have."""

from pathlib import Path

import pytest
from study_fixture import CURVE, QA, TEXT, write

from xlgrid.plan.load import load_plan, load_study


def test_attention_is_of_runs_that_have_both_targets(tmp_path: Path) -> None:
    other = (
        "  other: {task: [rt], encoder: [mini], method: [bitfit], source: [en-fr], target: [fr-en, en-fr], seed: [1]}\n"
    )
    exhibit = "{kind: attention, title: t, targets: [en, en-fr], select: {source: en-fr}}"
    text = TEXT.replace("groups:\n", f"{other}groups:\n").replace(CURVE, exhibit)
    with pytest.raises(ValueError, match=r"s.yaml:21: exhibits.curve.select: no run .* has both targets, en and en-fr"):
        load_study(write(tmp_path, text))


def test_metrics_follow_from_the_tasks_and_a_table_shows_the_main_ones(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, QA.replace("rows: [task]", "rows: [task, metric]")))
    expected = {"xquad": ("squad-f1", "squad-em"), "copa": ("accuracy",), "siqa": ("accuracy",)}
    assert study.metrics == expected | {"pretraining": ("accuracy",)}
    assert study.exhibits["table"].names_metric
    assert not load_study(write(tmp_path, QA)).exhibits["table"].names_metric


def test_a_table_shows_both_metrics_where_it_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, axes in (("main", "rows: [task]"), ("both", "rows: [task, metric]")):
        plan = load_plan(write(tmp_path, QA.replace("rows: [task]", axes)))
        plan.study.exhibit("table").render("table", plan, name)
        lines = Path(name, "table.csv").read_text().splitlines()
        # Two targets each.
        assert len(lines) - 1 == 2 * (2 if name == "main" else 3)
        assert "Metric: squad-f1, " in Path(name, "table.md").read_text()
