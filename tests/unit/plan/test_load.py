"""A study is checked as a whole when it is loaded, by its name or its file."""

from pathlib import Path

import pytest
from plan_fixture import COSTED, begun, small

from xlgrid.plan.load import load_plan, load_study, study_path
from xlgrid.plan.needs import inputs
from xlgrid.plan.plan import Plan


def test_a_study_has_a_name_and_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("studies").mkdir()
    Path("studies/tiny.yaml").write_text(COSTED)
    assert load_study("tiny") == load_study("studies/tiny.yaml") == load_study(tmp_path / "studies/tiny.yaml")
    assert study_path("other.yaml") == Path("other.yaml") and study_path("a/b") == Path("a/b")
    with pytest.raises(FileNotFoundError, match="unknown study 'tniy', did you mean 'tiny'"):
        load_plan("tniy")


def test_two_grids_with_one_cell_are_refused_when_a_study_is_loaded(tmp_path: Path) -> None:
    """And not only when its cells are asked for."""
    path = tmp_path / "s.yaml"
    path.write_text(COSTED.replace("target: [mono], seed: [1, 2]", "target: [mono, fr], seed: [1, 2]"))
    with pytest.raises(ValueError, match=r"en/fr/seed1.json is made twice"):
        load_plan(path)


def test_a_plan_has_cells_and_runs_once() -> None:
    plan = Plan(small())
    assert plan.cells is plan.cells and plan.runs is plan.runs
    assert plan.results == {*plan.cells, *plan.runs}


def test_a_run_on_text_is_imported_where_its_method_says_so() -> None:
    study = begun()
    imported = study.methods["mlm"].model_validate({"base": "madx", "imported": {"path": "x/{language}"}})
    plan = Plan(study.model_copy(update={"methods": study.methods | {"mlm": imported}}))
    inputs_of_runs = {run: {*inputs(plan, run)} for run in plan.runs}
    assert {run.task for run, names in inputs_of_runs.items() if "adapter" in names} == {"mlm"}
    assert all(("adapter" in names) != ("train" in names) for names in inputs_of_runs.values())
    assert not any("adapter" in inputs(Plan(study), run) for run in Plan(study).runs)
