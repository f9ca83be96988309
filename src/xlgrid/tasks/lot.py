"""LeapOfThought: does what holds of a class hold of a member? (Talmor et al. 2020; modified: Foroutan et al. 2023, A.2)

A context says what holds of classes ("A fish is kind. A bird is not kind."), a statement is about a member ("The salmon
is kind."). An explicit context says who is what ("The salmon is a fish."), an implicit one does not: the encoder has to
know it, from the texts of `TextOptions.taxonomy`. Half of the statements hold; of the others, one half fails because
the class's property is negated, the other because the context says it of other classes only (what is not said is
false). Two classes have a property in every context, one positively and one negatively, so that nothing but the
statement's class tells which of them counts.

The public release has the same columns, a line of JSON each, and numbers as labels (`labels: {0: "false", 1: "true"}` in the
`data` of a study). Its statements cannot be negated here: take the modified files of Foroutan et al.
"""

import json
from collections.abc import Sequence
from random import Random
from typing import Any, Literal, NamedTuple, Self

from pydantic import Field, PositiveInt, model_validator

from xlgrid.base.settings import Strict
from xlgrid.languages.sources import Target
from xlgrid.synthetic import logic, natural
from xlgrid.synthetic.logic import IS_A
from xlgrid.tasks.ruletaker import speaks

__all__ = ["COLUMNS", "LABELS", "Example", "Options", "examples", "from_json", "group", "row", "speaks", "to_json"]

LABELS = ("false", "true")
COLUMNS = ("context", "phrase", "answer")
_CASES = ("holds", "negated", "holds", "elsewhere")
_ATTEMPTS = 20  # draws in a row that were there before: more than happens while half of all is still to come

_Members = dict[str, tuple[str, ...]]  # of each class
_Said = tuple[frozenset[logic.Literal], logic.Literal]  # a context in any order, and a statement


class Options(Strict):
    """What LeapOfThought examples are made of."""

    n: PositiveInt = Field(30_000, description="examples in all three splits")
    seed: int = 0
    classes: int = Field(4, ge=3, le=4, description="the first so many of the taxonomy, see `natural.taxonomy`")
    members: int = Field(9, ge=3, le=9, description="the first so many of each class, or all there are")
    attributes: int = Field(16, ge=3, le=16, description="the first so many of the concepts")
    distractors: tuple[int, int] = Field((1, 3), description="least and most sentences that no answer rests on, of 4")
    held_out_members: bool = Field(
        True, description="dev and test ask about the last third of each class, of which training says nothing"
    )
    implicit: float = Field(0.5, ge=0, le=1, description="share of implicit contexts in training, or in any mix")
    evaluation: Literal["implicit", "explicit", "mix"] = Field(
        "implicit", description="contexts of dev and test; the paper's tables: implicit, its code: the mix of training"
    )
    negate: bool = Field(
        True, description="negate half of the statements with their labels, as the paper does; false: the original"
    )
    probe: Literal["none", "context-only", "subject-swap", "object-swap", "both-swap"] = Field(
        "none", description="the paper's table 6: empty all statements, or in dev and test put others' words into them"
    )

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


def group(options: Options) -> int:
    """Every example may go into any split."""
    return 1


def examples(options: Options, sizes: Sequence[int]) -> list[Example]:
    """Distinct examples for splits of the given sizes, train first.

    Options that say what is evaluated (`evaluation`, `negate`, `probe`) change no other thing: example i has the same
    classes, members and properties, and stands in the same split.

    Raises:
        ValueError: the options leave too few distinct examples.
    """
    everyone = {
        name: members[: options.members] for name, members in list(natural.taxonomy().items())[: options.classes]
    }
    train = held_out = everyone
    if options.held_out_members:
        train = {name: members[: -_held_out(members)] for name, members in everyone.items()}
        held_out = {name: members[-_held_out(members) :] for name, members in everyone.items()}
    shares = {"implicit": 1.0, "explicit": 0.0, "mix": options.implicit}
    known: set[_Said] = set()
    made = []
    for split, count, asked, around, share in (
        ("train", sizes[0], train, train, options.implicit),
        ("evaluation", sum(sizes[1:]), held_out, everyone, shares[options.evaluation]),
    ):
        rng = Random(f"lot {split} {options.seed}")
        for number in range(count):
            drawn = _fresh(_CASES[number % len(_CASES)], asked, around, options, rng, known)
            implicit = rng.random() < share
            made.append(_told(drawn, implicit, split != "train", everyone, options))
    return made


def _held_out(members: Sequence[str]) -> int:
    return max(1, len(members) // 3)


def _fresh(case: str, asked: _Members, around: _Members, options: Options, rng: Random, known: set[_Said]) -> Example:
    # Drawn anew after a repetition, it would soon be more where there are few examples, and these are not of every case.
    loose = rng.randint(*options.distractors)
    for _ in range(_ATTEMPTS):
        drawn = _draw(case, loose, asked, around, options, rng)
        said = (frozenset(drawn.context), drawn.statement)
        if said not in known:
            known.add(said)
            return drawn
    raise ValueError(
        f"there are hardly more than {len(known)} distinct examples, with {loose} distractors: lower n, or raise members, "
        "attributes or distractors"
    )


def _draw(case: str, loose: int, asked: _Members, around: _Members, options: Options, rng: Random) -> Example:
    """An explicit example with a positive statement about one of `asked`, and so many distractors."""
    own, other, third = rng.sample(list(asked), 3)
    who = rng.choice(asked[own])
    attribute, *further = rng.sample(natural.concepts().attributes[: options.attributes], 3)
    ruled = {"holds": (own, other), "negated": (other, own), "elsewhere": (other, third)}[case]
    said = [
        logic.Literal(IS_A, who, own),
        logic.Literal(attribute, ruled[0]),
        logic.Literal(attribute, ruled[1], positive=False),
    ]
    said += rng.sample(_distractors(who, attribute, further, ruled, around, rng), loose)
    rng.shuffle(said)
    return Example(tuple(said), logic.Literal(attribute, who), case == "holds")


def _distractors(
    who: str, attribute: str, further: Sequence[str], ruled: Sequence[str], around: _Members, rng: Random
) -> list[logic.Literal]:
    """Sentences that agree with the context and settle nothing.

    Every class is as likely in them, that of `who` as well, or they would tell by elimination who is what.
    """
    fellows = {kind: [name for name in names if name != who] for kind, names in around.items()}
    # Of the classes that have or lack the attribute, nobody is said to.
    stranger = rng.choice(fellows[rng.choice([kind for kind in fellows if kind not in ruled])])
    kind = rng.choice(list(fellows))
    return [
        logic.Literal(further[0], who, positive=rng.random() < 0.5),
        logic.Literal(further[1], rng.choice(list(around)), positive=rng.random() < 0.5),
        logic.Literal(attribute, stranger, positive=rng.random() < 0.5),
        logic.Literal(IS_A, rng.choice(fellows[kind]), kind),
    ]


def _told(drawn: Example, implicit: bool, evaluated: bool, everyone: _Members, options: Options) -> Example:
    """The example as the options want it. What chance decides here rests on the meaning alone."""
    chance = Random(f"told {options.seed} {to_json(drawn)}")
    negated = chance.random() < 0.5
    statement, label = drawn.statement, drawn.label
    needed = [fact for fact in drawn.context if (fact.predicate, fact.subject) == (IS_A, statement.subject)]
    subject = chance.choice([name for names in everyone.values() for name in names if name != statement.subject])
    words = natural.concepts().attributes[: options.attributes]
    attribute = chance.choice([word for word in words if word != statement.predicate])
    if negated and options.negate:
        statement, label = statement._replace(positive=False), not label
    if evaluated and options.probe in ("subject-swap", "both-swap"):
        statement = statement._replace(subject=subject)
    if evaluated and options.probe in ("object-swap", "both-swap"):
        statement = statement._replace(predicate=attribute)
    context = tuple(fact for fact in drawn.context if not (implicit and fact in needed))
    return Example(context, statement, label)


def row(example: Example, language: str, options: Options) -> dict[str, Any]:
    """One line of data in a language (`fr`) or pair (`en-fr`: context in English, statement in French).

    The statement of the context-only probe is empty in all splits; tokenised, that is a second segment of no tokens.

    Raises:
        ValueError: no such language.
    """
    context, phrase = natural.lexicons(Target(language).languages)
    return {
        "context": context.join(context.statement(fact) for fact in example.context),
        "phrase": "" if options.probe == "context-only" else phrase.statement(example.statement),
        "answer": LABELS[example.label],
    }


def to_json(example: Example) -> str:
    """One line of JSON that `from_json` reads back."""
    return json.dumps([example.context, example.statement, example.label], separators=(",", ":"))


def from_json(text: str) -> Example:
    """The example that `to_json` wrote.

    Raises:
        ValueError: `text` is not an example.
    """
    try:
        context, statement, label = json.loads(text)
        return Example(tuple(logic.Literal(*fact) for fact in context), logic.Literal(*statement), label)
    except (ValueError, TypeError) as error:
        raise ValueError(f"not an example in JSON, which to_json writes: {text[:80]!r} ({error})") from error
