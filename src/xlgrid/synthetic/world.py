"""A small world of facts about named entities and common nouns, which every artificial language can express.

The world is independent of languages. Words are concepts, written as English glosses (`"dog"`, `"big"`), and named
entities are ids (`"per17"`, `"loc3"`, `"org99"`). Two kinds of facts exist:

- *knowledge* (`knowledge()`): lasting facts about the named entities. A person has one birthplace, one home, one
  employer and one profession, an organisation has one seat and one leader;
- *episodes*: single events, with named entities or with unnamed dogs and teachers.

Entities are numbered, and facts relate only entities whose numbers differ by at most REACH.
"""

import json
import random
from functools import cache
from typing import NamedTuple

PER_TYPE = 120  # entities of each type
GIVEN_NAMES = 40
REACH = 5
TYPES = ("PER", "LOC", "ORG")

PROFESSIONS = ("teacher", "doctor", "singer", "farmer", "soldier", "judge", "writer", "student")
KIN = ("brother", "daughter", "friend", "neighbour")
ANIMALS = ("dog", "horse", "bird", "cat", "wolf", "fish")
THINGS = ("book", "stone", "boat", "letter", "apple", "knife", "lamp", "chair", "coin", "drum", "shirt", "wheel")
PLACES = ("market", "garden", "road", "forest", "bridge", "house")
SETTLEMENTS = ("city", "village", "island")
INSTITUTIONS = ("bank", "school", "club", "company", "museum", "party", "union")
NOUNS = PROFESSIONS + KIN + ANIMALS + THINGS + PLACES + SETTLEMENTS + INSTITUTIONS
# The last three also begin names of places: "New York", "Old Delhi".
# fmt: off
ADJECTIVES = (
    "good", "bad", "red", "white", "black", "green", "long", "short", "strong", "weak", "rich", "poor", "happy", "sad",
    "quiet", "famous", "small", "big", "new", "old",
)
# fmt: on
NUMERALS = ("two", "three", "four", "five", "seven", "ten", "hundred")
ADVERBS = ("quickly", "slowly", "gladly", "quietly", "often", "also", "certainly")
TIMES = {
    "yesterday": "past",
    "once": "past",
    "recently": "past",
    "now": "present",
    "today": "present",
    "still": "present",
    "tomorrow": "future",
    "soon": "future",
}
PRONOUNS = {"i": (1, False), "you": (2, False), "she": (3, False), "we": (1, True), "they": (3, True)}  # person, plural
RELATIONS = ("in", "to", "from", "with", "for")  # the relations of an oblique argument to an event


class Frame(NamedTuple):
    """The arguments of a verb in an episode: classes of agents and patients, and one oblique argument.

    A class is an entity type or a key of CLASSES. A class that is written twice is twice as likely.
    """

    agents: str
    patients: str = ""
    relation: str = ""
    obliques: str = ""


CLASSES: dict[str, tuple[str, ...]] = {
    "person": PROFESSIONS,
    "animal": ANIMALS,
    "thing": THINGS,
    "place": PLACES,
    "settlement": SETTLEMENTS,
    "institution": INSTITUTIONS,
    "pronoun": tuple(PRONOUNS),
}

EPISODES = {
    "sleep": Frame("person animal pronoun", "", "in", "LOC place"),
    "laugh": Frame("person pronoun", "", "in", "LOC place"),
    "run": Frame("person animal pronoun", "", "from", "LOC place"),
    "fall": Frame("person animal thing", "", "in", "place"),
    "wait": Frame("person pronoun", "", "for", "PER ORG person"),
    "see": Frame("PER person animal pronoun", "PER LOC ORG person animal thing"),
    "help": Frame("PER ORG ORG person pronoun", "PER ORG ORG person"),
    "follow": Frame("PER person animal", "person animal"),
    "love": Frame("person pronoun", "PER LOC ORG animal"),
    "find": Frame("PER person animal pronoun", "thing", "in", "LOC place"),
    "carry": Frame("PER person animal pronoun", "thing", "to", "LOC ORG place"),
    "break": Frame("person animal pronoun", "thing", "in", "place"),
    "buy": Frame("PER ORG ORG institution", "thing", "from", "ORG institution"),
    "sell": Frame("ORG ORG institution", "thing", "in", "LOC place"),
    "go": Frame("PER person animal pronoun", "", "to", "LOC place"),
    "come": Frame("PER person pronoun", "", "from", "LOC"),
    "speak": Frame("PER person pronoun", "", "with", "PER person"),
    "play": Frame("animal person", "", "with", "thing"),
    "visit": Frame("PER person pronoun", "LOC ORG"),
    "pay": Frame("ORG ORG institution", "PER person"),
}
# Verbs of lasting relations; `be` is the copula and `say` and `know` take another fact as their content.
LASTING = {"born": "past", "live": "present", "work": "present", "lead": "present", "found": "past", "lie": "present"}
LASTING |= {"border": "present", "marry": "past", "be": "present"}
REPORTS = ("say", "know")
VERBS = (*EPISODES, *(verb for verb in LASTING if verb != "be"), *REPORTS)
OPEN_CLASS = NOUNS + ADJECTIVES + VERBS + NUMERALS + ADVERBS + tuple(TIMES)


class Entity(NamedTuple):
    """A named entity: its id, its type (PER, LOC or ORG) and the parts of its name.

    Parts are `given<n>`, `family<n>`, `loc<n>`, `brand<n>` or a concept. A PER has a given and a family name, or only a
    family name. A LOC has a place name, sometimes after an adjective ("New X"). An ORG has a coined brand, or an
    institution with its owner ("Bank of X", where X is a place or a founder's family name).
    """

    id: str
    type: str
    name: tuple[str, ...]


class Phrase(NamedTuple):
    """A noun phrase: its head (an entity id, a noun or a pronoun; after `be` also an adjective) and its modifiers."""

    head: str
    adjective: str | None = None
    numeral: str | None = None
    owner: str | None = None  # an entity id: "the brother of per3"
    definite: bool = False
    plural: bool = False


class Fact(NamedTuple):
    """A fact: who (agents) does what (predicate) to whom (patient) where, with or for whom (obliques), when and how.

    Attributes:
        patient: the object of the verb; for `be`, the predicate noun or adjective.
        obliques: pairs of one of RELATIONS and a phrase.
        tense: past, present or future, in agreement with `time`.
        content: the fact that is said or known.
    """

    predicate: str
    agents: tuple[Phrase, ...]
    patient: Phrase | None = None
    obliques: tuple[tuple[str, Phrase], ...] = ()
    time: str | None = None
    adverb: str | None = None
    tense: str = "present"
    positive: bool = True
    content: "Fact | None" = None


@cache
def entities() -> dict[str, Entity]:
    """All named entities by id, with types in the order of TYPES and numbers in ascending order."""
    rng = random.Random("entities")
    everyone = []
    for i in range(PER_TYPE):
        family = (f"family{i}",)
        everyone.append(Entity(f"per{i}", "PER", (f"given{rng.randrange(GIVEN_NAMES)}", *family) if i % 4 else family))
    for i in range(PER_TYPE):
        place = (f"loc{i}",)
        everyone.append(Entity(f"loc{i}", "LOC", (rng.choice(ADJECTIVES[-3:]), *place) if i % 6 == 3 else place))
    for i in range(PER_TYPE):
        # An organisation is named after an entity with its own number, so that names mention no held-out entities.
        name = ((f"brand{i}",), (rng.choice(INSTITUTIONS), f"loc{i}"), (rng.choice(INSTITUTIONS), f"family{i}"))
        everyone.append(Entity(f"org{i}", "ORG", name[(0, 1, 1, 2, 1)[i % 5]]))
    return {entity.id: entity for entity in everyone}


@cache
def knowledge() -> tuple[Fact, ...]:
    """The lasting facts about the named entities, without times or adverbs; the same in every process."""
    rng = random.Random("knowledge")
    known: list[Fact] = []

    def near(kind: str, i: int) -> Phrase:
        others = [j for j in range(max(0, i - REACH), min(PER_TYPE, i + REACH + 1)) if j != i]
        return Phrase(f"{kind}{rng.choice(others)}")

    def learn(verb: str, agent: Phrase, patient: Phrase | None = None, **obliques: Phrase) -> None:
        pairs = tuple((relation.strip("_"), phrase) for relation, phrase in obliques.items())
        known.append(Fact(verb, (agent,), patient, pairs, tense=LASTING[verb]))

    for i in range(PER_TYPE):
        person, place, organisation = (Phrase(f"{kind}{i}") for kind in ("per", "loc", "org"))
        learn("born", person, in_=near("loc", i))
        learn("live", person, in_=near("loc", i))
        learn("work", person, for_=near("org", i))
        learn("be", person, Phrase(rng.choice(PROFESSIONS)))
        learn("be", person, Phrase(rng.choice(KIN), owner=near("per", i).head, definite=True))
        if i % 2:
            learn("marry", person, Phrase(f"per{i - 1}"))
        name = entities()[f"org{i}"].name
        learn("lie", organisation, in_=place if name[-1] == f"loc{i}" else near("loc", i))
        learn("lead", near("per", i), organisation)
        learn("found", person if name[-1] == f"family{i}" else near("per", i), organisation)
        learn("be", organisation, Phrase(name[0] if len(name) > 1 else rng.choice(INSTITUTIONS)))
        learn("border", place, near("loc", i))
        learn("be", place, Phrase(rng.choice(SETTLEMENTS)))
    return tuple(known)


def _own_phrases(fact: Fact) -> tuple[Phrase, ...]:
    return (*fact.agents, *((fact.patient,) if fact.patient else ()), *(phrase for _, phrase in fact.obliques))


def phrases(fact: Fact) -> tuple[Phrase, ...]:
    """All noun phrases of a fact, including its content."""
    return _own_phrases(fact) + (phrases(fact.content) if fact.content else ())


def mentions(fact: Fact) -> list[str]:
    """The ids of the named entities in a fact, with repetitions."""
    named = [name for phrase in phrases(fact) for name in (phrase.owner, phrase.head) if name]
    return [name for name in named if name in entities()]


def content_words(fact: Fact) -> int:
    """The number of words that every language needs for a fact, without function words and punctuation."""
    known = entities()
    count = (fact.predicate != "be") + (fact.time is not None) + (fact.adverb is not None)
    for phrase in _own_phrases(fact):
        named = [name for name in (phrase.head, phrase.owner) if name]
        count += sum(len(known[name].name) if name in known else 1 for name in named)
        count += (phrase.adjective is not None) + (phrase.numeral is not None)
    return count + (content_words(fact.content) if fact.content else 0)


def function_words(fact: Fact) -> int:
    """The maximum number of function words in the sentence of a fact, over all languages."""
    count = len(fact.agents) - fact.positive + len(fact.obliques) + (fact.predicate == "be") + (fact.tense != "present")
    for phrase in _own_phrases(fact):
        named = [entities()[name] for name in (phrase.head, phrase.owner) if name in entities()]
        count += phrase.definite + (phrase.owner is not None)
        count += sum(entity.type == "ORG" and len(entity.name) > 1 for entity in named)
    return count + (1 + function_words(fact.content) if fact.content else 0)


def _claim(fact: Fact) -> tuple[str, frozenset[str], str | None]:
    """A key that is equal for facts that are true together or false together; neighbours and friends are symmetric."""
    named = frozenset(mentions(fact))
    return fact.predicate, named, None if len(named) > 1 or fact.patient is None else fact.patient.head


class _Teller:
    """A generator of random facts."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.classes = CLASSES | {kind: tuple(f"{kind.lower()}{i}" for i in range(PER_TYPE)) for kind in TYPES}
        self.claims = {_claim(fact) for fact in knowledge()}
        self.by_verb: dict[tuple[str, str], list[Fact]] = {}
        for fact in knowledge():
            subject = entities()[fact.agents[0].head].type
            self.by_verb.setdefault((fact.predicate, subject), []).append(fact)

    def some(self, classes: str) -> Phrase:
        rng = self.rng
        kind = rng.choice(classes.split())
        head = rng.choice(self.classes[kind])
        if kind == "pronoun":
            return Phrase(head, plural=PRONOUNS[head][1])
        adjective = rng.choice(ADJECTIVES) if rng.random() < (0.1 if kind in TYPES else 0.4) else None
        if kind in TYPES:
            return Phrase(head, adjective)
        numeral = rng.choice(NUMERALS) if rng.random() < 0.2 else None
        owner = rng.choice(self.classes["PER"]) if kind in ("thing", "animal") and rng.random() < 0.1 else None
        plural = numeral is not None or rng.random() < 0.15
        return Phrase(head, adjective, numeral, owner, rng.random() < 0.6, plural)

    def episode(self) -> Fact:
        rng = self.rng
        verb = rng.choice(tuple(EPISODES))
        frame = EPISODES[verb]
        agents: tuple[Phrase, ...] = (self.some(frame.agents),)
        if agents[0].head not in PRONOUNS and rng.random() < 0.15:
            other = self.some(frame.agents)
            if other.head not in PRONOUNS and other.head != agents[0].head:
                agents += (other,)
        patient = self.some(frame.patients) if frame.patients else None
        obliques: tuple[tuple[str, Phrase], ...] = ()
        if frame.obliques and (patient is None or rng.random() < 0.6):
            obliques = ((frame.relation, self.some(frame.obliques)),)
        elif not frame.obliques and rng.random() < 0.4:
            obliques = (("in", self.some("LOC place")),)
        return Fact(verb, agents, patient, obliques, tense=rng.choice(("past", "present", "future")))

    def state(self) -> Fact:
        agent = self.some("PER LOC ORG person animal thing place")._replace(adjective=None)
        return Fact("be", (agent,), Phrase(self.rng.choice(ADJECTIVES)))

    def lasting(self) -> Fact:
        fact = self.rng.choice(self.rng.choice(list(self.by_verb.values())))
        return self.denied(fact) if self.rng.random() < 0.15 else fact

    def denied(self, fact: Fact) -> Fact:
        """A true negative fact: the last argument is replaced so that the fact is false, and the result is negated."""
        last = fact.obliques[-1][1] if fact.obliques else fact.patient
        assert last is not None
        name = last.owner or last.head
        other = self.rng.choice(next(members for members in self.classes.values() if name in members))
        phrase = last._replace(owner=other) if last.owner else last._replace(head=other)
        if fact.obliques:
            changed = fact._replace(obliques=((fact.obliques[-1][0], phrase),), positive=False)
        else:
            changed = fact._replace(patient=phrase, positive=False)
        return fact if _claim(changed) in self.claims or other == fact.agents[0].head else changed

    def fact(self) -> Fact:
        rng = self.rng
        dice = rng.random()
        if dice < 0.45:
            fact = self.lasting()
        else:
            fact = (self.episode() if dice < 0.93 else self.state())._replace(positive=rng.random() < 0.85)
        if content_words(fact) < 6 and rng.random() < 0.1:
            return Fact(rng.choice(REPORTS), (self.some("PER ORG person pronoun"),), tense="past", content=fact)
        if content_words(fact) < 4 or rng.random() < 0.3:
            fact = fact._replace(time=rng.choice([time for time, tense in TIMES.items() if tense == fact.tense]))
        if content_words(fact) < 4 or rng.random() < 0.3:
            # An adverb such as "quickly" does not suit a lasting fact such as a birthplace.
            lasts = fact.predicate in LASTING
            fact = fact._replace(adverb=rng.choice(ADVERBS[-2:] if lasts else ADVERBS))
        return fact


def _tellable(fact: Fact) -> bool:
    """Whether the sentence of a fact has 5 to 14 tokens in all languages, the full stop included."""
    content = content_words(fact)
    return content >= 4 and content + function_words(fact) <= 13


def facts(n: int, seed: int) -> list[Fact]:
    """`n` random facts. A larger `n` with the same seed gives a longer list with the same beginning.

    A fact has 5 to 14 tokens in every language. Facts are distinct, unless new facts become hard to find.

    Raises:
        ValueError: `n` is negative.
    """
    if n < 0:
        raise ValueError(f"n={n}: expected the number of facts to draw, 0 or more")
    teller = _Teller(random.Random(f"facts {seed}"))
    drawn: list[Fact] = []
    seen: set[Fact] = set()
    repeats = 0
    while len(drawn) < n:
        fact = teller.fact()
        if not _tellable(fact) or (fact in seen and repeats < 50):
            repeats += 1
            continue
        repeats = 0
        seen.add(fact)
        drawn.append(fact)
    return drawn


def to_json(fact: Fact) -> str:
    """A fact as one line of JSON: nested lists in the order of the fields."""
    return json.dumps(fact, separators=(",", ":"))


def from_json(text: str) -> Fact:
    """The fact that `to_json` wrote."""
    return _fact(json.loads(text))


def _fact(fields: list) -> Fact:
    predicate, agents, patient, obliques, time, adverb, tense, positive, content = fields
    return Fact(
        predicate,
        tuple(Phrase(*agent) for agent in agents),
        Phrase(*patient) if patient else None,
        tuple((relation, Phrase(*phrase)) for relation, phrase in obliques),
        time,
        adverb,
        tense,
        positive,
        _fact(content) if content else None,
    )
