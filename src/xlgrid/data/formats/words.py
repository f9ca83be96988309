"""Read files with a word and its labels on each line: CoNLL-U, and the format of CoNLL's shared tasks.

CoNLL-U is the format of Universal Dependencies (https://universaldependencies.org/format.html). The words are the
syntactic words, as in UD's evaluation: lines of multiword tokens (with a range as ID, `3-4`) and lines of empty nodes
(`3.1`) are left out.

In other files, a line has a word and further columns, with tabs or spaces between them, and an empty line ends a
sentence. Lines that begin with -DOCSTART- are left out, and so are comments, which begin with #.

Since `#` may also be a word, a line that begins with # is a comment only if it is before the first word of a sentence
and has another number of columns than the lines of words, another separator between them, a space before a tab, or the
form `# name = value`. In a file with tabs, every line without a tab that begins with # and a text is a comment.
"""

import re
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xlgrid.base.errors import Damaged
from xlgrid.data.formats.files import UNREAD, Reading, damaged, text_lines, type_of

if TYPE_CHECKING:
    import pyarrow as pa

_CONLLU = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
_DOCUMENT = "-DOCSTART-"
# Only the spaces of ASCII separate columns. Words may contain other spaces, such as no-break spaces.
_SPACES = " \t"
_ID, _OTHER_ID = re.compile("[0-9]+"), re.compile(r"[0-9]+-[0-9]+|[0-9]+\.[0-9]+")
# A comment with a name and a value, as in CoNLL-U: `# text = ...`.
_ENTRY = re.compile(r"#\s*[\w.:-]+(\s+[\w.:-]+)? = ")
# The text in place of the words of a treebank whose text may not be redistributed.
_REMOVED = "_"

# The number of a line in its file, and the columns of the word in this line.
_Word = tuple[int, list[str]]


def read_words(path: Path, reading: Reading) -> "pa.Table":
    """The sentences of a file, with a list of the values in each sentence for each column that is read.

    Without names in `reading.columns`, the names of `reading.words` are the names of the columns `reading.conllu` of
    CoNLL-U, and two names are those of the first and the last column in other files.

    Raises:
        ValueError: the file is read for a task without words; or it is damaged: a line is not UTF-8, lacks a column, or
            has a column without text, there are no sentences, or the first column has numbers in place of words. The
            message has the number of the line.
    """
    import pyarrow as pa

    is_conllu = type_of(path) == ".conllu"
    if not reading.words:
        raise ValueError(
            f"{path} has words with labels, but the task does not read words: name a file of another type, or use a "
            "task of kind `token`"
        )
    sentences = [*(_conllu(path) if is_conllu else _conll(path))]
    if not sentences:
        raise damaged(path, "has no sentence")
    line, values = sentences[0][0]
    if values in (list(reading.columns or ()), list(reading.words)):
        raise Damaged(f"{path}, line {line} has the names of columns, and would be read as a word: delete this line")
    places = _places(path, reading, sentences, is_conllu)
    columns: dict[str, list[list[str]]] = {name: [] for name in places}
    for sentence in sentences:
        for name, place in places.items():
            columns[name].append([_value(path, line, word, place, name) for line, word in sentence])
    name = next((name for name in reading.words if name in columns), next(iter(columns)))
    if all(word == _REMOVED for words in columns[name] for word in words):
        raise damaged(
            path,
            f"has {_REMOVED!r} in place of each word: the text was removed, and its provider explains how to add it",
        )
    return pa.table({name: pa.array(values, pa.list_(pa.string())) for name, values in columns.items()})


def _places(path: Path, reading: Reading, sentences: Sequence[Sequence[_Word]], is_conllu: bool) -> dict[str, int]:
    """The name of each column that is read -> its place, counted from 0."""
    if reading.columns:
        return {name: place for place, name in enumerate(reading.columns) if name != UNREAD}
    if is_conllu:
        return dict(zip(reading.words, map(_CONLLU.index, reading.conllu), strict=False))
    if len(reading.words) > 2:
        raise Damaged(
            f"{path}: which columns are {', '.join(reading.words)}? Name the columns in their order with `columns` in "
            f"`data`, {UNREAD} for those that are not read, or end the name of a file in CoNLL-U in .conllu"
        )
    # If some lines lacked a column, their last column would be another one.
    (first, word), *others = [word for sentence in sentences for word in sentence]
    for line, other in others:
        if len(other) != len(word):
            raise Damaged(
                f"{path}, line {line} has {len(other)} columns, and line {first} has {len(word)}: mend the line, or "
                f"name the columns with `columns` in `data`, such as `columns: [{', '.join(reading.words)}]`, so that "
                "further columns are ignored"
            )
    if len(word) < len(reading.words):
        raise _too_few(path, first, word, len(reading.words))
    if len(word) > len(reading.words) and _are_numbered(sentences):
        raise Damaged(
            f"{path}, line {first}: the first column has the numbers of the words, and would be read as the words: "
            f"name the columns with `columns` in `data`, such as `columns: [{', '.join((UNREAD, *reading.words))}]`"
        )
    return dict(zip(reading.words, (0, len(word) - 1), strict=False))


def _are_numbered(sentences: Sequence[Sequence[_Word]]) -> bool:
    """Whether the first column has the numbers of the words in each sentence, from 0 or 1."""
    return any(len(sentence) > 1 for sentence in sentences) and any(
        all(
            columns[0] == str(number)
            for sentence in sentences
            for number, (_, columns) in enumerate(sentence, start=first)
        )
        for first in (0, 1)
    )


def _value(path: Path, line: int, word: list[str], place: int, name: str) -> str:
    if place >= len(word):
        raise _too_few(path, line, word, place + 1)
    if not word[place]:
        raise Damaged(f"{path}, line {line}: column {place + 1}, {name!r}, has no text; mend this line")
    return word[place]


def _too_few(path: Path, line: int, word: list[str], expected: int) -> Damaged:
    return Damaged(
        f"{path}, line {line}: expected at least {expected} columns, with tabs or spaces between them, got "
        f"{' '.join(word)[:80]!r}; mend this line"
    )


def _conllu(path: Path) -> Iterator[list[_Word]]:
    sentence: list[_Word] = []
    for number, line in text_lines(path):
        if not line.strip(_SPACES):
            if sentence:
                yield sentence
            sentence = []
        elif not line.startswith("#"):
            word = line.split("\t")
            if len(word) != len(_CONLLU) or not (_ID.fullmatch(word[0]) or _OTHER_ID.fullmatch(word[0])):
                raise Damaged(
                    f"{path}, line {number}: expected the {len(_CONLLU)} columns of CoNLL-U with tabs between them, "
                    f"the first of them a number, got {line[:80]!r}; mend this line, or end the name of a file of "
                    "another format in .conll"
                )
            if _ID.fullmatch(word[0]):
                sentence.append((number, word))
    if sentence:
        yield sentence


def _conll(path: Path) -> Iterator[list[_Word]]:
    lines = [(number, line.rstrip(_SPACES)) for number, line in text_lines(path)]
    filled = [line for _, line in lines if line and not line.startswith(_DOCUMENT)]
    words = [line for line in filled if not line.startswith("#")] or filled
    sizes, has_tabs = {len(_columns(line)) for line in words}, any("\t" in line for line in words)
    sentence: list[_Word] = []
    for number, line in lines:
        if not line:
            if sentence:
                yield sentence
            sentence = []
        elif not line.startswith(_DOCUMENT) and not _is_comment(line, bool(sentence), sizes, has_tabs):
            sentence.append((number, _columns(line)))
    if sentence:
        yield sentence


def _columns(line: str) -> list[str]:
    return line.split("\t") if "\t" in line else re.split(" +", line)


def _is_comment(line: str, is_within: bool, sizes: Container[int], has_tabs: bool) -> bool:
    """Whether a line that begins with # is a comment, and not a line with the word `#`.

    Args:
        is_within: whether an earlier line has a word of the same sentence.
        sizes: the numbers of columns in lines of words.
        has_tabs: whether these columns are separated by tabs.
    """
    if not line.startswith("#"):
        return False
    if has_tabs and "\t" not in line:
        return line != "#"
    if is_within:
        return False
    first, *others = _columns(line)
    is_other = "\t" in line and (not has_tabs or " " in first)
    return is_other or 1 + len(others) not in sizes or bool(_ENTRY.match(line))
