"""The head `embed-mining`, which finds translations in two pools of sentences (BUCC: Zweigenbaum et al. 2018)."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pydantic import Field

from xlgrid.base.arrays import Flags, Ints
from xlgrid.heads.embed import search
from xlgrid.heads.embed.head import SIDE, Embedding, EmbeddingHead
from xlgrid.heads.encoding import Encoding
from xlgrid.heads.head import FILE, Evaluated, Example, TaskColumns, check_integers
from xlgrid.heads.metrics import MINING_F1, Outcome
from xlgrid.heads.tokens import Tokens

if TYPE_CHECKING:
    import pyarrow as pa

# The column that tells rows of the dev set, 1, from those of the test set, 0.
IS_DEV = "is_dev"


class Mining(Embedding):
    """The options of a task of mining."""

    score: search.Score = Field("ratio", description="the cosine, or its margin over the nearest neighbours")


class Pool(NamedTuple):
    """The sentences of a language in a split. Equal sentences are mined as one sentence, as in XTREME.

    Attributes:
        vectors: [distinct, size], the vectors of the distinct sentences.
        places: [distinct], the place of each of these sentences in the pool.
        is_unique: [distinct], whether no other sentence of the pool has the same text.
        ids: the ids of all sentences in the pool.
        gold: the ids of the translations of all sentences in the pool.
    """

    vectors: search.Vectors
    places: Ints
    is_unique: Flags
    ids: list[str]
    gold: list[list[str]]


class MiningHead(EmbeddingHead):
    """Mining of translations: pairs of sentences from two pools whose score is above a threshold are translations.

    The dev set chooses the threshold.

    The input is a column of text. Each row is a sentence of one of the two pools, with its `id`, its `side` (0 for the
    first language of the pair, 1 for the second) and `gold`, the list of the ids of its translations, which is empty in
    the second language.

    An outcome is `[true positives, false positives, false negatives]` for a sentence of the first language of the test
    set.
    """

    name = "embed-mining"
    all_metrics = (MINING_F1,)
    keeps_answers = True
    options = Mining

    def columns(self, task: TaskColumns) -> list[str]:
        return [*super().columns(task), "id", SIDE, "gold"]

    def splits(self, split: str) -> tuple[str, ...]:
        """The threshold is chosen on the dev set."""
        return (split, "dev")

    def texts(self, task: TaskColumns) -> Sequence[str]:
        return [*task.inputs, "id"]

    def check(self, table: "pa.Table", task: TaskColumns, where: str, first_row: int = 1) -> None:
        super().check(table, task, where, first_row)
        check_integers(table, (SIDE,), where)
        for row, (side, gold) in enumerate(
            zip(table[SIDE].to_pylist(), table["gold"].to_pylist(), strict=True), first_row
        ):
            if side not in (0, 1):
                raise ValueError(
                    f"{where}, row {row}, column {SIDE!r}: got {side}, expected 0 for the first language of the pair, "
                    "or 1 for the second"
                )
            if not isinstance(gold, list) or not all(isinstance(number, str) for number in gold):
                raise ValueError(f"{where}, row {row}, column 'gold': got {gold!r}, expected a list of ids as text")
            if side == 1 and gold:
                raise ValueError(
                    f"{where}, row {row}, column 'gold': got {', '.join(gold)}, expected an empty list for a sentence "
                    "of the second language: list the ids with the translations in the first language"
                )

    def problem_of_all(self, table: "pa.Table") -> str | None:
        """A problem with the two pools: one has no sentences, an id occurs twice in one, or the second pool lacks ids
        that are in `gold`."""
        sides, ids, gold = (table[column].to_pylist() for column in (SIDE, "id", "gold"))
        pools = [[number for number, of_side in zip(ids, sides, strict=True) if of_side == side] for side in (0, 1)]
        for name, pool in zip(("first", "second"), pools, strict=True):
            if not pool:
                return (
                    f"has no sentence in the {name} language of the pair: mining needs a pool in each language, so get "
                    "the data again"
                )
            number, count = Counter(pool).most_common(1)[0]
            if count > 1:
                return f"has {count} sentences with the id {number!r} in the {name} language: make the ids unique"
        named = [number for numbers in gold for number in numbers]
        if not named:
            return "has no gold pair, so that nothing can be scored: list the ids of translations in `gold`"
        if missing := sorted({*named} - {*pools[1]}):
            return (
                f"lacks {len(missing)} of the {len(named)} sentences of the second language whose ids are in `gold`, "
                f"such as {missing[0]!r}: use the pool and the gold pairs of the same release"
            )
        return None

    def fields(self) -> list["pa.Field"]:
        import pyarrow as pa

        return [
            *(pa.field(name, pa.int32()) for name in (SIDE, IS_DEV)),
            *(pa.field(name, pa.string()) for name in ("id", "sentence")),
            pa.field("gold", pa.list_(pa.string())),
        ]

    def encode(self, table: "pa.Table", task: TaskColumns, encoding: Encoding) -> dict[str, list[Any]]:
        """The rows of a tokens file: one for each sentence. The column `is_dev` marks sentences of the dev set."""
        sentences = table[task.inputs[0]].to_pylist()
        kept = {name: table[name].to_pylist() for name in (SIDE, "id", "gold")} | {IS_DEV: table[FILE].to_pylist()}
        return {**encoding.cut([sentences], task.inputs[0]), "sentence": sentences, **kept}

    def answers(self, tokens: Tokens, predictions: Sequence[search.Vectors]) -> list[str | None]:
        """The id of the sentence with which each sentence of the first language is mined; None without a pair."""
        settings = Mining.model_validate(tokens.options)
        dev, test = (_pools(tokens, predictions, is_dev) for is_dev in (1, 0))
        candidates = _mined(*dev, settings)
        least = threshold(
            np.array([score for _, _, score in candidates]),
            np.array([number in dev[0].gold[place] for place, number, _ in candidates], bool),
            sum(map(len, dev[0].gold)),
        )
        mined = {place: number for place, number, score in _mined(*test, settings) if score >= least}
        return [mined.get(place) for place in range(len(test[0].gold))]

    def outcomes(self, tokens: Tokens, answers: Sequence[str | None]) -> list[Outcome]:
        rows = np.flatnonzero((tokens.columns[IS_DEV] == 0) & (tokens.columns[SIDE] == 0)).tolist()
        gold = (tokens.columns["gold"][row].as_py() for row in rows)
        return [_outcome(answer, ids) for answer, ids in zip(answers, gold, strict=True)]

    def examples(self, seen: Evaluated) -> list[Example]:
        """The translations of each sentence of the first language, and the sentence with which it is mined."""
        sides, ids, texts, gold = (seen.data[name].to_pylist() for name in (SIDE, "id", seen.task.inputs[0], "gold"))
        second = {number: text for side, number, text in zip(sides, ids, texts, strict=True) if side}
        found = zip((row for row, side in enumerate(sides) if not side), seen.answers, seen.outcomes, strict=True)
        return [
            Example(row, " / ".join(second[each] for each in gold[row]), second.get(answer, ""), not wrong + missed)
            for row, answer, (_, wrong, missed) in found
        ]


def threshold(scores: search.Floats, right: Flags, gold: int) -> float:
    """The threshold on scores that gives the highest F1, halfway between the lowest kept score and the next lower one.

    If several thresholds have the same F1, the highest is returned. Pairs with equal scores are kept or left out
    together. If no pair is right, all pairs are kept, as in XTREME.

    Args:
        scores: [pairs], the score of each pair.
        right: [pairs], whether a pair is a gold pair.
        gold: the number of gold pairs.
    """
    order = np.argsort(-scores, kind="stable")
    scores, right = scores[order], right[order]
    if not right.any():
        return -np.inf
    is_last = np.append(scores[:-1] > scores[1:], True)
    f1 = 2 * np.cumsum(right) / (np.arange(1, len(scores) + 1) + gold)
    best = int(np.argmax(np.where(is_last, f1, -1)))
    if best == len(scores) - 1:
        return float(scores[best])
    middle = float(scores[best] + scores[best + 1]) / 2
    # Rounding can make the middle of two neighbouring numbers equal to the lower number.
    return middle if middle > scores[best + 1] else float(scores[best])


def _pools(tokens: Tokens, predictions: Sequence[search.Vectors], is_dev: int) -> tuple[Pool, Pool]:
    """The pools of the dev set or of the test set, in the first and in the second language."""
    here = tokens.columns[IS_DEV] == is_dev
    first, second = (np.flatnonzero(here & (tokens.columns[SIDE] == side)).tolist() for side in (0, 1))
    return _pool(tokens, predictions, first), _pool(tokens, predictions, second)


def _pool(tokens: Tokens, predictions: Sequence[search.Vectors], rows: Sequence[int]) -> Pool:
    """The pool of the sentences in some rows of a tokens file."""
    ids, texts, gold = ([tokens.columns[name][row].as_py() for row in rows] for name in ("id", "sentence", "gold"))
    counts = Counter(texts)
    places: dict[str, int] = {}
    for place, text in enumerate(texts):
        places.setdefault(text, place)
    return Pool(
        vectors=np.stack([predictions[rows[place]] for place in places.values()]),
        places=np.array([*places.values()]),
        is_unique=np.array([counts[text] == 1 for text in places]),
        ids=ids,
        gold=gold,
    )


def _mined(first: Pool, second: Pool, settings: Mining) -> list[tuple[int, str, float]]:
    """For each mined pair, the place in the first pool, the id in the second pool, and the score.

    As in XTREME, pairs with a score of at most 0 are left out, and so are pairs with a sentence whose text occurs twice
    in its pool.
    """
    pairs = search.mine(first.vectors, second.vectors, settings.score, settings.k)
    kept = (pairs.scores > 0) & first.is_unique[pairs.first] & second.is_unique[pairs.second]
    ids = [second.ids[place] for place in second.places[pairs.second[kept]].tolist()]
    return list(zip(first.places[pairs.first[kept]].tolist(), ids, pairs.scores[kept].tolist(), strict=True))


def _outcome(mined: str | None, gold: Sequence[str]) -> list[int]:
    """The outcome of a sentence, from the id of its mined translation (None without one) and the ids of its gold
    ones."""
    right = int(mined in gold)
    return [right, int(mined is not None) - right, len(gold) - right]
