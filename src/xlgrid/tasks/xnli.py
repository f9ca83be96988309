"""XNLI: does a hypothesis follow from a premise, contradict it, or neither? (Conneau et al. 2018)

Pairs as in Foroutan et al. 2023, section 4.4: the premise in one language, the hypothesis in another. On the Hub,
facebook/xnli has a configuration for each language, in which row i says the same, and numbers for labels:
`data: {hub: facebook/xnli, name: "{language}", labels: {0: entailment, 1: neutral, 2: contradiction}}`.
"""

import json
from collections.abc import Sequence
from random import Random
from typing import Any

from xlgrid.languages.sources import Target
from xlgrid.synthetic import natural, premises
from xlgrid.synthetic.premises import LABELS, Example, Options, from_json, to_json

__all__ = ["COLUMNS", "LABELS", "Options", "examples", "from_json", "group", "row", "speaks", "to_json"]

COLUMNS = ("premise", "hypothesis", "label")


def speaks(code: str) -> bool:
    """Natural languages have lexicons."""
    return code in natural.natural_codes()


def group(options: Options) -> int:
    """Consecutive examples that share a premise, which splits keep together: one of each label."""
    return len(LABELS)


def examples(options: Options, sizes: Sequence[int]) -> list[Example]:
    """`sum(sizes)` examples; cut at multiples of `group`, no two splits share a premise."""
    return list(premises.examples(sum(sizes), options))


def row(example: Example, language: str, options: Options) -> dict[str, Any]:
    """One line of data in a language (`fr`) or pair (`en-fr`: premise in English, hypothesis in French).

    The sentences of the premise have one shuffled order, the same in every language and for each of its hypotheses.
    Besides COLUMNS there is `depth`, see `xlgrid.synthetic.premises.Example`, which data from the Hub lack.

    Raises:
        ValueError: no such language.
    """
    premise, hypothesis = natural.lexicons(Target(language).languages)
    sentences = [premise.statement(fact) for fact in example.facts] + [premise.rule(rule) for rule in example.rules]
    Random(json.dumps([example.facts, example.rules])).shuffle(sentences)
    return {
        "premise": premise.join(sentences),
        "hypothesis": hypothesis.statement(example.hypothesis),
        "label": example.label,
        "depth": example.depth,
    }
