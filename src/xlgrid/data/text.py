"""Plain text to pre-train encoders on; the same id means the same in all natural and in all artificial languages."""

from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, Self
from typing import Literal as OneOf

from pydantic import Field, PositiveInt, model_validator

from xlgrid.base.files import whole, write_text
from xlgrid.base.settings import Strict
from xlgrid.data import formats, streams
from xlgrid.data.sources import Origin
from xlgrid.languages import language as known_language
from xlgrid.synthetic import natural, world
from xlgrid.synthetic.artificial import artificial, is_artificial
from xlgrid.synthetic.logic import IS_A, VARIABLE, Literal, Rule

# Characters of fetched text that are held in memory before they are written, as a row group.
_GROUP = 2**23


class TextOptions(Strict):
    """Words of the natural languages' texts: the first so many concepts of each kind, see `natural.concepts`."""

    persons: int = Field(default=8, ge=0, le=8)
    animals: int = Field(default=10, ge=0, le=10)
    attributes: int = Field(default=16, ge=3, le=16)
    relations: int = Field(default=8, ge=0, le=8)
    relational: float = Field(default=0.5, ge=0, le=1, description="share of texts about animals and relations")
    facts: tuple[int, int] = Field(default=(2, 4), description="least and most facts before the statements about them")
    statements: int = Field(default=1, ge=0, description="statements at the end that follow from the facts")
    rules: float = Field(default=0.3, ge=0, le=1, description="share of texts that have a rule")
    taxonomy: float = Field(default=0, ge=0, le=1, description="share of texts that tell who is what instead")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if not 1 <= self.facts[0] <= self.facts[1]:
            raise ValueError(f"facts must be (least, most) with 1 <= least <= most, got {self.facts}")
        return self


class TextSettings(Strict):
    """Text in every language of a study: the same settings give the same meanings in all of one kind.

    Natural languages may have text of the Hub or of one's own files instead. Parallel text: with the data of XNLI and
    `column: premise`, the training premises (Foroutan et al. 2023, section 4.2). Wikipedia, of which so much is read as
    `most_characters` asks for and nothing more (Pfeiffer et al. 2020, section 5):

        text:
          data: {hub: wikimedia/wikipedia, name: "20231101.{language}"}
          column: text
          most_characters: 100_000_000

    A language of one's own, natural or artificial, has a file of its own, and the others what the study has for them:
    `files: {xx: path/to/my.txt}`.
    """

    sentences: PositiveInt = Field(default=6000, description="rows of generated text")
    seed: int = 0
    dials: dict[OneOf["overlap", "loans", "distance"], float] = Field(default={}, description="of artificial languages")
    options: TextOptions = Field(default=TextOptions(), description="of natural languages, where generated")
    data: Origin | None = Field(
        default=None, description="of natural languages; absent: generated; `local` may end in .txt or .txt.gz too"
    )
    files: dict[str, str] = Field(
        default={}, description="language: its file, of the types of `data`; wins over `data` and over generated text"
    )
    column: str | None = Field(
        default=None, description="of `data` and `files`, with the text; not of .txt, of which a line is a row"
    )
    most_characters: PositiveInt | None = Field(
        default=None, description="of a fetched text in a language: its first rows that together have no more"
    )
    once: str | None = Field(
        default=None, description="language; of the rows of `data` with one text in it, only the first is kept"
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for code, path in self.files.items():
            if not path.endswith(formats.TYPES):
                raise ValueError(f"`files.{code}` is {path}: expected a file that ends in {', '.join(formats.TYPES)}")
        paths = [*self.files.values(), *([str(self.data.local)] if self.data else [])]
        if all(map(formats.is_lines, paths)) != (self.column is None):
            raise ValueError(
                "`data` and `column` go together: where the text comes from, and which of its columns it is; so do `files` "
                "and `column`, but plain text (.txt) has none"
            )
        if self.once and self.data is None:
            raise ValueError("`once` selects rows of `data`, and generated text has none: leave it out")
        if self.data and self.data.labels:
            raise ValueError("`labels` is for tasks, text has none: leave it out")
        return self

    def fetches(self, language: str) -> bool:
        """Whether the text in a language is fetched, not generated."""
        return language in self.files or (self.data is not None and not is_artificial(language))

    def local_files(self, language: str) -> list[str]:
        """The files of one's own from which the text in a language is read: none if it is generated or from the Hub."""
        if language in self.files:
            return [self.files[language]]
        if not self.fetches(language) or self.data is None or self.data.hub:
            return []
        # `once` compares the rows with those of another language.
        return [self.data.path(code, "train") for code in dict.fromkeys([language, *filter(None, [self.once])])]

    def concerning(self, language: str) -> dict[str, Any]:
        """What of these settings the text in a language depends on, as JSON has it: others do not make it anew."""
        told = self.model_dump(mode="json", exclude_defaults=True)
        if language in self.files:
            names = ["files", "most_characters"] + ["column"] * (not formats.is_lines(self.files[language]))
            told["files"] = {language: self.files[language]}
        elif self.fetches(language):
            names = ["data", "column", "most_characters", "once"]
        else:
            names = ["sentences", "seed", "dials", "options"]
        return {name: value for name, value in told.items() if name in names}


def make_text(
    language: str, out: str | Path, settings: TextSettings | None = None, lock: str | Path | None = None
) -> None:
    """Write a parquet file with the columns `id` and `text`; with a name in .txt, generated text alone, a line a row.

    An artificial language tells facts of its world, one sentence a row. A natural one tells a short theory a row:
    facts, perhaps a rule, and on a line of their own statements that follow from the facts, some negated. Masked words
    of these can be looked up in the facts, which is what reasoning over text needs most. A share of `taxonomy` tell who
    is what and which classes have an attribute, and at the end who else is what, or has that attribute as one of a
    class: most masked words of these cannot be looked up and have to be known. Ids are 0, 1, ...

    Fetched text is that of the training split, its ids are the numbers of the rows, so row i must say the same in every
    language where texts are paired. XNLI repeats a premise for up to three hypotheses, not in rows that follow each
    other. `once: en` keeps, in every language alike, the rows whose English text stands in no row before: ids stay
    parallel even if a translator wrote one sentence in two ways, or two in one. Without it, memory does not grow with
    the text; long work says on stderr how far it is.

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
        found, where = _fetched(language, settings, lock)
        with closing(found), whole(out) as aside:
            _write(found, where, settings.most_characters, aside)
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
        speaker = artificial(language, **settings.dials)
        return [speaker.sentence(fact) for fact in world.facts(settings.sentences, settings.seed)]
    lexicon = natural.lexicon(language)
    return list(_theories(lexicon, settings.sentences, settings.seed, settings.options))


def _fetched(
    language: str, settings: TextSettings, lock: str | Path | None
) -> tuple[Generator[tuple[int, str], None, None], str]:
    """Ids and texts, and a name for where they are from in messages."""
    if language in settings.files:
        own = Origin.model_validate({"local": settings.files[language]})
        return _texts(own, language, settings, lock)
    assert settings.data
    found, where = _texts(settings.data, language, settings, lock)
    if not settings.once:
        return found, where
    return _parallel(found, where, *_texts(settings.data, settings.once, settings, lock)), where


def _texts(
    source: Origin, language: str, settings: TextSettings, lock: str | Path | None
) -> tuple[Generator[tuple[int, str], None, None], str]:
    if source.hub and lock is None:
        raise ValueError(f"text from the Hub ({source.hub}) takes a lock file: pass --lock")
    column = formats.COLUMN if formats.is_lines(source.local) else str(settings.column)
    found, where = streams.stream(source, column, language, "train", lock or "")
    return _checked(found, where, column), where


def _checked(
    found: Generator[tuple[int, Any], None, None], where: str, column: str
) -> Generator[tuple[int, str], None, None]:
    number = None
    with closing(found):
        for number, text in found:
            if not isinstance(text, str):
                raise ValueError(f"{where}, row {number}, column {column!r}: expected text, got {text!r}")
            yield number, text
    if number is None:
        raise ValueError(f"{where} has no rows: check the source of the text, its `where` and its language")


def _parallel(
    found: Generator[tuple[int, str], None, None],
    where: str,
    others: Generator[tuple[int, str], None, None],
    place: str,
) -> Generator[tuple[int, str], None, None]:
    """The rows whose text in `others` stands in none before."""
    with closing(found), closing(others):
        first: dict[str, int] = {}
        rows = told = 0
        for number, text in others:
            first.setdefault(text, number)
            told += 1
        chosen = set(first.values())
        for number, text in found:
            if number in chosen:
                yield number, text
            rows += 1
    if rows != told:
        raise ValueError(f"texts are parallel, but {where} has {rows} rows and {place} has {told}")


def _write(found: Iterator[tuple[int, str]], where: str, most: int | None, path: Path) -> None:
    """Write ids and texts, as many as have at most so many characters."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("id", pa.int32()), ("text", pa.string())])
    progress = streams.Progress()
    ids: list[int] = []
    texts: list[str] = []
    rows = characters = held = 0
    with pq.ParquetWriter(path, schema) as writer:
        for number, text in found:
            if most and characters + len(text) > most:
                if not rows:
                    raise ValueError(f"{where}, row {number} has {len(text)} characters: raise most_characters, {most}")
                break
            ids.append(number)
            texts.append(text)
            rows, characters, held = rows + 1, characters + len(text), held + len(text)
            if held >= _GROUP:
                writer.write_table(pa.table([ids, texts], schema=schema))
                ids, texts, held = [], [], 0
            if progress.due():
                progress.say(f"{where}: {rows:,} rows, {characters:,} characters")
        if ids:
            writer.write_table(pa.table([ids, texts], schema=schema))
    progress.say(f"{where}: {rows:,} rows, {characters:,} characters in all")


def _theories(lexicon: natural.Lexicon, n: int, seed: int, options: TextOptions) -> Iterator[str]:
    rng = Random(f"text {seed}")
    known = natural.concepts()
    persons, animals = known.persons[: options.persons], known.animals[: options.animals]
    attributes, relations = known.attributes[: options.attributes], known.relations[: options.relations]
    for _ in range(n):
        if options.taxonomy and rng.random() < options.taxonomy:
            yield _kinds(lexicon, rng, options)
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
        said = [lexicon.statement(fact) for fact in facts]
        if rng.random() < options.rules:
            # It concludes nothing that the statements are about, so that these follow from the facts alone.
            after = rng.choice([a for a in attributes if all(a != literal.predicate for literal in pool)])
            before = rng.choice([a for a in attributes if a != after])
            conditions = (Literal(before, VARIABLE, positive=rng.random() < 0.8),)
            said.append(lexicon.rule(Rule(conditions, Literal(after, VARIABLE))))
        rng.shuffle(said)
        about_facts = []
        for _ in range(options.statements):
            true = rng.random() < 0.5
            about = rng.choice(facts) if true else rng.choice(others)._replace(positive=False)
            about_facts.append(lexicon.statement(about))
        yield "\n".join(lexicon.join(paragraph) for paragraph in (said, about_facts) if paragraph)


def _kinds(lexicon: natural.Lexicon, rng: Random, options: TextOptions) -> str:
    classes = natural.taxonomy()
    kinds = {name: kind for kind, members in classes.items() for name in members}

    def hypernymy(name: str) -> Literal:
        positive = rng.random() < 0.75
        wrong = rng.choice([kind for kind in classes if kind != kinds[name]])
        return Literal(IS_A, name, kinds[name] if positive else wrong, positive)

    attribute = rng.choice(natural.concepts().attributes[: options.attributes])
    has, lacks = rng.sample(list(classes), 2)
    facts = [Literal(attribute, has), Literal(attribute, lacks, positive=False)]
    facts += [hypernymy(name) for name in rng.sample(list(kinds), min(rng.randint(*options.facts), len(kinds)))]
    rng.shuffle(facts)
    about = []
    for _ in range(options.statements):
        positive = rng.random() < 0.5
        holds = Literal(attribute, rng.choice(classes[has if positive else lacks]), positive=positive)
        about.append(holds if rng.random() < 0.5 else hypernymy(rng.choice(list(kinds))))
    told = [[lexicon.statement(literal) for literal in literals] for literals in (facts, about)]
    return "\n".join(lexicon.join(paragraph) for paragraph in told if paragraph)
