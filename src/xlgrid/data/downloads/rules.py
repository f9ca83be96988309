"""Find the rule that makes a file of `downloads`, and the addresses from which it is made."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from xlgrid.data.downloads.entries import ARCHIVES, Download, MatchedEntry, address, find, winners


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

        If several entries match a file, only the rule of the entry that wins makes it.

        Args:
            rule: one of `Download.rules`, or download_archive, whose files are the addresses of archives.
        """
        expressions = []
        for path, entry in self.entries.items():
            if rule == "download_archive" and entry.has_archives:
                expressions.append(entry.archives())
            elif rule == entry.rule:
                expressions.append(entry.outputs(path, winners(self.entries, path)))
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
            if entry.has_archives and re.fullmatch(entry.archives(), place):
                scheme = str(entry.url).partition("://")[0]
                return Archive(f"{scheme}://{'/' if scheme == 'file' else ''}{place}", entry)
        raise ValueError(f"no study has an archive at {place} in `downloads`")
