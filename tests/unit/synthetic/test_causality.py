"""Causes and effects: copa and siqa in miniature."""

from collections import Counter

import pytest

from xlgrid.synthetic import world
from xlgrid.synthetic.causality import PAIRS, Example, Options, examples

SIZES = (400, 40, 160)
BOTH = pytest.mark.parametrize("choices", [2, 3])


def found(choices: int) -> list[Example]:
    return examples(Options(), SIZES, choices)


def test_verbs_are_episodes_and_in_one_pair_only() -> None:
    verbs = [*PAIRS, *PAIRS.values()]
    assert len(verbs) == len(set(verbs))
    assert set(verbs) <= set(world.EPISODES)


@BOTH
def test_exactly_the_right_choice_is_the_cause_or_effect_of_the_premise(choices: int) -> None:
    for example in found(choices):
        pairs = [
            (example.premise.predicate, choice.predicate)
            if example.question == "effect"
            else (choice.predicate, example.premise.predicate)
            for choice in example.choices
        ]
        assert [pair in PAIRS.items() for pair in pairs] == [at == example.right for at in range(choices)]


@BOTH
def test_all_have_one_agent(choices: int) -> None:
    for example in found(choices):
        assert {choice.agents for choice in example.choices} == {example.premise.agents}


@BOTH
def test_a_choice_alone_does_not_tell(choices: int) -> None:
    """Verbs are right as often as any choice is, and so are places."""
    sample = found(choices)
    counts = Counter(choice.predicate for example in sample for choice in example.choices)
    right = Counter(example.choices[example.right].predicate for example in sample)
    assert all(abs(right[verb] / counts[verb] - 1 / choices) < 0.2 for verb in counts)
    places = Counter(example.right for example in sample)
    assert all(abs(places[place] / len(sample) - 1 / choices) < 0.1 for place in range(choices))


@BOTH
def test_agents_and_patients_of_the_test_set_do_not_meet_in_training(choices: int) -> None:
    sample = found(choices)
    train, rest = (
        {tuple(phrase.head for phrase in world.phrases(example.premise)) for example in part}
        for part in (sample[: SIZES[0]], sample[SIZES[0] :])
    )
    assert train and rest and not train & rest
