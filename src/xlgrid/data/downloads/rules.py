"""Find the rule that makes a file of `downloads`, and the addresses from which it is made."""

import re
from collections.abc import Iterable, Mapping
from glob import escape, glob
from typing import NamedTuple

from xlgrid.data.downloads.entries import ARCHIVES, SPLIT_FILES, Download, MatchedEntry, address, find, regex, winners
from xlgrid.data.origins.origin import SPLITS


class Archive(NamedTuple):
    """An archive with files of `downloads`.

    Attributes:
        url: the address of the archive.
        entry: the settings of the files.
    """

    url: str
    entry: Download


class Downloads:
    """The `downloads` of several studies. If two studies have an entry with the same path, the first study wins."""

    def __init__(self, of_studies: Iterable[Mapping[str, Download]]) -> None:
        self.entries: dict[str, Download] = {}
        for entries in of_studies:
            self.entries |= {path: entry for path, entry in entries.items() if path not in self.entries}

    def regex(self, rule: str) -> str:
        """A regular expression that matches the files that a rule makes.

        A file that a person got is not an output of any rule, so that Snakemake never deletes it to make it again. If
        several entries match a file, only the rule of the entry that wins makes it.

        Args:
            rule: download, unpack, join_bitext, by_hand, or download_archive, whose files are the addresses of archives.
        """
        expressions = []
        for path, entry in self.entries.items():
            others = winners(self.entries, path)
            if rule == "download_archive" and entry.has_archives:
                expressions.append(_place_of_archives(entry))
            elif rule == "join_bitext" == entry.rule:
                # One job writes all splits in a folder. It must not overwrite a split that has another entry.
                folders = [other.rpartition("/")[0] for other in others if _has_split(other)]
                folder = path.removesuffix(SPLIT_FILES)
                expressions.append(_none_of(map(regex, folders), r"(?:/[^/]+\.jsonl)?") + regex(folder))
            elif rule == entry.rule:
                there = sorted(glob(re.sub(r"\{\w+\}", "*", escape(path)))) if rule == "by_hand" else ()
                expressions.append(_none_of([*map(re.escape, there), *map(regex, others)]) + regex(path))
        return "|".join(expressions) or "(?!)"

    def find(self, file: str) -> MatchedEntry:
        """The entry of a file.

        Raises:
            ValueError: no entry matches the file, or the file cannot be made (`MatchedEntry.problem`).
        """
        entry = find(self.entries, file)
        if entry is None:
            raise ValueError(f"{file}: no study has it in `downloads`")
        if entry.problem:
            raise ValueError(f"{file}: {entry.problem}")
        return entry

    def archives(self, file: str) -> list[str]:
        """The archives from which a file is made.

        Raises:
            ValueError: no entry matches the file, or the file cannot be made.
        """
        return [f"{ARCHIVES}/{address(url)}" for url in self.find(file).urls]

    def archive(self, place: str) -> Archive:
        """The archive with a path below the folder of archives.

        Raises:
            ValueError: no entry has such an archive.
        """
        for entry in self.entries.values():
            if entry.has_archives and re.fullmatch(_place_of_archives(entry), place):
                scheme = str(entry.url).partition("://")[0]
                return Archive(f"{scheme}://{'/' if scheme == 'file' else ''}{place}", entry)
        raise ValueError(f"no study has an archive at {place} in `downloads`")


def _none_of(expressions: Iterable[str], end: str = "") -> str:
    """A negative lookahead: with this before it, a regular expression matches no text that one of `expressions`
    followed by `end` matches."""
    joined = "|".join(expressions)
    return joined and f"(?!(?:{joined}){end}$)"


def _has_split(path: str) -> bool:
    """Whether a path of `downloads` matches a file that `join_bitext` writes, such as `{split}.jsonl` or
    `dev.jsonl`."""
    name = regex(path.rpartition("/")[2])
    return any(re.fullmatch(name, f"{split}.jsonl") for split in SPLITS)


def _place_of_archives(entry: Download) -> str:
    """A regular expression that matches the paths of an entry's archives. A corpus is a name and a version:
    `Europarl/v8`."""
    return regex(address(str(entry.url)).replace("{corpus}", "{corpus}/{version}"))
