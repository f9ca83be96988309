"""RuleTaker: does a question follow from facts and rules? (Clark et al. 2020; pairs: Foroutan et al. 2023)"""

from collections.abc import Sequence
from dataclasses import fields
from random import Random
from typing import Any, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from xlgrid.base.settings import Seed, Strict
from xlgrid.languages.sources import Target
from xlgrid.synthetic import natural, theories
from xlgrid.synthetic.theories import Example, TheoryOptions, from_json, to_json

__all__ = ["COLUMNS", "LABELS", "Options", "examples", "from_json", "group", "row", "speaks", "to_json"]

LABELS = ("not entailment", "entailment")
COLUMNS = ("context", "question", "label", "config")
_DEFAULT = TheoryOptions()


class Options(Strict):
    """Size and content of generated RuleTaker data; `TheoryOptions` explains the sizes of theories."""

    n: PositiveInt = Field(100_000, description="examples in all three splits")
    max_depth: int = Field(
        0, ge=0, le=theories.MAX_DEPTH, description="proof depths from 0 to this one are equally frequent"
    )
    seed: Seed = 0
    question_form: Literal["statement", "interrogative"] = "statement"
    persons: int = Field(
        len(_DEFAULT.persons),
        ge=0,
        le=8,
        description="use this many persons, the first ones of `natural.concepts`; likewise below",
    )
    animals: int = Field(len(_DEFAULT.animals), ge=0, le=10)
    attributes: int = Field(len(_DEFAULT.attributes), ge=0, le=16)
    relations: int = Field(len(_DEFAULT.relations), ge=0, le=8)
    facts: tuple[int, int] = _DEFAULT.facts
    rules: tuple[int, int] = _DEFAULT.rules
    conditions: int = _DEFAULT.conditions
    entities: int = _DEFAULT.entities
    relational: float = _DEFAULT.relational
    negated_rules: bool = _DEFAULT.negated_rules
    negated_questions: float = _DEFAULT.negated_questions
    unmentioned: float = _DEFAULT.unmentioned
    questions_per_theory: PositiveInt = _DEFAULT.questions_per_theory

    @model_validator(mode="after")
    def _fits(self) -> Self:
        theories.check_room(self.max_depth, self.theory())
        return self

    def theory(self) -> TheoryOptions:
        """The options of the generator.

        Raises:
            ValueError: the sizes contradict one another.
        """
        known = natural.concepts()
        words: dict[str, Any] = {kind: getattr(known, kind)[: getattr(self, kind)] for kind in known._fields}
        shared = [field.name for field in fields(TheoryOptions) if field.name not in words]
        return TheoryOptions(**words, **{name: getattr(self, name) for name in shared})


def speaks(code: str) -> bool:
    """Whether the miniature is generated in a language: in every one that has a lexicon."""
    return code in natural.natural_codes()


def group(options: Options) -> int:
    """How many consecutive examples share a split: those of one theory."""
    return options.questions_per_theory


def examples(options: Options, sizes: Sequence[int]) -> list[Example]:
    """`sum(sizes)` examples; cut at multiples of `group`, no two splits share the theory of a draw."""
    return list(theories.examples(sum(sizes), options.max_depth, options.seed, options.theory()))


def row(example: Example, language: str, options: Options) -> dict[str, Any]:
    """One row of data in a language (`fr`) or pair (`en-fr`: context in English, question in French).

    The sentences of a context have one shuffled order in all languages. The row has a column `depth` beside COLUMNS, the
    proof depth of the question; data from the Hub lack it.

    Raises:
        ValueError: no such language.
    """
    context, question = natural.lexicons(Target(language).languages)
    sentences = [context.statement(fact) for fact in example.theory.facts]
    sentences += [context.rule(rule) for rule in example.theory.rules]
    Random(to_json(example)).shuffle(sentences)
    ask = question.statement if options.question_form == "statement" else question.question
    return {
        "context": context.join(sentences),
        "question": ask(example.question),
        "label": LABELS[example.label],
        "config": f"depth-{options.max_depth}",
        "depth": example.depth,
    }
