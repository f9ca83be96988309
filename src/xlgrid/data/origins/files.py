"""Local files, and files in general: their types, and what a study says of their columns and values."""

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
        description="names of the columns of files without a header, in their order (csv, tsv, and files with a word on each "
        "line); _ is a column that is not read. Absent: csv and tsv have a header; in CoNLL-U, FORM is the word "
        "and UPOS the label; in other files of words, the first column is the word and the last the label",
    )
    quotes: bool | None = Field(
        None,
        description="whether values of csv and tsv may stand in double quotes; absent: they may in csv, and a quotation mark "
        "in tsv is text",
    )
    missing: list[str] | None = Field(
        None,
        description='values of csv and tsv that stand for a missing value, unless they stand in double quotes: `[NA, ""]`; absent: the empty '
        "value, so that `NA`, `null` and `None` are words; []: none, so that an empty value is an empty text",
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
                raise ValueError(f"`{key}` {what} in `local` or `files`, of which there is none: leave it out")
            if formats.type_of(path) not in types:
                raise ValueError(f"`{key}` {what} in {', '.join(types)}, and {path} is of another type: leave it out")
        read = [name for name in self.columns or () if name != formats.UNREAD]
        if self.columns is not None and len({*read}) < max(1, len(read)):
            raise ValueError(
                f"`columns` names each column that is read once, and the others _, got {', '.join(self.columns) or 'nothing'}"
            )
        return self

    @property
    def pattern(self) -> str | None:
        """The name of the files, with names in braces; None if a study does not say it."""
        raise NotImplementedError

    def reading(self, task: Task | None = None) -> formats.Reading:
        """How the files are read for a task; None for texts."""
        words = (task.inputs[0], *filter(None, [task.target])) if task and task.head.reads_words else ()
        missing = ("",) if self.missing is None else tuple(self.missing)
        return formats.Reading(tuple(self.columns or ()), self.quotes, missing, words)

    def rows(
        self, columns: Sequence[str], language: str, split: str, lock: str | Path | None
    ) -> tuple[formats.Rows, str]:
        """The values of columns in each row of a split, read as they are asked for; and a name of the place for messages.

        In plain text, a line is a row, also where it is empty, so that parallel files keep the numbers of their lines.

        Raises:
            FileNotFoundError, ValueError: as `xlgrid.data.formats.rows`, when it is called or while reading; or the Hub refuses.
        """
        raise NotImplementedError


class Files(OfFiles):
    """Local files, such as translations of your own: one for each language, with parallel rows, at a path such as
    `translations/{language}/{split}.jsonl`."""

    local: LocalPath = Field(
        description="the path of the files, in which {language}, {split} and {name}, the language's entry in `names`, are replaced",
    )

    # The names that may stand in braces in `local`.
    braces: ClassVar[tuple[str, ...]] = ("language", "split", "name")

    @model_validator(mode="after")
    def _type_is_read(self) -> Self:
        check_braces("local", self.local, self.braces)
        read_types = (*formats.TABLES, formats.LINES)
        # Without an end of its name, or with one that {split} fills in, only the path of a file tells its type.
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
        """Whether the source has a pair as such.

        One local file of a pair is enough: if another one is missing, the error should name it. Files that are not there yet are of a pair
        if `languages` or `names` list it. A file with the rows of all languages (`begins`) has none of a pair.
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
