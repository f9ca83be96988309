"""Finds the languages and splits that names of configurations and files stand for: `hau`, `hau_Latn`, `PAN-X.ha`, `sw-KE`."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from xlgrid.base.names import unknown
from xlgrid.data import formats
from xlgrid.languages import language
from xlgrid.languages.iso import renewed, standard

# A code of ISO 639 with or without a script and a region (BCP 47, or with underscores), as a whole word of a name.
_TAG = re.compile(r"(?<![A-Za-z0-9])([a-z]{2,3})(?:[-_]([A-Z][a-z]{3}))?(?:[-_](?:[A-Z]{2}|[0-9]{3}))?(?![A-Za-z0-9])")
# Split of a study -> its names elsewhere, the most usual one first.
SPLIT_NAMES = {
    "train": ("train", "training"),
    "dev": ("validation", "dev", "valid", "val", "development", "eval"),
    "test": ("test", "testing", "eval"),
}
_SPLIT = re.compile(rf"(?<![A-Za-z])({'|'.join(name for names in SPLIT_NAMES.values() for name in names)})(?![A-Za-z])")
# Numbers of shards, and checksums after them, in names of parquet files.
_SHARD = re.compile(r"(?<=[-/])(\d{4,5}(-of-\d{5})?(-[0-9a-f]{16})?)(?=\.\w+$)")
# Words of names that are codes of small languages, too (`dev` is Domung), and mean them only where a person asks for them.
_NO_CODE = re.compile("all|cls|csv|dev|doc|ner|new|nli|old|org|pos|raw|tag|tok|tsv|txt|ud|val|web")


def languages_of(names: Iterable[str], wanted: Sequence[str] | None) -> dict[str, list[str]]:
    """The names that stand for each language, the best name first.

    A code means the language itself before a language within it (`ar`, then `arb`, then `ary`), in its usual script before
    another one, and in a name without another language (`mlqa.sw.sw`) before a pair.

    Args:
        wanted: the languages; None for all.
    """
    found: dict[str, list[tuple[int, int, bool, str]]] = defaultdict(list)
    for name in dict.fromkeys(names):
        tags = [(match[1], match[2]) for match in _TAG.finditer(name)]
        for code in wanted if wanted is not None else dict.fromkeys(_codes(tag for tag, _ in tags)):
            ranks = [(rank, script) for tag, script in tags if (rank := _rank(tag, code)) is not None]
            if ranks:
                rank, script = min(ranks, key=lambda each: each[0])
                others = sum(len(tag) == 2 and _rank(tag, code) is None and bool(standard(tag)) for tag, _ in tags)
                found[code].append((others, rank, script not in (None, language(code).script), name))
    order = wanted if wanted is not None else sorted(found)
    return {code: [name for *_, name in sorted(found[code])] for code in order if code in found}


def splits_of(names: Iterable[str]) -> dict[str, str]:
    """Split of a study -> its name among some names; a split without a name is left out."""
    present = [*names]
    found = {split: next((name for name in known if name in present), "") for split, known in SPLIT_NAMES.items()}
    # `eval` is a dev set beside `test`, and otherwise a test set.
    if found["dev"] == found["test"]:
        found["dev"] = ""
    return {split: name for split, name in found.items() if name}


def layout(files: Iterable[str], wanted: Sequence[str] | None) -> tuple[str, set[tuple[str, str]]]:
    """The pattern that most files of data follow, with {name} and {split}, and the names of a language and of a split of
    each of these files; "" if no file of a known type has the name of a split. Files without languages have the name "".

    Args:
        wanted: the languages; None for all.
    """
    by_pattern: dict[str, set[tuple[str, str]]] = defaultdict(set)
    types = (*formats.TABLES, formats.LINES)
    for file in files:
        if formats.type_of(file) not in types or not (splits := _SPLIT.findall(file)):
            continue
        template = _in_place(_SHARD.sub("*", file), splits[-1], "{split}")
        for name in ("", *dict.fromkeys(match[0] for match in _TAG.finditer(file))):
            if name not in splits:
                pattern = _in_place(template, name, "{name}") if name else template
                by_pattern[pattern].add((name, splits[-1]))

    def score(pattern: str) -> tuple[int, bool, int, int]:
        """Most languages are best, then most splits, then the shortest path."""
        names, splits = zip(*by_pattern[pattern], strict=True)
        return len(languages_of(names, wanted)), "{name}" not in pattern, len(splits_of(splits)), -len(pattern)

    best = max(by_pattern, key=score, default="")
    return best, by_pattern.get(best, set())


def _in_place(path: str, word: str, brace: str) -> str:
    return re.sub(rf"(?<![A-Za-z0-9{{]){re.escape(word)}(?![A-Za-z0-9}}])", brace, path)


def check_found(source: str, wanted: Sequence[str], found: Mapping[str, object], every: Iterable[str]) -> None:
    """Raise a ValueError if a wanted language is not found among every one that is there."""
    for code in wanted:
        if code not in found:
            raise ValueError(f"--languages: {source}: {unknown('language', code, sorted(every))}")


def _codes(tags: Iterable[str]) -> Iterator[str]:
    """The languages of some tags: that of `swh` is `sw`, as CLDR has it."""
    for tag in tags:
        if not _NO_CODE.fullmatch(tag) and (known := standard(tag if len(tag) == 2 else renewed(tag))):
            yield known.codes[0]


def _rank(tag: str, code: str) -> int | None:
    """How well a code means a language: 0 the code itself, 1 another code of it, 2 a language within or around it."""
    if tag == code:
        return 0
    mine, theirs = standard(code), standard(tag)
    codes = mine.codes if mine else (code,)
    if tag in codes or renewed(tag) in codes:
        return 1
    within = theirs and not {*theirs.macrolanguage}.isdisjoint(codes)
    around = mine and not {*mine.macrolanguage}.isdisjoint({tag, renewed(tag)})
    return 2 if within or around else None
