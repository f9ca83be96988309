"""WikiANN: named entities (Pan et al. 2017; splits of Rahimi et al. 2019), here told by artificial languages."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field, PositiveInt

from xlgrid.base.settings import Strict
from xlgrid.synthetic import world
from xlgrid.synthetic.artificial import NER, Token, artificial, is_artificial
from xlgrid.synthetic.world import Fact, from_json, to_json

__all__ = ["COLUMNS", "LABELS", "Options", "draw", "examples", "from_json", "group", "row", "speaks", "to_json"]

LABELS = NER
COLUMNS = ("tokens", "ner_tags", "langs", "spans")
_SHARE = 0.8  # of the entities are for training where the others are held out


class Options(Strict):
    """What sentences of artificial languages are made of; the dials are explained at `xlgrid.synthetic.artificial`."""

    n: PositiveInt = Field(10_000, description="sentences in all three splits")
    seed: int = 0
    held_out_entities: bool = Field(False, description="dev and test mention only entities never seen in training")
    overlap: float = Field(0.8, ge=0, le=1)
    loans: float = Field(0.1, ge=0, le=1)
    distance: float = Field(1.0, ge=0, le=1)


def speaks(code: str) -> bool:
    """Artificial languages tell the facts of their world."""
    return is_artificial(code)


def group(options: Options) -> int:
    """Every sentence may go into any split."""
    return 1


def examples(options: Options, sizes: Sequence[int]) -> list[Fact]:
    """Distinct facts, those of the training split first; every one mentions a named entity."""
    return draw(options, sizes, named=True)


def draw(options: Options, sizes: Sequence[int], named: bool) -> list[Fact]:
    """Distinct facts for splits of the given sizes (train, then the others), with a named entity in each if `named`.

    Raises:
        ValueError: the held-out entities cannot fill the splits with distinct facts.
    """
    if not options.held_out_entities:
        return _distinct(sum(sizes), options.seed, (0.0, 1.0), named, set())
    train = _distinct(sizes[0], options.seed, (0.0, _SHARE), named, set())
    return train + _distinct(sum(sizes[1:]), options.seed, (_SHARE, 1.0), named, set(train))


def _distinct(n: int, seed: int, entities: tuple[float, float], named: bool, known: set[Fact]) -> list[Fact]:
    for factor in (2, 4, 8, 16):
        drawn = dict.fromkeys(world.facts(factor * n, seed, entities) if n else [])
        fresh = [fact for fact in drawn if fact not in known and (world.mentions(fact) or not named)]
        if len(fresh) >= n:
            return fresh[:n]
    raise ValueError(f"only {len(fresh)} of {n} distinct facts found about {entities} of the entities: lower n")


def row(fact: Fact, language: str, options: Options) -> dict[str, Any]:
    """One sentence. `ner_tags` index LABELS; `spans` are written as in WikiANN ("PER: Ada Lovelace").

    Raises:
        ValueError: `language` is no artificial language.
    """
    tokens = artificial(language, options.overlap, options.loans, options.distance).realise(fact)
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
