"""Hypotheses about the effects of premises, in artificial languages."""

from collections import Counter

from xlgrid.synthetic import world
from xlgrid.synthetic.causality import PAIRS
from xlgrid.synthetic.miniatures.causal_nli import LABELS, Example, Options, examples
from xlgrid.tasks import task

SIZES = (600, 60, 240)


def drawn() -> list[Example]:
    return examples(Options(), SIZES)


def expected_label(example: Example) -> str:
    """The label by the definition of the task, from the verbs and the negation alone."""
    if PAIRS[example.premise.predicate] != example.hypothesis.predicate:
        return "neutral"
    return "entailment" if example.hypothesis.positive else "contradiction"


def test_the_label_follows_from_verbs_and_negation() -> None:
    for example in drawn():
        assert example.label == expected_label(example)
        assert example.premise.positive and example.premise.agents == example.hypothesis.agents


def test_each_premise_has_one_hypothesis_of_each_label() -> None:
    everything = drawn()
    assert len(everything) == sum(SIZES)
    for start in range(0, len(everything), len(LABELS)):
        group = everything[start : start + len(LABELS)]
        assert len({example.premise for example in group}) == 1
        assert sorted(example.label for example in group) == sorted(LABELS)


def test_a_hypothesis_alone_is_right_two_times_in_three_at_most() -> None:
    best = Counter[tuple[str, bool, str]](
        (example.hypothesis.predicate, example.hypothesis.positive, example.label) for example in drawn()
    )
    by_hypothesis: dict[tuple[str, bool], list[int]] = {}
    for (verb, positive, _), count in best.items():
        by_hypothesis.setdefault((verb, positive), []).append(count)
    right = sum(max(counts) for counts in by_hypothesis.values())
    assert abs(right / sum(SIZES) - 2 / 3) < 0.05


def test_arguments_of_the_test_set_do_not_occur_in_training() -> None:
    everything = drawn()
    train, rest = (
        {tuple(phrase.head for phrase in world.phrases(example.premise)) for example in part}
        for part in (everything[: SIZES[0]], everything[SIZES[0] :])
    )
    assert train and rest and not train & rest


def test_columns_and_labels_are_those_of_xnli() -> None:
    xnli, causal = task("xnli"), task("causal-nli")
    assert (causal.labels, causal.inputs, causal.target) == (xnli.labels, xnli.inputs, xnli.target)
