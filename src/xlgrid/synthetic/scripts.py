"""Sounds and letters of the artificial languages: eighteen consonants, five vowels, ten real writing systems.

A word is a string of phonemes, one character each: S is the first sound of "ship", C of "chip", x the last of "loch";
all others are as in Latin. Every script uses its own Unicode block, with one spelling per phoneme. Scripts that need
not write vowels follow living orthographies that write all of them (Arabic as in Kurdish, Hebrew as in Yiddish).
"""

import random
from collections.abc import Collection
from typing import NamedTuple

VOWELS = "aeiou"
CONSONANTS = "ptkbdgmnszlrfvSCxh"
# Sound -> the sound that replaces it in a language that lacks it. h comes before x, because the replacement of h may be
# absent, too.
NEIGHBOUR = {"f": "p", "v": "b", "z": "s", "S": "s", "C": "t", "h": "x", "x": "k", "g": "k"}


class Script(NamedTuple):
    """A writing system: its ISO 15924 code, direction, full stop and letters, and whether it has capitals.

    `letters` are in the order of CONSONANTS, and `vowels` in the order of VOWELS; "-" marks a sound without a letter.
    """

    code: str
    direction: str
    cased: bool
    stop: str
    letters: tuple[str, ...]
    vowels: tuple[str, ...]
    signs: tuple[str, ...] = ()  # abugida: what a consonant carries for each of VOWELS, then for no vowel
    steps: tuple[int, ...] = ()  # syllabary: the same, as distances from the letter in the Unicode block
    initial: tuple[str, str] = ("", "")  # these vowels take this letter before them at the beginning of a word
    final: tuple[tuple[str, str], ...] = ()  # letters with another shape at the end of a word

    def consonants(self) -> str:
        """The consonants that the script can write."""
        return "".join(c for c, letter in zip(CONSONANTS, self.letters, strict=True) if letter != "-")

    def write(self, word: str) -> str:
        """The spelling of a word, without capitals. The script must have letters for all phonemes of the word."""
        spelt = dict(zip(CONSONANTS + VOWELS, self.letters + self.vowels, strict=True))
        if self.signs or self.steps:
            return "".join(self._syllables(word, spelt))
        text = (self.initial[1] if word[0] in self.initial[0] else "") + "".join(spelt[phoneme] for phoneme in word)
        for usual, shape in self.final:
            if text.endswith(usual):
                return text.removesuffix(usual) + shape
        return text

    def _syllables(self, word: str, spelt: dict[str, str]) -> list[str]:
        """The signs of a word: each consonant with the vowel that follows it, and separate vowels elsewhere."""
        written = []
        for i, phoneme in enumerate(word):
            if phoneme in VOWELS:
                if i == 0 or word[i - 1] in VOWELS:
                    written.append(spelt[phoneme])
                continue
            after = word[i + 1] if i + 1 < len(word) else "-"
            place = VOWELS.find(after)  # -1, the last, is no vowel
            letter = spelt[phoneme]
            written.append(letter + self.signs[place] if self.signs else chr(ord(letter) + self.steps[place]))
        return written


SCRIPTS = (
    Script("Latn", "ltr", True, ".", (*"ptkbdgmnszlrfv", "sh", "ch", "kh", "h"), tuple("aeiou")),
    Script("Cyrl", "ltr", True, ".", tuple("пткбдгмнсзлрфвшчх-"), tuple("аеиоу")),
    Script("Deva", "ltr", False, "।", tuple("पतकबदगमनसजलरफवशचखह"), tuple("अएइओउ"), signs=("", "े", "ि", "ो", "ु", "्")),
    Script("Arab", "rtl", False, ".", tuple("پتکبدگمنسزلرفڤشچخه"), tuple("اەیۆو"), initial=("aeiou", "ئ")),
    Script("Geor", "ltr", False, ".", tuple("პტკბდგმნსზლრფვშჩხჰ"), tuple("აეიოუ")),
    Script("Grek", "ltr", True, ".", tuple("πτκβδγμνσζλρφ---χ-"), ("α", "ε", "ι", "ο", "ου"), final=(("σ", "ς"),)),
    Script(
        "Hebr",
        "rtl",
        False,
        ".",
        ("פּ", *"טקבדגמנסזלרפװשצכה"),
        ("אַ", "ע", "י", "אָ", "ו"),
        initial=("iu", "א"),
        final=(("מ", "ם"), ("נ", "ן"), ("פ", "ף"), ("צ", "ץ"), ("כ", "ך")),
    ),
    Script("Armn", "ltr", True, "։", tuple("պտկբդգմնսզլրֆվշչխհ"), ("ա", "ե", "ի", "ո", "ու")),
    Script("Beng", "ltr", False, "।", tuple("পতকবদগমনসজলরফভশচখহ"), tuple("অএইওউ"), signs=("", "ে", "ি", "ো", "ু", "্")),
    Script("Ethi", "ltr", False, "።", tuple("ፐተከበደገመነሰዘለረፈቨሸቸኀሀ"), tuple("አኤኢኦኡ"), steps=(3, 4, 2, 6, 1, 5)),
)


def fold(word: str, consonants: Collection[str]) -> str:
    """Replace the consonants of a word that are not among `consonants` by similar ones."""
    for phoneme, neighbour in NEIGHBOUR.items():
        if phoneme not in consonants:
            word = word.replace(phoneme, neighbour)
    return word


class Phonology:
    """The sounds of a family, their frequencies, and the syllables that they form.

    A syllable is (C)(l|r)V(C). Families differ in the consonants that may end it and may come before l and r.
    """

    def __init__(self, script: Script, rng: random.Random):
        absent = rng.sample(list(NEIGHBOUR), rng.randint(1, 4))
        self._consonants = [c for c in script.consonants() if c not in absent]
        ranks = rng.sample(range(len(self._consonants)), len(self._consonants))
        self._frequencies = [1 / (3 + rank) for rank in ranks]
        self._vowel_frequencies = [rng.uniform(0.5, 1.5) for _ in VOWELS]
        self._codas = rng.choice(("n", "nrls", "nrlsmkt"))
        self._closed = 0.15 if self._codas == "n" else 0.3  # share of syllables that end in a consonant
        self._clusters = rng.random() < 0.5
        self._epenthetic = rng.choice("aeiu")

    def word(self, syllables: int, rng: random.Random) -> str:
        """A random word."""
        word = ""
        for i in range(syllables):
            onset = self._onset(rng)
            while onset == word[-1:]:  # no long consonants
                onset = self._onset(rng)
            if self._clusters and onset in "ptkbdg" and (i == 0 or word[-1] in VOWELS) and rng.random() < 0.15:
                onset += rng.choice("lr")
            if i == 0 and syllables > 1 and rng.random() < 0.12:
                onset = ""
            word += onset + self._vowel(rng)
            if rng.random() < self._closed:
                word += rng.choice(self._codas)
        return word

    def affix(self, rng: random.Random) -> str:
        """A random syllable for either end of a word. It is open or, rarely, ends with n."""
        return self._onset(rng) + self._vowel(rng) + ("n" if rng.random() < 0.2 else "")

    def _onset(self, rng: random.Random) -> str:
        return rng.choices(self._consonants, self._frequencies)[0]

    def _vowel(self, rng: random.Random) -> str:
        return rng.choices(VOWELS, self._vowel_frequencies)[0]

    def adapt(self, word: str) -> str:
        """A foreign word in the sounds of the family: missing sounds are replaced, and a vowel follows each consonant
        that the syllables do not allow at its place."""
        word = fold(word, self._consonants)
        adapted = ""
        for i, phoneme in enumerate(word):
            adapted += phoneme
            before, after, next_but_one = word[max(0, i - 1) : i], word[i + 1 : i + 2], word[i + 2 : i + 3]
            if phoneme in VOWELS or _is_vowel(after):
                continue
            begins = self._clusters and phoneme in "ptkbdg" and after in ("l", "r") and _is_vowel(next_but_one)
            if not begins and not (_is_vowel(before) and phoneme in self._codas):
                adapted += self._epenthetic
        return adapted


def _is_vowel(phoneme: str) -> bool:
    return phoneme != "" and phoneme in VOWELS
