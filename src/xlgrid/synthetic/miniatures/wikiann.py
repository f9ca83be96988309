"""WikiANN: named entities (Pan et al. 2017; splits of Rahimi et al. 2019). The miniature is in artificial languages."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from pydantic import Field, PositiveInt

from xlgrid.base.settings import Seed, Strict
from xlgrid.synthetic import world
from xlgrid.synthetic.artificial import NER, Dials, Token, is_artificial
from xlgrid.synthetic.world import Fact, from_json, to_json

__all__ = ["COLUMNS", "LABELS", "Options", "draw", "examples", "from_json", "group", "row", "speaks", "to_json"]

LABELS = NER
COLUMNS = ("tokens", "ner_tags", "langs", "spans")
# The share of the entities in the training set if entities are held out.
_TRAIN_SHARE = 0.8


class Options(Dials):
    """The size of the data, and the differences between the artificial languages."""

    n: PositiveInt = Field(10_000, description="number of sentences in all three splits")
    seed: Seed = Field(0, description="decides the generated data")
    held_out_entities: bool = Field(
        False, description="dev and test mention only entities that training never mentions"
    )


def speaks(code: str) -> bool:
    """Whether the miniature can be generated in a language: in every artificial language."""
    return is_artificial(code)


def group(options: Strict) -> int:
    """The number of consecutive examples in the same split. Examples are independent, so it is 1."""
    return 1


def draw(options: Options, sizes: Sequence[int], named: bool) -> list[Fact]:
    """Distinct facts for splits of the given sizes, the training split first. If `named`, each fact mentions an entity.

    Raises:
        ValueError: there are too few distinct facts about the entities of a split.
    """
    if not options.held_out_entities:
        return _distinct(sum(sizes), options.seed, (0.0, 1.0), named, set())
    train = _distinct(sizes[0], options.seed, (0.0, _TRAIN_SHARE), named, set())
    return train + _distinct(sum(sizes[1:]), options.seed, (_TRAIN_SHARE, 1.0), named, set(train))


examples = partial(draw, named=True)


def _distinct(n: int, seed: int, entities: tuple[float, float], named: bool, known: set[Fact]) -> list[Fact]:
    """`n` distinct facts that are not in `known`, about a range of the entities, given as shares of all entities."""
    for factor in (2, 4, 8, 16):
        drawn = dict.fromkeys(world.facts(factor * n, seed, entities) if n else [])
        fresh = [fact for fact in drawn if fact not in known and (world.mentions(fact) or not named)]
        if len(fresh) >= n:
            return fresh[:n]
    raise ValueError(
        f"only {len(fresh)} of {n} distinct facts exist about the entities from {entities[0]:.0%} to {entities[1]:.0%} "
        "of all entities: lower n"
    )


def row(fact: Fact, language: str, options: Options) -> dict[str, Any]:
    """One row of data: a sentence, with `ner_tags` as indices into LABELS and `spans` as in WikiANN ("PER: Ada
    Lovelace").

    Raises:
        ValueError: `language` is not an artificial language.
    """
    tokens = options.language(language).realise(fact)
    return {
        "tokens": [token.form for token in tokens],
        "ner_tags": [LABELS.index(token.ner) for token in tokens],
        "langs": [language] * len(tokens),
        "spans": _spans(tokens),
    }


def _spans(tokens: Sequence[Token]) -> list[str]:
    spans: list[str] = []
    for token in tokens:
        if token.ner.startswith("B-"):
            spans.append(f"{token.ner[2:]}: {token.form}")
        elif token.ner != "O":
            spans[-1] += f" {token.form}"
    return spans
