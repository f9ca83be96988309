"""LeapOfThought: does what holds of a class hold of a member? (Talmor et al. 2020; modified: Foroutan et al. 2023, A.2)

A context states what holds of classes ("A fish is kind. A bird is not kind."), and a statement is about a member ("The
salmon is kind."). An explicit context also states the member's class ("The salmon is a fish."). An implicit context does
not: the encoder has to know the class, from the texts of `TextOptions.taxonomy` (`xlgrid.synthetic.texts`). Half of the statements hold. A quarter
fails because the context denies the property of the class, and a quarter because the context gives the property to
other classes only: a property that is not stated is false. Every context gives the property to one class and denies it
of another, so that only the class of the statement's subject decides which sentence counts.

The public release has the same columns, one JSON object a line, and numbers as labels (`labels: {0: "false", 1: "true"}`
in the `data` of a study). xlgrid does not negate statements of fetched data: take the modified files of Foroutan et al.
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
# Why a statement holds or fails. Examples take these cases in turn.
_CASES = ("holds", "negated", "holds", "elsewhere")
# Repeated draws in a row after which no distinct example is expected. While half of all examples are still to be drawn,
# so many repetitions practically never happen.
_ATTEMPTS = 20
# Share of implicit contexts in training, and in a mix.
_IMPLICIT = 0.5

_Members = dict[str, tuple[str, ...]]  # class -> its members
_Meaning = tuple[frozenset[logic.Literal], logic.Literal]  # the sentences of a context in any order, and the statement


class Options(Strict):
    """Size and content of generated LeapOfThought data."""

    n: PositiveInt = Field(30_000, description="examples in all three splits")
    seed: Seed = Field(0, description="decides the generated data")
    attributes: int = Field(16, ge=3, le=16, description="use this many adjectives, the first ones of a lexicon")
    distractors: tuple[int, int] = Field(
        (1, 3), description="least and most sentences of a context that no answer depends on, at most 4"
    )
    evaluation: Literal["implicit", "explicit", "mix"] = Field(
        "implicit", description="contexts of dev and test; the paper's tables: implicit, its code: the mix of training"
    )
    negate: bool = Field(
        True,
        description="negate every second statement of each kind together with its label, as the paper does; false: the original",
    )
    probe: Literal["none", "context-only", "subject-swap", "object-swap", "both-swap"] = Field(
        "none",
        description="the paper's table 6: empty all statements, or replace subject or attribute of those in dev and test",
    )

    @model_validator(mode="after")
    def _probes_are_generated(self, info: ValidationInfo) -> Self:
        if self.probe != "none" and info.context and info.context["fetched"]:
            raise ValueError(
                f"only generated statements can have the probe {self.probe}, and these come from `data`: leave out `data`, or "
                "take data whose statements have been changed and set `probe: none`"
            )
        return self

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if not 0 <= self.distractors[0] <= self.distractors[1] <= 4:
            raise ValueError(f"distractors must be (least, most) with 0 <= least <= most <= 4, got {self.distractors}")
        return self


class Example(NamedTuple):
    """A context, in the order of its sentences, a statement, and whether it holds (before a probe changed it)."""

    context: tuple[logic.Literal, ...]
    statement: logic.Literal
    label: bool


def examples(options: Options, sizes: Sequence[int]) -> list[Example]:
    """Distinct examples for splits of the given sizes (train, dev, test), those of the training split first.

    Labels are balanced: the two differ by at most one in each split, with and without `negate`. The options
    `evaluation`, `negate` and `probe` leave the rest of the data alone: example i keeps its classes, members, properties
    and split.

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
            # Within eight examples, each case stands four times negated and four times not, and every second label is true.
            negated = options.negate and turn % 2 == 1
            drawn.append(_modified(original, negated, rng.random() < implicit, split != "train", members, options))
    return drawn


def _held_out(members: Sequence[str]) -> int:
    """How many members of a class, the last ones, training never mentions."""
    return len(members) // 3


def _fresh(
    case: str, asked: _Members, mentioned: _Members, options: Options, rng: Random, known: set[_Meaning]
) -> Example:
    """An example that is not in `known`, to which it is added."""
    # The number of distractors is drawn once. Drawn again after every repetition it would grow where examples with few
    # distractors are exhausted, which they are not equally for every case, and the length of a context would tell the label.
    distractors = rng.randint(*options.distractors)
    for _ in range(_ATTEMPTS):
        example = _draw(case, distractors, asked, mentioned, options, rng)
        meaning = (frozenset(example.context), example.statement)
        if meaning not in known:
            known.add(meaning)
            return example
    raise ValueError(
        f"there are hardly more than {len(known)} distinct examples, with {distractors} distractors: lower n, or raise "
        "attributes or distractors"
    )


def _draw(case: str, distractors: int, asked: _Members, mentioned: _Members, options: Options, rng: Random) -> Example:
    """An explicit example with a positive statement about a member in `asked`; distractors are about `mentioned`."""
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
    """Four sentences that agree with the context and on which no answer depends.

    Every class, also that of `subject`, is equally likely in them. Otherwise a reader could find the subject's class by
    elimination.
    """
    others = {name: [member for member in members if member != subject] for name, members in mentioned.items()}
    # No member of a class that has or lacks the attribute is said to have or lack it.
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
    """An example with its statement negated or changed by a probe, and with an implicit context, as the arguments say.

    The words that a probe puts in depend on nothing but the example's meaning and the seed.
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

    The probe `context-only` empties the statement in all splits; tokenised, it is a second segment without tokens.

    Raises:
        ValueError: no such language.
    """
    context, phrase = natural.lexicons(sides(language))
    return {
        "context": context.join(context.statement(fact) for fact in example.context),
        "phrase": "" if options.probe == "context-only" else phrase.statement(example.statement),
        "answer": LABELS[example.label],
    }


def to_json(example: Example) -> str:
    """One line of JSON that `from_json` reads back."""
    return json.dumps([example.context, example.statement, example.label], separators=(",", ":"))


def from_json(text: str) -> Example:
    """The example that `to_json` wrote."""
    context, statement, label = json.loads(text)
    return Example(tuple(logic.Literal(*fact) for fact in context), logic.Literal(*statement), label)
