"""Trees: the best of all trees of short sentences, networkx's tree of longer ones, and what is no tree."""

from itertools import product

import networkx as nx
import numpy as np
import pytest

from xlgrid.heads.parsing.trees import best_tree, problem_of


def total(scores: np.ndarray, heads: list[int]) -> float:
    return float(scores[np.arange(len(heads)), heads].sum())


def is_tree(heads: tuple[int, ...]) -> bool:
    """Whether every word reaches the root, over one word."""

    def reaches(word: int) -> bool:
        for _ in heads:
            word = heads[word - 1] if word else 0
        return word == 0

    return heads.count(0) == 1 and all(reaches(word) for word in range(1, len(heads) + 1))


@pytest.mark.parametrize("words", range(1, 7))
def test_the_tree_is_the_best_of_all_trees(words: int) -> None:
    trees = np.array([heads for heads in product(range(words + 1), repeat=words) if is_tree(heads)])
    assert len(trees) == words ** (words - 1), "Cayley's formula, times the choice of the word below the root"
    draw = np.random.default_rng(words)
    for scale in (0.01, 1, 1000):
        for _ in range(30):
            scores = scale * draw.standard_normal((words, words + 1))
            best = scores[np.arange(words), trees].sum(1).max()
            heads = best_tree(scores)
            assert is_tree(tuple(heads))
            assert total(scores, heads) == pytest.approx(best, rel=1e-12, abs=1e-12 * scale)


@pytest.mark.parametrize("words", [7, 12, 20])
def test_the_tree_is_as_good_as_networkxs(words: int) -> None:
    """Over each word below the root, which networkx has to try one after another."""
    draw = np.random.default_rng(words)
    for _ in range(3):
        scores = draw.standard_normal((words, words + 1))
        best = -np.inf
        for first in range(1, words + 1):
            graph = nx.DiGraph()
            graph.add_edge(0, first, weight=scores[first - 1, 0])
            for word, head in product(range(1, words + 1), repeat=2):
                if word not in (head, first):
                    graph.add_edge(head, word, weight=scores[word - 1, head])
            tree = nx.maximum_spanning_arborescence(graph)
            best = max(best, sum(weight for *_, weight in tree.edges(data="weight")))
        heads = best_tree(scores)
        assert problem_of(heads) is None
        assert total(scores, heads) == pytest.approx(best, rel=1e-12)


def test_equal_scores_have_a_tree() -> None:
    for words in range(1, 12):
        assert problem_of(best_tree(np.zeros((words, words + 1)))) is None


def test_a_long_chain_of_circles_has_a_tree() -> None:
    """In which each circle that is contracted is in a circle with the next word."""
    words = 400
    scores = np.zeros((words, words + 1))
    for word in range(2, words + 1):
        scores[word - 1, word - 1] = scores[word - 2, word] = words - word + 1
    assert problem_of(best_tree(scores)) is None


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_not_finite_is_an_error(value: float) -> None:
    scores = np.zeros((3, 4))
    scores[1, 3] = value
    with pytest.raises(ValueError, match="the parser has diverged"):
        best_tree(scores)


def test_the_score_of_a_word_as_its_own_head_is_not_read() -> None:
    scores = np.zeros((2, 3))
    scores[0, 1] = scores[1, 2] = np.inf
    scores[0, 0] = 1
    assert best_tree(scores) == [0, 1]


@pytest.mark.parametrize(
    ("heads", "problem"),
    [
        ([2, 0, 2], None),
        ([0], None),
        ([], "0 words have the head 0"),
        ([0, 0], "2 words have the head 0, which is the root, expected one word"),
        ([2, 0, 4], "the head of word 3 is 4, and the sentence has the words 1 to 3"),
        ([0, -1], "the head of word 2 is -1"),
        ([0, 3, 4, 2], "the words 2, 3, 4 are one another's heads in a circle"),
        ([0, 2], "the words 2 are one another's heads"),
    ],
)
def test_what_is_no_tree_is_told(heads: list[int], problem: str | None) -> None:
    found = problem_of(heads)
    assert found is None if problem is None else found and found.startswith(problem)
