"""Languages that a study declares are languages as those of the table."""

from pathlib import Path

import pytest
from study_fixture import TEXT, write

from xlgrid.languages import Language
from xlgrid.plan.load import load_plan, load_study

NKO = "{name: N'Ko, family: Mande, script: Nkoo}"
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
        (
            "xy: {family: Mande, script: Latn}",
            r"new_languages.xy: `name` is missing, because ISO 639 has no language of",
        ),
        ("ee: {family: Kwa}", r"ee: xlgrid knows ee as Ewe, Gbe, Latn, ltr: leave it out"),
        ("sus: {name: Susu, familly: Mande, script: Latn}", r"unknown key 'familly', did you mean 'family'"),
    ],
)
def test_a_declaration_with_a_mistake_is_refused_with_its_line(tmp_path: Path, entry: str, message: str) -> None:
    text = TEXT.replace("languages: [en, fr]\n", f"languages: [en, fr]\nnew_languages:\n  {entry}\n")
    with pytest.raises(ValueError, match=rf"s\.yaml:4: .*{message}"):
        load_study(write(tmp_path, text))


@pytest.mark.parametrize(
    ("code", "entry", "language"),
    [
        ("kab", "", Language("kab", "Kabyle", None, "Latn", "ltr")),
        ("kab", "{family: Berber}", Language("kab", "Kabyle", "Berber", "Latn", "ltr")),
        ("kab", "{name: Taqbaylit, script: Tfng}", Language("kab", "Taqbaylit", None, "Tfng", "ltr")),
        ("ewe", "{family: Kwa}", Language("ewe", "Ewe", "Kwa", "Latn", "ltr")),
        ("ha", "{}", Language("ha", "Hausa", "Chadic", "Latn", "ltr")),
        ("quy", "{family: Quechua II}", Language("quy", "Ayacucho Quechua", "Quechua II", "Latn", "ltr")),
        ("rif", "{script: Arab}", Language("rif", "Tarifit", None, "Arab", "rtl")),
        ("xy", "{name: Somewhere}", Language("xy", "Somewhere", None, None, None)),
    ],
)
def test_a_study_adds_facts_to_those_of_the_standard(tmp_path: Path, code: str, entry: str, language: Language) -> None:
    declared = f"new_languages: {{{code}: {entry}}}\n" if entry else ""
    text = TEXT.replace("languages: [en, fr]\n", f"languages: [en, fr, {code}]\n{declared}", 1)
    # A grid or exhibit that asks for no family runs without one.
    study = load_study(write(tmp_path, text.replace("options: {n: 100}", 'data: {local: "{language}"}')))
    assert study.languages_used[code] == language


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("target: [mono, en-X]", "target: ['family:Romance']", r"s\.yaml:14: grids.main.target: "),
        ("groups: [mono, romance, en-X]", "groups: [mono, same-family]", r"s\.yaml:\d+: exhibits.table.groups: "),
        ("groups: [mono, romance, en-X]", "groups: ['zero-shot:family:Romance']", r"exhibits.table.groups: "),
        (
            "groups:\n  romance",
            "claims:\n  c: {says: s, select: {group: other-family}, against: 50, expect: greater}\ngroups:\n  romance",
            r"claims.c.select.group: ",
        ),
    ],
)
def test_what_asks_for_a_family_that_is_not_known_is_refused_with_the_way_out(
    tmp_path: Path, old: str, new: str, where: str
) -> None:
    assert TEXT.count(old) == 1
    text = TEXT.replace("languages: [en, fr]\n", "languages: [en, fr, kab, quy]\n", 1).replace(old, new)
    text = text.replace("options: {n: 100}", 'data: {local: "{language}"}')
    message = r"needs the family of each language, but the family of kab \(Kabyle\) is not known.*`new_languages: {kab: {family: ...}}`"
    with pytest.raises(ValueError, match=where + "group .*" + message):
        load_study(write(tmp_path, text))
    load_study(write(tmp_path, text + "new_languages: {kab: {family: Berber}}\n"))


def test_a_language_whose_code_is_the_name_of_a_group_takes_another(tmp_path: Path) -> None:
    """ISO 639-3 has `all`, Allar."""
    with pytest.raises(
        ValueError, match=r"s\.yaml:2: languages.2: all is the name of a group: declare the language by"
    ):
        load_study(write(tmp_path, TEXT.replace("[en, fr]", "[en, fr, all]", 1)))


def test_generated_data_still_need_a_lexicon(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="task rt cannot be generated in kab"):
        load_study(write(tmp_path, TEXT.replace("languages: [en, fr]\n", "languages: [en, fr, kab]\n", 1)))


def test_a_misspelt_code_names_the_declared_language(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"unknown language 'nqoo', did you mean 'nqo'.*`new_languages` of a study"):
        load_study(write(tmp_path, STUDY.replace("fr, nqo, sus]", "fr, nqoo, sus]")))
