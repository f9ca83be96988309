"""Metrics of outcomes; their moves; the direction in which a score is better."""

import math

import numpy as np
import pytest

from xlgrid import heads
from xlgrid.heads.metrics import OfAll, Outcome, Ratio

PERPLEXITY = Ratio("perplexity", "here", lambda outcome: tuple(outcome), 1, unit="", higher_is_better=False)
RIGHT = heads.metric("accuracy")
SPREAD = OfAll("spread", "here", lambda outcomes: np.ptp(outcomes), unit="")


@pytest.mark.parametrize(
    ("metric", "outcomes"), [("accuracy", []), ("mining-f1", []), ("mining-f1", [[0, 0, 0], [0, 0, 0]])]
)
def test_nothing_to_count_scores_zero(metric: str, outcomes: list[Outcome]) -> None:
    assert heads.metric(metric).score(outcomes) == 0


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("macro-f1", "macro-F1"),
        ("squad-em", "SQuAD-EM"),
        ("bleu", "BLEU"),
        ("accuracy", "accuracy"),
        ("f1:em-las", "F1:em-las"),
        ("f1-without:f1", "F1-without:f1"),
    ],
)
def test_a_title_is_the_name_as_papers_write_it_and_a_label_stays_as_it_is(name: str, title: str) -> None:
    assert heads.metric(name).title == title


@pytest.mark.parametrize("outcomes", [[], [[0.0, 0], [0.0, 0]]])
def test_nothing_to_count_is_an_error_where_zero_would_be_the_best_score(outcomes: list[Outcome]) -> None:
    with pytest.raises(ValueError, match=f"perplexity.* nothing can be counted in {len(outcomes)} examples"):
        PERPLEXITY.score(outcomes)


def test_a_score_is_divided_by_weights_that_sum_to_less_than_one() -> None:
    assert PERPLEXITY.score([[0.2, 0.1], [0.1, 0.1]]) == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("metric", "outcomes"),
    [
        ("accuracy", [1, 0, 0, 1, 1, 1]),
        ("accuracy", [[3, 4], [0, 1], [2, 9], [5, 5]]),
        ("mining-f1", [[2, 0, 1], [0, 1, 0], [1, 1, 3], [4, 0, 0], [0, 0, 0]]),
        ("squad-f1", [[0.5, 0.0], [1.0, 1.0], [0.2, 0.0]]),
        ("squad-em", [[0.5, 0.0], [1.0, 1.0], [0.2, 0.0]]),
        ("perplexity", [[3.5, 2], [0.25, 1], [0.0, 0], [8.0, 3]]),
    ],
)
def test_an_influence_is_how_the_score_changes_with_an_example_s_weight(metric: str, outcomes: list[Outcome]) -> None:
    """One example more among a thousand copies of all of them."""
    many = 1000
    before = heads.metric(metric).score(outcomes)
    changes = [heads.metric(metric).score(outcomes * many + [outcome]) - before for outcome in outcomes]
    expected = [change * many * len(outcomes) for change in changes]
    assert heads.metric(metric).moves(outcomes) == pytest.approx(expected, rel=0.01, abs=0.01)


def test_nothing_to_count_has_no_influence() -> None:
    assert list(heads.metric("mining-f1").moves([[0, 0, 0], [0, 0, 0]])) == [0, 0]


def test_a_metric_says_which_of_two_scores_is_better() -> None:
    assert PERPLEXITY.better(2.0, 3.0) and not PERPLEXITY.better(3.0, 2.0) and not PERPLEXITY.better(2.0, 2.0)
    accuracy = heads.metric("accuracy")
    assert accuracy.better(3.0, 2.0) and not accuracy.better(2.0, 3.0) and not accuracy.better(2.0, 2.0)
    assert PERPLEXITY.score([[6.0, 2], [2.0, 2]]) == 2.0


def test_a_metric_of_all_outcomes_is_its_function_of_them() -> None:
    assert SPREAD.score([[1.0, 4.0], [3.0, 0.0]]) == 4.0
    assert SPREAD.score([]) == 0


def test_a_metric_of_all_outcomes_that_is_no_number_is_an_error() -> None:
    """JSON has no such number, and a table shows it as a missing cell."""
    with pytest.raises(ValueError, match="spread of 2 examples is nan"):
        SPREAD.score([[math.nan, 1.0], [2.0, 0.0]])


def test_a_ratio_and_the_same_function_of_all_outcomes_have_the_same_variance() -> None:
    """To first order, in the one case, and over draws of a bootstrap, in the other."""
    outcomes: list[Outcome] = [[3, 4], [0, 1], [2, 9], [5, 5], [1, 2], [7, 9]] * 40
    whole = OfAll("accuracy", "here", lambda each: 100 * each[:, 0].sum() / each[:, 1].sum())
    variances = [(moves**2).mean() / len(moves) for moves in (whole.moves(outcomes), RIGHT.moves(outcomes))]
    assert variances[0] == pytest.approx(variances[1], rel=0.15)


def test_metrics_of_all_outcomes_are_drawn_together() -> None:
    """The draws depend on the number of examples only, so that what two cells have in common cancels."""
    outcomes: list[Outcome] = [[float(number), 0.0] for number in range(30)]
    shifted: list[Outcome] = [[float(number + 7), 0.0] for number in range(30)]
    assert SPREAD.moves(outcomes) == pytest.approx(SPREAD.moves(shifted))
    assert SPREAD.moves(outcomes).any()
