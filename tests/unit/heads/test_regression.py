"""The head `regression`: numbers of rows, the loss, and scores that agree with scipy."""

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.stats
import sklearn.metrics
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rows_fixture import rows_of

from xlgrid.heads import HEADS
from xlgrid.tasks import task

HEAD = HEADS["regression"]
STS = task("regression", {"inputs": ["first", "second"], "target": "score"})
# Few different numbers, so that ranks are shared and one side may be constant.
number = st.sampled_from([0.0, 0.5, 1.0, 2.5, 5.0]) | st.floats(-5, 5, width=16)


@given(st.lists(st.tuples(number, number), min_size=2, max_size=30))
@settings(max_examples=80, deadline=None)
def test_the_scores_are_those_of_scipy_and_scikit_learn(drawn: list[tuple[float, float]]) -> None:
    gold, predicted = np.array(drawn, float).T
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = {
            "spearman": 100 * scipy.stats.spearmanr(gold, predicted).statistic,
            "pearson": 100 * scipy.stats.pearsonr(gold, predicted).statistic,
        }
    # scipy has no number for the correlation of a constant.
    expected = {name: float(np.nan_to_num(value)) for name, value in expected.items()}
    expected["mse"] = float(sklearn.metrics.mean_squared_error(gold, predicted))
    own = {each.name: each.score([[*pair] for pair in drawn]) for each in HEAD.metrics(())}
    assert own == pytest.approx(expected, rel=1e-11, abs=1e-10)


def test_errors_are_better_when_lower_and_correlations_when_higher() -> None:
    assert {each.name: each.higher_is_better for each in HEAD.metrics(())} == {
        "spearman": True,
        "pearson": True,
        "mse": False,
    }


@pytest.mark.parametrize("name", ["spearman", "pearson", "mse"])
def test_an_interval_of_a_score_covers_it(name: str) -> None:
    """Of 200 test sets of 200 normal pairs with the correlation 0.6: 90 to 99 percent, with the error of 200 draws."""
    rng, rho = np.random.default_rng(3), 0.6
    truth = {
        "pearson": 100 * rho,
        "spearman": 100 * 6 / math.pi * math.asin(rho / 2),
        "mse": 2 - 2 * rho,
    }[name]
    measured = HEAD.metric((), name)
    covered = 0
    for _ in range(200 if name == "mse" else 60):
        outcomes = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], 200).tolist()
        moves = measured.moves(outcomes)
        covered += abs(measured.score(outcomes) - truth) < 1.96 * math.sqrt((moves**2).mean() / len(moves))
    assert 0.88 <= covered / (200 if name == "mse" else 60) <= 1


class Fixed:
    """A model with these predictions."""

    def __init__(self, predictions: list[float]) -> None:
        self.logits = torch.tensor(predictions)[:, None]

    def __call__(self, **inputs: Any) -> Any:
        return self


TOKENS = rows_of("regression", {"label": np.array([4.0, 1.0])}, options={"scale": 5.0})


def batch(tokens: Any) -> dict[str, torch.Tensor]:
    labels = HEAD.batch_labels(tokens, np.arange(2), {}, np.arange(2))
    return {"input_ids": torch.zeros(2, 1), "labels": torch.from_numpy(labels)}


def test_the_loss_compares_scaled_numbers_and_outcomes_have_those_of_the_data() -> None:
    model: Any = Fixed([0.5, 0.4])
    assert HEAD.loss(model, batch(TOKENS)).item() == pytest.approx(0.3**2 + 0.2**2)
    assert HEAD.terms(batch(TOKENS)) == 2
    [first, second] = HEAD.predict(model, batch(TOKENS), TOKENS, np.arange(2))
    assert (first, second) == (pytest.approx([4.0, 2.5]), pytest.approx([1.0, 2.0]))


def test_the_scale_is_1_where_a_study_does_not_say() -> None:
    model: Any = Fixed([0.5, 0.5])
    tokens = replace(TOKENS, options={})
    assert HEAD.loss(model, batch(tokens)).item() == pytest.approx(3.5**2 + 0.5**2)


def test_chance_predicts_the_mean() -> None:
    assert HEAD.chance(TOKENS) == {"spearman": 0, "pearson": 0, "mse": 2.25}


@pytest.mark.parametrize("score", ["high", "nan", True])
def test_what_is_no_number_is_refused_with_its_row(score: Any) -> None:
    table = pa.table({"first": ["a", "b"], "second": ["a", "b"], "score": pa.array([type(score)(1), score])})
    if isinstance(score, bool):
        with pytest.raises(ValueError, match="row 1, column 'score': expected a number, got True"):
            STS.check(table, "data")
    else:
        with pytest.raises(ValueError, match=f"row 2, column 'score': expected a number, got '{score}'"):
            STS.check(table, "data")


def test_labels_are_refused() -> None:
    with pytest.raises(ValueError, match="there are no labels, so leave out `labels`"):
        task("regression", {"inputs": ["a"], "target": "b", "labels": ["1", "2"]})
