"""XQuAD: the span of a context that answers a question (Artetxe et al. 2020; SQuAD, Rajpurkar et al. 2016), here told by
artificial languages: who, what or where was it in one of several facts?

Columns are those of the Hub's google/xquad and rajpurkar/squad, which XQuAD is trained on in English:
`data: {hub: google/xquad, name: "xquad.{language}", splits: {test: validation}, train: &squad {hub: rajpurkar/squad,
languages: [en]}, dev: *squad}`. In a pair (`qa1-qb1`) the context is in the first language and the question in the second.
"""

import hashlib
import json
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from pydantic import Field

from xlgrid.languages.sources import Target
from xlgrid.synthetic import world
from xlgrid.synthetic.artificial import artificial
from xlgrid.synthetic.world import Fact, Phrase
from xlgrid.tasks import wikiann
from xlgrid.tasks.wikiann import group, speaks

__all__ = ["COLUMNS", "LABELS", "Options", "examples", "from_json", "group", "row", "speaks", "to_json"]

LABELS = ()
COLUMNS = ("id", "context", "question", "answers")
# What asks for a named entity, by its type.
ASKS = {"PER": "who", "LOC": "where", "ORG": "what"}
# Contexts of a split take their facts from so many for each of their sentences, and some more.
_POOL, _MORE = 2, 60


class Options(wikiann.Options):
    """What contexts of artificial languages are made of; the dials are explained at `xlgrid.synthetic.artificial`."""

    n: int = Field(10_000, gt=0, description="questions in all three splits, one for each context")
    sentences: int = Field(3, ge=1, le=8, description="facts of a context, no two with one verb")


class Question(NamedTuple):
    """Facts of a context, the number of the one asked about, and the named entity of it that is asked for."""

    facts: tuple[Fact, ...]
    asked: int
    entity: str


def examples(options: Options, sizes: Sequence[int]) -> list[Question]:
    """`sum(sizes)` questions, those of the training split first; no two splits share a fact.

    Raises:
        ValueError: there are too few facts for so many.
    """
    pools = [size * options.sentences * _POOL + _MORE if size else 0 for size in sizes]
    facts = wikiann.draw(options, pools, named=True)
    rng = Random(f"xquad {options.seed}")
    found: list[Question] = []
    for size, pool in zip(sizes, pools, strict=True):
        told, facts = facts[:pool], facts[pool:]
        asked = [(fact, name) for fact in told if (name := _asked_for(fact, rng))]
        if len(asked) < size:
            raise ValueError(f"only {len(asked)} of {pool} facts can be asked about, {size} are needed: lower n")
        found += [_among(fact, name, told, options.sentences, rng) for fact, name in asked[:size]]
    return found


def _asked_for(fact: Fact, rng: Random) -> str | None:
    """A named entity of a fact that a question can ask for: it is there once, and there is more to know it by."""
    own = [phrase for phrase in (*fact.agents, fact.patient, *(phrase for _, phrase in fact.obliques)) if phrase]
    named = world.mentions(fact)
    known = world.entities()
    names = [phrase.head for phrase in own if phrase.head in known and named.count(phrase.head) == 1]
    return rng.choice(names) if names and len(own) > 1 and not fact.content else None


def _among(fact: Fact, name: str, told: Sequence[Fact], sentences: int, rng: Random) -> Question:
    """A question about a fact, in a context with others that have other verbs, in random order."""
    chosen = {fact.predicate: fact}
    while len(chosen) < sentences:
        other = rng.choice(told)
        chosen.setdefault(other.predicate, other)
    facts = list(chosen.values())
    rng.shuffle(facts)
    return Question(tuple(facts), facts.index(fact), name)


def row(question: Question, language: str, options: Options) -> dict[str, Any]:
    """One question. The answer is the entity's name as the context has it, its ending included.

    Raises:
        ValueError: `language` is no artificial language, or pair of them.
    """
    codes = Target(language).languages
    told, asks = (artificial(code, options.overlap, options.loans, options.distance) for code in (codes[0], codes[-1]))
    fact = question.facts[question.asked]
    sentences = [told.sentence(each) for each in question.facts]
    start, end = told.mention(fact, question.entity)
    before = sum(len(sentence) + 1 for sentence in sentences[: question.asked])
    answers = {"text": [sentences[question.asked][start:end]], "answer_start": [before + start]}
    return {
        "id": hashlib.sha256(to_json(question).encode()).hexdigest()[:16],
        "context": " ".join(sentences),
        "question": asks.sentence(_with(fact, question.entity)),
        "answers": answers,
    }


def _with(fact: Fact, entity: str) -> Fact:
    """The fact with a question word in the place of an entity."""
    word = ASKS[world.entities()[entity].type]

    def put(phrase: Phrase) -> Phrase:
        return Phrase(word) if phrase.head == entity else phrase

    return fact._replace(
        agents=tuple(put(agent) for agent in fact.agents),
        patient=fact.patient and put(fact.patient),
        obliques=tuple((relation, put(phrase)) for relation, phrase in fact.obliques),
    )


def to_json(question: Question) -> str:
    """A question as one line of JSON."""
    facts = [world.to_json(fact) for fact in question.facts]
    return json.dumps([facts, question.asked, question.entity], separators=(",", ":"))


def from_json(text: str) -> Question:
    """The question written by `to_json`.

    Raises:
        ValueError: the text is not JSON or no question.
    """
    try:
        facts, asked, entity = json.loads(text)
        return Question(tuple(world.from_json(fact) for fact in facts), asked, entity)
    except (TypeError, ValueError) as error:
        raise ValueError(f"not a question written by to_json: {text[:80]!r} ({error})") from error
