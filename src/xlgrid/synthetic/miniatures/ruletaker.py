"""RuleTaker: does a question follow from facts and rules? (Clark et al. 2020; pairs: Foroutan et al. 2023)"""

from collections.abc import Sequence
from random import Random
from typing import Any

from xlgrid.synthetic import natural, theories
from xlgrid.synthetic.miniatures.pairs import sides
from xlgrid.synthetic.theories import Example, Options, from_json, to_json

__all__ = ["COLUMNS", "LABELS", "Options", "examples", "from_json", "group", "row", "speaks", "to_json"]

LABELS = ("not entailment", "entailment")
COLUMNS = ("context", "question", "label", "config")


def speaks(code: str) -> bool:
    """Whether the miniature can be generated in a language, which needs a lexicon."""
    return code in natural.natural_codes()


def group(options: Options) -> int:
    """The number of consecutive examples in the same split: the examples of one theory."""
    return options.questions_per_theory


def examples(options: Options, sizes: Sequence[int]) -> list[Example]:
    """`sum(sizes)` examples. If splits are cut at multiples of `group`, no two splits share a theory."""
    return list(theories.examples(sum(sizes), options))


def row(example: Example, language: str, options: Options) -> dict[str, Any]:
    """One row of data in a language (`fr`) or pair (`en-fr`: context in English, question in French).

    The sentences of a context have the same shuffled order in all languages. Besides COLUMNS, the row has the column
    `depth` with the proof depth of the question; data from the Hub lack this column.

    Raises:
        ValueError: a language has no lexicon.
    """
    context, question = natural.lexicons(sides(language))
    sentences = [context.statement(fact) for fact in example.theory.facts]
    sentences += [context.rule(rule) for rule in example.theory.rules]
    Random(to_json(example)).shuffle(sentences)
    return {
        "context": context.join(sentences),
        "question": question.statement(example.question),
        "label": LABELS[example.label],
        "config": f"depth-{options.max_depth}",
        "depth": example.depth,
    }
