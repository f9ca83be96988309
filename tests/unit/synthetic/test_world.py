"""The world of facts: prefixes, balance, knowledge that stays true, JSON."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xlgrid.synthetic import world


@settings(max_examples=20)
@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 5))
def test_more_facts_begin_with_the_same_facts(few: int, more: int, seed: int) -> None:
    few, more = sorted((few, more))
    assert world.facts(more, seed)[:few] == world.facts(few, seed)


def test_facts_do_not_repeat() -> None:
    facts = world.facts(3000, 0)
    assert len(set(facts)) == len(facts)


def test_types_are_balanced() -> None:
    counts = Counter(world.entities()[name].type for fact in world.facts(5000, 0) for name in world.mentions(fact))
    shares = {kind: count / counts.total() for kind, count in counts.items()}
    assert set(shares) == set(world.TYPES)
    assert min(shares.values()) > 0.25, shares


def test_all_entities_may_be_mentioned() -> None:
    mentioned = {name for fact in world.facts(8000, 0) for name in world.mentions(fact)}
    assert mentioned == set(world.entities())


@pytest.mark.parametrize(
    ("verb", "role"),
    [("born", "per"), ("live", "per"), ("work", "per"), ("lie", "org"), ("lead", "org"), ("found", "org")],
)
def test_knowledge_is_a_function(verb: str, role: str) -> None:
    """One birthplace, home and employer per person; one seat, leader and founder per organisation."""
    holders = [
        name
        for fact in world.knowledge()
        if fact.predicate == verb
        for name in world.mentions(fact)
        if name[:3] == role
    ]
    assert sorted(holders) == sorted(name for name in world.entities() if name[:3] == role)


def test_no_fact_contradicts_knowledge() -> None:
    known = set(world.knowledge())
    checked = Counter[bool]()
    for fact in world.facts(5000, 3):
        fact = fact.content or fact
        bare = fact._replace(time=None, adverb=None, positive=True)
        if fact.predicate in world.LASTING and (fact.patient is None or fact.patient.head not in world.ADJECTIVES):
            assert (bare in known) == fact.positive, fact
            checked[fact.positive] += 1
    assert checked[True] > 500, checked
    assert checked[False] > 50, checked


@pytest.mark.parametrize("verb", ["border", "marry"])
def test_what_holds_both_ways_is_denied_neither_way(verb: str) -> None:
    pairs = {frozenset(world.mentions(fact)) for fact in world.knowledge() if fact.predicate == verb}
    denied = [fact for fact in world.facts(8000, 1) if fact.predicate == verb and not fact.positive]
    assert denied
    assert [fact for fact in denied if frozenset(world.mentions(fact)) in pairs] == []


def test_time_agrees_with_tense() -> None:
    assert [fact for fact in world.facts(2000, 0) if fact.time and world.TIMES[fact.time] != fact.tense] == []


def test_an_organisation_lies_where_its_name_says() -> None:
    seats = {fact.agents[0].head: fact.obliques[0][1].head for fact in world.knowledge() if fact.predicate == "lie"}
    named = {name: entity.name[-1] for name, entity in world.entities().items() if entity.type == "ORG"}
    after_places = {name: place for name, place in named.items() if place.startswith("loc")}
    assert after_places
    assert {name: seats[name] for name in after_places} == after_places
