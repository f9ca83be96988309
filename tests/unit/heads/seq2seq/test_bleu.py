"""BLEU from the statistics of sentences is that of sacrebleu on the same strings."""

import random

import numpy as np
import pytest
import sacrebleu

from xlgrid.heads import metric
from xlgrid.heads.metrics import DRAWS
from xlgrid.heads.seq2seq.bleu import CORPUS_BLEU, SIGNATURE, statistics

WORDS = ["the", "a", "dog", "Dog", "saw", '"sees"', "house,", "3.5", "10%", "don't", "über", "Hund.", "犬", "&", "<b>"]


def sentences(count: int, seed: int = 1) -> tuple[list[str], list[str]]:
    """References, and hypotheses that have some of their words."""
    rng = random.Random(seed)
    references = [" ".join(rng.choices(WORDS, k=rng.randint(1, 14))) for _ in range(count)]
    hypotheses = [
        " ".join(word if rng.random() < 0.8 else rng.choice(WORDS) for word in reference.split() if rng.random() < 0.9)
        for reference in references
    ]
    return hypotheses, references


def outcomes(hypotheses: list[str], references: list[str]) -> list[list[int]]:
    return [statistics(*pair) for pair in zip(hypotheses, references, strict=True)]


@pytest.mark.parametrize("count", [1, 3, 50])
def test_bleu_of_a_corpus_is_that_of_sacrebleu(count: int) -> None:
    for seed in range(5):
        hypotheses, references = sentences(count, seed)
        expected = sacrebleu.corpus_bleu(hypotheses, [references]).score
        assert CORPUS_BLEU.score(outcomes(hypotheses, references)) == pytest.approx(expected, abs=1e-9)


def test_the_statistics_are_ten_sums_of_words_and_ngrams() -> None:
    # Three words of four are right, and one pair of words.
    assert statistics("a dog saw us", "a dog sees us") == [4, 4, 3, 1, 0, 0, 4, 3, 2, 1]


def test_the_signature_is_that_of_sacrebleu() -> None:
    scorer = sacrebleu.BLEU()
    scorer.corpus_score(["a"], [["a"]])
    assert SIGNATURE in metric("bleu").implementation
    assert str(scorer.get_signature()) == SIGNATURE


def test_an_empty_hypothesis_counts_no_word_and_empty_hypotheses_have_bleu_0() -> None:
    assert statistics("", "a dog") == [0, 2, 0, 0, 0, 0, 0, 0, 0, 0]
    assert CORPUS_BLEU.score(outcomes(["", ""], ["a dog", "a house"])) == 0
    assert CORPUS_BLEU.score([]) == 0
    assert statistics("a dog", "") == [2, 0, 0, 0, 0, 0, 2, 1, 0, 0]
    assert not CORPUS_BLEU.moves(outcomes(["", ""], ["a dog", "a house"])).any()


def test_the_variance_over_draws_is_that_of_a_bootstrap_by_sacrebleu() -> None:
    hypotheses, references = sentences(60)
    moves = CORPUS_BLEU.moves(outcomes(hypotheses, references))
    rng = np.random.default_rng(0)
    scores = []
    for _ in range(400):
        rows = rng.integers(0, 60, 60)
        drawn = ([texts[row] for row in rows] for texts in (hypotheses, references))
        scores.append(sacrebleu.corpus_bleu(next(drawn), [next(drawn)]).score)
    assert len(moves) == DRAWS
    assert (moves**2).mean() / len(moves) == pytest.approx(np.var(scores), rel=0.25)


def test_two_systems_are_drawn_together() -> None:
    """The difference of a system from itself varies with no draw, though it is scored in two cells."""
    data = outcomes(*sentences(30))
    assert np.array_equal(CORPUS_BLEU.moves(data), CORPUS_BLEU.moves(list(data)))
    other = CORPUS_BLEU.moves(outcomes(*sentences(30, seed=9)))
    assert (CORPUS_BLEU.moves(data) - other).any()


def test_a_greater_bleu_is_better_and_has_no_unit() -> None:
    assert CORPUS_BLEU.better(30, 20) and CORPUS_BLEU.unit == ""
