"""The head `embed-mining`: pairs above the best threshold on the dev set, as XTREME's evaluation of BUCC has it."""

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from dense_fixture import cosines, margins
from hypothesis import given
from hypothesis import strategies as st
from rows_fixture import rows_of

from xlgrid.heads import HEADS
from xlgrid.heads.embed.mining import MiningHead, threshold
from xlgrid.heads.head import TaskColumns
from xlgrid.heads.tokens import Tokens

HEAD = HEADS["embed-mining"]


def outcomes_of(tokens: Tokens, vectors: list[Any]) -> list[Any]:
    return HEAD.outcomes(tokens, HEAD.answers(tokens, vectors))


TASK = TaskColumns("bucc", ("sentence",), "", (), ())


def f1_of(kept: int, right: int, gold: int) -> float:
    return 2 * right / (kept + gold) if kept + gold else 0.0


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=1, max_size=12), st.integers(0, 5))
def test_the_threshold_is_the_best_of_all(pairs: list[tuple[int, bool]], without: int) -> None:
    """Every cut between two scores is tried, and each pair at a cut stays with its equals."""
    scores, right = np.array([score / 4 for score, _ in pairs]), np.array([is_right for _, is_right in pairs])
    gold = int(right.sum()) + without
    least = threshold(scores, right, gold)
    kept = scores >= least
    best = (
        max(f1_of(int((scores >= cut).sum()), int(right[scores >= cut].sum()), gold) for cut in scores) if gold else 0
    )
    assert f1_of(int(kept.sum()), int(right[kept].sum()), gold) == pytest.approx(best)
    if not right.any():
        assert kept.all()
        return
    # No higher cut is as good, and the threshold is in the middle of the gap below the last pair that it keeps.
    for cut in scores[scores > scores[kept].min()]:
        above = scores >= cut
        assert f1_of(int(above.sum()), int(right[above].sum()), gold) < best - 1e-12
    below = scores[~kept]
    assert least == (scores[kept].min() + below.max()) / 2 if len(below) else least == scores.min()


def test_the_threshold_is_that_of_xtremes_loop_without_ties() -> None:
    """XTREME's loop over the pairs in descending order, with exact numbers; it has no threshold that keeps all pairs."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        scores, right = rng.random(20), rng.random(20) < 0.4
        gold, best, expected, correct = int(right.sum()) + 3, Fraction(0), 0.0, 0
        order = np.argsort(-scores)
        for at, row in enumerate(order[:-1]):
            correct += int(right[row])
            if correct:
                precision, recall = Fraction(correct, at + 1), Fraction(correct, gold)
                f1 = 2 * precision * recall / (precision + recall)
                if f1 > best:
                    best, expected = f1, (scores[row] + scores[order[at + 1]]) / 2
        if Fraction(2 * int(right.sum()), 20 + gold) <= best:
            assert threshold(scores, right, gold) == pytest.approx(expected)


def tokens_of(rows: list[dict[str, Any]], **options: Any) -> Tokens:
    """Tokens of sentences."""
    columns: dict[str, Any] = {name: np.array([row[name] for row in rows]) for name in ("side", "is_dev")}
    columns |= {name: pa.array([row[name] for row in rows]) for name in ("id", "sentence")}
    columns["gold"] = pa.array([row["gold"] for row in rows], pa.list_(pa.string()))
    return rows_of("embed-mining", columns, options=MiningHead.options(**options).model_dump())


def world(seed: int, sizes: tuple[int, int] = (25, 30), pairs: int = 12) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Rows of a dev set and a test set in random order, and vectors: those of translations are near each other."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    vectors: list[np.ndarray] = []
    for is_dev in (1, 0):
        meanings = rng.normal(size=(pairs, 6))
        for side, size in enumerate(sizes):
            for at in range(size):
                gold = [f"1-{at}"] if side == 0 and at < pairs else []
                text = f"{is_dev} {side} {at}"
                rows.append({"id": f"{side}-{at}", "side": side, "is_dev": is_dev, "sentence": text, "gold": gold})
                vectors.append(meanings[at] + 0.4 * rng.normal(size=6) if at < pairs else rng.normal(size=6))
    order = rng.permutation(len(rows))
    return [rows[at] for at in order], np.array(vectors, np.float32)[order]


def reference(rows: list[dict[str, Any]], vectors: np.ndarray, score: Any, k: int) -> dict[str, list[int]]:
    """Outcomes by id, by dense matrices and plain loops."""
    candidates: dict[int, dict[tuple[str, str], float]] = {}
    gold: dict[int, set[tuple[str, str]]] = {}
    ids: dict[int, list[str]] = {}
    for is_dev in (1, 0):
        sides = [
            [at for at, row in enumerate(rows) if (row["side"], row["is_dev"]) == (side, is_dev)] for side in (0, 1)
        ]
        # Of sentences with one text, one is mined, and its pairs are dropped.
        texts = [[rows[at]["sentence"] for at in side] for side in sides]
        distinct = [
            [at for n, at in enumerate(side) if text.index(rows[at]["sentence"]) == n]
            for side, text in zip(sides, texts, strict=True)
        ]
        x, y = (vectors[side] for side in distinct)
        dense, scores = cosines(x, y), margins(x, y, score, k)
        proposed = {(i, max(np.argsort(-dense[i])[:k], key=lambda j: scores[i, j])) for i in range(len(x))}
        proposed |= {(max(np.argsort(-dense[:, j])[:k], key=lambda i: scores[i, j]), j) for j in range(len(y))}
        pairs: dict[tuple[int, int], float] = {}
        for i, j in sorted(proposed, key=lambda pair: -scores[pair]):
            if all(i != other and j != another for other, another in pairs):
                pairs[i, j] = float(scores[i, j])
        candidates[is_dev] = {
            (rows[distinct[0][i]]["id"], rows[distinct[1][j]]["id"]): value
            for (i, j), value in pairs.items()
            if value > 0
            and texts[0].count(rows[distinct[0][i]]["sentence"])
            == texts[1].count(rows[distinct[1][j]]["sentence"])
            == 1
        }
        gold[is_dev] = {(rows[at]["id"], number) for at in sides[0] for number in rows[at]["gold"]}
        ids[is_dev] = [rows[at]["id"] for at in sides[0]]

    def f1(least: float) -> float:
        kept = {pair for pair, value in candidates[1].items() if value >= least}
        return f1_of(len(kept), len(kept & gold[1]), len(gold[1]))

    values = sorted(candidates[1].values(), reverse=True)
    best = max(values, key=lambda value: (f1(value), value))
    below = [value for value in values if value < best]
    least = (best + below[0]) / 2 if below else best
    kept = {pair for pair, value in candidates[0].items() if value >= least}
    return {
        number: [
            sum(pair[0] == number for pair in kept & gold[0]),
            sum(pair[0] == number for pair in kept - gold[0]),
            sum(pair[0] == number for pair in gold[0] - kept),
        ]
        for number in ids[0]
    }


@pytest.mark.parametrize("score", ["ratio", "distance", "cosine"])
@pytest.mark.parametrize("seed", range(5))
def test_outcomes_are_those_of_dense_matrices(score: str, seed: int) -> None:
    rows, vectors = world(seed)
    # Two sentences with the text of a gold pair's, one in each language.
    for at, row in enumerate(rows):
        if row["id"] in ("0-20", "1-20"):
            original = next(
                n for n, o in enumerate(rows) if o["id"] == f"{row['side']}-3" and o["is_dev"] == row["is_dev"]
            )
            row["sentence"], vectors[at] = rows[original]["sentence"], vectors[original]
    outcomes = outcomes_of(tokens_of(rows, score=score, k=3), list(vectors))
    expected = reference(rows, vectors, score, 3)
    names = [row["id"] for row in rows if (row["side"], row["is_dev"]) == (0, 0)]
    assert dict(zip(names, outcomes, strict=True)) == expected
    assert sum(o[0] for o in expected.values()) > 2, "the example is no test of mining"


@pytest.mark.parametrize(
    ("score", "second_pair"),
    [
        ("cosine", ([0, 1, 0], [0, -0.1, 1])),
        # Each of the two is nearer to a sentence of the first pair than to the other.
        ("distance", ([0.8, 0.6, 0], [0.8, 0.11 / 0.6, 0.571])),
    ],
)
def test_a_pair_of_a_score_that_is_not_above_0_is_no_candidate(
    score: str, second_pair: tuple[list[float], ...]
) -> None:
    """XTREME's mining writes pairs whose score is above 0. Otherwise the dev set would choose a threshold that keeps these."""
    places = {"0-0": [1, 0, 0], "1-0": [1, 0, 0], "0-1": second_pair[0], "1-1": second_pair[1]}
    rows = [
        {"id": number, "side": int(number[0]), "is_dev": is_dev, "sentence": f"{is_dev} {number}", "gold": gold}
        for is_dev in (1, 0)
        for number, gold in (("0-0", ["1-0"]), ("0-1", ["1-1"]), ("1-0", []), ("1-1", []))
    ]
    outcomes = outcomes_of(tokens_of(rows, score=score, k=2), [np.array(places[row["id"]], np.float32) for row in rows])
    assert outcomes == [[1, 0, 0], [0, 0, 1]]


def valid() -> list[dict[str, Any]]:
    return [
        {"id": "fr-1", "side": 0, "sentence": "un", "gold": ["en-1"]},
        {"id": "fr-2", "side": 0, "sentence": "deux", "gold": []},
        {"id": "en-1", "side": 1, "sentence": "one", "gold": []},
    ]


def check(rows: list[dict[str, Any]]) -> None:
    table = pa.Table.from_pylist(
        rows,
        schema=pa.schema(
            [("id", pa.string()), ("side", pa.int32()), ("sentence", pa.string()), ("gold", pa.list_(pa.string()))]
        ),
    )
    HEAD.check(table, TASK, "here")
    if problem := HEAD.problem_of_all(table):
        raise ValueError(f"here {problem}")


@pytest.mark.parametrize(
    ("row", "change", "message"),
    [
        (
            2,
            {"id": "en-2"},
            r"here lacks 1 of the 1 sentences of the second language whose ids are in `gold`, such as 'en-1'",
        ),
        (2, {"side": 0}, r"here has no sentence in the second language of the pair: mining needs a pool in each"),
        (1, {"id": "fr-1"}, r"here has 2 sentences with the id 'fr-1' in the first language: make the ids unique"),
        (0, {"gold": []}, r"here has no gold pair, so that nothing can be scored"),
        (1, {"side": 2}, r"here, row 2, column 'side': got 2, expected 0 for the first language of the pair, or 1"),
        (
            2,
            {"gold": ["fr-1"]},
            r"here, row 3, column 'gold': got fr-1, expected an empty list for a sentence of the second",
        ),
        (1, {"gold": None}, r"here, row 2, column 'gold': the value is missing"),
    ],
)
def test_pools_that_do_not_fit_are_errors(row: int, change: dict[str, Any], message: str) -> None:
    check(valid())
    rows = valid()
    rows[row] |= change
    with pytest.raises(ValueError, match=message):
        check(rows)


def test_an_id_of_numbers_and_a_gold_id_that_is_no_list_are_errors() -> None:
    numbers = pa.Table.from_pylist([row | {"id": at} for at, row in enumerate(valid())])
    with pytest.raises(ValueError, match="here, column 'id' is of type int64: expected text"):
        HEAD.check(numbers, TASK, "here")
    texts = pa.Table.from_pylist([row | {"gold": "en-1"} for row in valid()])
    with pytest.raises(ValueError, match="here, row 1, column 'gold': got 'en-1', expected a list of ids as text"):
        HEAD.check(texts, TASK, "here")
