"""The key `downloads` of a study: how to get files that are not on the Hub, from an address or by hand."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple, Self

from pydantic import Field, field_validator, model_validator

from xlgrid.base.names import unknown
from xlgrid.base.settings import Strict
from xlgrid.languages.sources import Target

# The folder for archives. An archive is deleted once all required files have been extracted.
ARCHIVES = "downloads"
# The end of the path of bitext. One job makes the files of all splits.
SPLIT_FILES = "/{split}.jsonl"
_BRACES = re.compile(r"\{(\w+)\}")
_ADDRESS = re.compile(r"(https?|ftp|file)://[^\s#]+")
_SHA256 = re.compile("[0-9a-f]{64}")


class Download(Strict):
    """How to get a file, or all files that match a path with names in braces.

    The study refers to these files elsewhere, with `local`, `path` or `files`, and Snakemake gets the files that it
    needs:

        downloads:
          "cc100/{code}.txt.xz": {url: "https://data.statmt.org/cc-100/{code}.txt.xz"}
          mine/pytorch_model.bin: {url: "https://example.org/mine.tar.gz", member: pytorch_model.bin}
          "opus/{pair}/{split}.jsonl":
            url: "https://object.pouta.csc.fi/OPUS-{corpus}/moses/{pair}.txt.zip"
            corpora: {Europarl/v8: [de, en, fr], Bianet/v1: [en, tr]}
          "translations/{language}.jsonl": {by_hand: "translate the training set, for instance with ..."}

    With `corpora`, the sentences of a pair of languages come from the archives of all corpora that have this pair. The
    columns are `first` and `second`. `dev` and `test` each get 1,000 pairs of sentences, or a tenth of the different
    pairs if there are fewer than 10,000; `train` gets the others. A pair with a sentence that is empty or not in UTF-8
    is left out.
    """

    url: str | None = Field(
        default=None,
        description="the address of the file, or of the archive that contains it. Names in braces have the same values "
        "as in the path of the file. With `corpora`, `{corpus}` is the corpus, and `{pair}` is the pair with the codes "
        "and in the order of OPUS",
    )
    member: str | None = Field(
        default=None,
        description="the path of the file in the archive (zip, tar, tar.gz, tar.bz2, tar.xz) at `url`, or the end of "
        "the path; may contain names in braces",
    )
    corpora: dict[str, list[str]] = Field(
        default={},
        description="corpus and version on OPUS: the languages of the corpus by their codes on OPUS, if it has all of "
        "their pairs; otherwise, its pairs (de-en). The code `zh_cn` is used for the language zh, too",
    )
    sha256: str | None = Field(
        default=None,
        description="the SHA-256 checksum of the file at `url`. Absent: the lock file keeps the checksum of the first "
        "download, and later downloads must have the same checksum",
    )
    by_hand: str | None = Field(
        default=None,
        description="instructions for getting the file by hand: where it is, and under which conditions. Without "
        "`url`, `xlgrid check` prints them, and the job of the file fails with them; with `url`, they are printed if "
        "the download fails",
    )

    @field_validator("url")
    @classmethod
    def _is_address(cls, url: str | None) -> str | None:
        if url is not None and not _ADDRESS.fullmatch(url):
            raise ValueError(
                f"an address begins with https://, http://, ftp:// or file://, and has no # and no blanks, got {url!r}"
            )
        return url

    @field_validator("sha256")
    @classmethod
    def _is_sha256(cls, sha256: str | None) -> str | None:
        if sha256 is not None and not _SHA256.fullmatch(sha256):
            raise ValueError(
                f"a SHA-256 has 64 hexadecimal digits in lower case, got {sha256!r}: see the output of `sha256sum`"
            )
        return sha256

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.url is None:
            for key in ("member", "corpora", "sha256"):
                if getattr(self, key):
                    raise ValueError(
                        f"`{key}` describes the file at `url`, which is missing: give the address as `url`"
                    )
            if not self.by_hand:
                raise ValueError("give the address of the file as `url`, or say as `by_hand` how a person gets it")
        if self.corpora and self.member:
            raise ValueError("archives of `corpora` have a file for each language: leave out `member`")
        if self.sha256 and _BRACES.search(self.url or ""):
            raise ValueError("`sha256` is the checksum of one file, and `url` is the address of several: leave it out")
        return self

    @property
    def rule(self) -> str:
        """The rule that makes the files."""
        if self.url is None:
            return "by_hand"
        return "join_bitext" if self.corpora else "unpack" if self.member else "download"

    @property
    def has_archives(self) -> bool:
        """Whether the files are taken out of archives."""
        return bool(self.member or self.corpora)

    @property
    def options(self) -> list[str]:
        """The options of `xlgrid download` for this entry."""
        given = {"--sha256": self.sha256, "--by-hand": self.by_hand}
        return [f"{option}={value}" for option, value in given.items() if value]

    def problems(self, path: str) -> Iterator[str]:
        """The mistakes in the path of the files, and in settings that do not fit the path."""
        if path.startswith(("/", "~", "results/", f"{ARCHIVES}/")) or ".." in path.split("/"):
            yield f"{path} has to be a path from the folder of the project, outside results/ and {ARCHIVES}/"
        known = [*dict.fromkeys(_BRACES.findall(path))]
        if self.corpora:
            if not path.endswith(SPLIT_FILES) or known not in (["pair", "split"], ["language", "split"]):
                yield f"bitext of `corpora` has a path such as 'opus/{{pair}}{SPLIT_FILES}', got {path!r}"
            known = ["corpus", "pair"]
        for key in ("url", "member"):
            for name in _BRACES.findall(getattr(self, key) or ""):
                if name not in known:
                    yield unknown(f"name in the braces of `{key}`", name, known)
        for corpus in self.corpora:
            if not re.fullmatch(r"[^/\s]+/[^/\s]+", corpus):
                yield f"a corpus has a name and a version on OPUS, such as Europarl/v8, got {corpus!r}"


class MatchedEntry(NamedTuple):
    """The entry of `downloads` that matches a file.

    Attributes:
        path: the path of the entry, with names in braces.
        entry: the settings of the entry.
        values: name in braces -> its value in the path of the file.
    """

    path: str
    entry: Download
    values: dict[str, str]

    @property
    def urls(self) -> list[str]:
        """The addresses from which the file is made; none if a person must get it, or if no corpus has the pair."""
        if self.entry.url is None:
            return []
        if not self.entry.corpora:
            return [filled(self.entry.url, self.values)]
        pairs = ((corpus, pair) for corpus in self.entry.corpora for pair in self._pairs(corpus))
        return [filled(self.entry.url, {"corpus": corpus, "pair": pair}) for corpus, pair in pairs]

    @property
    def member(self) -> str | None:
        """The file in the archive at the address."""
        return self.entry.member and filled(self.entry.member, self.values)

    @property
    def pair(self) -> str:
        """The pair of languages of bitext."""
        return self.values.get("pair") or self.values["language"]

    @property
    def problem(self) -> str | None:
        """Why the file cannot be made, and what to do; None if it can."""
        if self.entry.corpora and not self.urls:
            return f"none of the `corpora` of {self.path} has {self.pair}: add one that has it, or leave out the pair"
        return None

    def _pairs(self, corpus: str) -> Iterator[str]:
        """The names on OPUS of the pair in a corpus, such as `en-zh_cn`."""
        members, codes = self.entry.corpora[corpus], Target(self.pair).languages
        if len(codes) < 2:
            return
        first, second = codes
        yield from (
            member for member in members if "-" in member and {*map(_language, member.split("-"))} == {first, second}
        )
        for one in (member for member in members if _language(member) == first):
            for other in (member for member in members if _language(member) == second):
                yield "-".join(sorted((one, other)))


def _language(code: str) -> str:
    """The language of a code on OPUS: `zh_cn` -> `zh`."""
    return code.partition("_")[0]


def find(downloads: Mapping[str, Download], file: str) -> MatchedEntry | None:
    """The entry for a file. If several match, an entry without names in braces wins; otherwise, the first one."""
    if file in downloads:
        return MatchedEntry(file, downloads[file], {})
    for path, entry in downloads.items():
        if match := re.fullmatch(_named(path), file):
            return MatchedEntry(path, entry, match.groupdict())
    return None


def winners(downloads: Mapping[str, Download], path: str) -> list[str]:
    """The paths of the entries that win over the entry with this path if both match a file."""
    if not _BRACES.search(path):
        return []
    patterns = [other for other in downloads if _BRACES.search(other)]
    single = [other for other in downloads if other not in patterns and re.fullmatch(_named(path), other)]
    return [*single, *patterns[: patterns.index(path)]]


def regex(path: str) -> str:
    """A regular expression, without groups, that matches the files of a path with names in braces."""
    return "".join("[^/]+" if i % 2 else re.escape(part) for i, part in enumerate(_BRACES.split(path)))


def _named(path: str) -> str:
    """A regular expression with a group for each name in braces. A name that occurs twice has the same value."""
    seen: set[str] = set()
    expression = ""
    for i, part in enumerate(_BRACES.split(path)):
        if not i % 2:
            expression += re.escape(part)
        else:
            expression += f"(?P={part})" if part in seen else f"(?P<{part}>[^/]+)"
            seen.add(part)
    return expression


def filled(template: str, values: Mapping[str, str]) -> str:
    """Replace the names in braces by their values."""
    return _BRACES.sub(lambda match: values[match[1]], template)


def address(url: str) -> str:
    """The path of an archive below `ARCHIVES`: its address without `https://`."""
    return url.partition("://")[2].lstrip("/")
