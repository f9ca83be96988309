"""Metrics of labels: the scores of scikit-learn and seqeval, the derivatives behind intervals, and their coverage."""

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import seqeval.metrics
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from xlgrid.heads import HEADS, metric
from xlgrid.heads.classification import OfCounts
from xlgrid.heads.metrics import Metric

CLASSES = ("neg", "neu", "pos", "mixed")
IOB = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-MISC", "I-MISC")
AVERAGES = ("macro", "weighted")
OF = ("f1", "precision", "recall")
# Few classes occur, so that some are absent in gold labels, in predictions, or in both.
row = st.tuples(st.integers(0, 3), st.integers(0, 3))
rows = st.lists(row, min_size=1, max_size=30) | st.lists(st.tuples(st.just(1), st.integers(0, 2)), min_size=1)
word = st.integers(0, len(IOB) - 1)
sentence = st.lists(st.tuples(word, word | st.just(0)), min_size=1, max_size=8)
sentences = st.lists(sentence, min_size=1, max_size=6)


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings of scikit-learn and seqeval about what is not defined."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def scores(head: str, labels: tuple[str, ...], outcomes: list[Any]) -> dict[str, float]:
    return {each.name: each.score(outcomes) for each in HEADS[head].metrics(labels)}


def of_sklearn(gold: list[int], predicted: list[int]) -> dict[str, float]:
    """The scores of scikit-learn for the labels of `CLASSES`, with its defaults for the classes of an average."""
    call = {of: getattr(sklearn.metrics, f"{of}_score") for of in OF}
    expected = {
        f"{average}-{of}": call[of](gold, predicted, average=average, zero_division=0)
        for average in AVERAGES
        for of in OF
    }
    expected["micro-f1"] = call["f1"](gold, predicted, average="micro", zero_division=0)
    for of in OF:
        each = call[of](gold, predicted, labels=range(len(CLASSES)), average=None, zero_division=0)
        expected |= {f"{of}:{name}": value for name, value in zip(CLASSES, each, strict=True)}
    expected["accuracy"] = sklearn.metrics.accuracy_score(gold, predicted)
    expected["mcc"] = sklearn.metrics.matthews_corrcoef(gold, predicted)
    return {name: 100 * float(value) for name, value in expected.items()}


@given(rows)
@settings(max_examples=60, deadline=None)
def test_the_scores_of_rows_are_those_of_scikit_learn(drawn: list[tuple[int, int]]) -> None:
    gold, predicted = ([each[side] for each in drawn] for side in (0, 1))
    with quiet():
        expected = of_sklearn(gold, predicted)
    for head in ("sequence", "choice"):
        assert scores(head, CLASSES, [[*each] for each in drawn]) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(st.lists(st.lists(row, min_size=1, max_size=8), min_size=1, max_size=8))
@settings(max_examples=40, deadline=None)
def test_the_scores_of_words_are_those_of_scikit_learn(drawn: list[list[tuple[int, int]]]) -> None:
    gold, predicted = ([each[side] for words in drawn for each in words] for side in (0, 1))
    outcomes = [[[each[side] for each in words] for side in (0, 1)] for words in drawn]
    with quiet():
        expected = of_sklearn(gold, predicted)
    assert scores("token", CLASSES, outcomes) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    of_chunks = scores("token-chunks", CLASSES, outcomes)
    assert {name: of_chunks[name] for name in expected} == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(sentences)
@settings(max_examples=60, deadline=None)
def test_the_scores_of_spans_are_those_of_seqeval(drawn: list[list[tuple[int, int]]]) -> None:
    outcomes = [[[each[side] for each in words] for side in (0, 1)] for words in drawn]
    gold, predicted = ([[IOB[number] for number in each[side]] for each in outcomes] for side in (0, 1))
    call = {of: getattr(seqeval.metrics, f"{of}_score") for of in OF}
    with quiet():
        expected = {of: call[of](gold, predicted) for of in OF}
        expected |= {f"{average}-{of}": call[of](gold, predicted, average=average) for average in AVERAGES for of in OF}
        of_each = seqeval.metrics.classification_report(gold, predicted, output_dict=True)
        for name, without in (("PER", "PER"), ("LOC", "LOC"), ("MISC", "MISC")):
            found = of_each.get(name, {"f1-score": 0, "precision": 0, "recall": 0})
            expected |= {f"{of}:{name}": found["f1-score" if of == "f1" else of] for of in OF}
            rest = [
                [[label if without not in label else "O" for label in words] for words in side]
                for side in (gold, predicted)
            ]
            expected[f"f1-without:{name}"] = call["f1"](*rest)
        expected["accuracy"] = seqeval.metrics.accuracy_score(gold, predicted)
    own = scores("token", IOB, outcomes)
    own.pop("untyped-f1")
    # Without any span, macro averages are not a number in seqeval.
    whole = {name: 100 * float(np.nan_to_num(value)) for name, value in expected.items()}
    assert own == pytest.approx(whole, rel=1e-12, abs=1e-12)


@given(sentences)
@settings(max_examples=40, deadline=None)
def test_the_f1_without_types_is_seqevals_on_the_same_spans_with_one_type(drawn: list[list[tuple[int, int]]]) -> None:
    outcomes = [[[each[side] for each in words] for side in (0, 1)] for words in drawn]
    find = HEADS["token"]
    untyped = [[_one_type([IOB[number] for number in each[side]]) for each in outcomes] for side in (0, 1)]
    with quiet():
        expected = 100 * float(seqeval.metrics.f1_score(*untyped))
    assert find.metric(IOB, "untyped-f1").score(outcomes) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def _one_type(labels: list[str]) -> list[str]:
    """IOB2 labels of the spans that seqeval finds in a sentence, all of one type."""
    from seqeval.metrics.sequence_labeling import get_entities

    written = ["O"] * len(labels)
    for _, first, last in get_entities(labels):
        written[first : last + 1] = ["B-X", *["I-X"] * (last - first)]
    return written


def test_a_class_that_is_absent_counts_in_an_average_only_if_it_is_predicted() -> None:
    """As in scikit-learn with labels=None: of three classes, one is never gold."""
    macro = HEADS["sequence"].metric(("a", "b", "c"), "macro-f1")
    assert macro.score([[0, 0], [1, 1]]) == 100
    assert macro.score([[0, 0], [1, 1], [1, 2]]) == pytest.approx(100 * (1 + 2 / 3 + 0) / 3)


@pytest.mark.parametrize("head", ["sequence", "token"])
def test_nothing_to_count_is_zero_and_moves_nothing(head: str) -> None:
    labels = CLASSES if head == "sequence" else IOB
    outcomes: list[Any] = [[0, 1]] if head == "sequence" else [[[0, 0], [0, 0]]]
    for each in HEADS[head].metrics(labels):
        assert each.score([]) == 0
        if each.name == "mcc" or "f1" in each.name:
            assert each.score(outcomes) == 0
            assert not each.moves(outcomes).any() or head == "sequence"


def every_metric() -> list[tuple[str, Metric]]:
    return [
        (head, each)
        for head, labels in (("sequence", CLASSES), ("token", IOB), ("token", CLASSES))
        for each in HEADS[head].metrics(labels)
    ]


@pytest.mark.parametrize(("head", "measured"), every_metric(), ids=lambda each: getattr(each, "name", each))
def test_a_move_is_how_the_score_changes_with_an_example_s_weight(head: str, measured: Metric) -> None:
    """One example more among many copies of all of them."""
    rng = np.random.default_rng(0)
    many, n = 60, 12
    classes = len(CLASSES) if head == "sequence" or "words" in measured.implementation else len(IOB)
    drawn = rng.integers(0, classes, (n, 5))
    guesses = np.where(rng.random((n, 5)) < 0.6, drawn, rng.integers(0, classes, (n, 5)))
    pairs = [[gold.tolist(), guess.tolist()] for gold, guess in zip(drawn, guesses, strict=True)]
    outcomes: list[Any] = [[gold[0], guess[0]] for gold, guess in pairs] if head == "sequence" else pairs
    before = measured.score(outcomes)
    changes = [measured.score(outcomes * many + [outcome]) - before for outcome in outcomes]
    moves = measured.moves(outcomes)
    assert moves == pytest.approx([change * many * n for change in changes], rel=0.02, abs=0.5)
    assert moves.mean() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("name", ["accuracy", "macro-f1", "weighted-f1", "mcc", "f1:mixed", "macro-precision"])
def test_an_interval_of_a_score_covers_it(name: str) -> None:
    """Of 600 test sets of 500 rows, 93 to 97 percent; `benchmarks/uncertainty.py` has more."""
    rng = np.random.default_rng(1)
    joint = np.array([[30, 4, 3, 1], [5, 20, 4, 1], [2, 5, 15, 2], [2, 1, 1, 4]]) / 100
    measured = HEADS["sequence"].metric(CLASSES, name)
    truth = true_score(measured, joint)
    covered = 0
    for cells in rng.choice(16, (600, 500), p=joint.ravel()):
        outcomes = np.stack(np.divmod(cells, 4), 1).tolist()
        variance = (measured.moves(outcomes) ** 2).mean() / len(outcomes)
        covered += abs(measured.score(outcomes) - truth) < 1.96 * math.sqrt(variance)
    assert 0.93 <= covered / 600 <= 0.97


def true_score(measured: Metric, joint: np.ndarray) -> float:
    """The score of rows with these shares of gold and predicted labels."""
    rows = [[gold, guess] for (gold, guess), share in np.ndenumerate(joint) for _ in range(round(100 * share))]
    return measured.score(rows)


def test_metrics_of_a_cell_share_their_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    macro = HEADS["sequence"].metric(CLASSES, "macro-f1")
    assert isinstance(macro, OfCounts)

    def count(outcomes: Any, labels: Any) -> Any:
        calls.append(1)
        return macro.cases.matrices(outcomes, labels)

    of: Callable[[str], OfCounts] = lambda name: counting(HEADS["sequence"].metric(CLASSES, name), cases)  # noqa: E731
    cases = macro.cases._replace(matrices=count)
    outcomes: list[Any] = [[0, 0], [1, 2]]
    for name in ("macro-f1", "mcc", "f1:neg"):
        of(name).score(outcomes)
    assert len(calls) == 1
    of("mcc").score([[0, 0], [1, 1]])
    assert len(calls) == 2


def counting(measured: Metric, cases: Any) -> OfCounts:
    from dataclasses import replace

    assert isinstance(measured, OfCounts)
    return replace(measured, cases=cases)


def test_an_unknown_metric_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(ValueError, match="unknown metric 'macro-fl', did you mean 'macro-f1'"):
        HEADS["sequence"].metric(CLASSES, "macro-fl")
    with pytest.raises(ValueError, match="unknown metric 'f1:pso', did you mean 'f1:pos'"):
        HEADS["sequence"].metric(CLASSES, "f1:pso")


def test_the_unit_of_a_metric_of_one_label_is_known_without_the_labels() -> None:
    assert (metric("f1:pos").name, metric("f1:pos").unit) == ("f1:pos", "%")
