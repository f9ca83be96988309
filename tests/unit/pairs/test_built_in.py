"""The built-in tables of pairs, and the coordinates behind one of them."""

from math import acos, cos, radians, sin

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from shipped import STUDIES

from xlgrid.languages import Language, _table, language
from xlgrid.pairs import pair_values
from xlgrid.pairs.built_in import RADIUS, coordinates, great_circle

# The languages of MasakhaNEWS, MasakhaNER 2 and MasakhaPOS, and of Universal Dependencies with at least 100 sentences.
AFRICAN = [
    "amh",
    "eng",
    "fra",
    "hau",
    "ibo",
    "lin",
    "lug",
    "orm",
    "pcm",
    "run",
    "sna",
    "som",
    "swa",
    "tir",
    "xho",
    "yor",
    "bam",
    "bbj",
    "ewe",
    "fon",
    "kin",
    "luo",
    "mos",
    "nya",
    "tsn",
    "twi",
    "wol",
    "zul",
]
UD = [
    "afr",
    "sqi",
    "amh",
    "grc",
    "ara",
    "hye",
    "aii",
    "bam",
    "eus",
    "bel",
    "ben",
    "bho",
    "bre",
    "bul",
    "yue",
    "cat",
    "zho",
    "cop",
    "hrv",
    "ces",
    "dan",
    "nld",
    "eng",
    "myv",
    "est",
    "fao",
    "fin",
    "fra",
    "glg",
    "ka",
    "deu",
    "got",
    "ell",
    "grn",
    "hau",
    "heb",
    "hin",
    "hun",
    "isl",
    "ind",
    "gle",
    "ita",
    "jpn",
    "jav",
    "kaz",
    "kor",
    "kmr",
    "kir",
    "lat",
    "lav",
    "lij",
    "lit",
    "olo",
    "mlt",
    "glv",
    "mar",
    "gun",
    "mdf",
    "nor",
    "fas",
    "pol",
    "por",
    "ron",
    "rus",
    "san",
    "gla",
    "srp",
    "sme",
    "slk",
    "slv",
    "spa",
    "swe",
    "gsw",
    "tgl",
    "tam",
    "tat",
    "tel",
    "tha",
    "tur",
    "ukr",
    "hsb",
    "urd",
    "uig",
    "vie",
    "wbp",
    "cym",
    "wol",
    "yor",
]


@pytest.mark.parametrize("code", [*_table(), *AFRICAN, *UD])
def test_languages_of_common_benchmarks_have_coordinates(code: str) -> None:
    assert coordinates(code) is not None


def test_natural_languages_of_all_studies_have_coordinates() -> None:
    codes = {code for path in STUDIES.values() for code in yaml.safe_load(path.read_text()).get("languages", [])}
    natural = {code for code in codes if (isinstance(code, str) and not code.startswith("q")) or code == "qu"}
    assert {code for code in natural if coordinates(code) is None} == set()


def test_a_language_that_is_made_up_has_no_coordinates() -> None:
    assert coordinates("qa1") is None
    assert great_circle(language("qa1"), language("en")) is None


def test_codes_of_two_and_three_letters_have_the_same_place() -> None:
    assert coordinates("en") == coordinates("eng") == (53.0, -1.0)


def test_every_place_is_on_the_earth() -> None:
    from xlgrid.pairs.built_in import _table as places

    assert len(places()) > 7900
    assert all(-90 <= north <= 90 and -180 <= east <= 180 for north, east in places().values())


@given(st.sampled_from(sorted(_table())), st.sampled_from(sorted(_table())))
def test_the_great_circle_is_that_of_the_law_of_cosines(one: str, other: str) -> None:
    (a, b), (c, d) = (map(radians, coordinates(code) or ()) for code in (one, other))
    cosine = sin(a) * sin(c) + cos(a) * cos(c) * cos(b - d)
    # The law of cosines loses half of its digits at small distances.
    expected = RADIUS * acos(min(1.0, max(-1.0, cosine)))
    assert great_circle(language(one), language(other)) == pytest.approx(expected, rel=1e-9, abs=1e-3)


def test_the_distance_of_two_cities_is_that_of_published_tables() -> None:
    """Glottolog's English and German are 1,060 km apart; a degree of a meridian is 111.2 km."""
    assert great_circle(language("en"), language("de")) == pytest.approx(1060, abs=1)
    assert RADIUS * radians(1) == pytest.approx(111.195, abs=1e-3)


def test_same_family_and_same_script_are_yes_or_no() -> None:
    languages = {code: language(code) for code in ("en", "de", "ru")}
    family, script = (pair_values(name, {}, languages) for name in ("same-family", "same-script"))
    assert family.of(["en", "en"], ["de", "ru"]) == [1.0, 0.0]
    assert script.of(["en", "de"], ["de", "ru"]) == [1.0, 0.0]
    assert not family.lowest_is_nearest


def test_a_fact_that_is_not_known_gives_no_value() -> None:
    languages = {"xx": Language("xx", "X", None, "Latn", "ltr"), "en": language("en")}
    assert pair_values("same-family", {}, languages).values == {("en", "en"): 1.0}


def test_a_table_that_does_not_exist_is_told_with_its_neighbour() -> None:
    with pytest.raises(ValueError, match="unknown table of pairs 'great-circel', did you mean 'great-circle'"):
        pair_values("great-circel", {}, {})
