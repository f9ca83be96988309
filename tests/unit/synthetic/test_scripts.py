"""Words of artificial languages are written as their scripts write them, and loan words keep to the sounds of a family."""

import random
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xlgrid.synthetic.scripts import CONSONANTS, NEIGHBOUR, SCRIPTS, VOWELS, Phonology, fold

BY_CODE = {script.code: script for script in SCRIPTS}
# Names of Unicode characters begin with the name of their script.
NAMES = {
    "Latn": "LATIN",
    "Cyrl": "CYRILLIC",
    "Deva": "DEVANAGARI",
    "Arab": "ARABIC",
    "Geor": "GEORGIAN",
    "Grek": "GREEK",
    "Hebr": "HEBREW",
    "Armn": "ARMENIAN",
    "Beng": "BENGALI",
    "Ethi": "ETHIOPIC",
}
scripts = pytest.mark.parametrize("code", NAMES)


@pytest.mark.parametrize(
    ("code", "word", "written"),
    [
        ("Latn", "Sixa", "shikha"),
        ("Cyrl", "Sixa", "шиха"),
        ("Grek", "kosmos", "κοσμος"),  # the last sigma has a shape of its own
        ("Grek", "lutu", "λουτου"),
        ("Deva", "namaste", "नमस्ते"),  # virama between two consonants
        ("Deva", "ai", "अइ"),
        ("Arab", "amin", "ئامین"),  # a first vowel stands on its carrier
        ("Hebr", "Salom", "שאַלאָם"),
        ("Hebr", "isax", "איסאַך"),  # a first i has a carrier, the last x a shape of its own
        ("Ethi", "selam", "ሴላም"),
    ],
)
def test_words_are_spelt_as_their_orthographies_spell_them(code: str, word: str, written: str) -> None:
    assert BY_CODE[code].write(word) == written


@scripts
def test_every_letter_is_of_the_script(code: str) -> None:
    script = BY_CODE[code]
    for consonant in script.consonants():
        for vowel in VOWELS:
            for letter in script.write(vowel + consonant + vowel + consonant):
                assert unicodedata.name(letter).startswith(NAMES[code])


@scripts
def test_a_script_has_capitals_if_its_letters_do(code: str) -> None:
    script = BY_CODE[code]
    assert script.cased == any(letter.title() != letter for letter in (*script.letters, *script.vowels))


@scripts
def test_two_words_are_not_written_alike(code: str) -> None:
    """Open syllables of each consonant and vowel, in words of two: the learner can tell the words apart."""
    script = BY_CODE[code]
    if code in ("Latn", "Grek"):
        pytest.skip("digraphs: two letters for one sound")
    syllables = [consonant + vowel for consonant in script.consonants() for vowel in VOWELS]
    words = [first + second for first in syllables for second in syllables]
    assert len({script.write(word) for word in words}) == len(words)


def test_a_neighbour_is_never_absent_from_a_script_that_lacks_the_sound() -> None:
    for script in SCRIPTS:
        assert set(fold(CONSONANTS, script.consonants())) <= set(script.consonants())
    assert set(NEIGHBOUR) | set(NEIGHBOUR.values()) <= set(CONSONANTS)


@given(seed=st.integers(0, 10**6), code=st.sampled_from(sorted(NAMES)))
def test_words_of_a_family_and_its_loan_words_can_be_written(seed: int, code: str) -> None:
    rng = random.Random(seed)
    phonology = Phonology(BY_CODE[code], rng)
    other = Phonology(BY_CODE["Latn"], rng)
    words = [phonology.word(rng.randint(1, 3), rng), phonology.affix(rng), phonology.adapt(other.word(3, rng))]
    for word in words:
        assert set(word) <= set(BY_CODE[code].consonants()) | set(VOWELS)
        assert "-" not in BY_CODE[code].write(word)


@given(seed=st.integers(0, 10**6))
def test_adapting_a_word_twice_changes_nothing_more(seed: int) -> None:
    rng = random.Random(seed)
    phonology, other = Phonology(BY_CODE["Cyrl"], rng), Phonology(BY_CODE["Latn"], rng)
    word = phonology.adapt(other.word(3, rng))
    assert phonology.adapt(word) == word
