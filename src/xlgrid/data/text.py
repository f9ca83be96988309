"""Text for the pre-training of encoders. Generated texts with the same id are translations in all natural languages,
and in all artificial languages."""

import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import Field, PositiveInt, model_validator

from xlgrid.base.files import whole, write_text
from xlgrid.base.settings import LocalPath, Seed, Strict
from xlgrid.data import formats, streams
from xlgrid.data.origins.files import Files, OfFiles
from xlgrid.data.sources import TextOrigin
from xlgrid.languages import language as known_language
from xlgrid.synthetic.artificial import Dials, is_artificial
from xlgrid.synthetic.customs import Customs
from xlgrid.synthetic.texts import TextOptions, generated
from xlgrid.tasks import TASKS

# The number of characters of fetched text that are collected in memory and then written as a row group.
_GROUP = 2**23
# The entry with the `End` of a fetched text in the file's metadata. It is missing if `most_characters` cut the text.
END = "xlgrid end"


class End(NamedTuple):
    """Where a text ends.

    Attributes:
        row: the number of the last row, from 0; -1 if there are no rows.
        text: the number of the last row with text.
    """

    row: int = -1
    text: int = -1

    def after(self, number: int, text: str) -> "End":
        """The `End` after adding a row with this number and text."""
        return End(number, number if text.strip() else self.text)


def differ(ends: Sequence[End]) -> bool:
    """Whether any of several parallel texts has text after the last row of another text."""
    return max(end.text for end in ends) > min(end.row for end in ends)


class TextSettings(Strict):
    """Text in every language of a study. By default, it is generated, with the same meanings in all natural languages,
    and in all artificial languages.

    Natural languages may have text from the Hub or from local files instead. For example, XNLI with `column: premise`
    is parallel text: its training premises (Foroutan et al. 2023, section 4.2). This downloads at most
    `most_characters` of Wikipedia in each language (Pfeiffer et al. 2020, section 5):

        text:
          data: {hub: wikimedia/wikipedia, name: "20231101.{language}"}
          column: text
          most_characters: 100_000_000

    This reads the files of CC-100 as they are published, such as `en.txt.xz`, where an empty line ends a document:

        text: {data: {local: "cc100/{language}.txt.xz"}, documents: true}

    To use your own text in a language, natural or artificial, name its file in `files: {xx: path/to/my.txt}`.
    """

    sentences: PositiveInt = Field(default=6000, description="rows of a generated text")
    seed: Seed = Field(
        default=1,
        description="seed of the generated texts. If a generated task has the same seed, and its `n` is less than the "
        "number of rows, text in artificial languages contains all sentences of the task's test set; with another "
        "seed, it contains about one in ten. The default seed of tasks is 0",
    )
    dials: Dials = Field(default=Dials(), description="how much the artificial languages of generated texts differ")
    customs: Customs = Field(
        default=Customs(),
        description="facts that hold in one artificial language only; texts with customs are not parallel",
    )
    options: TextOptions = Field(default=TextOptions(), description="content of generated texts in natural languages")
    data: TextOrigin | None = Field(
        default=None,
        description="where text in natural languages comes from; absent: it is generated. `local` may also end in .txt, and "
        "be compressed",
    )
    files: dict[str, LocalPath] = Field(
        default={},
        description="language: a file with its text, of the same types as `local` of `data`; wins over `data` and generated "
        "text",
    )
    column: str | None = Field(
        default=None,
        description="the column with the text in `data` and `files`; plain text (.txt) has none",
    )
    documents: bool = Field(
        default=False,
        description="true: a row of plain text is a document, which ends with an empty line; false: a row is a line",
    )
    most_characters: PositiveInt | None = Field(
        default=None, description="keep the leading rows of a fetched text in a language up to this many characters"
    )
    once: str | None = Field(
        default=None,
        description="a language; if rows of `data` have the same text in this language, keep only the first of them",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for code, path in self.files.items():
            if formats.type_of(path) not in formats.STREAMED:
                raise ValueError(
                    f"`files.{code}` is {path}: expected a file that ends in {formats.listed(formats.STREAMED)}"
                )
        are_lines = [*map(formats.is_lines, self.files.values()), *([self.data.is_lines] if self.data else [])]
        if all(are_lines) != (self.column is None):
            raise ValueError(
                "`data` and `column` go together: where the text comes from, and which of its columns it is; so do `files` "
                "and `column`, but plain text (.txt) has none"
            )
        if self.documents and (self.column or not are_lines):
            raise ValueError("`documents` is about plain text (.txt), and there is none: leave it out")
        if self.once and self.data is None:
            raise ValueError("`once` selects rows of `data`, and generated text has none: leave it out")
        of_tasks = ("labels", "begins", "unanswerable", "misplaced", "missing")
        if self.data and any(getattr(self.data, name) for name in of_tasks):
            raise ValueError(
                f"{', '.join(f'`{name}`' for name in of_tasks)} are for tasks, not for text: leave them out"
            )
        return self

    def fetches(self, language: str) -> bool:
        """Whether the text in a language is fetched, not generated."""
        return language in self.files or (self.data is not None and not is_artificial(language))

    def lacks(self, language: str) -> str | None:
        """Why there is no text in a language, and what to do; None if there is text, or may be."""
        if language in self.files:
            return None
        if self.data and self.fetches(language):
            if self.data.has(language):
                return None
            return (
                f"the text comes from {self.data}, which has only {', '.join(self.data.known or ())} according to its "
                f"`{'languages' if self.data.languages else 'names'}`, and not {language}: name a file with text in {language} "
                f"under `text.files`, or leave {language} out"
            )
        if any(task.speaks(language) for task in TASKS.values()):
            return None
        return (
            f"there is no text in {language}, which has no lexicon: name a file under `text.files` or a source as `text.data`, or "
            "see CONTRIBUTING.md on how to add a language"
        )

    def is_from_hub(self, language: str) -> bool:
        """Whether the text in a language is downloaded from the Hub."""
        return self.fetches(language) and not self.local_files(language)

    def local_files(self, language: str) -> list[str]:
        """The local files from which the text in a language is read: none if it is generated or from the Hub."""
        if language in self.files:
            return [self.files[language]]
        if not self.fetches(language) or self.data is None:
            return []
        # With `once`, the rows of another language are read, too.
        codes = dict.fromkeys([language, *filter(None, [self.once])])
        return [path for code in codes for path in self.data.paths(code, "train")]

    def concerning(self, language: str) -> dict[str, Any]:
        """The settings on which the text in a language depends, as JSON. Changing other settings does not remake the
        text."""
        settings = self.model_dump(mode="json", exclude_defaults=True)
        if language in self.files:
            names = ["files", "most_characters", "documents" if formats.is_lines(self.files[language]) else "column"]
            settings["files"] = {language: self.files[language]}
        elif self.fetches(language):
            names = ["data", "column", "documents", "most_characters", "once"]
            source = self.data.concerning(language, *filter(None, [self.once])) if self.data else None
            settings["data"] = source and source.model_dump(mode="json", exclude_defaults=True)
        else:
            names = ["sentences", "seed", *(["dials", "customs"] if is_artificial(language) else ["options"])]
        # The order is that of the fields, because the settings are compared as text.
        return {name: settings[name] for name in type(self).model_fields if name in names and name in settings}


def make_text(
    language: str, out: str | Path, settings: TextSettings | None = None, lock: str | Path | None = None
) -> None:
    """Write the text in a language as a parquet file with the columns `id` and `text`. For an artificial language,
    `out` may also end in .txt; then each line is a sentence.

    Generated texts (see `xlgrid.synthetic.texts.generated`) have the ids 0, 1, ... Fetched text is the training split
    of its source. The ids are the row numbers, and rows without text are left out. If texts are used in pairs, row i
    must be parallel in all languages.

    XNLI repeats a premise for up to three hypotheses, in rows that are not adjacent. `once: en` keeps only rows whose
    English text does not occur in an earlier row, and numbers them 0, 1, ... These are the same rows in every language,
    so ids stay parallel even if a translator translated one sentence in two ways, or two sentences to the same one.

    Without `once`, memory does not grow with the text. Progress is printed on stderr.

    Args:
        language: the code of the language.
        out: the path of the file.
        settings: the settings of the study; None uses the defaults.
        lock: the lock file, see `xlgrid.data.lock`; only text from the Hub needs it.

    Raises:
        FileNotFoundError: a local file does not exist.
        ValueError: there is no such language, or a dial is out of range; fetched text is missing, damaged or not
            parallel; lines cannot hold the text.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    settings = settings or TextSettings()
    lines, fetches = Path(out).suffix == ".txt", settings.fetches(language)
    if not fetches:
        known_language(language)
    if lines and (fetches or not is_artificial(language)):
        raise ValueError(f"{out}: only sentences of an artificial language fit lines of text: end the name in .parquet")
    if fetches:
        numbered, where = fetched_text(language, settings, lock)
        with closing(numbered), whole(out) as aside:
            _write(numbered, where, settings.most_characters, aside)
        return
    texts = generated(language, settings.sentences, settings.seed, settings.dials, settings.customs, settings.options)
    if lines:
        write_text(out, "".join(f"{text}\n" for text in texts))
        return
    table = pa.table({"id": pa.array(range(len(texts)), pa.int32()), "text": texts})
    with whole(out) as aside:
        pq.write_table(table, aside)


def fetched_text(
    language: str, settings: TextSettings, lock: str | Path | None
) -> tuple[Generator[tuple[int, str], None, None], str]:
    """An iterator over the ids and texts of a language, and a name of their source for messages.

    All rows are included, also those without text, such as empty lines, and `most_characters` is not applied.

    Raises:
        FileNotFoundError: a local file does not exist.
        ValueError: the Hub refuses access, or there is no lock file for text from the Hub; during the iteration: data
            are damaged, a column is missing, or no row matches `where`.
    """
    if language in settings.files:
        file = Files.model_validate({"local": settings.files[language]})
        return _texts(file, language, settings, lock)
    assert settings.data
    numbered, where = _texts(settings.data, language, settings, lock)
    if not settings.once:
        return numbered, where
    return _parallel(numbered, where, *_texts(settings.data, settings.once, settings, lock)), where


def _texts(
    source: OfFiles, language: str, settings: TextSettings, lock: str | Path | None
) -> tuple[Generator[tuple[int, str], None, None], str]:
    column = formats.COLUMN if source.is_lines else str(settings.column)
    original = next((old for old, new in source.rename.items() if new == column), column)
    rows, where = source.rows((original, *source.where), language, "train", lock)
    if settings.documents and source.is_lines:
        rows = streams.documents(rows, where)
    return _checked(streams.selected(rows, source, where), where, column), where


def _checked(
    numbered: Generator[tuple[int, Any], None, None], where: str, column: str
) -> Generator[tuple[int, str], None, None]:
    has_text = False
    with closing(numbered):
        for number, text in numbered:
            if not isinstance(text, str):
                raise ValueError(f"{where}, row {number + 1}, column {column!r}: expected text, got {text!r}")
            has_text = has_text or bool(text.strip())
            yield number, text
    if not has_text:
        raise ValueError(f"{where} has no rows with text: check the source of the text, its `where` and its language")


def _parallel(
    numbered: Generator[tuple[int, str], None, None],
    where: str,
    compared: Generator[tuple[int, str], None, None],
    compared_place: str,
) -> Generator[tuple[int, str], None, None]:
    """The rows whose parallel text in `compared` does not occur in an earlier row, with the ids 0, 1, ..."""
    with closing(numbered), closing(compared):
        first: dict[str, int] = {}
        end = compared_end = End()
        for number, text in compared:
            first.setdefault(text, number)
            compared_end = compared_end.after(number, text)
        chosen = set(first.values())
        kept = 0
        for number, text in numbered:
            if number in chosen:
                yield kept, text
                kept += 1
            end = end.after(number, text)
    if differ([end, compared_end]):
        raise ValueError(
            f"texts are parallel, but {where} has {end.row + 1} rows and {compared_place} has {compared_end.row + 1}: give both the "
            "same rows"
        )


def _write(numbered: Iterator[tuple[int, str]], where: str, most: int | None, path: Path) -> None:
    """Write leading rows up to `most` characters in total, and leave out rows without text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("id", pa.int32()), ("text", pa.string())])
    progress = streams.Progress()
    end = End()
    ids: list[int] = []
    texts: list[str] = []
    number = rows = characters = held = 0
    with pq.ParquetWriter(path, schema) as writer:
        for number, text in numbered:
            end = end.after(number, text)
            if not text.strip():
                continue
            if most and characters + len(text) > most:
                if not rows:
                    raise ValueError(
                        f"{where}, row {number + 1} has {len(text)} characters: raise most_characters, {most}"
                    )
                break
            ids.append(number)
            texts.append(text)
            rows, characters, held = rows + 1, characters + len(text), held + len(text)
            if held >= _GROUP:
                writer.write_table(pa.table([ids, texts], schema=schema))
                ids, texts, held = [], [], 0
            if progress.due():
                progress.say(f"{where}: {rows:,} rows, {characters:,} characters")
        else:
            writer.add_key_value_metadata({END: json.dumps(end)})
        if ids:
            writer.write_table(pa.table([ids, texts], schema=schema))
    progress.say(f"{where}: {rows:,} rows, {characters:,} characters in all")
