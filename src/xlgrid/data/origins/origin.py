"""The base class of all origins of data: the names of languages and splits, and the settings that change rows."""

import re
import unicodedata
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from xlgrid.base.names import unknown
from xlgrid.base.settings import Strict
from xlgrid.data.published import Repository
from xlgrid.heads.head import written
from xlgrid.heads.span.misplaced import Misplaced
from xlgrid.languages.sources import Target
from xlgrid.tasks import Task

if TYPE_CHECKING:
    import pyarrow as pa

SPLITS = ("train", "dev", "test")


def _written_labels(value: Any) -> Any:
    return {written(old): written(new) for old, new in value.items()} if isinstance(value, dict) else value


class Origin(Strict):
    """An origin of data, its names for languages and splits, and the settings that select and change rows."""

    name: str | None = Field(None, description="the configuration on the Hub; {language} is replaced by the language")
    names: dict[str, str] = Field(
        {},
        description="language or pair: its configuration on the Hub, if `name` does not give it. Without `name`, the "
        "source has only these languages and pairs",
    )
    revision: str = Field(
        "main",
        description="branch, tag or commit of `hub`. If the main branch is a script, `refs/convert/parquet` often has "
        "the data as files",
    )
    splits: dict[Literal["train", "dev", "test"], str] = Field(
        {},
        description="split: its name in the source, if the two differ; on the Hub, the default for dev is `validation`",
    )
    normalize: Literal["NFC", "NFD", "NFKC", "NFKD"] | None = Field(
        None,
        description="the Unicode normalization form to which texts, words and answers are converted; the starts of "
        "answers are adjusted. Absent: they stay as they are",
    )
    unanswerable: Literal["drop"] | None = Field(
        None,
        description="drop: leave out questions without an answer, as in SQuAD 2.0; absent: they are an error",
    )
    misplaced: Misplaced | None = Field(
        None,
        description="what to do with training questions whose answer is not at its answer_start. error, or absent: "
        "they are an error, as they always are in dev and test sets. drop: leave them out. search: use the nearest "
        "occurrence of the answer, and leave out questions whose context does not contain the answer",
    )
    where: dict[str, str | int | float | bool] = Field({}, description="column: value; keep the rows with these values")
    begins: dict[str, dict[str, str]] | None = Field(
        None,
        description="column: {language: text}; for files with rows of all languages: keep the rows in which the column "
        "begins with the text of the language: `{id: {en: english-, sw: swahili-}}`",
    )
    rename: dict[str, str] = Field(
        {},
        description="column of the source: its new name; `options.0` is the first element of lists in the column "
        "options, and `answer.text` is the field of mappings in the column answer. `{first}` and `{second}` are "
        "replaced by the languages of a pair: `translation.{second}`",
    )
    labels: Annotated[
        dict[str, str],
        BeforeValidator(_written_labels, json_schema_input_type=dict[str | int | bool, str | int | float | bool]),
    ] = Field({}, description="label in the source (text, a number, true or false): label of the task")
    limit: int | None = Field(None, gt=0, description="keep at most this many rows of a split, the first ones")
    languages: list[str] | None = Field(
        None,
        description="the languages of the source, and the pairs (en-de) that need not be joined from two languages; "
        "absent: all",
    )

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        check_braces("name", self.name, ("language",))
        doubles = {new for new in self.rename.values() if [*self.rename.values()].count(new) > 1}
        if doubles:
            raise ValueError(
                f"`rename` gives the name {min(doubles)!r} to two columns: choose another name for one of them"
            )
        return self

    @classmethod
    @abstractmethod
    def describes(cls, fields: dict[str, Any]) -> bool:
        """Whether the keys of an entry belong to this kind of origin."""

    @abstractmethod
    def read(self, described: Task, language: str, split: str, lock: str | Path) -> "tuple[pa.Table, str]":
        """All rows of a split in a language, or in a pair that need not be joined, and a name of the origin for
        messages.

        Raises:
            OSError, ValueError: the data cannot be read.
        """

    def paths(self, language: str, split: str) -> list[str]:
        """The local files that `read` reads."""
        return []

    def named(self, split: str) -> str:
        """The name that the source has for a split."""
        return next((name for key, name in self.splits.items() if key == split), split)

    @property
    def repository(self) -> Repository | None:
        """The repository, if the data come from the Hub."""
        return None

    def problem_there(self, described: Task | None, language: str, split: str, answer: Any) -> str | None:
        """The error message if the repository lacks the required files or configuration; None if it has them.

        Args:
            described: the task; None for text.
            answer: the Hub's description of the repository, see `xlgrid.data.lock.ask`.
        """
        return None

    @property
    def is_lines(self) -> bool:
        """Whether a row is a line of plain text."""
        return False

    @property
    def known(self) -> list[str] | None:
        """The languages that the study lists for the source; None if the study lists no languages, so that all are
        possible."""
        if self.languages is None and self.begins:
            return [*dict.fromkeys(code for texts in self.begins.values() for code in texts)]
        return [*self.names] if self.languages is None and self.names and self.name is None else self.languages

    def has(self, language: str) -> bool:
        """Whether the source has a language, or both languages of a pair, according to the study."""
        known = self.known
        return known is None or language in known or {*Target(language).languages} <= {*known}

    def has_pair(self, pair: str) -> bool:
        """Whether the source has a pair itself, so that it need not be joined from the rows of two languages."""
        return pair in self.names

    def configuration(self, language: str) -> str | None:
        """The configuration of a language on the Hub; None for a data set with a single configuration."""
        return self.names.get(language) or (self.name and self.name.replace("{language}", language))

    def renamed(self, language: str) -> dict[str, str]:
        """The entries of `rename` for a language or pair, with the values of `{first}` and `{second}`."""
        codes = Target(language).languages
        return {
            old.replace("{first}", codes[0]).replace("{second}", codes[-1]): new for old, new in self.rename.items()
        }

    def paths_of(self, language: str, split: str, has_pairs_only: bool = False) -> list[str]:
        """The local files of a split in a language or pair, for all of its `parts`."""
        return [path for code in self.parts(language, has_pairs_only) for path in self.paths(code, split)]

    def parts(self, language: str, has_pairs_only: bool = False) -> tuple[str, ...]:
        """The two languages from whose rows a pair is joined, or only the given language or pair if nothing is joined.

        Args:
            has_pairs_only: whether pairs are never joined, see `xlgrid.heads.head.Head`.
        """
        return (language,) if has_pairs_only or self.has_pair(language) else Target(language).languages

    def normalized(self, text: str) -> str:
        """Convert a text to the Unicode form `normalize`, if it is set."""
        return unicodedata.normalize(self.normalize, text) if self.normalize else text

    def concerning(self, *languages: str) -> Self:
        """A copy without the settings for other languages or pairs. The origin must have the given ones."""
        codes = {code for language in languages for code in (language, *Target(language).languages)}
        names = {code: name for code, name in self.names.items() if code in codes}
        begins = self.begins and {
            column: {code: text for code, text in texts.items() if code in codes}
            for column, texts in self.begins.items()
        }
        return self.model_copy(update={"names": names, "begins": begins, "languages": None})

    def check_task(self, task: Task) -> None:
        """Raise ValueError if `labels`, `unanswerable` or `misplaced` does not suit a task."""
        if self.labels and not task.labels:
            raise ValueError(f"`labels` translates labels, and {task.name} has none: leave it out")
        known = task.head.label_names(task)
        for label in self.labels.values():
            if label not in known:
                raise ValueError(unknown(f"label of {task.name} in `labels`", label, known))
        if self.unanswerable or self.misplaced:
            import pyarrow as pa

            # A head without questions refuses these, whatever the rows.
            task.head.prepared(pa.table({name: [] for name in task.columns}), task, self.unanswerable, self.misplaced)


def check_braces(key: str, pattern: str | None, names: tuple[str, ...]) -> None:
    """Raise ValueError if a setting has other names in braces than the given ones."""
    for name in re.findall(r"\{(.*?)\}", pattern or ""):
        if name not in names:
            raise ValueError(unknown(f"name in the braces of `{key}`", name, names))


def is_wanted(value: Any, wanted: str | int | float | bool) -> bool:
    """Whether `where` keeps a row with a value. A text and a number are equal if they are written in the same way."""
    is_text = isinstance(value, str) or isinstance(wanted, str)
    return value is not None and (written(value) == written(wanted) if is_text else value == wanted)
