"""A study file is read strictly, and an error says what, where and what was meant."""

import re
from pathlib import Path

import pytest
from study_fixture import TEXT, write

from xlgrid.plan.load import load_study
from xlgrid.study.load import read_lineage


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("languages:", "langauges:", 2, "languages"),
        ("select: {task: rt}", "blocks: [romnce]", 18, "unknown group of the study 'romnce', did you mean 'romance'"),
        ("{method: bitfit}", "{base: bitfut}", 12, "unknown base 'bitfut', did you mean 'bitfit'"),
        ("seed: [1]", "sead: [1]", 14, "seed"),
        ("kind: ruletaker, options", "kind: ruletaker, optoins", 6, "options"),
        ("languages: [en, fr]", "languages: [en, frx]", 2, "fr"),
        ("method: [full-ft, bitfit]", "method: [full-ft, bitfut]", 14, "bitfit"),
        ("{lr: 2.0e-3}", "{learning: 2.0e-3}", 12, "lr"),
        ("source: [en]", "source: [de]", 14, "en"),
        ("source: [en]", "source: [en-fr-en]", 14, "neither a language nor a pair"),
        ("seed: [1]", "seed: [-1]", 14, "greater than or equal to 0"),
        ("seed: [1]", "seed: [10000000000000000000000]", 14, "less than 4294967296"),
        ("seed: [1]", "seed: []", 14, "at least 1 item"),
        ("seed: [1]", "seed: [1], languages: [en, frr]", 14, "did you mean 'fr'"),
        ("target: [mono, en-X]", "target: ['family:Romanc']", 14, "did you mean 'Romance'"),
        ("scratch: {kind: bert, languages: [en]}", "scratch: {kind: bert, languages: [enn]}", 4, "did you mean 'en'"),
        ("languages: [en]}}", "languages: [en], bitext: [[en, fr]]}}", 4, "unknown language of this encoder 'fr'"),
        ("languages: [en]}}", "languages: [en], max_length: 40}}", 6, "too long for encoder mini"),
        ("options: {n: 100}", "options: {n: 100, max_dept: 1}", 6, "did you mean 'max_depth'"),
        ("options: {n: 100}", "options: {max_depth: 5, rules: [0, 0]}", 6, "needs at least 5 rules"),
        ("kind: ruletaker", "kind: ruletakr", 6, "did you mean 'ruletaker'"),
        ("full-ft: {}", "full-ft: {options: {rank: 3}}", 8, "options: unknown key 'rank'"),
        ("tasks:", "name: mine\ntasks:", 5, "name: a study has the name of its file"),
        ("{lr: 2.0e-3}", "{lr: fast}", 12, "lr"),
        ("{lr: 2.0e-3}", "{lrr: 2.0e-3}", 12, "did you mean 'lr'"),
        ("{method: bitfit}, set", "{source: enn}, set", 12, "did you mean 'en'"),
        ("{method: bitfit}, set", "{source: romnce}, set", 12, "did you mean 'romance'"),
        (
            "{method: bitfit}, set",
            "{source: romance}, set",
            12,
            "'romance'",
        ),
        ("{method: bitfit}, set", "{source: fr}, set", 12, "no run has source 'fr', which the study defines"),
        ("romance: [fr]", "romance: [frr]", 16, "did you mean 'fr'"),
        ("romance: [fr]", "en: [fr]", 16, "a language of this study has this name"),
        ("romance: [fr]", "zero-shot: [fr]", 16, "exhibits and claims have a group of this name"),
        ("select: {task: rt}", "select: {task: rtt}", 18, "did you mean 'rt'"),
        ("[full-ft, bitfit]", "[full-ft]", 12, "no run has method 'bitfit', which the study defines"),
        ("method: full-ft, select", "method: full-tf, select", 18, "did you mean 'full-ft'"),
        ("title: t, rows", "titel: t, rows", 19, "did you mean 'title'"),
        (
            "columns: group",
            "columns: [taks, group]",
            19,
            "unknown axis, fact of encoders or setting of variants 'taks', did you mean 'task'?",
        ),
        ("columns: group", "columns: [method, group]", 19, "rows and columns name 'method' twice"),
        ("groups: [mono, romance, en-X]", "groups: [mono, romnce]", 19, "did you mean 'romance'"),
        ("groups: [mono, romance, en-X]", "groups: [enn-X]", 19, "did you mean 'en-X'"),
        ("languages: [en, fr]", "languages: [en, fr, cdo]", 14, "task rt cannot be generated in cdo"),
        ("options: {n: 100}", "data: {local: x, labels: {0: entailmnt}}", 6, "did you mean 'entailment'"),
        ("kind: ruletaker, options: {n: 100}", "kind: udpos, data: {local: x}", 14, "has no pairs such as en-fr"),
        ("tasks:", "text: {data: {local: x}}\ntasks:", 5, "`data` and `column` go together"),
        ("x: step", "x: stepp", 20, "did you mean 'step'"),
        ("x: step", "x: update", 20, "did you mean 'updates'? (there are: step, checkpoint, languages, updates)"),
        (
            "select: {task: rt}",
            "select: {tsk: rt}",
            18,
            "unknown axis, fact of encoders or setting of variants 'tsk', did you mean 'task'",
        ),
        ("lines: method", "lines: langages", 20, "did you mean 'languages'"),
        ("select: {task: rt}", "select: {languages: 60}", 18, "unknown languages '60' (there are: 1)"),
        (
            "languages: [en]}}",
            "languages: [en]}, facts: {seed: 1}}",
            4,
            "an axis or a column of exhibits has this name",
        ),
    ],
)
def test_a_misspelling_names_the_line_and_the_neighbour(
    tmp_path: Path, old: str, new: str, line: int, message: str
) -> None:
    assert old in TEXT
    path = write(tmp_path, TEXT.replace(old, new, 1))
    with pytest.raises(ValueError) as error:
        load_study(path)
    assert f"s.yaml:{line}:" in str(error.value)
    assert message in str(error.value)


def test_a_study_extends_another_with_smaller_axes(tmp_path: Path) -> None:
    write(tmp_path, TEXT)
    small = write(
        tmp_path, "extends: s\ngrids: {main: {method: [bitfit]}}\nexhibits: {heat: {method: bitfit}}\n", "small.yaml"
    )
    study = load_study(small)
    assert study.name == "small"
    assert study.grids["main"].method == ["bitfit"]
    assert study.grids["main"].target == ["mono", "en-X"]


def test_a_study_extends_a_file_by_its_path_from_its_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shared").mkdir()
    Path("studies").mkdir()
    write(tmp_path / "shared", TEXT, "base.yaml")
    small = write(tmp_path / "studies", "extends: ../shared/base.yaml\ntitle: small\n", "small.yaml")
    for named in (small, Path("studies/small.yaml")):
        assert [file.path for file in read_lineage(named)] == [named, Path("shared/base.yaml")]
    write(tmp_path / "studies", "extends: ./small.yaml\n", "smaller.yaml")
    assert [file.path.stem for file in read_lineage(Path("studies/smaller.yaml"))] == ["smaller", "small", "base"]


@pytest.mark.parametrize(
    ("extends", "message"),
    [
        ("./own.yaml", "circle: own.yaml -> own.yaml"),
        ("../own.yaml", "own.yaml and .*studies/own.yaml would both make results/own/: rename one of them"),
        ("./none.yaml", "there is no such study: unknown study 'none'"),
        ("../base", "expected the name of a study, .*or the path"),
    ],
)
def test_a_path_of_a_study_that_cannot_be_extended_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extends: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("studies").mkdir()
    write(tmp_path, TEXT, "own.yaml")
    path = write(tmp_path / "studies", f"extends: {extends}\n", "own.yaml")
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        read_lineage(path)


def test_paths_that_begin_with_a_dot_begin_at_the_folder_of_their_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the study is named, so that its results stay what they are; other paths begin at the project."""
    monkeypatch.chdir(tmp_path)
    Path("studies").mkdir()
    Path("shared").mkdir()
    data = TEXT.replace("kind: ruletaker, options: {n: 100}", "kind: ruletaker, data: {local: LOCAL}")
    write(tmp_path / "shared", data.replace("LOCAL", '"./files/{language}/{split}.jsonl"'), "base.yaml")
    own = "extends: ../shared/base.yaml\ntext: {files: {en: ../en.txt, fr: fr.txt}}\n"
    for path in (write(tmp_path / "studies", own, "own.yaml"), Path("studies/own.yaml")):
        study = read_lineage(path)[0].study
        assert study.tasks["rt"].data.origin.local == "shared/files/{language}/{split}.jsonl"  # type: ignore[union-attr]
        assert study.text.files == {"en": "en.txt", "fr": "fr.txt"}
    outside = write(tmp_path / "studies", own.replace("../en.txt", "../../en.txt"), "own.yaml")
    assert read_lineage(outside)[0].study.text.files["en"] == str(tmp_path.parent / "en.txt")


def test_an_error_in_the_parent_names_the_parent(tmp_path: Path) -> None:
    write(tmp_path, TEXT.replace("kind: ruletaker, options", "kind: ruletaker, optoins"))
    with pytest.raises(ValueError, match=r"s\.yaml:6:"):
        load_study(write(tmp_path, "extends: s\n", "small.yaml"))


def test_studies_in_a_circle_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "extends: b\n", "a.yaml")
    with pytest.raises(ValueError, match="circle"):
        load_study(write(tmp_path, "extends: a\n", "b.yaml"))


HEAT = TEXT[TEXT.index("target: [mono, en-X]") : TEXT.index("  table:")]
BITFIT = "  other: {task: [rt], encoder: [mini], method: [bitfit], source: [en], target: [fr], seed: [2]}\n"


def of_seed(seed: object) -> str:
    """A heatmap of a seed of full fine-tuning, which has the seed 1 alone; BitFit has the seed 2, too."""
    return HEAT.replace("seed: [1]}\n", f"seed: [1]}}\n{BITFIT}").replace("{task: rt}", f"{{seed: {seed}}}")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[en, fr]\nenc", "[en, no]\nenc", "2: languages.1: must be a text, got no, which YAML reads as false: write \"no\" in quotes"),
        ("title: a study", "title: 3", "1: title: must be a text, got 3: write it in quotes"),
        ("{method: bitfit}, set", "{method: {}}, set", "12: training.1.when.method: must be a text or a list, [...], got {}"),
        ("{method: bitfit}, set", "{method: [1]}, set", "12: training.1.when.method.0: must be a text, got 1: write it in quotes"),
        ("{n: 100}", "{n: few}", "6: tasks.rt.options.n: must be a whole number, got 'few'"),
        ("kind: heatmap", "kind: heatmab", "18: exhibits.heat: unknown kind 'heatmab', did you mean 'heatmap'?"),
        ("{kind: heatmap, ", "{", "18: exhibits.heat: `kind` is missing: add it"),
        ("title: a study\n", "title: a study\n1: one\n", "2: 1: unknown key '1' (there are: extends"),
        ("seed: [1]", "seed: [1, 1]", "14: grids.main: the cell results/s/cells/rt/mini/full-ft/en/en/seed1.json is made twice"),
        ("en-X], seed: [1]}\ngroups:\n  romance: [fr]", "romance], seed: [1]}\ngroups:\n  romance: []", "14: grids.main.target: group 'romance' has no members: add"),
        ("[full-ft, bitfit], source", "[bitfit], source", "18: exhibits.heat.method: no grid uses method 'full-ft', which the study defines: name"),
        (HEAT, of_seed(2), "19: exhibits.heat.select: no grid has a cell with all of seed 2 and method full-ft: name"),
        (HEAT, of_seed([1, 2]), "19: exhibits.heat.select.seed: no cell of seed 2 has the other values that `select` names: "),
        ("rows: [method], columns: group, groups: [mono, romance, en-X]", "rows: [target], columns: method, difference: [full-ft, none]", "19: exhibits.table.difference: unknown method 'none'"),
        ("grids:\n  main: {task: [rt], encoder: [mini], method: [full-ft, bitfit], source: [en], target: [mono, en-X], seed: [1]}", "grids: {}", "13: grids: must have at least 1 item"),
    ],
)  # fmt: skip
def test_one_mistake_is_one_line_in_the_words_of_a_study(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = TEXT.replace(old, new)
    assert text != TEXT
    with pytest.raises(ValueError) as error:
        load_study(write(tmp_path, text))
    assert str(error.value).startswith(f"{tmp_path}/s.yaml:{message}") and "\n" not in str(error.value)


# Each place of a study where a text is expected, with WORD for the text.
WORDS = """\
title: a study
languages: [en, LANGUAGE]
groups: {GROUP: [en]}
encoders: {ENCODER: {scratch: {kind: bert, languages: [en]}}}
tasks:
  TASK:
    kind: sequence
    inputs: [text]
    target: TARGET
    labels: [other, LABEL, new]
    data:
      local: "{language}/{split}.csv"
      where: {part: VALUE, SELECTED: x}
      labels: {OLD: other, second: NEW}
      names: {en: NAME}
methods: {METHOD: {base: full-ft}}
training: [{set: {dev_targets: [en, DEV]}}]
grids:
  GRID: {task: [x], encoder: [y], method: [z], source: [SOURCE], target: [en], seed: [1]}
"""
PLACES = re.findall("[A-Z]{3,}", WORDS)


def words_study(folder: Path, place: str, word: str) -> Path:
    """A study with a word at a place, and other names at all others."""
    text = re.sub(rf"\b{place}\b", word, WORDS)
    for other in PLACES:
        text = re.sub(rf"\b{other}\b", other.lower(), text)
    return write(folder, text.replace("language]", "fr]"))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("word", "reads"),
    [
        ("no", "false"),
        ("Yes", "true"),
        ("on", "true"),
        ("OFF", "false"),
        ("012", "10"),
        ("1:30", "90"),
        ("1_000", "1000"),
    ],
)
def test_a_word_that_yaml_reads_as_something_else_is_to_stand_in_quotes(
    tmp_path: Path, place: str, word: str, reads: str
) -> None:
    line = next(number for number, text in enumerate(WORDS.splitlines(), start=1) if place in text)
    if place == "DEV" and word == "1_000":
        return  # Settings of training may be numbers.
    with pytest.raises(ValueError) as error:
        read_lineage(words_study(tmp_path, place, word))
    [message] = str(error.value).splitlines()
    assert message.startswith(f"{tmp_path}/s.yaml:{line}: ")
    write_number = f"{reads}, or " * reads.isdecimal()
    assert f'{word}, which YAML reads as {reads}: write {write_number}"{word}" in quotes' in message


@pytest.mark.parametrize("word", ["null", "~", "Null"])
@pytest.mark.parametrize("place", ["LANGUAGE", "LABEL", "OLD", "SOURCE", "ENCODER"])
def test_a_word_that_yaml_reads_as_nothing_is_to_stand_in_quotes(tmp_path: Path, place: str, word: str) -> None:
    with pytest.raises(ValueError, match=rf'{word}, which YAML reads as nothing: write "{word}" in quotes'):
        read_lineage(words_study(tmp_path, place, word))


@pytest.mark.parametrize("word", ["y", "n", "1e3", '"no"', "'012'", "nope"])
@pytest.mark.parametrize("place", ["LANGUAGE", "LABEL", "VALUE", "OLD", "NEW"])
def test_other_words_and_words_in_quotes_are_text(tmp_path: Path, place: str, word: str) -> None:
    text = words_study(tmp_path, place, word).read_text()
    if place == "NEW":
        text = text.replace("label, new]", f"label, {word}]")
    [file] = read_lineage(write(tmp_path, text))
    assert word.strip("'\"") in str(file.study)


@pytest.mark.parametrize("labels", ["[0, 1]", "[true, false]", "[1.5, -2.0]"])
def test_labels_that_yaml_reads_as_they_are_written_need_no_quotes(tmp_path: Path, labels: str) -> None:
    text = words_study(tmp_path, "LABEL", "label").read_text().replace("[other, label, new]", labels)
    text = text.replace("{old: other, second: new}", "{}")
    [file] = read_lineage(write(tmp_path, text))
    assert ", ".join(file.study.tasks["task"].labels) == labels.strip("[]")


def test_numbers_truth_values_and_nulls_are_as_yaml_has_them_where_no_text_is_expected(tmp_path: Path) -> None:
    text = TEXT.replace("{n: 100}", "{n: 1_00}").replace("{lr: 2.0e-3}", "{lr: 2.0e-3, steps: 0x10}")
    [file] = read_lineage(write(tmp_path, text))
    assert file.study.tasks["rt"].options["n"] == 100 and file.study.training[-1].set["steps"] == 16


def test_a_number_that_seems_to_be_another_one_is_told_wherever_it_stands(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"s\.yaml:6: tasks\.rt\.options\.n: got 0100, which YAML reads as 64: write 64, or"
    ):
        read_lineage(write(tmp_path, TEXT.replace("{n: 100}", "{n: 0100}")))


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [("{n: 100}", "{n: yes}", "options"), ("kind: ruletaker", "kind: ruletaker, max_length: yes", "max_length")],
)
def test_a_truth_value_is_no_number(tmp_path: Path, old: str, new: str, place: str) -> None:
    assert old in TEXT
    with pytest.raises(
        ValueError, match=rf"tasks\.rt\.?.*{place}.*must be a whole number, got (yes, which YAML reads as )?true"
    ):
        read_lineage(write(tmp_path, TEXT.replace(old, new)))


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="twice"):
        load_study(write(tmp_path, TEXT + "title: again\n"))


def test_an_unknown_study_names_its_neighbour(tmp_path: Path) -> None:
    write(tmp_path, TEXT, "demo.yaml")
    with pytest.raises(FileNotFoundError, match="demo"):
        load_study(tmp_path / "dmo.yaml")
