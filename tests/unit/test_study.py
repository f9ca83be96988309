"""A study file is read strictly, and an error says what, where and what was meant."""

from pathlib import Path

import pytest

from xlgrid.study import load_study

TEXT = """\
title: a study
languages: [en, fr]
encoders:
  mini: {mini: {kind: bert, languages: [en]}}
tasks:
  rt: {kind: ruletaker, options: {n: 100}}
methods:
  full-ft: {}
  bitfit: {}
training:
  - set: {lr: 1.0e-3}
  - {when: {method: bitfit}, set: {lr: 2.0e-3}}
grids:
  main: {task: [rt], encoder: [mini], method: [full-ft, bitfit], source: [en], target: [mono, en-X], seed: [1]}
"""


def write(folder: Path, text: str, name: str = "s.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("languages:", "langauges:", 2, "languages"),
        ("seed: [1]", "sead: [1]", 14, "seed"),
        ("kind: ruletaker, options", "kind: ruletaker, optoins", 6, "options"),
        ("languages: [en, fr]", "languages: [en, frr]", 2, "fr"),
        ("method: [full-ft, bitfit]", "method: [full-ft, bitfut]", 14, "bitfit"),
        ("{lr: 2.0e-3}", "{learning: 2.0e-3}", 12, "lr"),
        ("source: [en]", "source: [de]", 14, "en"),
    ],
)
def test_a_misspelling_names_the_line_and_the_neighbour(
    tmp_path: Path, old: str, new: str, line: int, said: str
) -> None:
    assert old in TEXT
    path = write(tmp_path, TEXT.replace(old, new, 1))
    with pytest.raises(ValueError) as error:
        load_study(path)
    assert f"s.yaml:{line}:" in str(error.value)
    assert said in str(error.value)


def test_later_training_entries_win(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, TEXT))
    assert study.recipe("rt", "mini", "full-ft", "en", 1).training.lr == 1e-3
    assert study.recipe("rt", "mini", "bitfit", "en", 1).training.lr == 2e-3


def test_a_study_extends_another_with_smaller_axes(tmp_path: Path) -> None:
    write(tmp_path, TEXT)
    small = write(tmp_path, "extends: s\ngrids:\n  main: {method: [bitfit]}\n", "small.yaml")
    study = load_study(small)
    assert study.name == "small"
    assert study.grids["main"].method == ["bitfit"]
    assert study.grids["main"].target == ["mono", "en-X"]


def test_an_error_in_the_parent_names_the_parent(tmp_path: Path) -> None:
    write(tmp_path, TEXT.replace("kind: ruletaker, options", "kind: ruletaker, optoins"))
    with pytest.raises(ValueError, match=r"s\.yaml:6:"):
        load_study(write(tmp_path, "extends: s\n", "small.yaml"))


def test_studies_in_a_circle_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "extends: b\n", "a.yaml")
    with pytest.raises(ValueError, match="circle"):
        load_study(write(tmp_path, "extends: a\n", "b.yaml"))


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="stands twice"):
        load_study(write(tmp_path, TEXT + "title: again\n"))


def test_an_unknown_study_names_its_neighbour(tmp_path: Path) -> None:
    write(tmp_path, TEXT, "demo.yaml")
    with pytest.raises(FileNotFoundError, match="demo"):
        load_study(tmp_path / "dmo.yaml")
