"""The origin of data in local files, and the settings that all origins of files have in common."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field, model_validator

from xlgrid.base.settings import LocalPath
from xlgrid.data import formats
from xlgrid.data.origins.origin import SPLITS, Origin, check_braces
from xlgrid.tasks import Task

if TYPE_CHECKING:
    import pyarrow as pa

# The types of files whose columns may have no names, and those with values of text.
_NAMELESS = (".csv", ".tsv", ".txt", *formats.WORDS)
DELIMITED = (".csv", ".tsv")


class OfFiles(Origin):
    """An origin of files, whose columns may have no names."""

    columns: list[str] | None = Field(
        None,
        description="names of the columns of files without a header, in their order (csv, tsv, and files with one word "
        "per line). A column named _ is not read. Absent: csv and tsv have a header; in CoNLL-U, FORM is the word and "
        "UPOS the label; in other files of words, the first column is the word and the last column is the label",
    )
    quotes: bool | None = Field(
        None,
        description="whether values of csv and tsv may be enclosed in double quotes. Absent: true for csv; in tsv, a "
        "quotation mark is an ordinary character",
    )
    missing: list[str] | None = Field(
        None,
        description='values of csv and tsv that are read as missing, unless they are in double quotes: `[NA, ""]`. '
        "Absent: only the empty value, so that `NA`, `null` and `None` are words. []: no value is missing, and an "
        "empty value is an empty text",
    )

    @model_validator(mode="after")
    def _columns_fit(self) -> Self:
        for key, types, what in (
            ("columns", _NAMELESS, "names the columns of files without a header"),
            ("quotes", DELIMITED, "is about values"),
            ("missing", DELIMITED, "is about values"),
        ):
            if getattr(self, key) is None:
                continue
            if (path := self.pattern) is None:
                raise ValueError(f"`{key}` {what} in `local` or `files`, and the data have neither: leave it out")
            if formats.type_of(path) not in types:
                raise ValueError(f"`{key}` {what} in {', '.join(types)}, and {path} is of another type: leave it out")
        read = [name for name in self.columns or () if name != formats.UNREAD]
        if self.columns is not None and len({*read}) < max(1, len(read)):
            raise ValueError(
                f"`columns` must name each column that is read once, and all other columns _, got "
                f"{', '.join(self.columns) or 'nothing'}"
            )
        return self

    @property
    def pattern(self) -> str | None:
        """The path of the files, with names in braces; None if the study does not give it."""
        raise NotImplementedError

    def reading(self, task: Task | None = None) -> formats.Reading:
        """The settings for reading the files. Without a task, the files are read as text."""
        words = tuple(task.head.columns(task)) if task and task.head.reads_words else ()
        conllu = task.head.conllu if task else ()
        missing = ("",) if self.missing is None else tuple(self.missing)
        return formats.Reading(tuple(self.columns or ()), self.quotes, missing, words, conllu)

    def rows(
        self, columns: Sequence[str], language: str, split: str, lock: str | Path | None
    ) -> tuple[formats.Rows, str]:
        """An iterator over the values of some columns in each row of a split, and a name of the origin for messages.

        In plain text, each line is a row, even if it is empty, so that row i of parallel files is line i.

        Raises:
            FileNotFoundError: a file does not exist.
            ValueError: a file cannot be read, at the call or during the iteration; or the Hub refuses access.
        """
        raise NotImplementedError


class Files(OfFiles):
    """Local files, one for each language and split, such as `translations/{language}/{split}.jsonl`."""

    local: LocalPath = Field(
        description="the path of the files. {language}, {split} and {name}, the language's entry in `names`, are "
        "replaced",
    )

    # The names that are allowed in braces in `local`.
    braces: ClassVar[tuple[str, ...]] = ("language", "split", "name")

    @model_validator(mode="after")
    def _type_is_read(self) -> Self:
        check_braces("local", self.local, self.braces)
        read_types = (*formats.TABLES, formats.LINES)
        # If `local` has no suffix, or a suffix with braces in it, the type is known only from the path of a file.
        if (kind := formats.type_of(self.local)) and "{" not in kind and kind not in read_types:
            raise ValueError(f"`local` names files of an unknown type, {kind}: expected {formats.listed(read_types)}")
        return self

    @classmethod
    def describes(cls, fields: dict[str, Any]) -> bool:
        return "local" in fields and "{part}" not in str(fields["local"])

    @property
    def pattern(self) -> str:
        return self.local

    @property
    def is_lines(self) -> bool:
        return formats.is_lines(self.local)

    def path(self, language: str, split: str) -> str:
        """The local file of a split in a language."""
        path = self.local.replace("{language}", language).replace("{split}", self.named(split))
        return path.replace("{name}", self.configuration(language) or language)

    def paths(self, language: str, split: str) -> list[str]:
        return [self.path(language, split)]

    def has_pair(self, pair: str) -> bool:
        """Whether the source has a pair itself, so that it need not be joined from the rows of two languages.

        A source has a pair if the file of one of its splits exists. Then the error about another split names the
        missing file. It also has a pair that `languages` or `names` list, even if no file exists yet. A file with the
        rows of all languages (`begins`) has no pairs.
        """
        if pair in self.names:
            return True
        is_listed = pair in (self.languages or ())
        return not self.begins and (is_listed or any(Path(self.path(pair, split)).exists() for split in SPLITS))

    def read(self, described: Task, language: str, split: str, lock: str | Path) -> "tuple[pa.Table, str]":
        where = self.path(language, split)
        return formats.read_table(where, self.reading(described)), where

    def rows(
        self, columns: Sequence[str], language: str, split: str, lock: str | Path | None
    ) -> tuple[formats.Rows, str]:
        where = self.path(language, split)
        return formats.rows(where, columns, self.reading()), where

    def __str__(self) -> str:
        return self.local
