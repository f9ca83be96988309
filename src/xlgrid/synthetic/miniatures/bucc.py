"""BUCC: which sentences of two pools translate one another? (Zweigenbaum et al. 2018; XTREME, Hu et al. 2020)

Targets are pairs such as `fr-en`. The pools and the gold pairs are in BUCC's own files, which have a line for each sentence, and
one for each gold pair; `{part}` stands for the code of either language, and for `gold`. XTREME chooses the threshold on the
sample of BUCC 2018, and its test set is BUCC's training set:
`data: {local: "bucc2018/{language}/{language}.{split}.{part}", splits: {dev: sample, test: training}}`.

The miniature is in artificial languages: some facts are stated in both pools, all others in one.
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
# Share of the sentences that have a translation in the other pool.
_PARALLEL = 0.5


class Sentence(NamedTuple):
    """A fact by its number, the side of the pool that states it, and whether the other pool does, too."""

    number: int
    side: int
    fact: Fact
    has_translation: bool


def group(options: Options) -> int:
    """How many consecutive sentences share a split: splits have even sizes, half of them for each pool."""
    return 2


def examples(options: Options, sizes: Sequence[int]) -> list[Sentence]:
    """`sum(sizes)` sentences, those of the training split first; no two splits share a fact, and each has a gold pair.

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
        ValueError: a language is no artificial language.
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
    """The sentence written by `to_json`."""
    number, side, fact, has_translation = json.loads(text)
    return Sentence(number, side, world.from_json(fact), has_translation)
