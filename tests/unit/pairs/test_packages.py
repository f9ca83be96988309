"""Tables of pairs from the distances of other packages, by stand-ins with their interfaces (urielplus 1.3, qwals 0.8)."""

import csv
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from xlgrid.cli.app import app
from xlgrid.languages import language
from xlgrid.pairs.packages import write
from xlgrid.pairs.table import PairsFile, read


class URIELPlus:
    """Distances of languages by their codes of three letters; -1 if they have no feature in common."""

    langs = [np.array(["eng", "deu", "swa", "yor"])]
    matrix = np.array([[0, 0.2, 0.6, -1], [0.2, 0, 0.7, 0.5], [0.6, 0.7, 0, 0.4], [-1, 0.5, 0.4, 0]])

    def new_distance(self, distance: str, *codes: Any) -> Any:
        assert distance in ("featural", "syntactic") and isinstance(codes[0], list) and len(codes[0]) > 2
        at = [list(self.langs[0]).index(code) for code in codes[0]]
        return self.matrix[np.ix_(at, at)]


class QwalsCalculator:
    """Distances of languages by their names in WALS, or their codes of two letters."""

    names = {"english": "English", "en": "English", "german": "German", "swahili": "Swahili"}

    @classmethod
    def from_folder(cls, folder: Path) -> "QwalsCalculator":
        assert (folder / "wals-data.csv").exists()
        return cls()

    def resolve_language(self, name: str) -> str:
        if name.lower() not in self.names:
            raise ValueError(f"Language '{name}' not found.")
        return self.names[name.lower()]

    def distance(self, one: str, other: str, method: str) -> float:
        if {one, other} == {"German", "Swahili"}:
            raise ValueError(f"No shared features between '{one}' and '{other}'.")
        return {"ordinal": 0.25, "onehot": 0.5}[method]


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    uriel, inner, qwals = (ModuleType(name) for name in ("urielplus", "urielplus.urielplus", "qwals"))
    inner.URIELPlus, qwals.QwalsCalculator = URIELPlus, QwalsCalculator  # type: ignore[attr-defined]
    for module in (uriel, inner, qwals):
        monkeypatch.setitem(sys.modules, module.__name__, module)


def rows(path: Path) -> dict[tuple[str, str], str]:
    with path.open() as file:
        return {(row["source"], row["target"]): row["value"] for row in csv.DictReader(file)}


def test_a_table_has_both_directions_and_empty_values(tmp_path: Path) -> None:
    languages = [language(code) for code in ("en", "de", "sw", "yo", "qa1")]
    said = write("urielplus", languages, None, None, tmp_path / "t.csv")
    table = rows(tmp_path / "t.csv")
    assert len(table) == 20
    assert table["en", "sw"] == table["sw", "en"] == "0.6" and table["en", "yo"] == table["en", "qa1"] == ""
    assert said == "10 of 20 pairs have a value, the featural distance of urielplus, and qa1 has none"


def test_a_study_reads_the_table(tmp_path: Path) -> None:
    languages = {code: language(code) for code in ("en", "de", "sw")}
    write("urielplus", [*languages.values()], "syntactic", None, tmp_path / "t.csv")
    assert read(PairsFile(file=str(tmp_path / "t.csv")), languages)["de", "sw"] == 0.7


def test_wals_is_read_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "wals-data.csv").touch()
    languages = [language(code) for code in ("en", "de", "sw", "fr")]
    said = write("qwals", languages, "onehot", tmp_path, tmp_path / "t.csv")
    table = rows(tmp_path / "t.csv")
    assert table["en", "de"] == "0.5" and table["de", "sw"] == "" and said.endswith(", and fr has none")


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["distances", *arguments])
    return f"{result.output}{result.exception or ''}"


def test_the_command_says_what_to_do_next(tmp_path: Path) -> None:
    path = tmp_path / "featural.csv"
    said = run("urielplus", "--languages", "en, de,sw", "--output", str(path))
    assert f"wrote {path}: 6 of 6 pairs" in said and f"pairs: {{featural: {path}}}" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["qwals", "--languages", "en,de"], "qwals has no data of its own: name the folder with wals-data.csv"),
        (["urielplus", "--languages", "en,de,sw", "--kind", "syntatic"], "did you mean 'syntactic'"),
        (["urielplus", "--languages", "en,de"], "urielplus knows 2 of the languages"),
        (["urielplus", "--languages", "en,xyzz"], "unknown language 'xyzz'"),
    ],
)
def test_a_mistake_is_told(arguments: list[str], said: str, tmp_path: Path) -> None:
    assert said in run(*arguments, "--output", str(tmp_path / "t.csv"))


def test_a_package_that_is_missing_is_told_with_its_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "qwals", None)
    said = run("qwals", "--languages", "en,de", "--output", str(tmp_path / "t.csv"))
    assert "the package qwals is missing" in said and "`pip install qwals`, then run the same command again" in said
