"""The settings that say where the data of a task come from: the Hub, local files, or a place that a package reads."""

import re
import unicodedata
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from xlgrid.base.names import unknown
from xlgrid.base.settings import LocalPath, Seed, Strict
from xlgrid.data import formats
from xlgrid.data.places import AnyPlace
from xlgrid.heads.head import written
from xlgrid.heads.span.misplaced import Misplaced
from xlgrid.languages.sources import Source, Target
from xlgrid.tasks import Task

SPLITS = ("train", "dev", "test")
# The part of a split in parts that is no pool.
GOLD = "gold"


# The names that stand in braces in paths of files, and the files of the Hub.
_BRACES = {"local": ("language", "split", "name", "part"), "files": ("name", "split"), "name": ("language",)}
# The types of files whose columns may have no names, and those with values of text.
_NAMELESS = (".csv", ".tsv", ".txt", *formats.WORDS)
_DELIMITED = (".csv", ".tsv")


def _written_labels(value: Any) -> Any:
    return {written(old): written(new) for old, new in value.items()} if isinstance(value, dict) else value


class Origin(Strict):
    """The place of data that are not generated: a repository on the Hub, at a commit that the lock file keeps, or local files, or a
    place that a package reads.

    Translations of your own are `local` files: one for each language, with parallel rows, at a path such as
    `translations/{language}/{split}.jsonl`. A pair (en-fr: the first input, such as a context or premise, in English,
    the second in French) is joined from the rows of its two languages, unless the source has the pair as such: in a file
    (`translations/en-fr/train.jsonl`), or as a configuration in `names`.

    A study that extends another replaces its `hub` by `{hub: null, name: null, local: ...}`. Files that were downloaded
    from the Hub keep their names with `splits: {dev: validation}`.
    """

    hub: str | None = Field(None, description="owner/name on the Hub")
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
    files: str | None = Field(
        None,
        description="a pattern of the files in a repository that declares no configurations; {name} stands for the "
        "configuration of the language, and {split} for the name of the split",
    )
    splits: dict[Literal["train", "dev", "test"], str] = Field(
        {},
        description="split: its name in the source, where the two differ; on the Hub, dev is `validation` without an entry",
    )
    local: LocalPath | None = Field(
        None,
        description="the path of the files, in which {language}, {split} and {name}, the language's entry in `names`, are "
        "replaced; docs/how-to/data.md lists the types of files. In a task of kind `bucc`, {part} stands for each"
        " language of the pair, whose file has the ids and sentences of a pool, and for `gold`, the file with the"
        " ids of translations",
    )
    place: AnyPlace | None = Field(
        None,
        description="a place that a package reads, by its `kind`, such as `{kind: sqlite, database: mine.db}`: docs/how-to/origin.md",
    )
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
    def _one_origin(self) -> Self:
        if (self.hub, self.local, self.place).count(None) != 2:
            raise ValueError("data come from either `hub` or `local`, or from a `place` of a package: give exactly one")
        if self.files and not self.hub:
            raise ValueError(
                "`files` are in a repository on the Hub: leave it out, and give `local` the path of your files"
            )
        for key, names in _BRACES.items():
            for name in re.findall(r"\{(.*?)\}", getattr(self, key) or ""):
                if name not in names:
                    raise ValueError(unknown(f"name in the braces of `{key}`", name, names))
        read_types = (*formats.TABLES, formats.LINES)
        # Without an end of its name, or with one that {split} fills in, only the path of a file tells its type.
        if (kind := formats.type_of(self.local or "")) and "{" not in kind and kind not in read_types:
            raise ValueError(f"`local` names files of an unknown type, {kind}: expected {formats.listed(read_types)}")
        for key, types, what in (
            ("columns", _NAMELESS, "names the columns of files without a header"),
            ("quotes", _DELIMITED, "is about values"),
            ("missing", _DELIMITED, "is about values"),
        ):
            if getattr(self, key) is None:
                continue
            if (path := self.local or self.files) is None:
                raise ValueError(f"`{key}` {what} in `local` or `files`, of which there is none: leave it out")
            if formats.type_of(path) not in types:
                raise ValueError(f"`{key}` {what} in {', '.join(types)}, and {path} is of another type: leave it out")
        read = [name for name in self.columns or () if name != formats.UNREAD]
        if self.columns is not None and len({*read}) < max(1, len(read)):
            raise ValueError(
                f"`columns` names each column that is read once, and the others _, got {', '.join(self.columns) or 'nothing'}"
            )
        if self.has_parts and (self.rename or self.where or self.begins):
            raise ValueError(
                "the files of `{part}` have no columns to select by or to rename: leave out `where`, `begins` and `rename`"
            )
        doubles = {new for new in self.rename.values() if [*self.rename.values()].count(new) > 1}
        if doubles:
            raise ValueError(f"`rename` gives {min(doubles)!r} to two columns: a name is for one")
        return self

    def named(self, split: str) -> str:
        """The source's name of a split."""
        usual = "validation" if self.hub and split == "dev" else split
        return next((name for key, name in self.splits.items() if key == split), usual)

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
        """Whether the source has a pair as such.

        One local file of a pair is enough: if another one is missing, the error should name it. Files that are not there yet are of a pair
        if `languages` or `names` list it. A file with the rows of all languages (`begins`) has none of a pair.
        """
        if self.local is None or pair in self.names:
            return pair in self.names
        is_listed = pair in (self.languages or ())
        return not self.begins and (is_listed or any(Path(self.path(pair, split)).exists() for split in SPLITS))

    def configuration(self, language: str) -> str | None:
        """The name of a language's part of the data on the Hub; None for the only one."""
        return self.names.get(language) or (self.name and self.name.replace("{language}", language))

    def renamed(self, language: str) -> dict[str, str]:
        """`rename` for the data of a language or pair."""
        codes = Target(language).languages
        return {
            old.replace("{first}", codes[0]).replace("{second}", codes[-1]): new for old, new in self.rename.items()
        }

    def hub_arguments(self, language: str, split: str) -> dict[str, Any]:
        """The arguments of `datasets.load_dataset` that select a language, besides split and revision."""
        name = self.configuration(language)
        if self.files is None:
            return {"path": self.hub, "name": name}
        pattern = self.files.replace("{name}", name or language).replace("{split}", self.named(split))
        return {"path": self.hub, "data_files": {self.named(split): pattern}}

    def __str__(self) -> str:
        return self.hub or self.local or f"the place of kind {self.place.kind if self.place else None}"

    def named_in_place(self, language: str, split: str) -> tuple[str, str]:
        """The names that a place of a package has for a language and a split."""
        return self.configuration(language) or language, self.named(split)

    @property
    def has_parts(self) -> bool:
        """Whether a split of a pair is in three files, two pools and the gold pairs."""
        return self.local is not None and "{part}" in self.local

    def path(self, language: str, split: str) -> str:
        """The local file of a split in a language."""
        path = str(self.local).replace("{language}", language).replace("{split}", self.named(split))
        return path.replace("{name}", self.configuration(language) or language)

    def reading(self, task: Task | None = None) -> formats.Reading:
        """How the files are read for a task; None for those of text."""
        words = (task.inputs[0], *filter(None, [task.target])) if task and task.head.reads_words else ()
        missing = ("",) if self.missing is None else tuple(self.missing)
        return formats.Reading(tuple(self.columns or ()), self.quotes, missing, words)

    def normalized(self, text: str) -> str:
        """A text in the normalization form of the source."""
        return unicodedata.normalize(self.normalize, text) if self.normalize else text

    def is_file(self, task: Task | None = None) -> bool:
        """Whether a split is files of a repository on the Hub that are read as local files are. `datasets` reads no words, guesses
        the types of values in csv, and takes no settings here."""
        path = self.files or ""
        return formats.type_of(path) in _DELIMITED or bool(self.columns) or formats.has_words(path, self.reading(task))

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


def is_wanted(value: Any, wanted: str | int | float | bool) -> bool:
    """Whether `where` keeps a row with a value: text and numbers are equal if they are written alike."""
    is_text = isinstance(value, str) or isinstance(wanted, str)
    return value is not None and (written(value) == written(wanted) if is_text else value == wanted)


class Teacher(Strict):
    """The run of the study whose model gives labels to rows that have none."""

    task: str = Field(description="a task of words, with the same labels")
    encoder: str = Field(description="the encoder of the run")
    method: str = Field(description="the method of the run, without `start` and `companion`")
    source: Source = Field(description="what the run trains on, which is none of the languages that it labels")
    seed: Seed = Field(1, description="the seed of the run")


class Labelled(Origin):
    """Training sets without labels, in the `languages` that are listed, and the run that labels them (Luo et al. 2021, section 4.1:
    translations of English sentences, labelled by a model that was trained on English).

    Labels in the data are not read.
    """

    by: Teacher = Field(description="the run that labels, which a grid of the study has")

    @model_validator(mode="after")
    def _unlabelled(self) -> Self:
        if not self.languages:
            raise ValueError("`labelled` is for some languages: list them in it as `languages`")
        if self.labels:
            raise ValueError("`labelled` has the labels that the run under `by` gives: leave out `labels`")
        return self


class DataSource(Origin):
    """The place of the test set and, unless `train` and `dev` name others, of the training and dev sets:
    `{hub: google/xquad, name: "xquad.{language}", splits: {test: validation}, train: {hub: rajpurkar/squad, languages: [en]}, dev: ...}`.

    `test` is another place of the test sets in the languages that it lists, and `translated` another place of the training and dev
    sets: `translated: {local: "translations/{language}/{split}.jsonl", languages: [de, fr]}`.
    """

    train: Origin | None = Field(None, description="another place of the training set; absent: that of the test set")
    dev: Origin | None = Field(None, description="another place of the dev set; absent: that of the test set")

    test: Origin | None = Field(None, description="another place of the test sets in the `languages` that it lists")
    labelled: Labelled | None = Field(
        None,
        description="training sets without labels in the `languages` that it lists, and the run of the study that labels them",
    )
    translated: Origin | None = Field(
        None,
        description="another place of the training and dev sets in the `languages` that it lists, such as translations",
    )

    @model_validator(mode="after")
    def _of_some(self) -> Self:
        for name, origin in (("test", self.test), ("translated", self.translated)):
            if origin and not origin.languages:
                raise ValueError(
                    f"`{name}` is for some languages: list them in it as `languages`, or write it in place of all"
                )
        return self

    def of(self, split: str, language: str) -> Origin:
        """The origin of a split in a language."""
        if (labelled := self.labelled_in(split, language)) is not None:
            return labelled
        of_some = self.test if split == "test" else self.translated
        other = of_some if of_some and of_some.has(language) else {"train": self.train, "dev": self.dev}.get(split)
        fields = {name: getattr(self, name) for name in self.model_fields_set & Origin.model_fields.keys()}
        origin = other or Origin(**fields)
        is_repaired = split == "train" or not origin.misplaced
        return origin if is_repaired else origin.model_copy(update={"misplaced": None})

    def labelled_in(self, split: str, language: str) -> Labelled | None:
        """The origin of a split in a language, if a run of the study labels it."""
        return self.labelled if self.labelled and split == "train" and self.labelled.has(language) else None

    def check_task(self, task: Task) -> None:
        """Raise ValueError if settings of a split do not suit a task, or a run should give labels that it cannot give."""
        super().check_task(task)
        if self.labelled and not task.head.can_label:
            raise ValueError(
                f"`labelled` is for tasks with a label for each word, and {task.name} is none: give the training data as `train`"
            )
        for origin in filter(None, (self.train, self.dev, self.test, self.translated)):
            origin.check_task(task)


def local_files(source: Origin, language: str, split: str, has_pairs_only: bool = False) -> list[str]:
    """The files from which a split in a language or pair is read: none if it comes from the Hub, two if a pair is joined, three
    if it is in parts.

    Args:
        has_pairs_only: see `xlgrid.heads.head.Head`; pairs are never joined.
    """
    if source.hub:
        return []
    if source.has_parts:
        parts = (*Target(language).languages, GOLD)
        return [source.path(language, split).replace("{part}", part) for part in parts]
    codes = (language,) if has_pairs_only or source.has_pair(language) else Target(language).languages
    if source.place:
        return [file for code in codes for file in source.place.files(*source.named_in_place(code, split))]
    return [source.path(code, split) for code in codes]


def no_data(name: str, source: Origin, split: str, language: str) -> str:
    """The error that the source of a split does not have a language, and what to do."""
    others = "" if split == "test" else f", or give `data.{split}` another source"
    return (
        f"{name} has no {split} data in {language}: {source}, where they come from, has "
        f"{', '.join(source.known or ())} only, as its {'languages' if source.languages else 'names'} say: use one of "
        f"these{others}"
    )
