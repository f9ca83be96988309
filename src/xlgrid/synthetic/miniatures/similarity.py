"""Similarity of two sentences, a number from 0 to 5, as in STS-B (Cer et al. 2017) and SemRel (Ousidhoum et al. 2024).

The miniature is in artificial languages. The second sentence of a pair shares some of four parts with the first: who
acts, what happens, when and how, and whether it is denied. The number is 5/4 of the number of shared parts. A study
describes data of its own with `kind: regression`: see docs/how-to/task.md.
"""

import json
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from xlgrid.synthetic import world
from xlgrid.synthetic.miniatures.pairs import sides
from xlgrid.synthetic.miniatures.wikiann import Options, draw, group, speaks
from xlgrid.synthetic.world import Fact

__all__ = ["COLUMNS", "LABELS", "Example", "Options", "examples", "from_json", "group", "row", "speaks", "to_json"]

LABELS: Sequence[str] = ()
COLUMNS = ("sentence1", "sentence2", "score")
# The fields of a fact that are one part.
PARTS = (("agents",), ("predicate", "patient", "obliques", "content"), ("time", "adverb", "tense"), ("positive",))


class Example(NamedTuple):
    """Two facts."""

    first: Fact
    second: Fact

    @property
    def score(self) -> float:
        """5/4 of the number of parts that both facts share."""
        shared = [all(getattr(self.first, name) == getattr(self.second, name) for name in part) for part in PARTS]
        return 5 / len(PARTS) * sum(shared)


def examples(options: Options, sizes: Sequence[int]) -> list[Example]:
    """`sum(sizes)` pairs with distinct first facts, the training split first."""
    rng, facts = Random(f"similarity {options.seed}"), draw(options, sizes, named=False)
    drawn = []
    for first in facts:
        other, kept = rng.choice(facts), rng.randint(0, len(PARTS))
        changed = [name for part in rng.sample(PARTS, len(PARTS) - kept) for name in part]
        drawn.append(Example(first, first._replace(**{name: getattr(other, name) for name in changed})))
    return drawn


def row(example: Example, language: str, options: Options) -> dict[str, Any]:
    """One row of data in a language or a pair: the second sentence of a pair is in its second language.

    Raises:
        ValueError: a language is not an artificial language.
    """
    sentences = [options.language(code).sentence(fact) for code, fact in zip(sides(language), example, strict=True)]
    return dict(zip(COLUMNS, (*sentences, example.score), strict=True))


def to_json(example: Example) -> str:
    """An example as one line of JSON, which `from_json` reads."""
    return json.dumps([world.to_json(fact) for fact in example])


def from_json(text: str) -> Example:
    """The example that `to_json` wrote."""
    return Example(*map(world.from_json, json.loads(text)))
