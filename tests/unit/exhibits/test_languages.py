"""Lists of languages, which need no results."""

from pathlib import Path

import pandas as pd
import pytest
from study_fixture import TEXT, write

from xlgrid.plan.load import load_study
from xlgrid.plan.plan import Plan
from xlgrid.study.schema import Study

EXHIBITS = """\
exhibits:
  sets: {kind: languages, title: Sets, columns: {small: {pre-train: small, add: added}, large: {pre-train: large}}}
  part: {kind: languages, title: Part, columns: {large: {x: large}}, only: [added]}
"""
GROUPS = "groups:\n  small: [fr]\n  large: [yi, fr, en]\n  added: [en, yi]\n"


def text(groups: str = GROUPS, exhibits: str = EXHIBITS) -> str:
    whole = TEXT[: TEXT.index("groups:")].replace("languages: [en, fr]\n", "languages: [en, fr, yi]\n", 1)
    return whole.replace("target: [mono, en-X]", "target: [en]") + groups + exhibits


def study(folder: Path, groups: str = GROUPS, exhibits: str = EXHIBITS) -> Study:
    return load_study(write(folder, text(groups, exhibits)))


def test_a_list_has_facts_and_marks_in_the_order_of_the_study(tmp_path: Path) -> None:
    example_study = study(tmp_path)
    exhibit = example_study.exhibit("sets")
    assert exhibit.cells([], example_study.facts) == [] and exhibit.suffixes == (".csv", ".md", ".tex", ".html")
    exhibit.render("sets", Plan(example_study), tmp_path)
    table = pd.read_csv(tmp_path / "sets.csv", keep_default_na=False)
    assert table.to_dict("list") == {
        "code": ["en", "fr", "yi"],
        "name": ["English", "French", "Yiddish"],
        "family": ["Germanic", "Romance", "Germanic"],
        "script": ["Latn", "Latn", "Hebr"],
        "small": ["add", "pre-train", "add"],
        "large": ["pre-train"] * 3,
    }
    markdown = (tmp_path / "sets.md").read_text()
    assert "Yiddish" in markdown and "small 3, large 3" in markdown


def test_the_rows_may_be_those_of_other_groups(tmp_path: Path) -> None:
    example_study = study(tmp_path)
    example_study.exhibit("part").render("part", Plan(example_study), tmp_path)
    assert pd.read_csv(tmp_path / "part.csv")["code"].to_list() == ["en", "yi"]


def test_families_and_scripts_that_are_not_known_are_blank(tmp_path: Path) -> None:
    exhibits = "exhibits:\n  sets: {kind: languages, title: Sets, columns: {all: {x: added}}}\n"
    listed = text("groups:\n  added: [en, std]\n", exhibits).replace("[en, fr, yi]", "[en, fr, std]", 1)
    listed = listed.replace("options: {n: 100}", "data: {local: x}")
    example_study = load_study(write(tmp_path, listed))
    example_study.exhibit("sets").render("sets", Plan(example_study), tmp_path)
    table = pd.read_csv(tmp_path / "sets.csv", keep_default_na=False).set_index("code")
    assert table.loc["std"].to_list() == ["Sentinel", "", "", "x"]
    markdown = (tmp_path / "sets.md").read_text()
    assert "that are not known are blank" in markdown and "None" not in markdown


def test_its_settings_change_with_a_member_of_a_group(tmp_path: Path) -> None:
    """Snakemake then draws it again."""
    first, second = study(tmp_path), study(tmp_path, GROUPS.replace("small: [fr]", "small: []"))
    assert first.exhibit("sets").settings(first) != second.exhibit("sets").settings(second)
    assert first.exhibit("part").settings(first) == second.exhibit("part").settings(second)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("add: added", "add: addd", "exhibits.sets.columns.small: unknown group 'addd', did you mean 'added'"),
        ("only: [added]", "only: [mono]", "exhibits.part.only: unknown group 'mono'"),
        ("added: [en, yi]", "added: [en, fr]", "exhibits.sets.columns.small: fr is in both small and added"),
        ("added: [en, yi]", "added: [en-fr]", "exhibits.sets.columns: group added has en-fr, which is not a language"),
        ("{large: {x: large}}", "{name: {x: large}}", "exhibits.part.columns.name: .* another column"),
    ],
)
def test_mistakes_are_told_when_the_study_is_read(tmp_path: Path, old: str, new: str, message: str) -> None:
    whole = GROUPS + EXHIBITS
    assert whole.count(old) == 1
    with pytest.raises(ValueError, match=message):
        study(tmp_path, "", whole.replace(old, new))
