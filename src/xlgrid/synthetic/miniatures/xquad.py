"""XQuAD: the span of a context that answers a question (Artetxe et al. 2020; SQuAD, Rajpurkar et al. 2016).

The miniature is generated in artificial languages: a context states several facts, and the question asks who, what or
where it was in one of them. Columns are those of the Hub's google/xquad and of rajpurkar/squad, the English training
data: `data: {hub: google/xquad, name: "xquad.{language}", splits: {test: validation}, train: &squad {hub:
rajpurkar/squad, languages: [en]}, dev: *squad}`. A pair (`qa1-qb1`) has the context in the first language and the
question in the second.
"""

import hashlib
import json
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from pydantic import Field

from xlgrid.synthetic import world
from xlgrid.synthetic.miniatures import wikiann
from xlgrid.synthetic.miniatures.pairs import sides
from xlgrid.synthetic.miniatures.wikiann import group, speaks
from xlgrid.synthetic.world import Fact, Phrase

__all__ = ["COLUMNS", "LABELS", "Options", "examples", "from_json", "group", "row", "speaks", "to_json"]

LABELS = ()
COLUMNS = ("id", "context", "question", "answers")
# Type of a named entity -> the question word that asks for it.
QUESTION_WORDS = {"PER": "who", "LOC": "where", "ORG": "what"}
# Facts of a context, each with another verb.
_SENTENCES = 3
# A split draws this many facts for each sentence of its contexts, and this many more.
_FACTS_PER_SENTENCE, _MORE_FACTS = 2, 60


class Options(wikiann.Options):
    """The size of the data, and the differences between the artificial languages."""

    n: int = Field(10_000, gt=0, description="number of questions in all three splits, one for each context")


class Question(NamedTuple):
    """A question about a context.

    Attributes:
        facts: the facts of the context.
        asked: the index of the fact that the question is about.
        entity: the named entity that is the answer.
    """

    facts: tuple[Fact, ...]
    asked: int
    entity: str


def examples(options: Options, sizes: Sequence[int]) -> list[Question]:
    """`sum(sizes)` questions, the training split first. No two splits share a fact.

    Raises:
        ValueError: there are too few facts for this many questions.
    """
    pools = [size * _SENTENCES * _FACTS_PER_SENTENCE + _MORE_FACTS if size else 0 for size in sizes]
    facts = wikiann.examples(options, pools)
    rng = Random(f"xquad {options.seed}")
    questions: list[Question] = []
    for size, n_facts in zip(sizes, pools, strict=True):
        pool, facts = facts[:n_facts], facts[n_facts:]
        askable = [(fact, name) for fact in pool if (name := _entity_to_ask_for(fact, rng))]
        if len(askable) < size:
            raise ValueError(
                f"only {len(askable)} of {len(pool)} facts suit a question, but {size} are needed: lower n"
            )
        questions += [_in_context(fact, name, pool, rng) for fact, name in askable[:size]]
    return questions


def _entity_to_ask_for(fact: Fact, rng: Random) -> str | None:
    """A named entity that a question about a fact can ask for; None if the fact has no such entity.

    The fact mentions the entity once. Another argument of the fact lets a reader identify it.
    """
    arguments = [phrase for phrase in (*fact.agents, fact.patient, *(phrase for _, phrase in fact.obliques)) if phrase]
    mentioned = world.mentions(fact)
    entities = world.entities()
    names = [phrase.head for phrase in arguments if phrase.head in entities and mentioned.count(phrase.head) == 1]
    return rng.choice(names) if names and len(arguments) > 1 and not fact.content else None


def _in_context(fact: Fact, entity: str, pool: Sequence[Fact], rng: Random) -> Question:
    """A question about a fact. The context also has facts of the pool with other verbs, in random order."""
    chosen = {fact.predicate: fact}
    while len(chosen) < _SENTENCES:
        other = rng.choice(pool)
        chosen.setdefault(other.predicate, other)
    facts = list(chosen.values())
    rng.shuffle(facts)
    return Question(tuple(facts), facts.index(fact), entity)


def row(question: Question, language: str, options: Options) -> dict[str, Any]:
    """One row of data. The answer is the entity's name in the form that it has in the context, with its ending.

    Raises:
        ValueError: `language` is neither an artificial language nor a pair of artificial languages.
    """
    codes = sides(language)
    context_speaker, question_speaker = options.language(codes[0]), options.language(codes[1])
    fact = question.facts[question.asked]
    sentences = [context_speaker.sentence(each) for each in question.facts]
    start, end = context_speaker.mention(fact, question.entity)
    before = sum(len(sentence) + 1 for sentence in sentences[: question.asked])
    answers = {"text": [sentences[question.asked][start:end]], "answer_start": [before + start]}
    return {
        "id": hashlib.sha256(to_json(question).encode()).hexdigest()[:16],
        "context": " ".join(sentences),
        "question": question_speaker.sentence(_with_question_word(fact, question.entity)),
        "answers": answers,
    }


def _with_question_word(fact: Fact, entity: str) -> Fact:
    """The fact with a question word instead of an entity."""
    word = QUESTION_WORDS[world.entities()[entity].type]

    def replace(phrase: Phrase) -> Phrase:
        return Phrase(word) if phrase.head == entity else phrase

    return fact._replace(
        agents=tuple(replace(agent) for agent in fact.agents),
        patient=fact.patient and replace(fact.patient),
        obliques=tuple((relation, replace(phrase)) for relation, phrase in fact.obliques),
    )


def to_json(question: Question) -> str:
    """A question as one line of JSON."""
    facts = [world.to_json(fact) for fact in question.facts]
    return json.dumps([facts, question.asked, question.entity], separators=(",", ":"))


def from_json(text: str) -> Question:
    """The question that `to_json` wrote."""
    facts, asked, entity = json.loads(text)
    return Question(tuple(world.from_json(fact) for fact in facts), asked, entity)
