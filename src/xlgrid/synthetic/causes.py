"""Causes and their effects in the world of artificial languages: what is behind the miniatures of copa and siqa.

Some verbs go together: whoever runs, falls. A question tells one of the two as the premise and asks for the other, its cause
or its effect, with the same agent. Wrong choices are other causes, or other effects, so that a choice alone does not tell
whether it is right. Agents and what else a premise is about meet in training only, or in dev and test only.
"""

import json
from collections.abc import Sequence
from random import Random
from typing import Literal, NamedTuple

from pydantic import Field, PositiveInt

from xlgrid.base.settings import Strict
from xlgrid.synthetic import world
from xlgrid.synthetic.artificial import artificial
from xlgrid.synthetic.world import Fact, Phrase

# Cause -> effect; no verb is in it twice.
SCRIPTS = {
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
# Of the pairs of an agent and what else there is in a premise, those for training.
_SHARE = 0.75
_SPLITS = ("train", "dev", "test")


class Options(Strict):
    """What questions of artificial languages are made of; the dials are explained at `xlgrid.synthetic.artificial`."""

    n: PositiveInt = Field(10_000, description="questions in all three splits")
    seed: int = 0
    overlap: float = Field(0.8, ge=0, le=1)
    loans: float = Field(0.1, ge=0, le=1)
    distance: float = Field(1.0, ge=0, le=1)


class Example(NamedTuple):
    """A premise, what is asked for, and the choices, of which number `right` (from 0) is right."""

    premise: Fact
    question: Literal["cause", "effect"]
    choices: tuple[Fact, ...]
    right: int


def examples(options: Options, sizes: Sequence[int], choices: int) -> list[Example]:
    """`sum(sizes)` distinct questions with so many choices each, those of the training split first."""
    rng = Random(f"causes {options.seed} {choices}")
    found: dict[Example, None] = {}
    for split, end in zip(_SPLITS, (sum(sizes[: at + 1]) for at in range(len(sizes))), strict=True):
        while len(found) < end:
            example = _example(rng, choices)
            if for_training(example.premise) == (split == "train"):
                found[example] = None
    return list(found)


def for_training(premise: Fact) -> bool:
    """Whether training has the premise's agent together with what else it is about."""
    named = [phrase.head for phrase in world.phrases(premise)]
    return Random(json.dumps(named)).random() < _SHARE


def _example(rng: Random, choices: int) -> Example:
    pairs = rng.sample(list(SCRIPTS.items()), choices)
    asked: Literal["cause", "effect"] = "effect" if rng.random() < 0.5 else "cause"
    told, wanted = (0, 1) if asked == "effect" else (1, 0)
    agent = _phrase(rng, _AGENTS)
    right = rng.randrange(choices)
    facts = tuple(_episode(rng, pair[wanted], agent) for pair in pairs)
    return Example(_episode(rng, pairs[right][told], agent), asked, facts, right)


def _episode(rng: Random, verb: str, agent: Phrase) -> Fact:
    """What a verb takes besides its agent: a patient, or else an oblique argument."""
    frame = world.EPISODES[verb]
    if frame.patients:
        return Fact(verb, (agent,), _phrase(rng, frame.patients), tense="past")
    return Fact(verb, (agent,), obliques=((frame.relation, _phrase(rng, frame.obliques)),), tense="past")


def _phrase(rng: Random, classes: str) -> Phrase:
    kind = rng.choice(classes.split())
    if kind in world.TYPES:
        return Phrase(f"{kind.lower()}{rng.randrange(world.PER_TYPE)}")
    return Phrase(rng.choice(world.CLASSES[kind]), definite=True)


def sentences(example: Example, language: str, options: Options) -> tuple[str, list[str]]:
    """The premise and the choices in a language.

    Raises:
        ValueError: `language` is no artificial language.
    """
    made = artificial(language, options.overlap, options.loans, options.distance)
    return made.sentence(example.premise), [made.sentence(choice) for choice in example.choices]


def asking(example: Example, language: str, options: Options) -> str:
    """A question for the cause or the effect, in a language: what was it once, or will it be soon?"""
    made = artificial(language, options.overlap, options.loans, options.distance)
    time, tense = ("once", "past") if example.question == "cause" else ("soon", "future")
    return made.sentence(Fact("be", (Phrase("what"),), example.premise.agents[0], time=time, tense=tense))


def to_json(example: Example) -> str:
    """An example as one line of JSON."""
    premise, choices = world.to_json(example.premise), [world.to_json(choice) for choice in example.choices]
    return json.dumps([premise, example.question, choices, example.right], separators=(",", ":"))


def from_json(text: str) -> Example:
    """The example written by `to_json`.

    Raises:
        ValueError: the text is not JSON or no example.
    """
    try:
        premise, question, choices, right = json.loads(text)
        return Example(world.from_json(premise), question, tuple(map(world.from_json, choices)), right)
    except (TypeError, ValueError) as error:
        raise ValueError(f"not an example written by to_json: {text[:80]!r} ({error})") from error
