"""Premises and hypotheses under the open-world assumption."""

from collections import Counter, defaultdict
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xlgrid.synthetic.logic import VARIABLE, Literal, Rule
from xlgrid.synthetic.premises import LABELS, Options, consequences, examples


def made(n=300, **options):
    return list(examples(n, Options(n=n, **options)))


SMALL = {"animals": 0, "relations": 0, "relational": 0, "persons": 4, "attributes": 8, "facts": (2, 3), "rules": (0, 0)}


def label_by_truth_table(example):
    """Try every way the world could be: in how many of those that the premise allows does the hypothesis hold?"""
    subject = example.hypothesis.subject
    ground = [(c._replace(subject=subject), h._replace(subject=subject)) for (c,), h in example.rules]
    facts = [fact for fact in example.facts if fact.subject == subject]
    literals = [*facts, example.hypothesis, *(literal for pair in ground for literal in pair)]
    atoms = list(dict.fromkeys(literal._replace(positive=True) for literal in literals))
    holds = set()
    for values in product((False, True), repeat=len(atoms)):
        world = dict(zip(atoms, values, strict=True))

        def true(literal, world=world):
            return world[literal._replace(positive=True)] == literal.positive

        if all(true(fact) for fact in facts) and all(true(then) or not true(when) for when, then in ground):
            holds.add(true(example.hypothesis))
    assert holds, f"the premise contradicts itself: {example}"
    return {(True,): "entailment", (False,): "contradiction"}.get(tuple(holds), "neutral")


def guess(sample, feature):
    """Accuracy of the best guess from `feature` alone."""
    counts = defaultdict(Counter)
    for example in sample:
        counts[feature(example)][example.label] += 1
    return sum(max(c.values()) for c in counts.values()) / len(sample)


@pytest.mark.parametrize("options", [{}, {"max_depth": 2}, {"max_depth": 5, "rules": (5, 7), "facts": (3, 8)}, SMALL])
def test_labels_are_those_of_a_truth_table(options):
    for example in made(**options):
        assert label_by_truth_table(example) == example.label, example


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_labels_are_right_for_any_seed(seed):
    for example in made(9, seed=seed, max_depth=1):
        assert label_by_truth_table(example) == example.label, example


def test_rules_work_both_ways_and_count():
    big, kind, cold = (Literal(word, VARIABLE) for word in ("big", "kind", "cold"))
    rules = [Rule((big,), kind), Rule((kind,), cold._replace(positive=False))]
    assert consequences([Literal("cold", "anne")], rules) == {
        Literal("cold", "anne"): 0,
        Literal("kind", "anne", positive=False): 1,
        Literal("big", "anne", positive=False): 2,
    }
    assert Literal("cold", "bob", positive=False) in consequences([Literal("big", "bob")], rules)


def test_every_premise_has_each_label_once_and_no_premise_comes_twice():
    sample = made(600, max_depth=1)
    threes = [sample[i : i + 3] for i in range(0, 600, 3)]
    assert all({example.label for example in three} == set(LABELS) for three in threes)
    premises = {(frozenset(e.facts), frozenset(e.rules)) for e in sample}
    assert all(len({example[:2] for example in three}) == 1 for three in threes) and len(premises) == 200


def test_depths_are_equally_frequent():
    assert Counter(example.depth for example in made(360, max_depth=2)) == {0: 120, 1: 120, 2: 120}


def test_the_hypothesis_alone_does_not_tell_the_label():
    sample = made(6000, attributes=8, animals=5, persons=5, relations=3)
    assert guess(sample, lambda e: e.hypothesis.positive) < 0.37
    assert guess(sample, lambda e: e.hypothesis.predicate) < 0.39
    assert guess(sample, lambda e: e.hypothesis.subject) < 0.39


def test_neutral_hypotheses_are_about_words_of_the_premise_unless_asked():
    def mentioned(example):
        literals = [*example.facts, *(part for (when,), then in example.rules for part in (when, then))]
        return example.hypothesis.predicate in {literal.predicate for literal in literals}

    neutral = [example for example in made(600) if example.label == "neutral"]
    assert all(map(mentioned, neutral))


def test_too_few_words_for_so_many_premises():
    options = SMALL | {"persons": 2, "attributes": 3, "facts": (1, 2)}
    with pytest.raises(ValueError, match=r"no further premise .* allow more concepts"):
        made(3000, **options)
