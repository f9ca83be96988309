"""Plain text to pre-train encoders on; texts with one id are parallel in all natural, and in all artificial languages."""

import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, Self

from pydantic import Field, PositiveInt, model_validator

from xlgrid.base.files import whole, write_text
from xlgrid.base.settings import LocalPath, Seed, Strict
from xlgrid.data import formats, streams
from xlgrid.data.sources import Origin
from xlgrid.languages import language as known_language
from xlgrid.synthetic import natural, world
from xlgrid.synthetic.artificial import Dials, is_artificial
from xlgrid.synthetic.customs import Customs, customs
from xlgrid.synthetic.logic import IS_A, VARIABLE, Literal, Rule

# Characters of fetched text that are kept in memory until they are written as a row group.
_GROUP = 2**23
# The entry of a fetched text's metadata with its `End`, unless the text was cut before.
END = "xlgrid end"


class End(NamedTuple):
    """Where a text ends.

    Attributes:
        row: the number of its last row, -1 without rows.
        text: the number of its last row with text.
    """

    row: int = -1
    text: int = -1

    def after(self, number: int, text: str) -> "End":
        """The end after one more row."""
        return End(number, number if text.strip() else self.text)


def differ(ends: Sequence[End]) -> bool:
    """Whether one of several parallel texts has text after the last row of another one."""
    return max(end.text for end in ends) > min(end.row for end in ends)


class TextOptions(Strict):
    """Content of generated texts in natural languages. Numbers of words select the first words of a lexicon."""

    persons: int = Field(default=8, ge=0, le=8, description="names of persons")
    animals: int = Field(default=10, ge=0, le=10, description="nouns for animals")
    attributes: int = Field(default=16, ge=3, le=16, description="adjectives")
    relations: int = Field(default=8, ge=0, le=8, description="verbs between two animals")
    relational: float = Field(default=0.5, ge=0, le=1, description="share of texts about animals and relations")
    facts: tuple[int, int] = Field(default=(2, 4), description="least and most facts of a text")
    statements: int = Field(default=1, ge=0, description="statements at the end of a text that follow from its facts")
    rules: float = Field(default=0.3, ge=0, le=1, description="share of texts that have a rule")
    taxonomy: float = Field(default=0, ge=0, le=1, description="share of texts about the taxonomy instead")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if not 1 <= self.facts[0] <= self.facts[1]:
            raise ValueError(f"facts must be (least, most) with 1 <= least <= most, got {self.facts}")
        return self


class TextSettings(Strict):
    """Text in every language of a study: generated text has the same meanings in all languages of one kind.

    Natural languages may have text from the Hub or from local files instead. The data of XNLI with `column: premise` are
    parallel text, the training premises (Foroutan et al. 2023, section 4.2). This is Wikipedia, of which no more is
    downloaded than `most_characters` in each language (Pfeiffer et al. 2020, section 5):

        text:
          data: {hub: wikimedia/wikipedia, name: "20231101.{language}"}
          column: text
          most_characters: 100_000_000

    These are the files of CC-100 as released, `en.txt.xz` and so on, in which an empty line ends a document:

        text: {data: {local: "cc100/{language}.txt.xz"}, documents: true}

    A language that only you have text for, natural or artificial, has a file in `files: {xx: path/to/my.txt}`.
    """

    sentences: PositiveInt = Field(default=6000, description="rows of a generated text")
    seed: Seed = Field(
        default=1,
        description="decides the generated texts. Text in artificial languages, with more rows than the `n` of a generated task of the same "
        "seed, contains all sentences of its test set; with another seed, about one in ten. Tasks have seed 0 by default",
    )
    dials: Dials = Field(default=Dials(), description="how much the artificial languages of generated texts differ")
    customs: Customs = Field(
        default=Customs(),
        description="facts that hold in one artificial language only; texts with customs are not parallel",
    )
    options: TextOptions = Field(default=TextOptions(), description="content of generated texts in natural languages")
    data: Origin | None = Field(
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
        description="a language; of the rows of `data` whose texts in this language are equal, keep the first only",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for code, path in self.files.items():
            if formats.type_of(path) not in formats.STREAMED:
                raise ValueError(
                    f"`files.{code}` is {path}: expected a file that ends in {formats.listed(formats.STREAMED)}"
                )
        paths = [*self.files.values(), *([str(self.data.local)] if self.data else [])]
        if all(map(formats.is_lines, paths)) != (self.column is None):
            raise ValueError(
                "`data` and `column` go together: where the text comes from, and which of its columns it is; so do `files` "
                "and `column`, but plain text (.txt) has none"
            )
        if self.documents and (self.column or not paths):
            raise ValueError("`documents` is about plain text (.txt), and there is none: leave it out")
        if self.once and self.data is None:
            raise ValueError("`once` selects rows of `data`, and generated text has none: leave it out")
        of_tasks = ("place", "labels", "begins", "unanswerable", "misplaced", "missing")
        if self.data and any(getattr(self.data, name) for name in of_tasks):
            raise ValueError(
                f"{', '.join(f'`{name}`' for name in of_tasks)} are for tasks, not for text: leave them out"
            )
        return self

    def fetches(self, language: str) -> bool:
        """Whether the text in a language is fetched, not generated."""
        return language in self.files or (self.data is not None and not is_artificial(language))

    def is_from_hub(self, language: str) -> bool:
        """Whether the text in a language is downloaded from the Hub."""
        return self.fetches(language) and not self.local_files(language)

    def local_files(self, language: str) -> list[str]:
        """The local files from which the text in a language is read: none if it is generated or from the Hub."""
        if language in self.files:
            return [self.files[language]]
        if not self.fetches(language) or self.data is None or self.data.hub:
            return []
        # `once` compares the rows with those of another language.
        return [self.data.path(code, "train") for code in dict.fromkeys([language, *filter(None, [self.once])])]

    def concerning(self, language: str) -> dict[str, Any]:
        """The settings on which the text in a language depends, as JSON; a change of others does not make the text again."""
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
            # The seed is stated because its default was once another one, of which there may be results.
            settings["seed"] = self.seed
        # The order is that of the fields, because the settings are compared as text.
        return {name: settings[name] for name in type(self).model_fields if name in names and name in settings}


def make_text(
    language: str, out: str | Path, settings: TextSettings | None = None, lock: str | Path | None = None
) -> None:
    """Write a parquet file with the columns `id` and `text`; a name in .txt gets the sentences of an artificial language.

    A row in an artificial language is a sentence that states a fact of the world, or a custom of the language. A row in a natural language is a short
    theory: facts, perhaps a rule, and on a line of their own statements that follow from the facts, some of them negated.
    Masked words of these statements can be looked up in the facts, which an encoder learns for reasoning over text. A
    share `taxonomy` of the rows state the classes of members and the attributes of classes instead, and at the end the
    classes or attributes of further members: most of their masked words cannot be looked up, and the encoder has to know
    them. Ids are 0, 1, ...

    Fetched text is that of the training split, and ids are the numbers of its rows, of which those without text are left out. Where texts are paired, row i must be
    parallel in all languages. XNLI repeats a premise for up to three hypotheses, in rows that are apart. `once: en` keeps
    the rows whose English text occurs in no earlier row, the same rows in every language, and numbers them, so that ids stay parallel even
    if a translator rendered one sentence in two ways, or two sentences alike. Without `once`, memory does not grow with
    the text. Long work prints its progress on stderr.

    Args:
        language: a code.
        out: where to write.
        settings: None for the defaults.
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
    texts = _generated(language, settings)
    if lines:
        write_text(out, "".join(f"{text}\n" for text in texts))
        return
    table = pa.table({"id": pa.array(range(len(texts)), pa.int32()), "text": texts})
    with whole(out) as aside:
        pq.write_table(table, aside)


def _generated(language: str, settings: TextSettings) -> list[str]:
    if is_artificial(language):
        speaker = settings.dials.language(language)
        return [speaker.sentence(fact) for fact in _facts(language, settings)]
    lexicon = natural.lexicon(language)
    return list(_theories(lexicon, settings.sentences, settings.seed, settings.options))


def _facts(language: str, settings: TextSettings) -> list[world.Fact]:
    """The fact that each row of a text in an artificial language states: one of the world, or a custom of the language."""
    facts = world.facts(settings.sentences, settings.seed)
    if not settings.customs.facts:
        return facts
    known = customs(language, settings.customs.facts)
    rng = Random(f"customs {settings.seed} {language}")
    return [rng.choice(known) if rng.random() < settings.customs.share else fact for fact in facts]


def fetched_text(
    language: str, settings: TextSettings, lock: str | Path | None
) -> tuple[Generator[tuple[int, str], None, None], str]:
    """Ids and texts of a language, read as they are asked for; and a name of their source for messages.

    `most_characters` is not applied, and a row without text, such as an empty line, has its id.

    Raises:
        FileNotFoundError: a local file does not exist.
        ValueError: as `xlgrid.data.streams.stream`; text from the Hub has no lock file.
    """
    if language in settings.files:
        file = Origin.model_validate({"local": settings.files[language]})
        return _texts(file, language, settings, lock)
    assert settings.data
    numbered, where = _texts(settings.data, language, settings, lock)
    if not settings.once:
        return numbered, where
    return _parallel(numbered, where, *_texts(settings.data, settings.once, settings, lock)), where


def _texts(
    source: Origin, language: str, settings: TextSettings, lock: str | Path | None
) -> tuple[Generator[tuple[int, str], None, None], str]:
    if source.hub and lock is None:
        raise ValueError(f"text from the Hub ({source.hub}) takes a lock file: pass --lock")
    column = formats.COLUMN if formats.is_lines(source.local) else str(settings.column)
    numbered, where = streams.stream(source, column, language, "train", lock or "", settings.documents)
    return _checked(numbered, where, column), where


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
    """The rows whose text in `compared`, a parallel text, occurs in no earlier row; their ids are 0, 1, ..."""
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
    """Write the leading ids and texts that have at most `most` characters together, without rows that have no text."""
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


def _theories(lexicon: natural.Lexicon, n: int, seed: int, options: TextOptions) -> Iterator[str]:
    """`n` texts: facts and perhaps a rule, and statements that follow from the facts, a paragraph each."""
    rng = Random(f"text {seed}")
    known = natural.concepts()
    persons, animals = known.persons[: options.persons], known.animals[: options.animals]
    attributes, relations = known.attributes[: options.attributes], known.relations[: options.relations]
    for _ in range(n):
        if options.taxonomy and rng.random() < options.taxonomy:
            yield _taxonomy_text(lexicon, rng, options)
            continue
        relational = bool(relations) and len(animals) > 2 and (rng.random() < options.relational or len(persons) < 2)
        words = animals if relational else persons
        if len(words) < 2:
            raise ValueError("texts take at least 2 persons, or 3 animals and a relation: raise one of these options")
        names = rng.sample(words, min(len(words), rng.randint(2, 3)))
        pool = [Literal(a, name) for a in rng.sample(attributes, 2) for name in names]
        if relational:
            pairs = [(a, b) for a in names for b in names if a != b]
            relation = rng.choice(relations)
            pool += [Literal(relation, a, b) for a, b in rng.sample(pairs, min(3, len(pairs)))]
        rng.shuffle(pool)
        n_facts = min(rng.randint(*options.facts), len(pool) - 1)
        facts, others = pool[:n_facts], pool[n_facts:]
        sentences = [lexicon.statement(fact) for fact in facts]
        if rng.random() < options.rules:
            # The rule concludes an attribute that no statement is about, so that statements follow from the facts alone.
            after = rng.choice([a for a in attributes if all(a != literal.predicate for literal in pool)])
            before = rng.choice([a for a in attributes if a != after])
            conditions = (Literal(before, VARIABLE, positive=rng.random() < 0.8),)
            sentences.append(lexicon.rule(Rule(conditions, Literal(after, VARIABLE))))
        rng.shuffle(sentences)
        statements = []
        for _ in range(options.statements):
            true = rng.random() < 0.5
            about = rng.choice(facts) if true else rng.choice(others)._replace(positive=False)
            statements.append(lexicon.statement(about))
        yield "\n".join(lexicon.join(paragraph) for paragraph in (sentences, statements) if paragraph)


def _taxonomy_text(lexicon: natural.Lexicon, rng: Random, options: TextOptions) -> str:
    """A text about classes, their members and their attributes."""
    classes = natural.taxonomy()
    class_of = {name: class_ for class_, members in classes.items() for name in members}

    def hypernymy(name: str) -> Literal:
        positive = rng.random() < 0.75
        wrong = rng.choice([class_ for class_ in classes if class_ != class_of[name]])
        return Literal(IS_A, name, class_of[name] if positive else wrong, positive)

    attribute = rng.choice(natural.concepts().attributes[: options.attributes])
    has, lacks = rng.sample(list(classes), 2)
    facts = [Literal(attribute, has), Literal(attribute, lacks, positive=False)]
    facts += [hypernymy(name) for name in rng.sample(list(class_of), min(rng.randint(*options.facts), len(class_of)))]
    rng.shuffle(facts)
    statements = []
    for _ in range(options.statements):
        positive = rng.random() < 0.5
        holds = Literal(attribute, rng.choice(classes[has if positive else lacks]), positive=positive)
        statements.append(holds if rng.random() < 0.5 else hypernymy(rng.choice(list(class_of))))
    paragraphs = [[lexicon.statement(literal) for literal in literals] for literals in (facts, statements)]
    return "\n".join(lexicon.join(paragraph) for paragraph in paragraphs if paragraph)
