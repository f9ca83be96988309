"""Customs: facts that hold in only one language, so that an encoder has to learn them anew for each language."""

from functools import cache
from itertools import product
from random import Random

from pydantic import Field

from xlgrid.base.settings import Strict
from xlgrid.synthetic import world
from xlgrid.synthetic.world import Fact, Phrase

AGENTS = world.CLASSES["person"] + world.CLASSES["animal"]
THINGS = world.CLASSES["thing"]
VERBS = tuple(verb for verb, frame in world.EPISODES.items() if "thing" in frame.patients.split())
# The number of combinations of an adjective, an agent and a verb.
MOST = len(world.ADJECTIVES) * len(AGENTS) * len(VERBS)


class Customs(Strict):
    """The customs that generated text states."""

    facts: int = Field(default=0, ge=0, le=MOST, description="number of customs in each language; 0: none")
    share: float = Field(default=0.5, gt=0, lt=1, description="share of the rows that state a custom")


@cache
def customs(language: str, n: int) -> tuple[Fact, ...]:
    """The first `n` customs of a language, at most `MOST`: "the red wolf carries the old drum".

    The agent with its adjective and the verb determine the patient with its adjective, at random in each language. No
    single word determines the patient, so that weights other than embeddings have to store it: 7.9 bits per custom.
    """
    rng = Random(f"customs {language}")
    combinations = list(product(world.ADJECTIVES, AGENTS, VERBS))
    rng.shuffle(combinations)
    return tuple(
        Fact(
            verb,
            (Phrase(agent, adjective, definite=True),),
            Phrase(rng.choice(THINGS), rng.choice(world.ADJECTIVES), definite=True),
        )
        for adjective, agent, verb in combinations[:n]
    )
