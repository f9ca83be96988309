"""BUCC: which sentences of two pools translate one another? (Zweigenbaum et al. 2018; XTREME, Hu et al. 2020)

Targets are pairs such as `fr-en`. BUCC's own files have the pools, with a line for each sentence, and the gold pairs,
with a line for each pair. `{part}` stands for the code of one of the languages, or for `gold`. XTREME chooses the
threshold on the sample of BUCC 2018, and its test set is BUCC's training set:
`data: {local: "bucc2018/{language}/{language}.{split}.{part}", splits: {dev: sample, test: training}}`.

The miniature is in artificial languages: both pools state some of the facts, and only one pool states each other fact.
"""

import json
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from xlgrid.synthetic import world
from xlgrid.synthetic.miniatures import wikiann
from xlgrid.synthetic.miniatures.pairs import sides
from xlgrid.synthetic.miniatures.wikiann import Options, speaks
from xlgrid.synthetic.world import Fact

__all__ = ["COLUMNS", "LABELS", "Options", "examples", "from_json", "group", "row", "speaks", "to_json"]

LABELS: Sequence[str] = ()
COLUMNS = ("id", "side", "sentence", "gold")
# The share of the sentences that have a translation in the other pool.
_PARALLEL = 0.5


class Sentence(NamedTuple):
    """A sentence of a pool.

    Attributes:
        number: the number of the fact that it states.
        side: the side of the pool: 0 for the first language of the pair, 1 for the second.
        fact: the fact that it states.
        has_translation: whether the other pool states this fact, too.
    """

    number: int
    side: int
    fact: Fact
    has_translation: bool


def group(options: Options) -> int:
    """The number of consecutive sentences in the same split. Splits have even sizes, with half of the sentences for
    each pool."""
    return 2


def examples(options: Options, sizes: Sequence[int]) -> list[Sentence]:
    """`sum(sizes)` sentences, the training split first. No two splits share a fact, and each split has a gold pair.

    Raises:
        ValueError: there are too few distinct facts.
    """
    counts = [min(size // 2, max(1, round(size * _PARALLEL / 2))) for size in sizes]
    facts = wikiann.draw(options, [size - count for size, count in zip(sizes, counts, strict=True)], named=False)
    rng, sentences, number = Random(f"bucc {options.seed}"), [], 0
    for size, count in zip(sizes, counts, strict=True):
        drawn = list(enumerate(facts[number : number + size - count], start=number))
        number += len(drawn)
        of_split = [Sentence(at, side, fact, True) for at, fact in drawn[:count] for side in (0, 1)]
        of_split += [Sentence(at, at % 2, fact, False) for at, fact in drawn[count:]]
        rng.shuffle(of_split)
        sentences += of_split
    return sentences


def row(sentence: Sentence, language: str, options: Options) -> dict[str, Any]:
    """One row of data: a sentence in the first or the second language of a pair, with the id of its translation.

    Raises:
        ValueError: a language of the pair is not an artificial language.
    """
    codes = sides(language)
    ids = [f"{code}-{sentence.number:09}" for code in codes]
    return {
        "id": ids[sentence.side],
        "side": sentence.side,
        "sentence": options.language(codes[sentence.side]).sentence(sentence.fact),
        "gold": ids[1:] if sentence.has_translation and sentence.side == 0 else [],
    }


def to_json(sentence: Sentence) -> str:
    """A sentence as one line of JSON."""
    return json.dumps([*sentence[:2], world.to_json(sentence.fact), sentence.has_translation], separators=(",", ":"))


def from_json(text: str) -> Sentence:
    """The sentence that `to_json` wrote."""
    number, side, fact, has_translation = json.loads(text)
    return Sentence(number, side, world.from_json(fact), has_translation)
