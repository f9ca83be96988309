"""Languages that a study declares are languages as those of the table."""

from pathlib import Path

import pytest
from study_fixture import TEXT, write

from xlgrid.languages import Language
from xlgrid.plan.load import load_plan, load_study

NKO = "{name: N'Ko, family: Mande, script: Nkoo, direction: rtl}"
SUSU = "{name: Susu, family: Mande, script: Latn}"
STUDY = TEXT.replace(
    "languages: [en, fr]\n", f"languages: [en, fr, nqo, sus]\nnew_languages: {{nqo: {NKO}, sus: {SUSU}}}\n"
)
# There are no lexicons of these languages, so their data come from files.
STUDY = STUDY.replace("options: {n: 100}", 'data: {local: "{language}/{split}.jsonl"}').replace(
    "source: [en], target: [mono, en-X]", "source: [en], target: ['family:Mande', en-nqo, nqo-en]"
)


def test_a_declared_language_has_what_the_study_says(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, STUDY))
    assert study.languages_used["nqo"] == Language("nqo", "N'Ko", "Mande", "Nkoo", "rtl")
    assert study.languages_used["sus"] == Language("sus", "Susu", "Mande", "Latn", "ltr")
    assert study.languages_used["fr"].family == "Romance"


def test_grids_have_declared_languages_by_family_script_and_pair(tmp_path: Path) -> None:
    cells = load_plan(write(tmp_path, STUDY)).cells
    assert list(dict.fromkeys(cell.target for cell in cells)) == ["nqo", "sus", "en-nqo", "nqo-en"]
    text = STUDY.replace("'family:Mande', en-nqo, nqo-en", "'script:Latn'")
    cells = load_plan(write(tmp_path, text)).cells
    assert list(dict.fromkeys(cell.target for cell in cells)) == ["en", "fr", "sus"]


@pytest.mark.parametrize(
    ("group", "targets"),
    [
        ("family:Mande", {"nqo", "sus"}),
        ("same-script", {"fr", "sus"}),
        ("other-script", {"nqo"}),
        ("same-family", set()),
    ],
)
def test_exhibits_group_declared_languages(tmp_path: Path, group: str, targets: set[str]) -> None:
    study = load_study(write(tmp_path, STUDY))
    assert {code for code in study.languages if study.belongs(group, "en", code)} == targets


def test_a_study_that_extends_another_inherits_its_languages(tmp_path: Path) -> None:
    write(tmp_path, STUDY, "parent.yaml")
    study = load_study(write(tmp_path, "extends: parent\nnew_languages: {sus: {family: Soso}}\n"))
    assert (study.language("sus").family, study.language("nqo").name) == ("Soso", "N'Ko")


def test_a_language_of_the_table_may_be_declared_as_it_is(tmp_path: Path) -> None:
    french = "new_languages: {fr: {name: French, family: Romance, script: Latn}}\n"
    assert load_study(write(tmp_path, TEXT + french)).language("fr").family == "Romance"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            "fr: {name: French, family: Italic, script: Latn}",
            r"fr: xlgrid knows fr as French, Romance, Latn, ltr: leave",
        ),
        (
            "qa1: {name: A, family: B, script: Latn}",
            r"qa1: xlgrid knows qa1 as .*: leave it out, or choose another code",
        ),
        ("ku-kmr: {name: Kurmanji, family: Iranian, script: Latn}", r"'ku-kmr' cannot be the code of a language"),
        ("a+b: {name: A, family: B, script: Latn}", r"'a\+b' cannot be the code of a language"),
        ("a/b: {name: A, family: B, script: Latn}", r"'a/b' cannot be the code of a language"),
        ("mono: {name: A, family: B, script: Latn}", r"'mono' cannot be the code of a language"),
        ("sus: {name: Susu, family: Mande, script: latin}", r"new_languages.sus.script: .*pattern"),
        ("sus: {name: Susu, family: Mande, script: Latn, direction: up}", r"sus.direction: .*'ltr' or 'rtl'"),
        ("sus: {name: Susu, script: Latn}", r"new_languages.sus: `family` is missing"),
        ("sus: {name: Susu, familly: Mande, script: Latn}", r"unknown key 'familly', did you mean 'family'"),
    ],
)
def test_a_declaration_with_a_mistake_is_refused_with_its_line(tmp_path: Path, entry: str, message: str) -> None:
    text = TEXT.replace("languages: [en, fr]\n", f"languages: [en, fr]\nnew_languages:\n  {entry}\n")
    with pytest.raises(ValueError, match=rf"s\.yaml:4: .*{message}"):
        load_study(write(tmp_path, text))


def test_a_misspelt_code_names_the_declared_language(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"unknown language 'nqoo', did you mean 'nqo'.*`new_languages` of a study"):
        load_study(write(tmp_path, STUDY.replace("fr, nqo, sus]", "fr, nqoo, sus]")))
