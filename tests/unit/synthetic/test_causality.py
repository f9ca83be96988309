"""Causes and effects: copa and siqa in miniature."""

from collections import Counter

import pytest

from xlgrid.synthetic import world
from xlgrid.synthetic.causality import PAIRS, Example, Options, examples
from xlgrid.tasks import copa, siqa

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
    made = found(choices)
    shown = Counter(choice.predicate for example in made for choice in example.choices)
    right = Counter(example.choices[example.right].predicate for example in made)
    assert all(abs(right[verb] / shown[verb] - 1 / choices) < 0.2 for verb in shown)
    places = Counter(example.right for example in made)
    assert all(abs(places[place] / len(made) - 1 / choices) < 0.1 for place in range(choices))


@BOTH
def test_agents_and_patients_of_the_test_set_do_not_meet_in_training(choices: int) -> None:
    made = found(choices)
    train, rest = (
        {tuple(phrase.head for phrase in world.phrases(example.premise)) for example in part}
        for part in (made[: SIZES[0]], made[SIZES[0] :])
    )
    assert train and rest and not train & rest


def test_labels_count_from_where_the_hub_s_do() -> None:
    for example in found(2)[:50]:
        row = copa.row(example, "qa1", copa.Options())
        assert row["label"] == example.right and row["question"] == example.question
    for example in found(3)[:50]:
        assert siqa.row(example, "qa1", siqa.Options())["label"] == str(example.right + 1)


def test_siqa_asks_for_causes_and_effects_in_other_words() -> None:
    """And names the agent, as Social IQa does."""
    one = found(3)[0]
    told = [siqa.row(one._replace(question=asked), "qa1", siqa.Options())["question"] for asked in ("cause", "effect")]
    assert told[0] != told[1]
    other = one._replace(premise=one.premise._replace(agents=(world.Phrase("per7"),)))
    assert siqa.row(other, "qa1", siqa.Options())["question"] not in told
