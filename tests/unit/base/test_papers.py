"""Studies, published numbers and rules that papers and other packages bring."""

from pathlib import Path

import pytest
from plugin_fixture import install

from xlgrid.base.papers import PAPERS, folders, published_file, rule_files, shipped_studies, study_file


@pytest.fixture
def paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a paper in a package of its own, with a study, numbers and rules; the working directory is empty."""
    site = install(tmp_path / "site", "my-paper", "1", "", {"xlgrid.papers": {"mine": "my_papers.mine"}})
    folder = site / "my_papers" / "mine"
    for name in ("studies/mine.yaml", "reference/table01.csv", "rules.smk", "__init__.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    monkeypatch.syspath_prepend(site)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return folder


def test_a_package_brings_studies_numbers_and_rules(paper: Path) -> None:
    assert study_file("mine") == paper / "studies" / "mine.yaml" and study_file("mine") in shipped_studies()
    assert published_file("mine/table01") == paper / "reference" / "table01.csv"
    assert paper / "rules.smk" in rule_files()
    PAPERS.imported.pop("mine", None)


def test_files_of_the_project_come_first(paper: Path) -> None:
    for name in ("studies/mine.yaml", "reference/mine/table01.csv"):
        Path(name).parent.mkdir(parents=True)
        Path(name).write_text("")
    assert study_file("mine") == Path("studies/mine.yaml")
    assert published_file("mine/table01") == Path("reference/mine/table01.csv")
    PAPERS.imported.pop("mine", None)


def test_what_nothing_has_is_looked_for_in_the_project() -> None:
    assert study_file("nothing") == Path("studies/nothing.yaml")
    assert published_file("nothing/table01") == Path("reference/nothing/table01.csv")


@pytest.mark.parametrize("paper", folders())
def test_a_paper_has_a_study_of_its_name_and_says_where_its_numbers_come_from(paper: str) -> None:
    assert (folders()[paper] / "reference" / "README.md").is_file()
    assert study_file(paper).is_file()
