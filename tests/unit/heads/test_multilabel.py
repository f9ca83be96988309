"""The head `multilabel`: labels as lists or columns, the loss, and scores that agree with scikit-learn."""

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sklearn.metrics
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rows_fixture import rows_of

from xlgrid.heads import HEADS
from xlgrid.heads.multilabel import MultilabelHead
from xlgrid.tasks import task

LABELS = ("anger", "joy", "fear")
EMOTIONS = task("multilabel", {"inputs": ["text"], "target": "emotions", "labels": [*LABELS]})
HEAD = HEADS["multilabel"]
AVERAGES = ("micro", "macro", "weighted")
OF = ("f1", "precision", "recall")
subset = st.sets(st.integers(0, 2)).map(sorted)


def fetched(**columns: Any) -> tuple[list[Any], dict[str, int]]:
    """The lists of the target column of a table, as a rule makes them from a source, and the notes on it."""
    table = pa.table({"text": ["a"] * len(next(iter(columns.values()))), **columns})
    HEAD.check_columns(table, EMOTIONS, "here")
    table, counts = HEAD.prepared(table, EMOTIONS, None, None)
    at = table.column_names.index("emotions")
    table = table.set_column(at, "emotions", HEAD.labelled(table["emotions"], EMOTIONS, {"happy": "joy"}))
    HEAD.check(table, EMOTIONS, "here")
    return table["emotions"].to_pylist(), counts


def test_a_list_of_names_says_which_labels_a_row_has() -> None:
    assert fetched(emotions=[["fear", "happy"], [], ["anger"]])[0] == [[0, 1, 1], [0, 0, 0], [1, 0, 0]]


def test_a_list_of_numbers_has_the_places_of_the_labels() -> None:
    assert fetched(emotions=[[2, 1], [], [0]])[0] == [[0, 1, 1], [0, 0, 0], [1, 0, 0]]


@pytest.mark.parametrize("written", [str, int, bool, float])
def test_a_column_for_each_label_says_which_labels_a_row_has(written: Any) -> None:
    columns = {"joy": [1, 0], "anger": [0, 0], "fear": [1, 0]}
    values = {name: [written(value) for value in column] for name, column in columns.items()}
    assert fetched(**values) == ([[0, 1, 1], [0, 0, 0]], {})


def test_a_missing_value_in_the_column_of_a_label_is_no_annotation() -> None:
    columns = {"anger": ["", "1"], "joy": pa.array([None, None], pa.int64()), "fear": [1, 0]}
    lists, notes = fetched(**columns)
    assert lists == [[None, None, 1], [1, None, 0]]
    assert notes == {"values of labels with which a row is not annotated": 3}


def test_a_label_without_a_column_is_named() -> None:
    with pytest.raises(ValueError, match=r"no column 'emotions' .* no column for the labels fear: add"):
        HEAD.check_columns(pa.table({"text": ["a"], "joy": [1], "anger": [0]}), EMOTIONS, "here")


def test_another_value_than_0_and_1_is_named() -> None:
    with pytest.raises(ValueError, match=r"column 'joy' of a label: must be 0 or 1, .* got 2"):
        fetched(joy=[2], anger=[0], fear=[1])


def test_an_unknown_label_names_its_row_and_the_nearest() -> None:
    with pytest.raises(ValueError, match="here, row 2, column 'emotions': unknown label 'angr', did you mean 'anger'"):
        fetched(emotions=[["joy"], ["angr"]])


def of_sklearn(gold: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    expected = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for of in OF:
            call = getattr(sklearn.metrics, f"{of}_score")
            for average in AVERAGES:
                expected[f"{average}-{of}"] = call(gold, predicted, average=average, zero_division=0)
            each = call(gold, predicted, average=None, zero_division=0)
            expected |= {f"{of}:{name}": value for name, value in zip(LABELS, each, strict=True)}
    return {name: 100 * float(value) for name, value in expected.items()}


@given(st.lists(st.tuples(subset, subset), min_size=1, max_size=12))
@settings(max_examples=60, deadline=None)
def test_the_scores_are_those_of_scikit_learn(drawn: list[tuple[list[int], list[int]]]) -> None:
    gold, predicted = (np.array([[at in row[side] for at in range(3)] for row in drawn], int) for side in (0, 1))
    outcomes = [[*row, []] for row in drawn]
    own = {each.name: each.score(outcomes) for each in HEAD.metrics(LABELS)}
    assert own == pytest.approx(of_sklearn(gold, predicted), rel=1e-12, abs=1e-12)


def test_a_label_with_which_no_row_is_annotated_is_in_no_average() -> None:
    """As in SemEval 2025 task 11, whose English data have no column for disgust."""
    rows = np.array([[1, 0], [0, 1], [1, 1]]), np.array([[1, 0], [1, 1], [0, 1]])
    outcomes = [
        [np.flatnonzero(gold).tolist(), np.flatnonzero(guess).tolist(), [2]] for gold, guess in zip(*rows, strict=True)
    ]
    expected = 100 * sklearn.metrics.f1_score(*rows, average="macro")
    assert HEAD.metric(LABELS, "macro-f1").score(outcomes) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("measured", HEAD.metrics(LABELS), ids=lambda each: each.name)
def test_a_move_is_how_the_score_changes_with_an_example_s_weight(measured: Any) -> None:
    rng, many = np.random.default_rng(0), 60
    outcomes = [[np.flatnonzero(side).tolist() for side in row] + [[]] for row in rng.random((12, 2, 3)) < 0.5]
    before = measured.score(outcomes)
    changes = [measured.score(outcomes * many + [outcome]) - before for outcome in outcomes]
    assert measured.moves(outcomes) == pytest.approx([change * many * 12 for change in changes], rel=0.02, abs=0.5)


class Fixed:
    """A model with these logits."""

    def __init__(self, logits: Any) -> None:
        self.logits = torch.tensor(logits)

    def __call__(self, **inputs: Any) -> Any:
        return self


LOGITS = [[0.3, -2.0, 1.5], [-0.2, 4.0, -1.0]]
TOKENS = rows_of("multilabel", {"label": pa.array([[1, 0, -100], [0, 1, 1]])}, label_names=LABELS)


def batch() -> dict[str, torch.Tensor]:
    labels = HEAD.batch_labels(TOKENS, np.arange(2), {}, np.arange(2))
    return {"input_ids": torch.zeros(2, 1), "labels": torch.from_numpy(labels)}


def test_the_loss_is_the_binary_cross_entropy_of_annotated_labels() -> None:
    logits = np.array(LOGITS)
    gold = np.array([[1, 0, np.nan], [0, 1, 1]])
    each = np.log1p(np.exp(-logits)) * gold + np.log1p(np.exp(logits)) * (1 - gold)
    assert HEAD.loss(Fixed(LOGITS), batch()).item() == pytest.approx(np.nansum(each), rel=1e-6)  # type: ignore[arg-type]
    assert HEAD.terms(batch()) == 5


def test_a_label_is_predicted_from_a_half_on() -> None:
    outcomes = HEAD.predict(Fixed(LOGITS), batch(), TOKENS, np.arange(2))  # type: ignore[arg-type]
    assert outcomes == [[[0], [0], [2]], [[1, 2], [1], []]]


def test_chance_predicts_the_labels_of_most_rows() -> None:
    tokens = rows_of("multilabel", {"label": pa.array([[1, 0, 0], [1, 1, 0], [0, 0, 0]])}, label_names=LABELS)
    chance = HEAD.chance(tokens)
    assert chance["f1:anger"] == pytest.approx(100 * 2 * 2 / 5)
    assert chance["macro-f1"] == pytest.approx(100 * 4 / 5 / 3)
    assert "f1:joy" not in chance


def test_labels_are_counted() -> None:
    table = pa.table({"text": ["a", "b"], "emotions": [[1, 0, None], [1, 1, 0]]})
    assert isinstance(HEAD, MultilabelHead)
    assert HEAD.label_counts(table, EMOTIONS) == {"anger": 2, "joy": 1, "fear": 0}


def test_a_target_that_is_no_list_is_an_error() -> None:
    with pytest.raises(ValueError, match="here, column 'emotions' is of type string: expected a list of labels"):
        fetched(emotions=["joy", "anger"])
