"""XNLI in artificial languages: is a hypothesis the effect of a premise, does it deny this effect, or neither?

The columns and labels are those of XNLI; the miniature `xnli` is in natural languages. Verbs form pairs of a cause and
its effect (`xlgrid.synthetic.causality`). A premise states a cause. The hypothesis states the effect of this cause
(entailment), denies it (contradiction), or states or denies the effect of another cause (neutral). Negation thus
distinguishes entailment from contradiction, and only the premise reveals whether a hypothesis is neutral: without
premises, 2 of 3 answers can be right.
"""

import json
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from xlgrid.synthetic import causality, world
from xlgrid.synthetic.causality import Options
from xlgrid.synthetic.miniatures.pairs import sides
from xlgrid.synthetic.miniatures.wikiann import speaks
from xlgrid.synthetic.miniatures.xnli import COLUMNS
from xlgrid.synthetic.premises import LABELS
from xlgrid.synthetic.world import Fact

__all__ = ["COLUMNS", "LABELS", "Example", "Options", "examples", "from_json", "group", "row", "speaks", "to_json"]


class Example(NamedTuple):
    """A premise, a hypothesis, and one of LABELS."""

    premise: Fact
    hypothesis: Fact
    label: str


def group(options: Options) -> int:
    """The number of consecutive examples in the same split: the examples of one premise, one for each label."""
    return len(LABELS)


def examples(options: Options, sizes: Sequence[int]) -> list[Example]:
    """`sum(sizes)` examples, the training split first. Every three examples share a premise, which is in one split
    only.

    A combination of the arguments of a premise is either in the training set or in the dev and test sets.
    """
    rng = Random(f"implications {options.seed}")
    drawn: list[Example] = []
    premises: set[Fact] = set()
    pairs = list(causality.PAIRS.items())
    while len(drawn) < sum(sizes):
        (cause, effect), (_, other) = rng.sample(pairs, 2)
        premise, follows, neutral = causality.episodes(rng, cause, effect, other)
        if premise in premises or causality.for_training(premise) != (len(drawn) < sizes[0]):
            continue
        premises.add(premise)
        neutral = neutral._replace(positive=rng.random() < 0.5)
        hypotheses = (follows, neutral, follows._replace(positive=False))
        labelled = [Example(premise, hypothesis, label) for label, hypothesis in zip(LABELS, hypotheses, strict=True)]
        drawn += rng.sample(labelled, len(labelled))
    return drawn[: sum(sizes)]


def row(example: Example, language: str, options: Options) -> dict[str, Any]:
    """One row of data in a language or a pair: premise and hypothesis.

    Raises:
        ValueError: `language` is neither an artificial language nor a pair of artificial languages.
    """
    codes = sides(language)
    premise, hypothesis = options.language(codes[0]), options.language(codes[1])
    return {
        "premise": premise.sentence(example.premise),
        "hypothesis": hypothesis.sentence(example.hypothesis),
        "label": example.label,
    }


def to_json(example: Example) -> str:
    """An example as one line of JSON, which `from_json` reads."""
    return json.dumps([world.to_json(example.premise), world.to_json(example.hypothesis), example.label])


def from_json(text: str) -> Example:
    """The example that `to_json` wrote."""
    premise, hypothesis, label = json.loads(text)
    return Example(world.from_json(premise), world.from_json(hypothesis), label)
