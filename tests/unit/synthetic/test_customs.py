"""Facts that hold in one language alone."""

from collections import Counter
from math import log2

from xlgrid.synthetic.artificial import artificial
from xlgrid.synthetic.customs import MOST, THINGS, customs
from xlgrid.synthetic.world import ADJECTIVES, Fact


def condition(fact: Fact) -> tuple[str, str | None, str]:
    return fact.agents[0].head, fact.agents[0].adjective, fact.predicate


def consequence(fact: Fact) -> tuple[str, str | None]:
    assert fact.patient
    return fact.patient.head, fact.patient.adjective


def test_agent_and_verb_determine_the_patient() -> None:
    everything = customs("qa1", MOST)
    assert len(everything) == MOST == len({condition(fact) for fact in everything})


def test_customs_of_two_languages_agree_by_chance_alone() -> None:
    first, second = ({condition(fact): consequence(fact) for fact in customs(code, MOST)} for code in ("qa1", "qa2"))
    assert first.keys() == second.keys()
    equal = sum(first[known] == second[known] for known in first)
    assert equal < 30, f"{equal} of {MOST} are equal, and 1 of {len(THINGS) * len(ADJECTIVES)} is expected"


def test_more_customs_begin_with_the_same() -> None:
    assert customs("qb1", 500)[:50] == customs("qb1", 50)


def test_no_single_word_tells_the_patient() -> None:
    """Given the agent, its adjective or the verb, the patient is nearly as uncertain as without."""
    everything = customs("qc1", MOST)
    for part in range(3):
        known = Counter(condition(fact)[part] for fact in everything)
        pairs = Counter((condition(fact)[part], consequence(fact)[0]) for fact in everything)
        uncertain = -sum(count / MOST * log2(count / known[word]) for (word, _), count in pairs.items())
        assert uncertain > log2(len(THINGS)) - 0.3


def test_every_custom_is_a_sentence_in_every_family() -> None:
    for code in ("qa1", "qb2", "qc3"):
        sentences = [artificial(code).sentence(fact) for fact in customs(code, 200)]
        assert len(set(sentences)) == 200
