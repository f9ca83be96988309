"""Tables of pairs as files: what they mean, and what is wrong with them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from study_fixture import TEXT, write

from xlgrid.languages import language
from xlgrid.pairs.table import PairsFile, is_one_way, read
from xlgrid.plan.load import load_plan
from xlgrid.preflight import State
from xlgrid.preflight.check import exhibit_lines
from xlgrid.preflight.pairs import pair_lines

LANGUAGES = {code: language(code) for code in ("en", "de", "sw", "no")}
Values = dict[tuple[str, str], float]


@pytest.fixture
def values(tmp_path: Path) -> Callable[..., Values]:
    """A function that reads rows as a table."""

    def of(*rows: str, **keys: Any) -> Values:
        path = tmp_path / "t.csv"
        path.write_text("\n".join(["source,target,value", *rows]) + "\n")
        return read(PairsFile(file=str(path), **keys), LANGUAGES)

    return of


def test_a_row_holds_in_its_direction(values: Callable[..., Values]) -> None:
    assert values("en,de,0.5") == {("en", "de"): 0.5}


def test_a_row_of_a_symmetric_table_holds_in_both_directions(values: Callable[..., Values]) -> None:
    assert values("en,de,0.5", symmetric=True) == {("en", "de"): 0.5, ("de", "en"): 0.5}


@pytest.mark.parametrize("missing", ["", "NA", "nan", " "])
def test_a_missing_value_is_not_a_number(values: Callable[..., Values], missing: str) -> None:
    assert values(f"en,de,{missing}", "de,en,1") == {("de", "en"): 1.0}


def test_codes_are_those_of_the_study(values: Callable[..., Values]) -> None:
    assert values("eng,deu,1", "swa,nor,2") == {("en", "de"): 1.0, ("sw", "no"): 2.0}


def test_mixes_and_pairs_of_languages_have_values_of_their_own(values: Callable[..., Values]) -> None:
    assert values("eng+deu,sw,1", "en-deu,sw,2") == {("en+de", "sw"): 1.0, ("en-de", "sw"): 2.0}


def test_languages_that_the_study_lacks_do_no_harm(values: Callable[..., Values]) -> None:
    assert values("en,fra,1", "en,de,2")[("en", "de")] == 2.0


def test_equal_rows_are_one(values: Callable[..., Values]) -> None:
    assert values("en,de,1", "eng,deu,1.0", "de,en,1", symmetric=True)[("en", "de")] == 1.0


@pytest.mark.parametrize(
    ("rows", "keys", "said"),
    [
        (
            ["en,de,1", "en,sw,2", "eng,de,3"],
            {},
            r"t\.csv:4: en de has the value 3 here and the value 1 in line 2: leave",
        ),
        (
            ["en,de,1", "de,en,2"],
            {"symmetric": True},
            r"t\.csv:3: de en .* line 2, and `symmetric` takes both directions",
        ),
        (["en,de,1", "en,de,"], {}, "en de has no value here and the value 1 in line 2"),
        (["en,sw,1", "en,swahilli,1"], {}, r"t\.csv:3: unknown language 'swahilli': the code of Swahili is sw"),
        (["en,de,far"], {}, r"t\.csv:2: value 'far' is not a number: write one, or leave it empty"),
        (["en,de,inf"], {}, "value 'inf' is not a number"),
        (["en+,de,1"], {}, "t.csv:2: 'en\\+' is neither|t.csv:2: '' is neither"),
    ],
)
def test_a_mistake_is_told_with_its_line(
    values: Callable[..., Values], rows: list[str], keys: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        values(*rows, **keys)


def test_a_column_that_is_missing_is_told_with_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("source,targets,value\nen,de,1\n")
    with pytest.raises(ValueError, match=r"t\.csv: unknown column 'target', did you mean 'targets'"):
        read(PairsFile(file=str(tmp_path / "t.csv")), LANGUAGES)


def test_a_file_that_does_not_exist_is_told() -> None:
    with pytest.raises(
        FileNotFoundError, match=r"no table of pairs in no\.csv: write one with the columns source, target"
    ):
        read(PairsFile(file="no.csv"), LANGUAGES)


def test_a_table_is_one_way_if_no_pair_has_both_directions() -> None:
    assert is_one_way({("en", "de"): 1.0, ("en", "en"): 0.0})
    assert not is_one_way({("en", "de"): 1.0, ("de", "en"): 1.0, ("en", "sw"): 1.0})
    assert not is_one_way({("en", "en"): 0.0})


def lines(folder: Path, table: str, entry: str = "distances.csv") -> list[tuple[State, str, str]]:
    """The lines of `xlgrid check` about a table of a study with the sources en, de and the targets en, de, fr."""
    (folder / "distances.csv").write_text(f"source,target,value\n{table}")
    return [*pair_lines(load_plan(write(folder, f"{TEXT}\npairs: {{far: {entry}}}\n")))]


def test_the_check_says_how_many_pairs_have_a_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    [(state, thing, text)] = lines(tmp_path, "")
    assert (state, thing) == (State.OPEN, "pairs far")
    total = int(text.split(" of ")[1].split()[0])
    assert text.startswith(f"0 of {total} pairs of a source and another target have a value; none for ")


def test_the_check_tells_a_table_that_may_be_meant_as_symmetric(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "write `symmetric: true`" in lines(tmp_path, "en,de,1\n")[0][2]
    assert "write `symmetric: true`" not in lines(tmp_path, "en,de,1\n", "{file: distances.csv, symmetric: true}")[0][2]


def test_the_check_tells_a_table_with_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    [(state, _, text)] = lines(tmp_path, "en,qqq,1\n")
    assert state is State.PROBLEM and "distances.csv:2: unknown language 'qqq'" in text


@pytest.mark.parametrize(
    ("entry", "state", "text"),
    [
        ("{by_hand: ask the authors}", State.PROBLEM, "only you can get it: ask the authors"),
        ('{url: "https://a.org/far.csv"}', State.GOOD, "Snakemake downloads far.csv"),
    ],
)
def test_the_check_says_where_a_table_comes_from_that_is_not_here(
    entry: str, state: State, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    study = f"{TEXT}\npairs: {{far: far.csv}}\ndownloads: {{far.csv: {entry}}}\n"
    study = study.replace("exhibits:", "exhibits:\n  far: {kind: scatter, title: Far, against: far}", 1)
    plan = load_plan(write(tmp_path, study))
    [line] = pair_lines(plan)
    assert line.state is state and text in line.text
    assert not [line for line in exhibit_lines(plan) if line.state is State.PROBLEM]


def test_rows_about_a_declared_language_that_no_grid_has_do_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "distances.csv").write_text("source,target,value\nen,zz1,1\n")
    study = f"{TEXT}\nnew_languages: {{zz1: {{name: New, family: New, script: Latn}}}}\npairs: {{far: distances.csv}}\n"
    [(state, _, _)] = pair_lines(load_plan(write(tmp_path, study)))
    assert state is State.OPEN


def test_a_study_cannot_give_a_table_the_name_of_a_built_in_one(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"pairs\.great-circle: this is the name of a built-in table: choose another"):
        load_plan(write(tmp_path, f"{TEXT}\npairs: {{great-circle: distances.csv}}\n"))
