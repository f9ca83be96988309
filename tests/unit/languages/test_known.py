"""The languages that a code names, and the facts that are known of them."""

import subprocess
import sys

import pytest

from xlgrid.languages import Language, known_language, language, stated_language

MASAKHANER = "bbj bm ewe fon ha ig lg luo mos ny pcm rw sn sw tn tw wo xh yo zu"
AMERICASNLI = "aym bzd cni gn hch nah oto quy shp tar"


@pytest.mark.parametrize("code", f"{MASAKHANER} {AMERICASNLI}".split())
def test_the_languages_of_benchmarks_are_known_with_their_families(code: str) -> None:
    assert None not in language(code)
    assert language(code).code == code


@pytest.mark.parametrize(
    ("code", "known"),
    [
        # The table has it by its code of two letters.
        ("ewe", Language("ewe", "Ewe", "Gbe", "Latn", "ltr")),
        ("zho", Language("zho", "Chinese", "Sino-Tibetan", "Hans", "ltr")),
        # The table has its macrolanguage, whose script may be another one.
        ("quy", Language("quy", "Ayacucho Quechua", "Quechuan", "Latn", "ltr")),
        ("azb", Language("azb", "South Azerbaijani", "Turkic", "Arab", "rtl")),
        # The table has nothing of it.
        ("kab", Language("kab", "Kabyle", None, "Latn", "ltr")),
        ("rhg", Language("rhg", "Rohingya", None, "Rohg", "rtl")),
        ("std", Language("std", "Sentinel", None, None, None)),
        ("und", None),
        ("nope", None),
    ],
)
def test_a_code_of_the_standard_has_what_is_known(code: str, known: Language | None) -> None:
    assert known_language(code) == known


@pytest.mark.parametrize(
    ("code", "states"), [("en", True), ("eng", False), ("qa1", True), ("quy", False), ("kab", False)]
)
def test_what_xlgrid_states_itself(code: str, states: bool) -> None:
    assert (stated_language(code) is not None) == states


def test_a_misspelt_code_names_the_nearest_and_the_ways_out() -> None:
    with pytest.raises(
        ValueError, match=r"unknown language 'pcmm', did you mean 'pcm'.* ISO 639-3; `new_languages` of a study"
    ):
        language("pcmm")


@pytest.mark.parametrize(("name", "language_of_it"), [("swahilli", "Swahili is sw"), ("Yoruba", "Yoruba is yo")])
def test_a_name_in_place_of_a_code_names_the_code(name: str, language_of_it: str) -> None:
    with pytest.raises(ValueError, match=rf"unknown language '{name}': the code of {language_of_it}$"):
        language(name)


def test_the_tables_of_the_standard_are_read_only_where_they_are_needed() -> None:
    """A grid is thousands of short processes."""
    code = (
        "import sys; from xlgrid.languages import language; [language(code) for code in ('en', 'qa1', 'nah', 'fon')]; "
        "print({'iso639', 'babel'} & {*sys.modules})"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout == "set()\n"


@pytest.mark.parametrize(
    ("tag", "language_of_it"),
    [
        ("iw", "Hebrew is he"),
        ("in", "Indonesian is id"),
        ("ji", "Yiddish is yi"),
        ("jw", "Javanese is jv"),
        ("mo", "Romanian is ro"),
        ("ger", "German is de"),
        ("chi", "Chinese is zh"),
        ("zh-Hans", "Chinese is zh, without"),
        ("zh-CN", "Chinese is zh, without"),
        ("zh_TW", "Chinese is zh, without"),
        ("zh-Hant-HK", "Chinese is zh, without"),
        ("pt-BR", "Portuguese is pt, without"),
        ("es-419", "Spanish is es, without"),
        ("sr-Latn", "Serbian is sr, without"),
        ("kab-Latn", "Kabyle is kab, without"),
        ("iw-IL", "Hebrew is he, without"),
        ("zh-hans", "Chinese is zh, without"),
        ("pt-br", "Portuguese is pt, without"),
        ("PT-BR", "Portuguese is pt, without"),
        ("zh_hant_hk", "Chinese is zh, without"),
        ("eng_Latn", "English is en, without"),
        ("DE", "German is de"),
        ("DEU", "German is de"),
        ("sr@latin", "Serbian is sr, without"),
        ("be-tarask", "Belarusian is be, without"),
    ],
)
def test_a_retired_code_or_a_tag_names_the_code(tag: str, language_of_it: str) -> None:
    with pytest.raises(ValueError, match=rf"unknown language '{tag}': the code of {language_of_it}"):
        language(tag)
