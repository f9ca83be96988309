"""The key `downloads` of a study: how to get files that are not on the Hub, from an address or by hand."""

import re
from collections.abc import Iterable, Iterator, Mapping
from glob import escape, glob
from typing import Annotated, Any, ClassVar, NamedTuple, Self

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, SerializeAsAny, field_validator, model_validator

from xlgrid.base.names import unknown
from xlgrid.base.plugins import Extensible
from xlgrid.base.settings import Strict, unknown_keys

# The folder for archives. An archive is deleted once all required files have been extracted.
ARCHIVES = "downloads"
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
          "translations/{language}.jsonl": {by_hand: "translate the training set, for instance with ..."}
    """

    # The rules that make the files.
    rules: ClassVar[tuple[str, ...]] = ("download", "unpack", "by_hand")

    url: str | None = Field(
        default=None,
        description="the address of the file, or of the archive that contains it. Names in braces have the same values "
        "as in the path of the file",
    )
    member: str | None = Field(
        default=None,
        description="the path of the file in the archive (zip, tar, tar.gz, tar.bz2, tar.xz) at `url`, or the end of "
        "the path; may contain names in braces",
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
            for key in type(self).model_fields:
                if key != "by_hand" and getattr(self, key):
                    raise ValueError(
                        f"`{key}` describes the file at `url`, which is missing: give the address as `url`"
                    )
            if not self.by_hand:
                raise ValueError("give the address of the file as `url`, or say as `by_hand` how a person gets it")
        if self.sha256 and _BRACES.search(self.url or ""):
            raise ValueError("`sha256` is the checksum of one file, and `url` is the address of several: leave it out")
        return self

    @property
    def rule(self) -> str:
        """The rule that makes the files."""
        if self.url is None:
            return "by_hand"
        return "unpack" if self.member else "download"

    @property
    def has_archives(self) -> bool:
        """Whether the files are taken out of archives."""
        return self.member is not None

    @property
    def options(self) -> list[str]:
        """The options of `xlgrid download` for this entry."""
        given = {"--sha256": self.sha256, "--by-hand": self.by_hand}
        return [f"{option}={value}" for option, value in given.items() if value]

    def problems(self, path: str) -> Iterator[str]:
        """The mistakes in the path of the files, and in settings that do not fit the path."""
        if path.startswith(("/", "~", "results/", f"{ARCHIVES}/")) or ".." in path.split("/"):
            yield f"{path} has to be a path from the folder of the project, outside results/ and {ARCHIVES}/"
        known = self.names(path)
        for key in ("url", "member"):
            for name in _BRACES.findall(getattr(self, key) or ""):
                if name not in known:
                    yield unknown(f"name in the braces of `{key}`", name, known)

    def names(self, path: str) -> list[str]:
        """The names in braces that `url` and `member` may have: those in the path of the files."""
        return [*dict.fromkeys(_BRACES.findall(path))]

    def urls(self, values: Mapping[str, str]) -> list[str]:
        """The addresses from which a file is made; none if a person must get it, or if there is none for it.

        Args:
            values: name in braces -> its value in the path of the file.
        """
        return [] if self.url is None else [filled(self.url, values)]

    def lacking(self, path: str, values: Mapping[str, str]) -> str | None:
        """Why a file cannot be made, and what to do; None if it can."""
        return None

    def outputs(self, path: str, others: Iterable[str]) -> str:
        """A regular expression for what the rule makes: the files of a path.

        A file that a person got is not an output of a rule, so that Snakemake never deletes it to make it again.

        Args:
            others: the paths of entries that win over this one. Their files are left out.
        """
        there = sorted(glob(re.sub(r"\{\w+\}", "*", escape(path)))) if self.url is None else ()
        return none_of([*map(re.escape, there), *map(regex, others)]) + regex(path)

    def archives(self) -> str:
        """A regular expression for the paths of the archives below `ARCHIVES`."""
        return regex(address(str(self.url)))

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler.resolve_ref_schema(handler(core_schema))
        if cls is Download:
            for key, kind in ALL_DOWNLOADS.own.items():
                of_kind = handler.resolve_ref_schema(handler(kind.__pydantic_core_schema__))
                schema["properties"][key] = of_kind["properties"][key]
        return schema


# A package adds a key by a subclass of `Download`, an entry point whose name is the key.
ALL_DOWNLOADS = Extensible[type[Download]](
    "key of a download",
    "xlgrid.downloads",
    {},
    fits=lambda name, value: isinstance(value, type) and issubclass(value, Download) and name in value.model_fields,
    expected="a subclass of xlgrid.data.downloads.Download with a field of this name",
)


def entry_of(fields: Any) -> Any:
    """The entry that a mapping from a study describes. Any other value, such as a `Download`, is returned.

    Raises:
        ValueError: a key is unknown (the message names the nearest), or a value is wrong.
    """
    if not isinstance(fields, Mapping):
        return fields
    added = {key: kind for key in fields if key not in Download.model_fields and (kind := ALL_DOWNLOADS.get(str(key)))}
    if strange := [str(key) for key in fields if key not in Download.model_fields and key not in added]:
        known = [*Download.model_fields, *ALL_DOWNLOADS.names()]
        raise unknown_keys({key: unknown("key", key, known) for key in strange})
    # A key of a package with the value null counts as absent.
    stated = {key: value for key, value in fields.items() if key not in added or value is not None}
    return next((kind for key, kind in added.items() if key in stated), Download).model_validate(stated)


AnyDownload = Annotated[SerializeAsAny[Download], BeforeValidator(entry_of, json_schema_input_type=Download)]


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
        """The addresses from which the file is made; see `Download.urls`."""
        return self.entry.urls(self.values)

    @property
    def member(self) -> str | None:
        """The file in the archive at the address."""
        return self.entry.member and filled(self.entry.member, self.values)

    @property
    def problem(self) -> str | None:
        """Why the file cannot be made, and what to do; None if it can."""
        return self.entry.lacking(self.path, self.values)


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


def none_of(expressions: Iterable[str], end: str = "") -> str:
    """A negative lookahead: with this before it, a regular expression matches no text that one of `expressions`
    followed by `end` matches."""
    joined = "|".join(expressions)
    return joined and f"(?!(?:{joined}){end}$)"


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
