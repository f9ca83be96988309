"""What all origins of data have in common: names of languages and splits, and what is done to the rows."""

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
    """A place of data, the names that languages and splits have there, and what is done to the rows."""

    name: str | None = Field(
        None, description="the configuration on the Hub, in which {language} stands for the language"
    )
    names: dict[str, str] = Field(
        {},
        description="language or pair: its configuration on the Hub, where `name` does not fit; without `name`, the source "
        "has these languages and pairs alone",
    )
    revision: str = Field(
        "main",
        description="branch, tag or commit of `hub`; `refs/convert/parquet` has the files of many data sets whose main branch"
        " is a script",
    )
    splits: dict[Literal["train", "dev", "test"], str] = Field(
        {},
        description="split: its name in the source, where the two differ; on the Hub, dev is `validation` without an entry",
    )
    normalize: Literal["NFC", "NFD", "NFKC", "NFKD"] | None = Field(
        None,
        description="the Unicode normalization form into which texts, words and answers are brought, and starts of answers with them; "
        "absent: they stay as they are",
    )
    unanswerable: Literal["drop"] | None = Field(
        None,
        description="drop: leave out questions without an answer, as SQuAD 2.0 has them; absent: they are an error",
    )
    misplaced: Misplaced | None = Field(
        None,
        description="questions of a training set whose answer is not at its answer_start. error, or absent: they are an error, as in dev and "
        "test sets always; drop: leave them out; search: take the occurrence of the answer that is nearest, and leave out questions "
        "whose context lacks the answer",
    )
    where: dict[str, str | int | float | bool] = Field({}, description="column: value; keep the rows with these values")
    begins: dict[str, dict[str, str]] | None = Field(
        None,
        description="column: {language: text}; where one file has all languages, keep the rows in which the column begins "
        "with the text of the language: `{id: {en: english-, sw: swahili-}}`",
    )
    rename: dict[str, str] = Field(
        {},
        description="column of the source: its new name; `options.0` is the first element of lists in the column options, "
        "and `answer.text` the field of mappings in the column answer. `{first}` and `{second}` stand for the languages of a pair: "
        "`translation.{second}`",
    )
    labels: Annotated[
        dict[str, str],
        BeforeValidator(_written_labels, json_schema_input_type=dict[str | int | bool, str | int | float | bool]),
    ] = Field({}, description="label in the source (text, a number, true or false): label of the task")
    limit: int | None = Field(None, gt=0, description="keep at most this many rows of a split, the first ones")
    languages: list[str] | None = Field(
        None,
        description="the languages that the source has, and the pairs (en-de) that it has as such; absent: all",
    )

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        check_braces("name", self.name, ("language",))
        doubles = {new for new in self.rename.values() if [*self.rename.values()].count(new) > 1}
        if doubles:
            raise ValueError(f"`rename` gives {min(doubles)!r} to two columns: a name is for one")
        return self

    @classmethod
    @abstractmethod
    def describes(cls, fields: dict[str, Any]) -> bool:
        """Whether the keys of an entry are of this kind of origin."""

    @abstractmethod
    def read(self, described: Task, language: str, split: str, lock: str | Path) -> "tuple[pa.Table, str]":
        """All rows of a split in a language, or in a pair that the origin has as such, and a name of the place for messages.

        Raises:
            OSError, ValueError: the place cannot be read.
        """

    def paths(self, language: str, split: str) -> list[str]:
        """The local files from which `read` takes its rows."""
        return []

    def named(self, split: str) -> str:
        """The source's name of a split."""
        return next((name for key, name in self.splits.items() if key == split), split)

    @property
    def repository(self) -> Repository | None:
        """The repository, if the data come from the Hub."""
        return None

    def problem_there(self, described: Task | None, language: str, split: str, answer: Any) -> str | None:
        """What the repository lacks that is read from it, and what to do; None if it has all.

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
        """The languages that the source has, as far as the study says; None: any."""
        if self.languages is None and self.begins:
            return [*dict.fromkeys(code for texts in self.begins.values() for code in texts)]
        return [*self.names] if self.languages is None and self.names and self.name is None else self.languages

    def has(self, language: str) -> bool:
        """Whether the source has a language, or those of a pair, as far as the study says."""
        known = self.known
        return known is None or language in known or {*Target(language).languages} <= {*known}

    def has_pair(self, pair: str) -> bool:
        """Whether the source has a pair as such."""
        return pair in self.names

    def configuration(self, language: str) -> str | None:
        """The name of a language's part of the data on the Hub; None for the only one."""
        return self.names.get(language) or (self.name and self.name.replace("{language}", language))

    def renamed(self, language: str) -> dict[str, str]:
        """`rename` for the data of a language or pair."""
        codes = Target(language).languages
        return {
            old.replace("{first}", codes[0]).replace("{second}", codes[-1]): new for old, new in self.rename.items()
        }

    def paths_of(self, language: str, split: str, has_pairs_only: bool = False) -> list[str]:
        """The local files of a split in a language or pair: those of `parts`."""
        return [path for code in self.parts(language, has_pairs_only) for path in self.paths(code, split)]

    def parts(self, language: str, has_pairs_only: bool = False) -> tuple[str, ...]:
        """The languages from whose rows those of a pair are joined, or the language or pair that the source has as such.

        Args:
            has_pairs_only: see `xlgrid.heads.head.Head`; pairs are never joined.
        """
        return (language,) if has_pairs_only or self.has_pair(language) else Target(language).languages

    def normalized(self, text: str) -> str:
        """A text in the normalization form of the source."""
        return unicodedata.normalize(self.normalize, text) if self.normalize else text

    def concerning(self, *languages: str) -> Self:
        """The origin without what the settings say of other languages or pairs than these, which the origin has."""
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
        for key in ("unanswerable", "misplaced"):
            if getattr(self, key) and not task.head.has_answers:
                raise ValueError(f"`{key}` is about questions, and {task.name} has none: leave it out")


def check_braces(key: str, pattern: str | None, names: tuple[str, ...]) -> None:
    """Raise ValueError if other names than these stand in the braces of a setting."""
    for name in re.findall(r"\{(.*?)\}", pattern or ""):
        if name not in names:
            raise ValueError(unknown(f"name in the braces of `{key}`", name, names))


def is_wanted(value: Any, wanted: str | int | float | bool) -> bool:
    """Whether `where` keeps a row with a value: text and numbers are equal if they are written alike."""
    is_text = isinstance(value, str) or isinstance(wanted, str)
    return value is not None and (written(value) == written(wanted) if is_text else value == wanted)
