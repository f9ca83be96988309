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


class Options(Dials):
    """The size of the data, and the differences between the artificial languages."""

    n: PositiveInt = Field(10_000, description="number of sentences in all three splits")
    seed: Seed = Field(0, description="decides the generated data")


def speaks(code: str) -> bool:
    """Whether the miniature can be generated in a language: in every artificial language."""
    return is_artificial(code)


def group(options: Strict) -> int:
    """The number of consecutive examples in the same split. Examples are independent, so it is 1."""
    return 1


def draw(options: Options, sizes: Sequence[int], named: bool) -> list[Fact]:
    """Distinct facts for splits of the given sizes, the training split first. If `named`, each fact mentions an entity.

    Raises:
        ValueError: there are too few distinct facts.
    """
    n = sum(sizes)
    for factor in (2, 4, 8, 16):
        drawn = dict.fromkeys(world.facts(factor * n, options.seed))
        distinct = [fact for fact in drawn if world.mentions(fact) or not named]
        if len(distinct) >= n:
            return distinct[:n]
    raise ValueError(f"only {len(distinct)} of {n} distinct facts exist: lower n")


examples = partial(draw, named=True)


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
