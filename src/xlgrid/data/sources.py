"""The settings that say where the data of a task come from: the Hub, or local files."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from xlgrid.base.names import unknown
from xlgrid.base.settings import Seed, Strict
from xlgrid.data import formats
from xlgrid.heads.head import written
from xlgrid.languages.sources import Source, Target
from xlgrid.tasks import Task

SPLITS = ("train", "dev", "test")
# The part of a split in parts that is no pool.
GOLD = "gold"


# The types of files whose columns may have no names, and those whose values may stand in quotes.
_NAMELESS = (".csv", ".tsv", ".txt", *formats.WORDS)
_QUOTED = (".csv", ".tsv")


def _written_labels(value: Any) -> Any:
    return {written(old): written(new) for old, new in value.items()} if isinstance(value, dict) else value


class Origin(Strict):
    """Where data come from that are not generated: the Hub, at a commit that the lock file fixes, or local files.

    Translations of your own are `local` files: one for each language, with parallel rows, at a path such as
    `translations/{language}/{split}.jsonl`. A pair (en-fr: the first input, such as a context or premise, in English,
    the second in French) is joined from the rows of its two languages, unless the source has the pair as such: in a file
    (`translations/en-fr/train.jsonl`), or as a configuration in `names`.

    A study that extends another replaces its `hub` by `{hub: null, name: null, local: ...}`. Files that were downloaded
    from the Hub keep their names with `splits: {dev: validation}`.
    """

    hub: str | None = Field(None, description="owner/name")
    name: str | None = Field(None, description="configuration on the Hub; {language} stands for the language")
    names: dict[str, str] = Field(
        {}, description="language or pair: its configuration, where `name` is not right; without `name`, these are all"
    )
    revision: str = Field(
        "main",
        description="of `hub`; `refs/convert/parquet` has the files of many data sets whose main branch is a script",
    )
    files: str | None = Field(
        None,
        description="pattern of the files in the repository, for one that declares no configurations; {name} stands for the "
        "configuration of the language, and {split} for the name of the split",
    )
    splits: dict[Literal["train", "dev", "test"], str] = Field(
        {},
        description="split: its name in the source, where this is another; `dev` is `validation` on the Hub by itself",
    )
    local: str | None = Field(
        None,
        description="path of the files, in which {language}, {split} and {name}, the language's entry in `names`, stand; docs/how-to/data.md "
        "lists the types of files. For a task of kind `bucc`, {part} may stand in it: for the languages of a pair, whose files have the "
        "ids and sentences of a pool, and for `gold`, the file of ids of translations",
    )
    columns: list[str] | None = Field(
        None,
        description="names of the columns of files without a header, in their order (csv, tsv, and files with a word on each line); _ is "
        "a column that is not read. Absent: csv and tsv have a header; the word is FORM and its label UPOS in CoNLL-U, and they are the "
        "first and the last column in other files of words",
    )
    quotes: bool | None = Field(
        None,
        description="whether values of csv and tsv may stand in double quotes; absent: in csv, and not in tsv, where a quotation mark is "
        "text",
    )
    unanswerable: Literal["drop"] | None = Field(
        None,
        description="drop leaves out the questions without an answer that SQuAD 2.0 has; absent: they are an error",
    )
    where: dict[str, str | int | float | bool] = Field(
        {}, description="column: value; keeps the rows with these values"
    )
    begins: dict[str, dict[str, str]] | None = Field(
        None,
        description="column: {language: text}; keeps the rows in which the column begins with the text of the language, where one "
        "file has all languages: `{id: {en: english-, sw: swahili-}}`",
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
    ] = Field({}, description="label of the source (text, a number, true or false): label of the task")
    limit: int | None = Field(None, gt=0, description="keep at most this many rows of a split, the first ones")
    languages: list[str] | None = Field(None, description="the languages that the source has; absent: all")

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if (self.hub is None) == (self.local is None):
            raise ValueError("data come from either `hub` or `local`: give exactly one")
        if self.files and not self.hub:
            raise ValueError(
                "`files` are in a repository on the Hub: leave it out, and give `local` the path of your files"
            )
        for key, types, what in (
            ("columns", _NAMELESS, "names the columns of files without a header"),
            ("quotes", _QUOTED, "is about values"),
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

        One local file of a pair is enough: if another one is missing, the error should name it.
        """
        if self.hub:
            return pair in self.names
        return any(Path(self.path(pair, split)).exists() for split in SPLITS)

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
        return formats.Reading(tuple(self.columns or ()), self.quotes, words)

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
        """Raise ValueError if `labels` or `unanswerable` does not suit a task."""
        if self.labels and not task.labels:
            raise ValueError(f"`labels` translates labels, and {task.name} has none: leave it out")
        known = task.head.label_names(task)
        for label in self.labels.values():
            if label not in known:
                raise ValueError(unknown(f"label of {task.name} in `labels`", label, known))
        if self.unanswerable and not task.head.has_answers:
            raise ValueError(f"`unanswerable` is about questions, and {task.name} has none: leave it out")


class Teacher(Strict):
    """The run of the study whose model gives labels to rows that have none."""

    task: str = Field(description="a task of words, with the same labels")
    encoder: str = Field(description="encoder of the study")
    method: str = Field(description="method of the study, without `start` and `companion`")
    source: Source = Field(description="what the run trains on: none of the languages that it labels")
    seed: Seed = Field(1, description="of the run")


class Labelled(Origin):
    """Where rows without labels come from, and the run that labels them: they are the training sets of the `languages` that this
    lists (Luo et al. 2021, section 4.1: translations of English sentences, labelled by a model that was trained on English).

    Columns with labels in the source are not read.
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
    """An `Origin` of the test set and, unless they have one of their own, of the training and dev sets:
    `{hub: google/xquad, name: "xquad.{language}", splits: {test: validation}, train: {hub: rajpurkar/squad, languages: [en]}, dev: ...}`.

    `test` is the origin of the test sets in those languages that it lists, and `translated` that of the training and dev sets:
    `translated: {local: "translations/{language}/{split}.jsonl", languages: [de, fr]}`.
    """

    train: Origin | None = Field(None, description="where the training set comes from; absent: as the test set")
    dev: Origin | None = Field(None, description="where the dev set comes from; absent: as the test set")

    test: Origin | None = Field(None, description="where the test sets of its `languages` come from")
    labelled: Labelled | None = Field(
        None,
        description="where the training sets of its `languages` come from, and the run of the study that labels them",
    )
    translated: Origin | None = Field(
        None, description="where the training and dev sets of its `languages` come from, such as translations"
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
        return other or Origin(**fields)

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
    return [source.path(code, split) for code in codes]


def no_data(name: str, source: Origin, split: str, language: str) -> str:
    """The error that the source of a split does not have a language, and what to do."""
    others = "" if split == "test" else f", or give `data.{split}` another source"
    return (
        f"{name} has no {split} data in {language}: {source.hub or source.local}, where they come from, has "
        f"{', '.join(source.known or ())} only, as its {'languages' if source.languages else 'names'} say: use one of "
        f"these{others}"
    )
