"""Tagging schemes, in which the labels of words mark spans.

A label is `O` for a word outside of all spans, or a letter with the type of the span of the word, such as B-PER. The
letter shows the place of the word in its span:

| scheme | first word | inside | last word | single word |
|---|---|---|---|---|
| IOB (IOB1, IOB2 or BIO) | B or I | I | I | B or I |
| IOE (IOE1, IOE2) | I | I | I or E | I or E |
| BIOES (IOBES) | B | I | E | S |
| BILOU (BIOUL) | B | I | L | U |
| BMES | B | M | E | S |
| BMEWO | B | M | E | W |

The labels alone do not distinguish IOB1 and IOB2. In IOB1, B begins a span only after a span of the same type; in IOB2,
it begins every span. One reading suits both: B begins a span, and so does an I that continues no span. conlleval (Tjong
Kim Sang and Buchholz 2000) and the default mode of seqeval (Nakayama 2018) read labels in this way, and IOE likewise.
The other schemes are read strictly, as with seqeval's `mode="strict"`: a span has all of its words, from the first to
the last, and other labels belong to no span.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from xlgrid.base.arrays import Flags, Ints

# The letters of each scheme.
_SCHEMES = {"IOB": "BI", "IOE": "IE", "BIOES": "BIES", "BILOU": "BILU", "BMES": "BMES", "BMEWO": "BMEW"}
# Any of the letters of these schemes is a scheme: data may have spans of one word alone.
_PARTIAL = ("IOB", "IOE")
# The letters of other schemes -> the letters of BIOES with the same meaning.
_SAME = {"L": "E", "U": "S", "M": "I", "W": "S"}
_OUTSIDE = ("O", "o")
_LETTER, _SEPARATOR = "(?P<letter>[BIESLUMWbieslumw])", r"(?P<separator>[-_:./| ])"
_PATTERNS: dict[str, re.Pattern[str]] = {
    "first": re.compile(f"{_LETTER}{_SEPARATOR}(?P<type>.+)", re.DOTALL),
    "last": re.compile(f"(?P<type>.+){_SEPARATOR}{_LETTER}", re.DOTALL),
    "alone": re.compile(_LETTER),
}
# The type of spans whose labels consist of a letter only, as in seqeval.
_UNTYPED = "_"
# The characters that can separate the letter from the type.
_JOINTS = "-_:./| +*#=~,;()[]<>\u2010\u2013\u2014"
# The maximum number of labels in a message.
_MOST = 4


class Tag(NamedTuple):
    """The letter of a label, B, I, E or S as in BIOES, and the type of its span; ("O", "") outside of spans."""

    letter: str
    type: str


class Spans(NamedTuple):
    """Spans of words, in their order.

    Attributes:
        firsts, lasts: [spans], the first and the last word of each span.
        kinds: [spans], the number of its type.
    """

    firsts: Ints
    lasts: Ints
    kinds: Ints


# A function that finds the spans of many sentences at once. Its arguments are the numbers of the labels of all words, and
# whether a sentence begins at each word.
Finder = Callable[[Ints, Flags], Spans]


class _Notation(NamedTuple):
    """The notation of labels: the place of the letter, its separator from the type, and whether it is a capital."""

    letter: Literal["first", "last", "alone"]
    separator: str
    is_upper: bool


_USUAL = _Notation("first", "-", True)


@dataclass(frozen=True)
class Scheme:
    """A scheme, and its notation in the labels of a task.

    Attributes:
        name: the name of the scheme, as in the table above.
        notation: the notation of the labels.
    """

    name: str
    notation: _Notation

    @property
    def is_strict(self) -> bool:
        """Whether a span counts only if all of its labels follow the scheme."""
        return self.name not in _PARTIAL

    @property
    def description(self) -> str:
        """The name of the scheme, and the mode of seqeval with the same spans."""
        alike = {"IOB": " (IOB1 and IOB2 alike)", "IOE": " (IOE1 and IOE2 alike)"}.get(self.name, "")
        mode = {"BIOES": "mode strict, scheme IOBES", "BILOU": "mode strict, scheme BILOU"}.get(
            self.name, f"mode strict, scheme IOBES after {self.name}" if self.is_strict else "default mode"
        )
        return f"{self.name}{alike}, as seqeval's {mode}"

    @staticmethod
    def is_outside(label: str) -> bool:
        """Whether a label means that a word is outside of spans."""
        return label in _OUTSIDE

    def tag(self, label: str) -> Tag:
        """The letter and the type of a label."""
        if self.is_outside(label):
            return Tag("O", "")
        letter, kind = _read(label)[self.notation]
        return Tag(_SAME.get(letter, letter), kind)

    def type_of(self, label: str) -> str:
        """The type in a label with the notation of the task; "" if the label has no type."""
        return _read(label).get(self.notation, ("", ""))[1]

    def with_type(self, label: str, kind: str) -> str:
        """The label with another type."""
        letter, separator = label[0 if self.notation.letter == "first" else -1], self.notation.separator
        return f"{letter}{separator}{kind}" if self.notation.letter == "first" else f"{kind}{separator}{letter}"

    def finder(self, labels: Sequence[str]) -> Finder:
        """A function that finds spans, for labels whose types are numbered in their order."""
        letters, kinds = self._tables(labels)
        find = _strict if self.is_strict else _lenient

        def finder(numbers: Ints, opens: Flags) -> Spans:
            firsts, lasts = find(letters[numbers], kinds[numbers], opens)
            return Spans(firsts, lasts, kinds[numbers[firsts]])

        return finder

    def beginnings(self, labels: Sequence[str]) -> list[bool]:
        """Whether a span begins at each word of a sentence, in IOB and IOE."""
        opens = np.arange(len(labels)) == 0
        return [bool(begins) for begins in _beginnings(*self._tables(labels), opens)]

    def _tables(self, labels: Sequence[str]) -> tuple[Ints, Ints]:
        """[labels], the letter of each label as the number of its character, and its type; -1 outside of spans."""
        tags = [self.tag(label) for label in labels]
        number = {kind: at for at, kind in enumerate(dict.fromkeys(tag.type for tag in tags if tag.type))}
        letters = np.array([ord(tag.letter) for tag in tags], np.int64)
        return letters, np.array([number.get(tag.type, -1) for tag in tags], np.int64)


_O, _B, _I, _E, _S = map(ord, "OBIES")


def _before(values: Ints, opens: Flags, outside: int) -> Ints:
    """The value of the word before each word; `outside` where a sentence begins."""
    return np.where(opens, outside, np.roll(values, 1))


def _beginnings(letters: Ints, kinds: Ints, opens: Flags) -> Flags:
    """[words], whether a span of IOB or IOE begins at each word."""
    before, is_new = _before(letters, opens, _O), _before(kinds, opens, -1) != kinds
    begins: Flags = (letters != _O) & ((letters == _B) | (before == _E) | is_new)
    return begins


def _lenient(letters: Ints, kinds: Ints, opens: Flags) -> tuple[Ints, Ints]:
    """The spans of IOB and IOE: each ends with the last word of its type before the next span begins."""
    begins, is_outside = _beginnings(letters, kinds, opens), letters == _O
    is_last = ~is_outside & np.append((begins | is_outside)[1:], True)
    return np.flatnonzero(begins), np.flatnonzero(is_last)


def _strict(letters: Ints, kinds: Ints, opens: Flags) -> tuple[Ints, Ints]:
    """The spans of BIOES: S, or B, any number of I, and E, all of one type."""
    before, is_same = _before(letters, opens, _O), _before(kinds, opens, -1) == kinds
    goes_on = np.isin(letters, (_I, _E)) & np.isin(before, (_B, _I)) & is_same
    # The word with which the labels begin that go on until each word.
    first = np.maximum.accumulate(np.where(goes_on, 0, np.arange(len(letters))))
    is_last = (letters == _S) | (goes_on & (letters == _E) & (letters[first] == _B))
    lasts = np.flatnonzero(is_last)
    return first[lasts], lasts


@lru_cache(maxsize=4096)
def _read(label: str) -> Mapping[_Notation, tuple[str, str]]:
    """Each notation in which a label can be read -> its letter as a capital, and its type."""
    readings = {}
    for place, pattern in _PATTERNS.items():
        if match := pattern.fullmatch(label):
            parts, letter = match.groupdict(), match["letter"]
            notation = _Notation(place, parts.get("separator", ""), letter.isupper())  # type: ignore[arg-type]
            readings[notation] = (letter.upper(), parts.get("type", _UNTYPED))
    return readings


@lru_cache(maxsize=256)
def scheme_of(labels: tuple[str, ...]) -> Scheme | None:
    """The scheme of a task's labels; None if they are plain classes, such as parts of speech.

    Labels follow a scheme if a type has labels for the first and for later words, if a label begins with `B-` or `I-`,
    or if there is the label O and some label has the letter B or I. Then all labels must follow the scheme.

    Raises:
        ValueError: some labels follow a scheme and others do not, or their letters belong to no scheme. The message is
            a clause that says which labels to write.
    """
    inside = [label for label in labels if label not in _OUTSIDE]
    has_outside = len(inside) < len(labels)
    readings: dict[_Notation, dict[str, tuple[str, str]]] = defaultdict(dict)
    for label in inside:
        for notation, reading in _read(label).items():
            readings[notation][label] = reading
    evident = [
        (len(read) == len(inside), _is_coherent(read), notation)
        for notation, read in readings.items()
        if _is_evident(notation, read, has_outside, len(read) == len(inside))
    ]
    if not evident:
        if has_outside and (joined := _without_separator(inside)):
            raise ValueError(
                f"{_some([*joined])} seem to mark spans, and nothing that is known here separates the letter from the "
                f"type: write {_some([*joined.values()])}, and `labels: {{{next(iter(joined))}: "
                f"{next(iter(joined.values()))}, ...}}` in `data`; or rename the labels that only look like labels of "
                "spans"
            )
        return None
    # If notations suit equally well, this is the first one, with the letter first.
    is_whole, _, notation = max(evident, key=lambda each: each[:2])
    read = readings[notation]
    if not is_whole:
        others = [label for label in inside if label not in read]
        if not has_outside and len(others) == 1:
            raise ValueError(
                f"{_some([*read])} mark spans, and {others[0]} does not: if {others[0]} stands for words outside of "
                f"spans, write O, and `labels: {{{others[0]}: O}}` in `data`; if it marks spans, write it as the "
                f"others, such as {' and '.join(_examples(others[0]))}"
            )
        raise ValueError(
            f"{_some([*read])} mark spans, and {_some(others)} {'does' if len(others) == 1 else 'do'} not: write O for "
            f"words outside of spans, and all others alike, such as {' and '.join(_examples(others[0]))}; or rename "
            "the labels that only look like labels of spans"
        )
    if {*_OUTSIDE} <= {*labels}:
        raise ValueError("both O and o are labels of words outside of spans: write one of them")
    letters = {letter for letter, _ in read.values()}
    for name, of_scheme in _SCHEMES.items():
        if letters == {*of_scheme} or (name in _PARTIAL and letters < {*of_scheme}):
            return Scheme(name, notation)
    kind = next(iter(read.values()))[1]
    raise ValueError(_no_scheme(letters, notation, kind))


def _is_coherent(read: Mapping[str, tuple[str, str]]) -> bool:
    """Whether a type has labels for the first word of a span and for later words."""
    letters: dict[str, set[str]] = defaultdict(set)
    for letter, kind in read.values():
        letters[kind].add(letter)
    return any("B" in each and each & {*"IMEL"} for each in letters.values())


def _is_evident(notation: _Notation, read: Mapping[str, tuple[str, str]], has_outside: bool, is_whole: bool) -> bool:
    """Whether labels that can be read in a notation are certainly labels of spans.

    Args:
        read: the labels, with their letters and types.
        has_outside: whether there is a label for words outside of spans.
        is_whole: whether all other labels can be read in this notation.
    """
    if notation.letter == "alone":
        # Sets of parts of speech also have labels with a single letter.
        return is_whole and _is_coherent(read)
    is_begun = any(letter in "BI" for letter, _ in read.values())
    return (
        _is_coherent(read)
        or (is_begun and (has_outside or notation == _USUAL))
        or (is_whole and has_outside and notation == _USUAL)
    )


def _without_separator(labels: Sequence[str]) -> dict[str, str]:
    """Labels that begin or end with the letter of a span without a known separator -> their usual notation.

    The mapping is empty unless a type has labels with both B and I.
    """
    for letters in ("BIESLUMW", "bieslumw"):
        for pattern in (f"(?P<letter>[{letters}])(?P<type>.+)", f"(?P<type>.+)(?P<letter>[{letters}])"):
            parts = {label: match for label in labels if (match := re.fullmatch(pattern, label, re.DOTALL))}
            of_type: dict[str, set[str]] = defaultdict(set)
            for match in parts.values():
                of_type[match["type"]].add(match["letter"].upper())
            found = {kind for kind, of_kind in of_type.items() if {"B", "I"} <= of_kind}
            if found:
                return {
                    label: "-".join(filter(None, (match["letter"].upper(), match["type"].strip(_JOINTS))))
                    for label, match in parts.items()
                    if match["type"] in found
                }
    return {}


def _some(labels: Sequence[str]) -> str:
    return ", ".join(labels[:_MOST]) + (", ..." if len(labels) > _MOST else "")


def _examples(label: str) -> Iterator[str]:
    """Examples of labels of IOB2 in the usual notation, with the type in a label."""
    for reading in _read(label).values():
        if reading[1] != _UNTYPED:
            label = reading[1]
    return (f"{letter}-{label}" for letter in "BI")


def _no_scheme(letters: set[str], notation: _Notation, kind: str) -> str:
    """A message about the letters of labels that mark spans in no scheme.

    Args:
        kind: a type of the labels, for examples.
    """
    wider = [(name, of_scheme) for name, of_scheme in _SCHEMES.items() if letters < {*of_scheme}]
    known = ", ".join(f"{name} ({', '.join(of_scheme)})" for name, of_scheme in _SCHEMES.items())
    if not wider:
        return f"the letters {', '.join(sorted(letters))} mark spans in no scheme; write the labels of one of {known}"
    name, of_scheme = wider[0]
    are = f"the letters are {_and(sorted(letters))}" if len(letters) > 1 else f"the only letter is {min(letters)}"
    examples = ", ".join(_label(notation, letter, kind) for letter in of_scheme)
    missing = "spans of one word only" if len(letters) == 1 and letters <= {*"SUW"} else "only some of them"
    return (
        f"{are}; {name} has {_and(of_scheme)}: list labels with all four ({examples}), even if the data have "
        f"{missing}; the schemes are {known}"
    )


def _and(letters: Sequence[str]) -> str:
    return f"{', '.join(letters[:-1])} and {letters[-1]}"


def _label(notation: _Notation, letter: str, kind: str) -> str:
    """A label in a notation."""
    letter = letter if notation.is_upper else letter.lower()
    parts = {"first": (letter, kind), "last": (kind, letter), "alone": (letter,)}[notation.letter]
    return notation.separator.join(parts)
