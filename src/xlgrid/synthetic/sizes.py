"""The options that generated theories and premises share: their words, facts and rules."""

from functools import cached_property
from typing import ClassVar, Self

from pydantic import Field, PositiveInt, model_validator

from xlgrid.base.settings import Seed, Strict
from xlgrid.synthetic import natural
from xlgrid.synthetic.natural import Concepts

MAX_DEPTH = 5
# The number of draws after which the options are considered to allow no further theory or premise. Options that allow
# one need far fewer draws.
ATTEMPTS = 2000


class Sizes(Strict):
    """The size and content of generated texts: theories or premises. A pair (minimum, maximum) is inclusive."""

    LEAST_FACTS: ClassVar[int] = 1

    n: PositiveInt = Field(description="number of examples in all three splits")
    max_depth: int = Field(0, ge=0, le=MAX_DEPTH, description="depths from 0 to this one are equally frequent")
    seed: Seed = Field(0, description="decides the generated data")
    persons: int = Field(8, ge=0, le=8, description="use this many names of persons, the first ones of a lexicon")
    animals: int = Field(10, ge=0, le=10, description="use this many nouns for animals, the first ones of a lexicon")
    attributes: int = Field(16, ge=0, le=16, description="use this many adjectives, the first ones of a lexicon")
    relations: int = Field(
        8, ge=0, le=8, description="use this many verbs between two animals, the first ones of a lexicon"
    )
    facts: tuple[int, int] = Field(description="minimum and maximum number of facts in a text")
    rules: tuple[int, int] = Field(
        description="minimum and maximum number of rules in a text, which never has fewer than max_depth"
    )
    entities: int = Field(
        4,
        description="maximum number of persons or animals in a text, at least 2, and at least 3 if there are relations",
    )
    relational: float = Field(
        0.5, ge=0, le=1, description="share of texts about animals and relations; the others are about persons"
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for field, least in (("facts", self.LEAST_FACTS), ("rules", 0)):
            low, high = getattr(self, field)
            if not least <= low <= high:
                raise ValueError(
                    f"{field} must be (minimum, maximum) with {least} <= minimum <= maximum, got {(low, high)}"
                )
        depth = self.max_depth
        if self.rules[1] < depth:
            raise ValueError(f"max_depth {depth} needs at least {depth} rules, but rules is {self.rules}")
        for field, least, wanted in (("persons", 2, self.relational < 1), ("animals", 3, self.relational > 0)):
            if wanted and min(getattr(self, field), self.entities) < least:
                raise ValueError(
                    f"texts about {field} need at least {least} of them, got {field} {getattr(self, field)} and "
                    f"entities {self.entities}: raise these, or set relational to {int(field == 'persons')}"
                )
        if self.relational > 0 and not self.relations:
            raise ValueError(
                "texts about animals need at least 1 relation, got relations 0: raise it, or set relational to 0"
            )
        # A chain needs its start, the start of a decoy, and the conclusion of each of its rules.
        needed, what, available = max(depth, 1) + 2, "attributes", self.attributes
        if self.relational == 1:
            what, available = "attributes and relations together", self.attributes + self.relations
        if available < needed:
            raise ValueError(f"max_depth {depth} needs at least {needed} {what}, got {available}")
        return self

    @cached_property
    def words(self) -> Concepts:
        """The concepts that occur in the texts."""
        return Concepts(**{kind: words[: getattr(self, kind)] for kind, words in natural.concepts()._asdict().items()})
