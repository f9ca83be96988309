"""Propositions, rules and theories: the language-independent content of a RuleTaker example, and its solution."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

# The subject of the literals of a rule about all entities.
VARIABLE = "?"
# The predicate of hypernymy, whose object is a class.
IS_A = "is a"

# The conditions of an instance of a rule: the number of each ground literal, and whether the condition is positive.
_Conditions = list[tuple[int, bool]]
# The depth of a literal whose failure is not established, or not yet.
_ENDLESS = 1 << 30


class Literal(NamedTuple):
    """A proposition or its negation: "Anne is big", "the cat does not chase the dog", "someone is not kind".

    LeapOfThought, where nothing is derived, also has literals about classes: a class is the object of IS_A, and the
    subject of an attribute that it has or lacks.

    Attributes:
        predicate: an attribute if `object` is None, otherwise a relation.
        subject: an entity, or VARIABLE.
        object: an entity.
        positive: whether the literal is the proposition itself.
    """

    predicate: str
    subject: str
    object: str | None = None
    positive: bool = True


class Rule(NamedTuple):
    """A rule: if all `conditions` (one to three) hold, the `conclusion` holds. A negative condition is negation as
    failure."""

    conditions: tuple[Literal, ...]
    conclusion: Literal


class Theory(NamedTuple):
    """Positive facts and rules, read under the closed-world assumption (Clark et al. 2020, section 3)."""

    facts: tuple[Literal, ...]
    rules: tuple[Rule, ...]


def read_theory(fields: Mapping[str, Any]) -> Theory:
    """The theory in the keys `facts` and `rules` of a JSON object, where a literal is the list of its fields.

    Raises:
        TypeError, ValueError, KeyError: the object does not have this form.
    """
    rules = (Rule(tuple(Literal(*c) for c in body), Literal(*head)) for body, head in fields["rules"])
    return Theory(tuple(Literal(*fact) for fact in fields["facts"]), tuple(rules))


class Solution(NamedTuple):
    """The positive ground literals that a theory proves (`proved`) and does not prove (`failed`), with their depths.

    The depth of a literal is the number of rules that have to be applied in sequence to know whether it holds:

    - proved: 0 for a fact, otherwise the least, over the rule instances that conclude the literal and whose conditions
      all hold, of 1 + the greatest depth of a condition;
    - failed: 0 if no rule instance concludes the literal, otherwise 1 + the greatest, over the rule instances that
      conclude it, of the least depth of a condition that does not hold.

    The depth of a negative condition is the depth of its positive form: the depth of the failure if the condition
    holds, or of the proof if it does not. Literals that depend on one another ("if big then round", "if round then
    big") fail together. Their depth is 1 + the greatest of the least depths among their rule instances that fail on a
    literal outside the group; an instance that fails only on literals of the group counts as 0.
    """

    proved: dict[Literal, int]
    failed: dict[Literal, int]


def named(theory: Theory) -> tuple[str, ...]:
    """The entities that a theory mentions, in alphabetical order."""
    names = {name for literal in _literals(theory) for name in (literal.subject, literal.object)}
    return tuple(sorted(name for name in names if name is not None and name != VARIABLE))


def solve(theory: Theory, entities: Collection[str]) -> Solution:
    """Decide every literal that combines an entity with a predicate (and object) that `theory` mentions.

    Args:
        theory: positive facts, and rules with positive conclusions.
        entities: the values of VARIABLE. They must include all entities that `theory` mentions, see `named`.

    Raises:
        ValueError: `theory` is not stratified, that is, an instance of a literal depends on its own negation; or it has
            a negative fact or conclusion, a fact about VARIABLE, or an entity that is not in `entities`. Stratification
            is checked on rule instances (local stratification, Przymusinski 1988): "if Anne is not big then Bob is big"
            is accepted.
    """
    names = tuple(dict.fromkeys(entities))
    _check(theory, names)
    width = len(names)
    position = {name: i for i, name in enumerate(names)}
    # A signature is a literal without its subject. The number of a ground literal is signature * width + subject.
    signatures: dict[tuple[str, str | None], int] = {}

    def number(literal: Literal) -> int:
        signature = signatures.setdefault((literal.predicate, literal.object), len(signatures))
        return signature * width + position.get(literal.subject, 0)

    facts = {number(fact) for fact in theory.facts}
    instances: list[tuple[int, _Conditions]] = []
    for conditions, conclusion in theory.rules:
        body = [(number(c), c.subject == VARIABLE, c.positive) for c in conditions]
        head, general = number(conclusion), conclusion.subject == VARIABLE
        for i in range(width if general or any(varies for _, varies, _ in body) else 1):
            instances.append((head + i * general, [(atom + i * varies, positive) for atom, varies, positive in body]))
    rules: list[list[_Conditions]] = [[] for _ in range(len(signatures) * width)]
    for head, ground in instances:
        rules[head].append(ground)

    atoms = [Literal(predicate, name, thing) for predicate, thing in signatures for name in names]
    values = _values(rules, facts, lambda atom: describe(atoms[atom]))
    return Solution(
        {atom: value for atom, value in zip(atoms, values, strict=True) if value >= 0},
        {atom: ~value for atom, value in zip(atoms, values, strict=True) if value < 0},
    )


def describe(literal: Literal) -> str:
    """A literal as text for error messages: "big(anne)", "not chase(cat, dog)"."""
    things = literal.subject if literal.object is None else f"{literal.subject}, {literal.object}"
    return f"{'' if literal.positive else 'not '}{literal.predicate}({things})"


def _literals(theory: Theory) -> Iterable[Literal]:
    yield from theory.facts
    for conditions, conclusion in theory.rules:
        yield from conditions
        yield conclusion


def _check(theory: Theory, names: Collection[str]) -> None:
    for fact in theory.facts:
        if not fact.positive or fact.subject == VARIABLE:
            raise ValueError(f"a fact must be positive and about one entity, got {describe(fact)}")
    for rule in theory.rules:
        if not rule.conditions:
            raise ValueError(
                f"a rule must have at least one condition, got none for {describe(rule.conclusion)}: add a fact instead"
            )
        if not rule.conclusion.positive:
            raise ValueError(
                f"the conclusion of a rule must be positive, got {describe(rule.conclusion)}: "
                "under the closed-world assumption, everything that is not concluded is false"
            )
    if VARIABLE in names:
        raise ValueError(
            f"{VARIABLE!r} means every entity and cannot be an entity, got the entities {', '.join(names)}"
        )
    missing = [name for name in named(theory) if name not in names]
    if missing:
        raise ValueError(
            f"the theory mentions {', '.join(missing)}, but the entities are {', '.join(names) or '()'}: "
            "pass all entities that it mentions, for instance named(theory)"
        )


def _values(rules: list[list[_Conditions]], facts: set[int], name: Callable[[int], str]) -> list[int]:
    """The value of each ground literal: its depth if it is proved, ~depth if it fails.

    Args:
        rules: the instances of rules, by the literal that they conclude.
    """
    values = [~_ENDLESS] * len(rules)
    waits = [sum(map(len, instances)) for instances in rules]
    uses: list[list[int]] = [[] for _ in rules]
    for atom, instances in enumerate(rules):
        for conditions in instances:
            for condition, _ in conditions:
                uses[condition].append(atom)

    def settle(ready: deque[int]) -> None:
        while ready:
            for use in uses[ready.popleft()]:
                waits[use] -= 1
                if not waits[use] and use in unsettled:
                    values[use] = 0 if use in facts else _value(rules[use], values)
                    unsettled.discard(use)
                    ready.append(use)

    unsettled = set(range(len(rules)))
    free = [atom for atom in unsettled if not waits[atom]]
    for atom in free:
        values[atom] = 0 if atom in facts else _value(rules[atom], values)
    unsettled.difference_update(free)
    settle(deque(free))
    while unsettled:
        loop = min((_reach(atom, rules, unsettled) for atom in sorted(unsettled)), key=len)
        _check_stratified(loop, rules, name)
        _settle_loop(loop, rules, facts, values)
        unsettled -= set(loop)
        settle(deque(sorted(loop)))
    return values


def _value(instances: list[_Conditions], values: list[int]) -> int:
    """The value of the literal that `instances` conclude, from the values of their conditions."""
    proof, failure = _ENDLESS, -1
    for conditions in instances:
        deepest, shallowest = -1, _ENDLESS
        fails = False
        for atom, positive in conditions:
            value = values[atom]
            depth = value if value >= 0 else ~value
            if (value >= 0) == positive:
                deepest = max(deepest, depth)
            else:
                fails = True
                shallowest = min(shallowest, depth)
        if fails:
            failure = max(failure, shallowest)
        else:
            proof = min(proof, deepest + 1)
    return proof if proof < _ENDLESS else ~min(failure + 1, _ENDLESS)


def _reach(start: int, rules: list[list[_Conditions]], within: set[int]) -> dict[int, int]:
    """The literals in `within` on which `start` depends, each with the literal that led to it (breadth first)."""
    cause: dict[int, int] = {}
    queue = deque([start])
    while queue:
        atom = queue.popleft()
        for conditions in rules[atom]:
            for condition, _ in conditions:
                if condition in within and condition not in cause:
                    cause[condition] = atom
                    queue.append(condition)
    return cause


def _check_stratified(loop: Collection[int], rules: list[list[_Conditions]], name: Callable[[int], str]) -> None:
    for head in sorted(loop):
        for conditions in rules[head]:
            for condition, positive in conditions:
                if positive or condition not in loop:
                    continue
                origins = _reach(condition, rules, set(loop))
                path = [head]
                while path[-1] != condition:
                    path.append(origins[path[-1]])
                cycle = ", which depends on ".join(name(atom) for atom in reversed(path))
                raise ValueError(
                    f"the theory is not stratified: {name(head)} depends on not {cycle}; "
                    "remove a negative condition or a rule of this cycle"
                )


def _settle_loop(loop: Collection[int], rules: list[list[_Conditions]], facts: set[int], values: list[int]) -> None:
    """Compute the values of literals that depend on one another and otherwise only on literals with known values."""
    changed = True
    while changed:
        changed = False
        for atom in loop:
            value = 0 if atom in facts else _value(rules[atom], values)
            changed |= value != values[atom]
            values[atom] = value
    endless = [atom for atom in loop if values[atom] == ~_ENDLESS]
    outside = [~_value([conditions], values) for atom in endless for conditions in rules[atom]]
    for atom in endless:
        values[atom] = ~max((depth for depth in outside if depth < _ENDLESS), default=1)
