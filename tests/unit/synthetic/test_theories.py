"""Generated RuleTaker examples: balance, reproducibility, JSON, refusals. test_logic.py checks their answers."""

import hashlib
from collections import Counter, defaultdict
from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xlgrid.synthetic import natural
from xlgrid.synthetic.logic import VARIABLE, named, solve
from xlgrid.synthetic.sizes import MAX_DEPTH
from xlgrid.synthetic.theories import Options, examples, to_json

N = 4000


def generate(n, max_depth, seed, **options):
    return list(examples(n, Options(max_depth=max_depth, seed=seed, **options)))


@pytest.fixture(scope="module", params=[0, 1, 3, 5])
def sample(request):
    """Maximum depth and examples of it."""
    return request.param, generate(N, request.param, 17)


def literals(theory):
    return [*theory.facts, *(c for rule in theory.rules for c in (*rule.conditions, rule.conclusion))]


def blocks(generated):
    """The examples of each theory."""
    return [list(block) for _, block in groupby(generated, key=lambda example: example.theory)]


# --- balance ---


def test_each_depth_and_label_is_equally_frequent(sample):
    max_depth, generated = sample
    counts = Counter((example.depth, example.label) for example in generated)
    assert set(counts) == {(depth, label) for depth in range(max_depth + 1) for label in (False, True)}
    assert max(counts.values()) - min(counts.values()) <= 1


def test_polarity_is_balanced_at_each_depth_and_label(sample):
    max_depth, generated = sample
    negative = Counter((example.depth, example.label) for example in generated if not example.question.positive)
    for kind, count in negative.items():
        assert count == pytest.approx(N / (2 * (max_depth + 1)) / 2, abs=2), kind


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_negative_questions_have_the_share_asked_for_with_either_label(share):
    generated = generate(2000, 2, 5, negated_questions=share)
    for label in (False, True):
        some = [example for example in generated if example.label == label]
        assert sum(not example.question.positive for example in some) / len(some) == pytest.approx(share, abs=0.005)


def features(example):
    """What a bag-of-words model could count."""
    theory, question = example.theory, example.question
    conditions = [c for rule in theory.rules for c in rule.conditions]
    return {
        "predicate": question.predicate,
        "entity": question.subject,
        "kind": question.object is None,
        "facts with the predicate": sum(f.predicate == question.predicate for f in theory.facts),
        "rules that conclude it": sum(r.conclusion.predicate == question.predicate for r in theory.rules),
        "rules that ask for it": sum(c.predicate == question.predicate for c in conditions),
        "rules that ask for its negation": sum(
            c.predicate == question.predicate and not c.positive for c in conditions
        ),
        "facts about the entity": sum(f.subject == question.subject for f in theory.facts),
        "facts with the entity as object": sum(f.object == question.subject for f in theory.facts),
        "rules about the entity": sum(c.subject == question.subject for c in literals(theory)) > 0,
        "size": len(theory.facts) + len(theory.rules),
        "negations": sum(not c.positive for c in conditions) > 0,
    }


def test_no_count_of_words_tells_whether_the_literal_holds(sample):
    """A table from each count (and both polarities) to the majority answer, learnt on one half, tested on the other."""
    _, generated = sample
    counted = [(features(example), example.label == example.question.positive) for example in generated]
    for name in counted[0][0]:
        table = defaultdict(Counter)
        for counts, holds in counted[: N // 2]:
            table[counts[name]][holds] += 1
        guesses = {value: count[True] >= count[False] for value, count in table.items()}
        right = sum(guesses.get(counts[name]) == holds for counts, holds in counted[N // 2 :])
        assert right / (N // 2) < 0.55, f"{name} tells whether a literal holds in {right / (N // 2):.1%} of cases"


def test_questions_are_about_entities_and_predicates_of_their_theory(sample):
    for example in sample[1]:
        mentioned = {(c.predicate, c.object) for c in literals(example.theory)}
        assert example.question.subject in named(example.theory)
        assert (example.question.predicate, example.question.object) in mentioned
        assert example.question.subject != example.question.object


def test_literals_that_fail_at_depth_zero_mostly_have_a_predicate_that_holds_of_another_entity():
    missed = [example for example in generate(2000, 0, 3) if example.label != example.question.positive]
    held = [
        any((f.predicate, f.object) == (example.question.predicate, example.question.object)
            for f in example.theory.facts)
        for example in missed
    ]  # fmt: skip
    assert sum(held) / len(held) > 0.8


SMALL = {"persons": 3, "attributes": 3, "relational": 0, "rules": (0, 0)}


def test_no_theory_comes_twice_even_where_few_are_possible():
    some = generate(60, 0, 1, **SMALL, facts=(2, 3), entities=3, questions_per_theory=2)
    theories = [frozenset(some[i].theory.facts) for i in range(0, 60, 2)]
    assert len(set(theories)) == len(theories)


def test_more_theories_than_are_possible_is_an_error():
    with pytest.raises(ValueError, match=r"no further theory .* after \d+ with facts \(2, 2\)"):
        generate(10_000, 0, 1, **SMALL, facts=(2, 2), entities=2, questions_per_theory=2)


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_unmentioned_is_the_share_of_failing_literals_whose_attribute_the_theory_lacks(share):
    missed = [
        e
        for e in generate(4000, 1, 3, relational=0, unmentioned=share)
        if e.label != e.question.positive and e.depth == 0
    ]
    is_absent = [e.question.predicate not in {c.predicate for c in literals(e.theory)} for e in missed]
    assert sum(is_absent) / len(is_absent) == pytest.approx(share, abs=0.05)
    assert all(solve(e.theory, named(e.theory)).proved.get(e.question._replace(positive=True)) is None for e in missed)


# --- theories ---


def test_sizes_are_within_the_options_and_take_their_ends():
    options = {"facts": (5, 7), "rules": (4, 6), "conditions": 2, "entities": 3, "questions_per_theory": 1}
    theories = [example.theory for example in generate(600, 3, 1, **options)]
    assert {len(theory.facts) for theory in theories} == {5, 6, 7}
    assert {len(theory.rules) for theory in theories} == {4, 5, 6}
    assert {len(rule.conditions) for theory in theories for rule in theory.rules} == {1, 2}
    assert max(len(named(theory)) for theory in theories) == 3


def test_no_fact_rule_or_condition_is_repeated_and_none_relates_an_entity_to_itself(sample):
    for theory, *_ in (block[0] for block in blocks(sample[1])):
        assert len(set(theory.facts)) == len(theory.facts)
        assert len({(frozenset(rule.conditions), rule.conclusion) for rule in theory.rules}) == len(theory.rules)
        for rule in theory.rules:
            assert len({c[:3] for c in (*rule.conditions, rule.conclusion)}) == len(rule.conditions) + 1
        assert not any(literal.subject == literal.object for literal in literals(theory))


def test_what_a_rule_concludes_about_everyone_it_asks_of_someone(sample):
    for theory, *_ in (block[0] for block in blocks(sample[1])):
        for rule in theory.rules:
            bound = any(c.subject == VARIABLE for c in rule.conditions)
            assert bound or rule.conclusion.subject != VARIABLE, rule


def test_depth_zero_theories_have_rules_that_derive_something_as_distractors():
    theories = [block[0].theory for block in blocks(generate(400, 0, 1))]
    assert all(theory.rules for theory in theories)
    deriving = [max(solve(theory, named(theory)).proved.values()) > 0 for theory in theories]
    assert sum(deriving) / len(deriving) > 0.9


def test_negated_rules_can_be_left_out_and_are_in_half_of_the_theories_otherwise():
    def share(**options):
        theories = [example.theory for example in generate(800, 2, 1, **options)]
        return sum(any(not c.positive for c in literals(theory)) for theory in theories) / len(theories)

    assert share(negated_rules=False) == 0
    assert 0.35 < share(questions_per_theory=1) < 0.6


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_relational_is_the_share_of_theories_about_animals(share):
    theories = [example.theory for example in generate(600, 2, 1, relational=share, questions_per_theory=1)]
    about_animals = [set(named(theory)) <= set(natural.concepts().animals) for theory in theories]
    related = [any(literal.object for literal in literals(theory)) for theory in theories]
    assert sum(about_animals) / len(theories) == pytest.approx(share, abs=0.08)
    assert not any(relation and not animal for relation, animal in zip(related, about_animals, strict=True))
    assert sum(related) >= 0.9 * sum(about_animals)


def test_only_the_first_concepts_are_used():
    counts = {"persons": 3, "animals": 3, "attributes": 6, "relations": 1}
    words = Options(**counts).words
    assert [len(kind) for kind in words] == [*counts.values()]
    for example in generate(200, 3, 1, **counts):
        for literal in literals(example.theory):
            assert literal.predicate in (words.relations if literal.object else words.attributes)
        assert set(named(example.theory)) <= {*words.persons, *words.animals}


# --- sequence ---


@pytest.mark.parametrize("size", [1, 4, 7])
def test_each_theory_has_one_contiguous_block_of_distinct_questions(size):
    generated = generate(size * 30, 2, 9, questions_per_theory=size)
    theory_blocks = blocks(generated)
    assert [len(block) for block in theory_blocks] == [size] * 30
    assert len({block[0].theory for block in theory_blocks}) == 30
    assert all(len({example.question for example in block}) == size for block in theory_blocks)


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, MAX_DEPTH), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_asking_for_more_gives_the_same_beginning(few, more, max_depth, seed):
    long = generate(few + more, max_depth, seed)
    assert len(long) == few + more
    assert generate(few, max_depth, seed) == long[:few]


def test_the_sequence_is_the_same_on_every_machine():
    """If this fails, every generated data set has changed: write the new digest down only if that is meant."""
    lines = [to_json(example) for max_depth in range(6) for example in generate(100, max_depth, 0)]
    assert hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16] == "5ee7365fdd157b02"


# --- JSON ---


# --- refusals ---


def test_options_that_leave_no_room_are_refused_instead_of_searching_for_ever():
    crowded = Options(max_depth=2, facts=(16, 16), entities=2, relational=0)
    with pytest.raises(ValueError, match="allow more concepts or entities, or fewer facts or rules"):
        next(examples(1, crowded))
