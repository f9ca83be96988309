"""Codes of ISO 639 have names and scripts, which agree with the table that was written by hand, and with Unicode."""

import csv
import unicodedata
from collections import defaultdict
from pathlib import Path

import pytest
from babel import Locale
from babel.core import get_global

import xlgrid.languages
from xlgrid.languages.iso import RIGHT_TO_LEFT, direction_of, standard

TABLE = {
    row["code"]: row
    for row in csv.DictReader(
        Path(xlgrid.languages.__file__).with_name("table.csv").read_text(encoding="utf-8").splitlines()
    )
}
# Min Dong: the table has the romanised script, of its Wikipedia. Nahuatl and Otomi: the standard has their members alone.
OTHERWISE = {"cdo"}
COLLECTIVE = {"nah", "oto"}


def test_the_table_and_the_standard_agree() -> None:
    looked_up = {code: standard(code) for code in TABLE}
    assert {code for code, language in looked_up.items() if language is None} == COLLECTIVE
    scripts = {code: (language.script, TABLE[code]["script"]) for code, language in looked_up.items() if language}
    assert {code for code, (likely, of_table) in scripts.items() if likely != of_table} == OTHERWISE
    directions = {code: direction_of(row["script"]) for code, row in TABLE.items()}
    assert directions == {code: row["direction"] for code, row in TABLE.items()}


@pytest.mark.parametrize(
    ("code", "name", "codes", "macrolanguage", "script"),
    [
        ("luo", "Luo (Kenya and Tanzania)", ("luo",), (), "Latn"),
        ("ig", "Igbo", ("ig", "ibo"), (), "Latn"),
        ("ibo", "Igbo", ("ig", "ibo"), (), "Latn"),
        ("quy", "Ayacucho Quechua", ("quy",), ("qu", "que"), "Latn"),
        ("azb", "South Azerbaijani", ("azb",), ("az", "aze"), "Arab"),
        ("cmn", "Mandarin Chinese", ("cmn",), ("zh", "zho"), "Hans"),
        ("yue", "Yue Chinese", ("yue",), ("zh", "zho"), "Hant"),
        ("cnr", "Montenegrin", ("cnr",), ("sh", "hbs"), "Latn"),
        ("prs", "Dari", ("prs",), ("fa", "fas"), "Arab"),
        # CLDR has no script of this language, and its macrolanguage may be written otherwise.
        ("std", "Sentinel", ("std",), (), None),
    ],
)
def test_a_language_of_the_standard(
    code: str, name: str, codes: tuple[str, ...], macrolanguage: tuple[str, ...], script: str | None
) -> None:
    assert standard(code) == (codes, macrolanguage, name, script)


@pytest.mark.parametrize(
    "code", ["mul", "und", "ajt", "qa1", "en-fr", "EN", " en", "english", "English", "x", "", "qaa"]
)
def test_what_is_no_code_of_one_living_or_former_language_is_none(code: str) -> None:
    assert standard(code) is None


def test_the_directions_of_scripts_are_those_of_their_letters() -> None:
    """In Unicode, each letter has a direction and a name that begins with that of its script."""
    right_to_left = defaultdict(set)
    for letter in filter(str.isalpha, map(chr, range(0x110000))):
        words = unicodedata.name(letter, "").split(" ")
        is_right_to_left = unicodedata.bidirectional(letter) in ("R", "AL")
        for count in (1, 2, 3):
            right_to_left[" ".join(words[:count])].add(is_right_to_left)
    scripts = {tag.split("_")[1] for tag in get_global("likely_subtags").values()} | RIGHT_TO_LEFT
    names = Locale("en").scripts
    of_letters = {
        script: directions
        for script in scripts
        if (directions := right_to_left[names.get(script, script).upper().translate({ord("-"): " ", ord("’"): None})])
    }
    assert len(of_letters) > 100
    assert {script for script, directions in of_letters.items() if True in directions} == RIGHT_TO_LEFT & {*of_letters}
    assert {"Arab", "Hebr", "Nkoo", "Adlm", "Thaa", "Syrc"} <= {*of_letters}


def test_the_directions_of_scripts_are_those_of_cldr() -> None:
    """CLDR says of each of its locales in which direction its text runs."""
    locales = [
        Locale(code) for code in ("ar", "dv", "en", "fa", "he", "ks", "nqo", "ps", "ru", "sd", "syr", "ug", "ur", "zh")
    ]
    likely = {
        str(locale): direction_of(standard(locale.language).script) for locale in locales if standard(locale.language)
    }
    orders = {str(locale): locale.character_order for locale in locales}
    assert likely == {name: {"left-to-right": "ltr", "right-to-left": "rtl"}[orders[name]] for name in likely}
    assert len(likely) == len(locales) and direction_of(None) is None
