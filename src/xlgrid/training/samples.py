"""Settings of training that limit the number of training examples: of the source, or of a cell's target."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, RootModel

from xlgrid.base.arrays import Ints
from xlgrid.heads import ALL_HEADS
from xlgrid.training.setting import Setting

if TYPE_CHECKING:
    from xlgrid.heads.head import Head
    from xlgrid.heads.tokens import Tokens

# Tells the random order of a sample from those of batches.
_SALT = 20261128
ALL: Literal["all"] = "all"


class _Sample(Setting):
    """A training on some of the training examples.

    The examples are in a random order that depends on the seed of the run, and a sample is the beginning of this order. So
    a sample of 10 examples is part of the sample of 100 with the same seed.
    """

    if TYPE_CHECKING:
        root: Any

    def conflict(self, training: Any) -> str | None:
        if sum(isinstance(setting, _Sample) for setting in training.added.values()) > 1:
            return "`examples` limits the training on the source, and `shots` that on the target: vary one of the two"
        if training.alpha is None:
            return None
        return "a sample of the examples is drawn once, and `alpha` draws without end: leave out one of the two"

    def lacking(self, examples: int) -> str | None:
        return None if self.root == ALL or self.root <= examples else _too_few(self.root, examples)

    def used(self, examples: int) -> int:
        return examples if self.root == ALL else min(self.root, examples)

    def pool(self, tokens: "Tokens", training: Any, seed: int) -> Ints:
        if self.root == ALL:
            return super().pool(tokens, training, seed)
        return sample(tokens, self.root, seed, "balanced" in training.added)


def _from(least: int) -> Callable[[Any], Any]:
    """A validator of numbers of examples from `least` on."""

    def check(value: Any) -> Any:
        if value == ALL or (isinstance(value, int) and not isinstance(value, bool) and value >= least):
            return value
        zero = ": zero-shot transfer is `shots: 0`, of the target" if value == 0 else ""
        raise ValueError(f"must be a whole number from {least} on, or `all`, got {value!r}{zero}")

    return check


class Examples(_Sample, RootModel[Annotated[int | Literal["all"], BeforeValidator(_from(1))]]):
    """A training on some of the examples of its source."""

    about = (
        "train on so many examples of each language or pair of the source, or on `all`. Samples of different sizes with "
        "the same seed are nested"
    )


class Shots(_Sample, RootModel[Annotated[int | Literal["all"], BeforeValidator(_from(0))]]):
    """A training on some of the examples of a cell's target, after the training on the source (Lauscher et al. 2020,
    section 5). With 0 examples, the model is that of the source."""

    about = (
        "only in `vary` of a grid: begin with the run on the source, and train on so many examples of the target, or on "
        "`all`. 0: zero-shot transfer. Samples of different sizes with the same seed are nested"
    )
    is_for_target: ClassVar[bool] = True


class Balanced(Setting, RootModel[Literal["label"]]):
    """Samples with the same number of examples of each label."""

    about = (
        "with `examples` or `shots`. label: a sample has the same number of examples of each label, up to one, as long "
        "as there are enough of them; absent: examples are drawn whatever their labels"
    )

    def conflict(self, training: Any) -> str | None:
        if any(isinstance(setting, _Sample) for setting in training.added.values()):
            return None
        return "`balanced` is about a sample of the examples: set `examples` or `shots`, too"

    def misfit(self, head: "Head") -> str | None:
        if head.class_column:
            return None
        return f"a sample of examples of head {head.name} cannot be balanced, because an example has no single label"


def sample(tokens: "Tokens", number: int, seed: int, balanced: bool) -> Ints:
    """The rows of some examples of each part of a mix, in their order.

    Args:
        number: of examples of each part.
        seed: decides the order of the examples, whatever the number.
        balanced: whether the sample has the same number of examples of each label, up to one, as long as there are enough.

    Raises:
        ValueError: a part has fewer examples.
    """
    parts = np.zeros(len(tokens), np.int16) if tokens.parts is None else tokens.parts
    chosen = [np.zeros(0, np.int64)]
    for part in np.unique(parts):
        rows = np.flatnonzero(parts == part)
        examples, first = np.unique(tokens.example_of[rows], return_index=True)
        if len(examples) < number:
            raise ValueError(_too_few(number, len(examples)))
        order = np.random.default_rng([_SALT, seed, int(part)]).permutation(len(examples))
        if balanced:
            labels = tokens.columns[ALL_HEADS.find(tokens.head).class_column][rows[first[order]]]
            order = order[np.argsort(_ranks(labels), kind="stable")]
        chosen.append(rows[np.isin(tokens.example_of[rows], examples[order[:number]])])
    return np.sort(np.concatenate(chosen))


def _too_few(number: int, examples: int) -> str:
    return (
        f"the setting asks for {number:,} training examples of each language, and there are {examples:,}: lower the "
        "number, write `all`, or leave the language out"
    )


def _ranks(labels: Ints) -> Ints:
    """[examples], how many earlier examples have the same label."""
    ranks = np.zeros(len(labels), np.int64)
    for label in np.unique(labels):
        at = np.flatnonzero(labels == label)
        ranks[at] = np.arange(len(at))
    return ranks
