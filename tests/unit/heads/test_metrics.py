"""Metrics agree with seqeval, with transformers' of SQuAD, and with hand-made cases."""

import json
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xlgrid.heads import metrics
from xlgrid.heads.metrics import Outcome

LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
SENTENCE = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8)


@given(st.lists(SENTENCE, min_size=1, max_size=5))
@settings(max_examples=200)
def test_span_f1_is_seqevals(sentences: list[list[tuple[int, int]]]) -> None:
    from seqeval.metrics import f1_score

    predicted = [[LABELS[p] for p, _ in sentence] for sentence in sentences]
    gold = [[LABELS[g] for _, g in sentence] for sentence in sentences]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = 100 * f1_score(gold, predicted)
    ours = metrics.metric("f1").score(
        [metrics.outcome("f1", LABELS, [p for p, _ in s], [g for _, g in s]) for s in sentences]
    )
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
    assert metrics.metric("accuracy").score([1, 0, 1, 1]) == 75


def test_accuracy_of_tokens_counts_tokens_not_examples() -> None:
    outcomes = [
        metrics.outcome("accuracy", LABELS, [1, 2, 3], [1, 2, 3]),
        metrics.outcome("accuracy", LABELS, [0], [1]),
    ]
    assert metrics.metric("accuracy").score(outcomes) == 75


@pytest.mark.parametrize("metric", ["accuracy", "f1"])
def test_nothing_to_count_scores_zero(metric: str) -> None:
    assert metrics.metric(metric).score([]) == 0


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
        ("squad-f1", [[0.5, 0.0], [1.0, 1.0], [0.2, 0.0]]),
        ("squad-em", [[0.5, 0.0], [1.0, 1.0], [0.2, 0.0]]),
    ],
)
def test_an_influence_is_how_the_score_changes_with_an_example_s_weight(metric: str, outcomes: list[Outcome]) -> None:
    """One example more among a thousand copies of all of them."""
    many = 1000
    before = metrics.metric(metric).score(outcomes)
    changes = [metrics.metric(metric).score(outcomes * many + [one]) - before for one in outcomes]
    expected = [change * many * len(outcomes) for change in changes]
    assert metrics.metric(metric).influences(outcomes) == pytest.approx(expected, rel=0.01, abs=0.01)


def test_nothing_to_count_has_no_influence() -> None:
    assert list(metrics.metric("f1").influences([[0, 0, 0], [0, 0, 0]])) == [0, 0]


# By hand, from the definition: SQuAD v1.1's script lowers, then drops punctuation, articles and superfluous spaces.
@pytest.mark.parametrize(
    ("predicted", "gold", "f1", "em"),
    [
        ("the Cat.", ["cat"], 1.0, 1.0),
        ("An  apple, a pear", ["apple pear"], 1.0, 1.0),
        ("theatre", ["atre"], 0.0, 0.0),
        ("U.S.", ["us"], 1.0, 1.0),
        ("Denver Broncos", ["The Denver Broncos of 2015"], 2 / 3, 0.0),
        ("red red", ["red"], 2 / 3, 0.0),
        ("two three", ["one two", "two three four"], 0.8, 0.0),
        ("Wolf", ["ten wolves", "a wolf"], 1.0, 1.0),
        ("", ["wolf"], 0.0, 0.0),
        ("the", ["a"], 0.0, 1.0),
        ("«Анна»", ["Анна"], 0.0, 0.0),
        ("哈哈 (X)", ["哈哈 x"], 1.0, 1.0),
    ],
)
def test_answers_are_scored_as_in_squad(predicted: str, gold: list[str], f1: float, em: float) -> None:
    assert metrics.answer(predicted, gold) == pytest.approx([f1, em])


def test_answers_drawn_by_chance_are_scored_as_in_transformers() -> None:
    """`squad_fixture.py` made the answers and scores."""
    cases = json.loads((Path(__file__).parent / "squad.json").read_text(encoding="utf-8"))
    for predicted, gold, f1, em in cases:
        assert metrics.answer(predicted, gold) == pytest.approx([f1, em]), (predicted, gold)


WORDS = st.lists(st.sampled_from(["cat", "Dog", "the", "a", "x-y", "U.S.", "кот", "3,5"]), max_size=6).map(" ".join)


@given(WORDS, WORDS)
def test_f1_is_symmetric_and_an_exact_match_of_words_is_a_full_one(one: str, other: str) -> None:
    f1, em = metrics.answer(one, [other])
    assert f1 == metrics.answer(other, [one])[0]
    assert 0 <= f1 <= 1
    if metrics.normalised(one):
        assert not em or f1 == 1


@given(WORDS, st.lists(WORDS, min_size=1, max_size=4))
def test_the_best_of_several_gold_answers_counts(predicted: str, gold: list[str]) -> None:
    each = [metrics.answer(predicted, [one]) for one in gold]
    assert metrics.answer(predicted, gold) == [max(column) for column in zip(*each, strict=True)]


@given(st.text())
def test_normalising_again_changes_no_word(text: str) -> None:
    once = metrics.normalised(text)
    assert once == " ".join(once.split())
    assert not set(once) & set("!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~")
    assert not {"a", "an", "the"} & set(once.split())


def test_both_metrics_of_answers_are_means_over_questions() -> None:
    outcomes: list[Outcome] = [[0.5, 0.0], [1.0, 1.0], [0.0, 0.0], [1.0, 0.0]]
    assert metrics.metric("squad-f1").score(outcomes) == 62.5
    assert metrics.metric("squad-em").score(outcomes) == 25


def test_the_main_metric_of_questions_is_f1() -> None:
    assert metrics.metrics_of("span", ()) == ("squad-f1", "squad-em")
    assert metrics.metric_of("span", ()) == "squad-f1"
    assert metrics.metrics_of("choice", ("1", "2")) == ("accuracy",)
