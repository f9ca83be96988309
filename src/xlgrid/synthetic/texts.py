"""Generated text: sentences in artificial languages, and short theories in natural languages."""

from collections.abc import Iterator
from random import Random

from pydantic import Field

from xlgrid.base.settings import Strict
from xlgrid.synthetic import natural, world
from xlgrid.synthetic.artificial import Dials, is_artificial
from xlgrid.synthetic.customs import Customs, customs
from xlgrid.synthetic.logic import IS_A, VARIABLE, Literal, Rule

# The least and the most facts of a text.
_FACTS = (2, 4)


class TextOptions(Strict):
    """The content of generated texts in natural languages. Numbers of words select the first words of a lexicon."""

    persons: int = Field(default=8, ge=0, le=8, description="number of names of persons")
    animals: int = Field(default=10, ge=0, le=10, description="number of nouns for animals")
    attributes: int = Field(default=16, ge=3, le=16, description="number of adjectives")
    relations: int = Field(default=8, ge=0, le=8, description="number of verbs between two animals")
    relational: float = Field(default=0.5, ge=0, le=1, description="share of texts about animals and relations")
    statements: int = Field(
        default=1, ge=0, description="number of statements at the end of a text that follow from its facts"
    )
    rules: float = Field(default=0.3, ge=0, le=1, description="share of texts that have a rule")
    taxonomy: float = Field(default=0, ge=0, le=1, description="share of texts about the taxonomy instead")


def generated(language: str, n: int, seed: int, dials: Dials, own: Customs, options: TextOptions) -> list[str]:
    """The `n` rows of a text in a language. Row i has the same meaning in all natural languages, and in all artificial
    languages.

    A row in an artificial language is a sentence that states a fact of the world or a custom of the language. A row in
    a natural language is a short theory: facts, optionally a rule, and on a separate line, statements that follow from
    the facts, some of them negated. The masked words of these statements can be found in the facts, which teaches an
    encoder to reason over text. A share `taxonomy` of the rows instead states the classes of members and the attributes
    of classes and, at the end, the classes or attributes of further members. Most masked words of these rows cannot be
    found in the text, and the encoder has to know them.

    Args:
        dials: the differences between artificial languages.
        own: the facts that hold in one artificial language only.
        options: the content of texts in natural languages.
    """
    if not is_artificial(language):
        return list(_theories(natural.lexicon(language), n, seed, options))
    facts = world.facts(n, seed)
    if own.facts:
        known = customs(language, own.facts)
        rng = Random(f"customs {seed} {language}")
        facts = [rng.choice(known) if rng.random() < own.share else fact for fact in facts]
    speaker = dials.language(language)
    return [speaker.sentence(fact) for fact in facts]


def _theories(lexicon: natural.Lexicon, n: int, seed: int, options: TextOptions) -> Iterator[str]:
    """`n` texts, each with a paragraph of facts and perhaps a rule, and a paragraph of statements that follow."""
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
            raise ValueError("texts need at least 2 persons, or 3 animals and a relation: raise one of these options")
        names = rng.sample(words, min(len(words), rng.randint(2, 3)))
        pool = [Literal(a, name) for a in rng.sample(attributes, 2) for name in names]
        if relational:
            pairs = [(a, b) for a in names for b in names if a != b]
            relation = rng.choice(relations)
            pool += [Literal(relation, a, b) for a, b in rng.sample(pairs, min(3, len(pairs)))]
        rng.shuffle(pool)
        n_facts = min(rng.randint(*_FACTS), len(pool) - 1)
        facts, others = pool[:n_facts], pool[n_facts:]
        sentences = [lexicon.statement(fact) for fact in facts]
        if rng.random() < options.rules:
            # The rule concludes an attribute that is in no statement, so that the statements follow from the facts
            # alone.
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
    facts += [hypernymy(name) for name in rng.sample(list(class_of), min(rng.randint(*_FACTS), len(class_of)))]
    rng.shuffle(facts)
    statements = []
    for _ in range(options.statements):
        positive = rng.random() < 0.5
        holds = Literal(attribute, rng.choice(classes[has if positive else lacks]), positive=positive)
        statements.append(holds if rng.random() < 0.5 else hypernymy(rng.choice(list(class_of))))
    paragraphs = [[lexicon.statement(literal) for literal in literals] for literals in (facts, statements)]
    return "\n".join(lexicon.join(paragraph) for paragraph in paragraphs if paragraph)
