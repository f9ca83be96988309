"""Derivation: hand-written theories, and agreement with a naive solver that shares no code with the library."""

import math

import clingo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xlgrid.synthetic.logic import VARIABLE, Literal, Rule, Theory, named, solve
from xlgrid.synthetic.theories import Options, examples


def derive(theory, entities):
    """Every positive literal that follows, with the depth of its shallowest proof."""
    return solve(theory, entities).proved


def lit(text: str) -> Literal:
    """`lit("not chase ? dog")`, `lit("big anne")`."""
    words = text.split()
    positive = words[0] != "not"
    predicate, subject, *thing = words if positive else words[1:]
    return Literal(predicate, subject, thing[0] if thing else None, positive)


def theory(facts: str, *rules: str) -> Theory:
    """`theory("big anne, red bob", "big ?, not red ? -> kind ?")`."""
    split = [rule.split(" -> ") for rule in rules]
    return Theory(
        tuple(lit(fact) for fact in facts.split(", ")),
        tuple(Rule(tuple(lit(c) for c in body.split(", ")), lit(head)) for body, head in split),
    )


CHAIN = theory("big anne, red bob", "big ? -> kind ?", "kind ? -> cold ?", "cold ? -> nice ?")


# --- the naive solver ---


def ground(theory, entities):
    """All instances of all rules, as (conditions, conclusion)."""
    instances = []
    for conditions, conclusion in theory.rules:
        for name in entities:
            everything = [c._replace(subject=name) if c.subject == VARIABLE else c for c in (*conditions, conclusion)]
            instances.append((everything[:-1], everything[-1]))
    return instances


def naive_strata(instances, facts):
    """The stratum of each ground literal, or None if there are none: raise strata until every rule is content."""
    atoms = {c._replace(positive=True) for body, head in instances for c in (*body, head)} | set(facts)
    stratum = dict.fromkeys(atoms, 0)
    changed = True
    while changed:
        changed = False
        for body, head in instances:
            for c in body:
                least = stratum[c._replace(positive=True)] + (not c.positive)
                if stratum[head] < least:
                    stratum[head], changed = least, True
                    if least > len(atoms):
                        return None
    return stratum


def naive_solve(theory, entities):
    """(true literals, depth of each literal or inf where literals wait for one another); None if not stratified."""
    instances = ground(theory, entities)
    stratum = naive_strata(instances, theory.facts)
    if stratum is None:
        return None
    true = set(theory.facts)
    for level in range(max(stratum.values()) + 1):
        while True:
            holding = {
                head
                for body, head in instances
                if stratum[head] == level and all((c._replace(positive=True) in true) == c.positive for c in body)
            }
            if holding <= true:
                break
            true |= holding
    depth = {atom: 0 if atom in theory.facts else math.inf for atom in stratum}
    for _ in range(len(depth) + 1):
        for atom in depth:
            bodies = [body for body, head in instances if head == atom]
            if atom in theory.facts or not bodies:
                depth[atom] = 0
                continue
            proofs, failures = [], []
            for body in bodies:
                held = [(c._replace(positive=True) in true) == c.positive for c in body]
                depths = [depth[c._replace(positive=True)] for c in body]
                if all(held):
                    proofs.append(max(depths))
                else:
                    failures.append(min(d for d, h in zip(depths, held, strict=True) if not h))
            depth[atom] = 1 + (min(proofs) if proofs else max(failures))
    return true, depth


literals = st.builds(
    Literal,
    st.sampled_from(["big", "red", "kind"]),
    st.sampled_from([VARIABLE, VARIABLE, "anne", "bob"]),
    st.sampled_from([None, None, "bob"]),
    st.sampled_from([True, True, False]),
)
positives = literals.map(lambda literal: literal._replace(positive=True))
rules = st.builds(Rule, st.lists(literals, min_size=1, max_size=3).map(tuple), positives)
facts = positives.filter(lambda literal: literal.subject != VARIABLE)
theories = st.builds(Theory, st.lists(facts, max_size=4).map(tuple), st.lists(rules, min_size=1, max_size=6).map(tuple))


@given(theories)
@settings(max_examples=600)
def test_any_theory_agrees_with_the_naive_solver(theory):
    entities = ("anne", "bob")
    expected = naive_solve(theory, entities)
    if expected is None:
        with pytest.raises(ValueError, match="not stratified"):
            solve(theory, entities)
        return
    true, depth = expected
    solution = solve(theory, entities)
    assert set(solution.proved) == true
    assert not true & set(solution.failed)
    if all(map(math.isfinite, depth.values())):
        assert {atom: (solution.proved | solution.failed)[atom] for atom in depth} == depth


@given(
    st.builds(
        Options,
        seed=st.integers(0, 10**6),
        max_depth=st.integers(0, 5),
        relational=st.sampled_from([0.0, 0.5, 1.0]),
        conditions=st.integers(1, 3),
        entities=st.integers(3, 6),
        facts=st.sampled_from([(2, 4), (4, 8), (6, 12)]),
        rules=st.sampled_from([(0, 5), (3, 8), (8, 12)]),
        negated_rules=st.booleans(),
        negated_questions=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
        questions_per_theory=st.integers(1, 6),
    ),
)
@settings(max_examples=60)
def test_generated_examples_agree_with_the_naive_solver(options):
    for example in examples(12, options):
        true, depth = naive_solve(example.theory, named(example.theory))
        positive = example.question._replace(positive=True)
        assert example.label == ((positive in true) == example.question.positive), example
        if all(map(math.isfinite, depth.values())):
            assert example.depth == depth.get(positive, 0), example


def test_generated_theories_agree_with_clingo():
    def written(literal):
        arguments = [literal.subject if literal.subject != VARIABLE else "X", *filter(None, [literal.object])]
        return f"{'' if literal.positive else 'not '}{literal.predicate}({','.join(arguments)})"

    for example in examples(300, Options(max_depth=3, seed=11, questions_per_theory=1)):
        names = named(example.theory)
        lines = [f"entity({name})." for name in names] + [f"{written(fact)}." for fact in example.theory.facts]
        for conditions, conclusion in example.theory.rules:
            lines.append(f"{written(conclusion)} :- {', '.join(map(written, conditions))}, entity(X).")
        control = clingo.Control(["--warn=none"])
        control.add("base", [], "\n".join(lines))
        control.ground([("base", [])])
        models = []
        control.solve(on_model=lambda model, models=models: models.append({str(a) for a in model.symbols(atoms=True)}))
        assert len(models) == 1
        atoms = {written(literal) for literal in derive(example.theory, names)}
        assert atoms == {atom for atom in models[0] if not atom.startswith("entity(")}


# --- hand-written theories ---


def test_literals_that_wait_for_one_another_fail_together():
    loop = theory("red anne", "big ? -> kind ?", "kind ? -> big ?", "big ? -> nice ?")
    failed = solve(loop, ["anne"]).failed
    assert (failed[lit("big anne")], failed[lit("kind anne")], failed[lit("nice anne")]) == (1, 1, 2)


def test_a_loop_fails_below_what_it_rests_on_besides():
    loop = theory("red anne", "big ? -> kind ?", "kind ? -> big ?", "cold ? -> big ?", "nice ? -> cold ?")
    failed = solve(loop, ["anne"]).failed
    assert (failed[lit("cold anne")], failed[lit("big anne")], failed[lit("kind anne")]) == (1, 2, 2)


def test_the_order_of_facts_rules_and_entities_does_not_matter():
    turned = Theory(CHAIN.facts[::-1], CHAIN.rules[::-1])
    assert solve(turned, ["bob", "anne"]) == solve(CHAIN, ["anne", "bob"])


def test_named_finds_subjects_and_objects_of_facts_and_rules():
    assert named(theory("chase cat dog", "big ? -> like ? cow", "red bear -> red ?")) == ("bear", "cat", "cow", "dog")


def test_negation_of_another_entity_is_no_cycle():
    assert derive(theory("red bob", "not big anne -> big bob"), ["anne", "bob"])[lit("big bob")] == 1


# --- refusals ---


@pytest.mark.parametrize(
    ("bad", "cycle"),
    [
        (theory("red anne", "not big ? -> big ?"), r"big\(anne\) depends on not big\(anne\);"),
        (
            theory("red anne", "not big ? -> kind ?", "kind ? -> cold ?", "cold ? -> big ?"),
            r"kind\(anne\) depends on not big\(anne\), which depends on cold\(anne\), which depends on kind\(anne\);",
        ),
        (theory("big anne", "not big ? -> big ?"), r"big\(anne\) depends on not big\(anne\);"),
    ],
)
def test_a_theory_that_is_not_stratified_is_refused_naming_the_cycle(bad, cycle):
    with pytest.raises(ValueError, match=cycle):
        derive(bad, ["anne"])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (theory("not big anne"), r"a fact must be positive and about one entity, got not big\(anne\)"),
        (theory("big ?"), r"a fact must be positive and about one entity, got big\(\?\)"),
        (theory("big anne", "big ? -> not red ?"), r"the conclusion of a rule must be positive, got not red\(\?\)"),
        (Theory((), (Rule((), lit("big ?")),)), r"at least one condition, got none for big\(\?\)"),
        (theory("big bob", "big ? -> see ? cat"), "mentions bob, cat, but the entities are anne"),
    ],
)
def test_other_theories_that_are_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        solve(bad, ["anne"])
