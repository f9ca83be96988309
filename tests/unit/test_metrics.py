"""Metrics agree with seqeval and with hand-made cases."""

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xlgrid import metrics
from xlgrid.metrics import Outcome

LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
SENTENCE = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8)


@given(st.lists(SENTENCE, min_size=1, max_size=5))
@settings(max_examples=200, deadline=None)
def test_span_f1_is_seqevals(sentences: list[list[tuple[int, int]]]) -> None:
    from seqeval.metrics import f1_score

    predicted = [[LABELS[p] for p, _ in sentence] for sentence in sentences]
    gold = [[LABELS[g] for _, g in sentence] for sentence in sentences]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = 100 * f1_score(gold, predicted)
    ours = metrics.score("f1", [metrics.outcome("f1", LABELS, [p for p, _ in s], [g for _, g in s]) for s in sentences])
    assert ours == pytest.approx(theirs), (predicted, gold)


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("O O", set()),
        ("B-A I-A O B-A", {("A", 0, 1), ("A", 3, 3)}),
        ("I-A I-A", {("A", 0, 1)}),
        ("B-A B-A", {("A", 0, 0), ("A", 1, 1)}),
        ("B-A I-B I-B", {("A", 0, 0), ("B", 1, 2)}),
    ],
)
def test_spans(tags: str, expected: set[metrics.Span]) -> None:
    assert metrics.spans(tags.split()) == expected


def test_accuracy_of_sequences_is_the_share_of_ones() -> None:
    assert metrics.score("accuracy", [1, 0, 1, 1]) == 75


def test_accuracy_of_tokens_counts_tokens_not_examples() -> None:
    outcomes = [
        metrics.outcome("accuracy", LABELS, [1, 2, 3], [1, 2, 3]),
        metrics.outcome("accuracy", LABELS, [0], [1]),
    ]
    assert metrics.score("accuracy", outcomes) == 75


@pytest.mark.parametrize("metric", ["accuracy", "f1"])
def test_nothing_to_count_scores_zero(metric: str) -> None:
    assert metrics.score(metric, []) == 0


@pytest.mark.parametrize(
    ("head", "labels", "metric"),
    [("sequence", ("yes", "B-x"), "accuracy"), ("token", ("NOUN", "VERB"), "accuracy"), ("token", LABELS, "f1")],
)
def test_metric_follows_from_the_labels(head: str, labels: tuple[str, ...], metric: str) -> None:
    assert metrics.metric_of(head, labels) == metric


@pytest.mark.parametrize(
    ("metric", "outcomes"),
    [
        ("accuracy", [1, 0, 0, 1, 1, 1]),
        ("accuracy", [[3, 4], [0, 1], [2, 9], [5, 5]]),
        ("f1", [[2, 0, 1], [0, 1, 0], [1, 1, 3], [4, 0, 0], [0, 0, 0]]),
    ],
)
def test_an_influence_is_how_the_score_changes_with_an_example_s_weight(metric: str, outcomes: list[Outcome]) -> None:
    """One example more among a thousand copies of all of them."""
    many = 1000
    before = metrics.score(metric, outcomes)
    changes = [metrics.score(metric, outcomes * many + [one]) - before for one in outcomes]
    expected = [change * many * len(outcomes) for change in changes]
    assert metrics.influences(metric, outcomes) == pytest.approx(expected, rel=0.01, abs=0.01)


def test_nothing_to_count_has_no_influence() -> None:
    assert list(metrics.influences("f1", [[0, 0, 0], [0, 0, 0]])) == [0, 0]
