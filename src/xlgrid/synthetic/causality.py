"""Causes and effects in artificial languages: the data of the miniatures of copa, siqa and causal-nli.

Verbs form pairs of a cause and its effect: somebody who runs falls. The premise has one verb of a pair, and the
question asks for the other verb with the same agent: the cause or the effect. The wrong choices are causes, or effects,
of other pairs, so that a choice without the premise does not reveal whether it is right. A combination of an agent and
the other arguments of a premise occurs either in the training set or in the dev and test sets.
"""

import json
from collections.abc import Sequence
from itertools import accumulate
from random import Random
from typing import Literal, NamedTuple

from pydantic import Field, PositiveInt

from xlgrid.base.settings import Seed
from xlgrid.synthetic import world
from xlgrid.synthetic.artificial import Dials
from xlgrid.synthetic.world import Fact, Phrase

# Cause -> effect. No verb occurs twice.
PAIRS = {
    "run": "fall",
    "see": "follow",
    "find": "carry",
    "go": "visit",
    "come": "speak",
    "love": "help",
    "play": "laugh",
    "wait": "sleep",
}
_AGENTS = "PER person"
# The share of the combinations of arguments of a premise that are in the training set.
_TRAIN_SHARE = 0.75
_SPLITS = ("train", "dev", "test")


class Options(Dials):
    """The size of the data, and the differences between the artificial languages."""

    n: PositiveInt = Field(10_000, description="number of questions in all three splits")
    seed: Seed = Field(0, description="decides the generated data")


class Example(NamedTuple):
    """A question about the cause or the effect of a premise, with choices.

    Attributes:
        premise: a past episode.
        question: whether the cause or the effect is the answer.
        choices: past or future episodes.
        right: the index of the right choice.
    """

    premise: Fact
    question: Literal["cause", "effect"]
    choices: tuple[Fact, ...]
    right: int


def examples(options: Options, sizes: Sequence[int], choices: int) -> list[Example]:
    """Distinct questions for splits of the given sizes, the training split first, each with this many choices."""
    rng = Random(f"causes {options.seed} {choices}")
    drawn: dict[Example, None] = {}
    for split, end in zip(_SPLITS, accumulate(sizes), strict=True):
        while len(drawn) < end:
            example = _example(rng, choices)
            if for_training(example.premise) == (split == "train"):
                drawn[example] = None
    return list(drawn)


def for_training(premise: Fact) -> bool:
    """Whether the combination of the arguments of a premise belongs to the training set."""
    arguments = [phrase.head for phrase in world.phrases(premise)]
    return Random(json.dumps(arguments)).random() < _TRAIN_SHARE


def episodes(rng: Random, *verbs: str) -> tuple[Fact, ...]:
    """An episode for each verb, all with the same random agent."""
    agent = _phrase(rng, _AGENTS)
    return tuple(_episode(rng, verb, agent) for verb in verbs)


def _example(rng: Random, choices: int) -> Example:
    pairs = rng.sample(list(PAIRS.items()), choices)
    question: Literal["cause", "effect"] = "effect" if rng.random() < 0.5 else "cause"
    stated, wanted = (0, 1) if question == "effect" else (1, 0)
    agent = _phrase(rng, _AGENTS)
    right = rng.randrange(choices)
    facts = tuple(_episode(rng, pair[wanted], agent) for pair in pairs)
    return Example(_episode(rng, pairs[right][stated], agent), question, facts, right)


def _episode(rng: Random, verb: str, agent: Phrase) -> Fact:
    """A past fact with a verb and an agent, and with a patient or an oblique argument, as the verb requires."""
    frame = world.EPISODES[verb]
    if frame.patients:
        return Fact(verb, (agent,), _phrase(rng, frame.patients), tense="past")
    return Fact(verb, (agent,), obliques=((frame.relation, _phrase(rng, frame.obliques)),), tense="past")


def _phrase(rng: Random, classes: str) -> Phrase:
    """A named entity or a definite noun of one of some classes, which are separated by spaces."""
    kind = rng.choice(classes.split())
    if kind in world.TYPES:
        return Phrase(f"{kind.lower()}{rng.randrange(world.PER_TYPE)}")
    return Phrase(rng.choice(world.CLASSES[kind]), definite=True)


def sentences(example: Example, language: str, options: Options) -> tuple[str, list[str]]:
    """The sentences of the premise and of the choices in a language.

    Raises:
        ValueError: `language` is not an artificial language.
    """
    sentence = options.language(language).sentence
    return sentence(example.premise), [sentence(choice) for choice in example.choices]


def question_sentence(example: Example, language: str, options: Options) -> str:
    """The question in a language: "What was the agent once?" for the cause, "What will it be soon?" for the effect."""
    time, tense = ("once", "past") if example.question == "cause" else ("soon", "future")
    return options.language(language).sentence(
        Fact("be", (Phrase("what"),), example.premise.agents[0], time=time, tense=tense)
    )


def to_json(example: Example) -> str:
    """An example as one line of JSON, which `from_json` reads."""
    premise, choices = world.to_json(example.premise), [world.to_json(choice) for choice in example.choices]
    return json.dumps([premise, example.question, choices, example.right], separators=(",", ":"))


def from_json(text: str) -> Example:
    """The example that `to_json` wrote."""
    premise, question, choices, right = json.loads(text)
    return Example(world.from_json(premise), question, tuple(map(world.from_json, choices)), right)
