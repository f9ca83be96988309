"""LeapOfThought: does a member have the properties of its class? (Talmor et al. 2020; modified: Foroutan et al. 2023,
A.2)

A context states properties of classes ("A fish is kind. A bird is not kind."), and a statement is about a member ("The
salmon is kind."). An explicit context also states the member's class ("The salmon is a fish."). An implicit context
does not: the encoder has to know the class from the texts of `TextOptions.taxonomy` (`xlgrid.synthetic.texts`).

Half of the statements are true. A quarter is false because the context denies the property of the class, and a quarter
is false because the context states the property of other classes only: a property that is not stated is false. Every
context states the property of one class and denies it of another, so that the class of the statement's subject decides
which sentence counts.

The public release has the same columns, with one JSON object per line and numbers as labels
(`labels: {0: "false", 1: "true"}` in the `data` of a study). xlgrid does not negate statements of fetched data: use the
modified files of Foroutan et al.
"""

import json
from collections.abc import Sequence
from random import Random
from typing import Any, Literal, NamedTuple, Self

from pydantic import Field, PositiveInt, ValidationInfo, model_validator

from xlgrid.base.settings import Seed, Strict
from xlgrid.synthetic import logic, natural
from xlgrid.synthetic.logic import IS_A
from xlgrid.synthetic.miniatures.pairs import sides
from xlgrid.synthetic.miniatures.ruletaker import speaks
from xlgrid.synthetic.miniatures.wikiann import group

__all__ = ["COLUMNS", "LABELS", "Example", "Options", "examples", "from_json", "group", "row", "speaks", "to_json"]

LABELS = ("false", "true")
COLUMNS = ("context", "phrase", "answer")
# The reasons why a statement is true or false. Examples have these cases in turn.
_CASES = ("holds", "negated", "holds", "elsewhere")
# The number of consecutive draws of known examples after which no new example is expected. As long as half of all
# possible examples are new, so many known examples in a row practically never happen.
_ATTEMPTS = 20
# Share of implicit contexts in training, and in a mix.
_IMPLICIT = 0.5

_Members = dict[str, tuple[str, ...]]  # class -> its members
_Meaning = tuple[frozenset[logic.Literal], logic.Literal]  # the sentences of a context in any order, and the statement


class Options(Strict):
    """The size and content of generated LeapOfThought data."""

    n: PositiveInt = Field(30_000, description="number of examples in all three splits")
    seed: Seed = Field(0, description="decides the generated data")
    attributes: int = Field(16, ge=3, le=16, description="use this many adjectives, the first ones of a lexicon")
    distractors: tuple[int, int] = Field(
        (1, 3),
        description="minimum and maximum number of sentences in a context that do not affect the answer, at most 4",
    )
    evaluation: Literal["implicit", "explicit", "mix"] = Field(
        "implicit", description="contexts of dev and test; the paper's tables: implicit, its code: the mix of training"
    )
    negate: bool = Field(
        True,
        description="negate every second statement of each kind together with its label, as in the paper; false: as in "
        "the original data",
    )
    probe: Literal["none", "context-only", "subject-swap", "object-swap", "both-swap"] = Field(
        "none",
        description="the paper's table 6: context-only empties all statements; the others replace the subject, the "
        "attribute or both in dev and test",
    )

    @model_validator(mode="after")
    def _probes_are_generated(self, info: ValidationInfo) -> Self:
        if self.probe != "none" and info.context and info.context["fetched"]:
            raise ValueError(
                f"the probe {self.probe} needs generated statements, and these come from `data`: leave out `data`, or "
                "use data with changed statements and set `probe: none`"
            )
        return self

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if not 0 <= self.distractors[0] <= self.distractors[1] <= 4:
            raise ValueError(
                f"distractors must be (minimum, maximum) with 0 <= minimum <= maximum <= 4, got {self.distractors}"
            )
        return self


class Example(NamedTuple):
    """An example of LeapOfThought.

    Attributes:
        context: the sentences of the context, in order.
        statement: the statement about a member.
        label: whether the statement is true, before a probe changes it.
    """

    context: tuple[logic.Literal, ...]
    statement: logic.Literal
    label: bool


def examples(options: Options, sizes: Sequence[int]) -> list[Example]:
    """Distinct examples for splits of the given sizes (train, dev, test), the training split first.

    Labels are balanced: their counts differ by at most one in each split, with and without `negate`. The options
    `evaluation`, `negate` and `probe` do not change the rest of the data: example i keeps its classes, members,
    properties and split.

    Raises:
        ValueError: the options allow too few distinct examples.
    """
    members = natural.taxonomy()
    train_members = {name: names[: -_held_out(names)] for name, names in members.items()}
    held_out = {name: names[-_held_out(names) :] for name, names in members.items()}
    share = {"implicit": 1.0, "explicit": 0.0, "mix": _IMPLICIT}[options.evaluation]
    splits = (
        ("train", train_members, train_members, _IMPLICIT),
        ("dev", held_out, members, share),
        ("test", held_out, members, share),
    )
    known: set[_Meaning] = set()
    drawn = []
    for (split, asked, mentioned, implicit), size in zip(splits, sizes, strict=True):
        rng = Random(f"lot {split} {options.seed}")
        for number in range(size):
            turn, case = divmod(number, len(_CASES))
            original = _fresh(_CASES[case], asked, mentioned, options, rng, known)
            # Two consecutive rounds have each case once as it is and once negated, and every second label is true.
            negated = options.negate and turn % 2 == 1
            drawn.append(_modified(original, negated, rng.random() < implicit, split != "train", members, options))
    return drawn


def _held_out(members: Sequence[str]) -> int:
    """How many members of a class, the last ones, training never mentions."""
    return len(members) // 3


def _fresh(
    case: str, asked: _Members, mentioned: _Members, options: Options, rng: Random, known: set[_Meaning]
) -> Example:
    """A new example, which is added to `known`."""
    # The number of distractors is drawn once. If it were drawn again for each attempt, it would grow when examples with
    # few distractors are exhausted. This happens sooner for some cases, so the length of a context would reveal the
    # label.
    distractors = rng.randint(*options.distractors)
    for _ in range(_ATTEMPTS):
        example = _draw(case, distractors, asked, mentioned, options, rng)
        meaning = (frozenset(example.context), example.statement)
        if meaning not in known:
            known.add(meaning)
            return example
    raise ValueError(
        f"there are hardly more than {len(known)} distinct examples with {distractors} distractors: lower n, or raise "
        "attributes or distractors"
    )


def _draw(case: str, distractors: int, asked: _Members, mentioned: _Members, options: Options, rng: Random) -> Example:
    """An explicit example with a positive statement about a member in `asked`, and distractors about `mentioned`."""
    subject_class, other, third = rng.sample(list(asked), 3)
    subject = rng.choice(asked[subject_class])
    attribute, *further = rng.sample(natural.concepts().attributes[: options.attributes], 3)
    has, lacks = {"holds": (subject_class, other), "negated": (other, subject_class), "elsewhere": (other, third)}[case]
    context = [
        logic.Literal(IS_A, subject, subject_class),
        logic.Literal(attribute, has),
        logic.Literal(attribute, lacks, positive=False),
    ]
    context += rng.sample(_distractors(subject, attribute, further, (has, lacks), mentioned, rng), distractors)
    rng.shuffle(context)
    return Example(tuple(context), logic.Literal(attribute, subject), case == "holds")


def _distractors(
    subject: str, attribute: str, further: Sequence[str], ruled: Sequence[str], mentioned: _Members, rng: Random
) -> list[logic.Literal]:
    """Four sentences that agree with the context and do not affect the answer.

    Every class is equally likely in them, including the class of `subject`. Otherwise, a reader could find the class of
    the subject by elimination.
    """
    others = {name: [member for member in members if member != subject] for name, members in mentioned.items()}
    # No sentence states whether a member of a class that has or lacks the attribute has or lacks it.
    unruled = rng.choice(others[rng.choice([name for name in others if name not in ruled])])
    some_class = rng.choice(list(others))
    return [
        logic.Literal(further[0], subject, positive=rng.random() < 0.5),
        logic.Literal(further[1], rng.choice(list(mentioned)), positive=rng.random() < 0.5),
        logic.Literal(attribute, unruled, positive=rng.random() < 0.5),
        logic.Literal(IS_A, rng.choice(others[some_class]), some_class),
    ]


def _modified(
    original: Example, negated: bool, implicit: bool, evaluated: bool, members: _Members, options: Options
) -> Example:
    """The example after the modifications that the arguments select: negation, a probe, and an implicit context.

    The words that a probe inserts depend only on the example's meaning and the seed.
    """
    rng = Random(f"told {options.seed} {to_json(original)}")
    statement, label = original.statement, original.label
    is_a = [fact for fact in original.context if (fact.predicate, fact.subject) == (IS_A, statement.subject)]
    subject = rng.choice([name for names in members.values() for name in names if name != statement.subject])
    attributes = natural.concepts().attributes[: options.attributes]
    attribute = rng.choice([word for word in attributes if word != statement.predicate])
    if negated:
        statement, label = statement._replace(positive=False), not label
    if evaluated and options.probe in ("subject-swap", "both-swap"):
        statement = statement._replace(subject=subject)
    if evaluated and options.probe in ("object-swap", "both-swap"):
        statement = statement._replace(predicate=attribute)
    context = tuple(fact for fact in original.context if not (implicit and fact in is_a))
    return Example(context, statement, label)


def row(example: Example, language: str, options: Options) -> dict[str, Any]:
    """One row of data in a language (`fr`) or pair (`en-fr`: context in English, statement in French).

    The probe `context-only` empties the statement in all splits; its second segment then has no tokens.

    Raises:
        ValueError: a language has no lexicon.
    """
    context, phrase = natural.lexicons(sides(language))
    return {
        "context": context.join(context.statement(fact) for fact in example.context),
        "phrase": "" if options.probe == "context-only" else phrase.statement(example.statement),
        "answer": LABELS[example.label],
    }


def to_json(example: Example) -> str:
    """An example as one line of JSON, which `from_json` reads."""
    return json.dumps([example.context, example.statement, example.label], separators=(",", ":"))


def from_json(text: str) -> Example:
    """The example that `to_json` wrote."""
    context, statement, label = json.loads(text)
    return Example(tuple(logic.Literal(*fact) for fact in context), logic.Literal(*statement), label)
