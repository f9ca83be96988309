"""A study is checked as a whole when it is loaded, by its name or its file."""

from pathlib import Path

import pytest
from plan_fixture import COSTED, small

from xlgrid.base.files import SHIPPED
from xlgrid.plan.load import copy_study, file_in, load_plan, load_study, project_of, study_path
from xlgrid.plan.plan import Plan

pytestmark = pytest.mark.usefixtures("queries")


def test_a_study_has_a_name_and_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("studies").mkdir()
    Path("studies/tiny.yaml").write_text(COSTED)
    assert load_study("tiny") == load_study("studies/tiny.yaml") == load_study(tmp_path / "studies/tiny.yaml")
    assert study_path("other.yaml") == Path("studies/other.yaml") and study_path("a/b") == Path("a/b.yaml")
    with pytest.raises(FileNotFoundError, match="unknown study 'tniy', did you mean 'tiny'"):
        load_plan("tniy")


@pytest.mark.parametrize(
    "study", ["own", "own.yaml", "studies/own", "studies/own.yaml", "./studies/own.yaml", "~/studies/own.yaml", "v1.0"]
)
def test_a_study_is_found_by_its_name_and_by_that_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, study: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    Path("studies").mkdir()
    for name in ("own", "v1.0"):
        Path(f"studies/{name}.yaml").touch()
    assert study_path(study).resolve() == tmp_path / "studies" / f"{'v1.0' if study == 'v1.0' else 'own'}.yaml"


def test_a_file_here_wins_over_a_study_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("studies").mkdir()
    for path in ("own.yaml", "studies/own.yaml"):
        Path(path).touch()
    assert study_path("own.yaml") == Path("own.yaml")


@pytest.mark.parametrize("study", ["ovn", "ovn.yaml", "studies/ovn", "studies/ovn.yaml"])
def test_a_misspelt_study_names_the_nearest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, study: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("studies").mkdir()
    Path("studies/own.yaml").touch()
    with pytest.raises(
        FileNotFoundError, match=r"no study file studies/ovn\.yaml: unknown study 'ovn', did you mean 'own'"
    ):
        load_plan(study)


def test_a_study_that_comes_with_xlgrid_is_found_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert study_path("demo") == SHIPPED / "studies" / "demo.yaml"
    Path("studies").mkdir()
    Path("studies/demo.yaml").write_text(COSTED)
    assert study_path("demo") == Path("studies/demo.yaml"), "the project's own study wins"


def test_a_study_extends_its_neighbour_or_one_that_comes_with_xlgrid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "own.yaml").write_text("extends: first\ntitle: Own\n")
    plan = load_plan(elsewhere / "own.yaml")
    assert [each.path for each in (*plan.ancestors, plan)] == [SHIPPED / "studies/first.yaml", elsewhere / "own.yaml"]
    (elsewhere / "first.yaml").write_text(COSTED)
    assert load_plan(elsewhere / "own.yaml").ancestors[0].path == elsewhere / "first.yaml"


def test_results_that_moved_without_their_study_have_a_copy_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("studies").mkdir()
    Path("studies/tiny.yaml").write_text(COSTED)
    Path("studies/own.yaml").write_text("extends: tiny\ntitle: Own\n")
    copy_study(load_plan("own"))
    moved = tmp_path / "moved"
    moved.mkdir()
    Path("results").rename(moved / "results")
    copy = moved / "results/own/study/own.yaml"
    assert file_in(moved, "own") == file_in(moved, "studies/own.yaml") == copy
    assert file_in(tmp_path, "own") == tmp_path / "studies/own.yaml", "the study itself wins where it is"
    assert load_plan(copy).study == load_study("own")


def test_the_project_of_a_notebook_is_the_nearest_folder_with_its_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "results/tiny/exhibits").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "results/tiny")
    assert project_of("tiny") == project_of("studies/tiny.yaml") == tmp_path
    assert project_of("other") == Path(), "no folder above has it"
    monkeypatch.chdir(tmp_path)
    assert project_of("tiny") == Path()


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
