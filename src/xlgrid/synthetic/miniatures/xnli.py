"""XNLI: does a hypothesis follow from a premise, contradict it, or neither? (Conneau et al. 2018)

A pair has the premise in one language and the hypothesis in another, as in Foroutan et al. 2023, section 4.4. On the
Hub, facebook/xnli has a configuration for each language, with parallel rows and numbers for labels:
`data: {hub: facebook/xnli, name: "{language}", labels: {0: entailment, 1: neutral, 2: contradiction}}`.
"""

import json
from collections.abc import Sequence
from random import Random
from typing import Any

from xlgrid.synthetic import natural, premises
from xlgrid.synthetic.miniatures.pairs import sides
from xlgrid.synthetic.miniatures.ruletaker import speaks
from xlgrid.synthetic.premises import LABELS, Example, Options, from_json, to_json

__all__ = ["COLUMNS", "LABELS", "Options", "examples", "from_json", "group", "row", "speaks", "to_json"]

COLUMNS = ("premise", "hypothesis", "label")


def group(options: Options) -> int:
    """The number of consecutive examples in the same split: the examples of one premise, one for each label."""
    return len(LABELS)


def examples(options: Options, sizes: Sequence[int]) -> list[Example]:
    """`sum(sizes)` examples. If splits are cut at multiples of `group`, no two splits share a premise."""
    return list(premises.examples(sum(sizes), options))


def row(example: Example, language: str, options: Options) -> dict[str, Any]:
    """One row of data in a language (`fr`) or pair (`en-fr`: premise in English, hypothesis in French).

    The sentences of a premise have the same shuffled order in all languages and for all its hypotheses. Besides
    COLUMNS, the row has the column `depth` (see `xlgrid.synthetic.premises.Example`); data from the Hub lack this
    column.

    Raises:
        ValueError: a language has no lexicon.
    """
    premise, hypothesis = natural.lexicons(sides(language))
    sentences = [premise.statement(fact) for fact in example.facts] + [premise.rule(rule) for rule in example.rules]
    Random(json.dumps([example.facts, example.rules])).shuffle(sentences)
    return {
        "premise": premise.join(sentences),
        "hypothesis": hypothesis.statement(example.hypothesis),
        "label": example.label,
        "depth": example.depth,
    }
