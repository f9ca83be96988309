"""Search and mining equal dense formulas in double precision, whatever the blocks, and with ties."""

import itertools
from typing import Any

import numpy as np
import pytest
from dense_fixture import cosines, margins
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from xlgrid.heads.embed.search import Score, Vectors, margin, mine, nearest, search

SCORES: tuple[Score, ...] = ("cosine", "ratio", "distance")


def signs(rows: int) -> st.SearchStrategy[Vectors]:
    """Vectors of 1 and -1: they all have the length 2, so that products are exact and many cosines are equal."""
    return arrays.arrays(np.float32, (rows, 4), elements=st.sampled_from([-1.0, 1.0]))


@st.composite
def pools(draw: Any) -> tuple[Vectors, Vectors]:
    sizes = draw(st.tuples(st.integers(1, 40), st.integers(1, 40)))
    return draw(signs(sizes[0])), draw(signs(sizes[1]))


def dense_order(similarities: np.ndarray, k: int) -> np.ndarray:
    """The columns of the `k` highest values of each row, the lower columns first where values are equal."""
    return np.array([sorted(range(len(row)), key=lambda column: (-row[column], column))[:k] for row in similarities])


@given(pools(), st.integers(1, 6), st.integers(1, 9))
def test_the_nearest_are_those_of_all_cosines_sorted(vectors: tuple[Vectors, Vectors], k: int, side: int) -> None:
    candidates = nearest(*vectors, k, block=side**2)
    dense = cosines(*vectors)
    order = dense_order(dense, k)
    assert candidates.rows.tolist() == order.tolist()
    np.testing.assert_allclose(candidates.scores, np.take_along_axis(dense, order, 1), atol=1e-15)


@pytest.mark.parametrize("block", [1, 100, 2**24])
def test_the_nearest_of_real_vectors_do_not_depend_on_the_blocks(block: int) -> None:
    rng = np.random.default_rng(1)
    queries, pool = rng.normal(size=(37, 24)).astype(np.float32), rng.normal(size=(53, 24)).astype(np.float32)
    candidates, dense = nearest(queries, pool, 4, block), cosines(queries, pool)
    assert candidates.rows.tolist() == np.argsort(-dense, axis=1)[:, :4].tolist()
    np.testing.assert_allclose(candidates.scores, -np.sort(-dense, axis=1)[:, :4], rtol=1e-12)


@pytest.mark.parametrize("block", [1, 9, 16, 10_000])
def test_of_equal_vectors_the_first_is_found(block: int) -> None:
    """Single precision alone would choose one of them by where it stands in a block."""
    rng = np.random.default_rng(2)
    queries = rng.normal(size=(20, 33)).astype(np.float32)
    pool = np.concatenate([queries, queries, queries])
    assert nearest(queries, pool, 3, block).rows.tolist() == [[row, row + 20, row + 40] for row in range(20)]


def test_lengths_do_not_count_and_a_vector_of_zeros_has_no_cosine() -> None:
    pool = np.array([[0, 0], [0, 5], [3, 0]], np.float32)
    candidates = nearest(np.array([[7, 0], [0, 0]], np.float32), pool, 3)
    assert candidates.rows.tolist() == [[2, 0, 1], [0, 1, 2]]
    assert candidates.scores.tolist() == [[1, 0, 0], [0, 0, 0]]


def test_the_margins_of_an_example() -> None:
    cosines, means = np.array([0.9, 0.2]), np.array([0.6, 0.0])
    assert margin(cosines, means, "cosine").tolist() == [0.9, 0.2]
    assert margin(cosines, means, "ratio").tolist() == pytest.approx([1.5, 0.2])
    assert margin(cosines, means, "distance").tolist() == pytest.approx([0.3, 0.2])


@given(pools(), st.sampled_from(SCORES), st.integers(1, 6), st.integers(1, 9))
def test_a_query_retrieves_the_best_of_its_neighbours(
    vectors: tuple[Vectors, Vectors], score: Score, k: int, side: int
) -> None:
    queries, pool = vectors
    scores, neighbours = margins(queries, pool, score, k), dense_order(cosines(queries, pool), k)
    expected = [max(columns, key=lambda column: scores[row, column]) for row, columns in enumerate(neighbours.tolist())]
    retrieved = search(queries, pool, score, k, side**2).tolist()
    # Margins that are equal on paper may differ in the last digit here.
    for row, (neighbour, best) in enumerate(zip(retrieved, expected, strict=True)):
        assert neighbour == best or scores[row, neighbour] == pytest.approx(scores[row, best], abs=1e-12)


@given(pools(), st.sampled_from(SCORES), st.integers(1, 6), st.integers(1, 9))
def test_mined_pairs_are_taken_greedily_from_the_proposals_of_both_pools(
    vectors: tuple[Vectors, Vectors], score: Score, k: int, side: int
) -> None:
    first, second = vectors
    dense, scores = cosines(first, second), margins(first, second, score, k)
    forward, backward = dense_order(dense, k), dense_order(dense.T, k)
    proposed = [(row, int(max(columns, key=lambda at: scores[row, at]))) for row, columns in enumerate(forward)]
    proposed += [(int(max(rows, key=lambda at: scores[at, column])), column) for column, rows in enumerate(backward)]
    expected: list[tuple[int, int]] = []
    for row, column in sorted(proposed, key=lambda pair: -scores[pair].round(12)):
        if all(row != other and column != another for other, another in expected):
            expected.append((row, column))
    mined = mine(first, second, score, k, side**2)
    pairs = list(zip(mined.first.tolist(), mined.second.tolist(), strict=True))
    # No sentence twice, the scores of the formula in descending order, and no pair that could be added.
    assert len({row for row, _ in pairs}) == len({column for _, column in pairs}) == len(pairs)
    np.testing.assert_allclose(mined.scores, [scores[pair] for pair in pairs], atol=1e-12)
    assert (np.diff(mined.scores) <= 0).all()
    if score == "cosine":
        assert pairs == expected


def test_mining_equals_an_exhaustive_loop_without_ties() -> None:
    rng = np.random.default_rng(3)
    # With one neighbour, the margin of all mutual neighbours is the same.
    for score, k in itertools.product(SCORES, (2, 4)):
        first, second = rng.normal(size=(30, 8)).astype(np.float32), rng.normal(size=(21, 8)).astype(np.float32)
        dense, scores = cosines(first, second), margins(first, second, score, k)
        proposed = set()
        for row in range(30):
            proposed.add((row, max(np.argsort(-dense[row])[:k], key=lambda column: scores[row, column])))
        for column in range(21):
            proposed.add((max(np.argsort(-dense[:, column])[:k], key=lambda row: scores[row, column]), column))
        expected = []
        while proposed:
            pair = max(proposed, key=lambda each: scores[each])
            expected.append(pair)
            proposed = {each for each in proposed if each[0] != pair[0] and each[1] != pair[1]}
        mined = mine(first, second, score, k, block=50)
        assert list(zip(mined.first.tolist(), mined.second.tolist(), strict=True)) == expected
        np.testing.assert_allclose(mined.scores, [scores[pair] for pair in expected], rtol=1e-12)
