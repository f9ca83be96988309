"""Generate RuleTaker examples of depths from 0 to 5 (Clark et al. 2020, section 3; Foroutan et al. 2023, A.1).

A theory is built around a chain of rules: the conclusion of each rule is a condition of the next. Two entities satisfy
all other conditions of the chain, but only one of them satisfies the first condition. A literal that the chain proves
for one entity therefore fails for the other entity at the same depth, and the reverse after a negated step. The same
predicates occur with both answers, so that a reader has to apply the rules to answer. The remaining facts and rules are
random. `solve` determines depths and answers. A theory that lacks the required questions is drawn again.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator
from itertools import count, islice
from random import Random
from typing import Any, NamedTuple

from pydantic import Field, PositiveInt

from xlgrid.synthetic.logic import VARIABLE, Literal, Rule, Theory, named, read_theory, solve
from xlgrid.synthetic.sizes import ATTEMPTS, Sizes

# The predicate and object of a literal.
_Signature = tuple[str, str | None]


class Example(NamedTuple):
    """A theory, a question about it, and the answer.

    `label` is true if and only if the question, which may be negative, holds under the closed-world assumption. `depth`
    is the number of rules in sequence that decide the question, see `xlgrid.synthetic.logic.Solution`.
    """

    theory: Theory
    question: Literal
    label: bool
    depth: int


class Options(Sizes):
    """The size and content of generated theories. The defaults follow RuleTaker."""

    LEAST_FACTS = 2

    n: PositiveInt = Field(100_000, description="number of examples in all three splits")
    facts: tuple[int, int] = Field((4, 8), description="minimum and maximum number of facts in a theory, at least 2")
    rules: tuple[int, int] = Field(
        (3, 8),
        description="minimum and maximum number of rules in a theory, which never has fewer than max_depth; with "
        "[0, 0], theories have facts only",
    )
    conditions: int = Field(3, ge=1, le=3, description="maximum number of conditions of a rule")
    negated_rules: bool = Field(
        True, description="true: half of the theories have rules with negative conditions; false: no theory does"
    )
    negated_questions: float = Field(
        0.5, ge=0, le=1, description="share of negative questions, for all labels and depths"
    )
    unmentioned: float = Field(
        0.0,
        ge=0,
        le=1,
        description="share of the false literals at depth 0 whose attribute the theory does not mention ('random' "
        "questions of Clark et al. 2020); the others differ from a true literal only in the entity",
    )
    questions_per_theory: PositiveInt = Field(4, description="number of consecutive examples that share a theory")


def examples(n: int, options: Options) -> Iterator[Example]:
    """The first `n` examples of an infinite sequence, which the other `options` determine.

    Depths 0 to `max_depth` are equally frequent, and so are both labels at each depth: each block of 2 (max_depth + 1)
    examples, counted from the first, has each combination once. Negative questions have the same share of each
    combination. Examples k * questions_per_theory to (k + 1) * questions_per_theory - 1 are about theory k; their
    questions are distinct if the theory is large enough. No two theories have the same facts and rules. Theories have
    rules as distractors even if `max_depth` is 0.

    Raises:
        ValueError: while iterating, if the options allow no further theory with the required questions.
    """
    return islice(_sequence(Random(f"theories {options.seed}"), options), n)


def to_json(example: Example) -> str:
    """An example as one line of JSON, which `from_json` reads."""
    facts = [_pack(fact) for fact in example.theory.facts]
    rules = [[[_pack(c) for c in rule.conditions], _pack(rule.conclusion)] for rule in example.theory.rules]
    fields = {
        "facts": facts,
        "rules": rules,
        "question": _pack(example.question),
        "label": example.label,
        "depth": example.depth,
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def from_json(text: str) -> Example:
    """The example that `to_json` wrote."""
    fields = json.loads(text)
    return Example(read_theory(fields), Literal(*fields["question"]), fields["label"], fields["depth"])


def _pack(literal: Literal) -> list[Any]:
    """The fields of a literal, without the last fields if they have their default values."""
    if not literal.positive:
        return list(literal)
    return list(literal[:2] if literal.object is None else literal[:3])


def _sequence(rng: Random, options: Options) -> Iterator[Example]:
    wanted = _wanted(rng, options)
    known: set[frozenset[tuple[Any, ...]]] = set()
    while True:
        demands = list(islice(wanted, options.questions_per_theory))
        for _ in range(ATTEMPTS):
            theory = _theory(rng, options)
            # No theory occurs twice, so that no test question is about a theory of the training set.
            if theory and (statements := frozenset([*theory.facts, *theory.rules])) in known:
                continue
            if theory and (questions := _questions(theory, demands, rng, options)):
                known.add(statements)
                break
        else:
            raise ValueError(
                f"found no further theory with questions of depth {options.max_depth} in {ATTEMPTS} attempts after "
                f"{len(known)} with facts {options.facts}, rules {options.rules} and up to {options.entities} "
                "entities: allow more concepts or entities, or fewer facts or rules"
            )
        for question, (depth, label, _) in zip(questions, demands, strict=True):
            yield Example(theory, question, label, depth)


def _wanted(rng: Random, options: Options) -> Iterator[tuple[int, bool, bool]]:
    """An infinite sequence of the depth, label and polarity of each question."""
    kinds = [(depth, label) for depth in range(options.max_depth + 1) for label in (False, True)]
    # Each kind of question has a separate sequence of polarities with a random start, so that the kinds do not become
    # negative at the same time.
    starts = {kind: rng.random() for kind in kinds}
    share = options.negated_questions
    for i in count():
        rng.shuffle(kinds)
        for kind in kinds:
            negative = math.floor((i + 1) * share + starts[kind]) > math.floor(i * share + starts[kind])
            yield *kind, not negative


def _questions(
    theory: Theory, demands: list[tuple[int, bool, bool]], rng: Random, options: Options
) -> list[Literal] | None:
    """A question for each demand, or None if the theory lacks one."""
    solution = solve(theory, named(theory))
    literals_at: dict[tuple[int, bool], list[Literal]] = {}
    for holds, settled in ((True, solution.proved), (False, solution.failed)):
        for literal, depth in settled.items():
            if literal.subject != literal.object:
                literals_at.setdefault((depth, holds), []).append(literal)
    if any((depth, label == positive) not in literals_at for depth, label, positive in demands):
        return None
    subjects = Counter(fact.subject for fact in theory.facts)
    objects = Counter(fact.object for fact in theory.facts)

    def unlike(pair: tuple[Literal, Literal]) -> int:
        """The difference between the numbers of facts about the two subjects."""
        a, b = pair[0].subject, pair[1].subject
        return abs(subjects[a] - subjects[b]) + abs(objects[a] - objects[b])

    # Pairs of entities for which a predicate fails and holds at the same depth. Questions from such pairs have the same
    # words in their theories, equally often, for both answers.
    pairs = {
        depth: [
            (failed, proved)
            for proved in literals_at.get((depth, True), [])
            for failed in literals_at.get((depth, False), [])
            if (proved.predicate, proved.object) == (failed.predicate, failed.object)
        ]
        for depth in {depth for depth, _, _ in demands}
    }
    mentioned = {literal.predicate for rule in theory.rules for literal in (*rule.conditions, rule.conclusion)}
    mentioned |= {fact.predicate for fact in theory.facts}
    elsewhere = [Literal(a, name) for a in options.words.attributes if a not in mentioned for name in sorted(subjects)]
    questions: list[Literal] = []
    for depth, label, positive in demands:
        holds = label == positive
        rng.shuffle(pairs[depth])
        unpaired = list(literals_at[depth, holds])
        rng.shuffle(unpaired)
        literals = [pair[holds] for pair in sorted(pairs[depth], key=unlike)] + unpaired
        if elsewhere and not holds and not depth and rng.random() < options.unmentioned:
            literals = rng.sample(elsewhere, len(elsewhere))
        choices = [literal._replace(positive=positive) for literal in literals]
        questions.append(next((choice for choice in choices if choice not in questions), choices[0]))
    return questions


def _theory(rng: Random, options: Options) -> Theory | None:
    """A random theory with a chain of max_depth rules; None if the draw cannot be completed."""
    relational = rng.random() < options.relational
    negated = options.negated_rules and rng.random() < 0.5
    n_facts = rng.randint(*options.facts)
    n_rules = rng.randint(max(options.rules[0], options.max_depth), options.rules[1])
    words = options.words.animals if relational else options.words.persons
    most = min(options.entities, len(words))
    names = rng.sample(words, rng.randint(min(3, most), most))
    length = min(max(options.max_depth, 1), n_rules)

    pool = _signatures(length + rng.randint(4, 6), names, relational, rng, options)
    start, decoy, *chain = pool[: length + 2]
    rest = pool[length + 2 :]
    safe = sum(thing not in names[:2] for _, thing in rest)
    n_shared = rng.randint(0, min(2, safe, (n_facts - 2) // 2))
    shared, absent, spare = rest[:n_shared], rest[n_shared : n_shared + 1], rest[n_shared + 1 :]
    base = [start, decoy, *shared, *absent]
    # The chain distinguishes the first two entities, only by the first condition.
    has = {name: [*first, *shared] for name, first in zip(names[:2], ([start], [decoy]), strict=True)}
    facts = _facts(n_facts, has, names[2:], base, rest, rng)
    if facts is None:
        return None

    # Further conditions of rules, each of which holds of both of these entities.
    sides = [_everyone(signature) for signature in shared]
    if rng.random() < 0.4:
        sides += [fact for fact in facts if fact.subject in names[2:] and (fact.predicate, fact.object) in base][:1]
    if negated:
        sides += [_everyone(signature, False) for signature in absent]

    def rule(before: _Signature, after: _Signature) -> Rule:
        main, conclusion = _everyone(before, not negated or rng.random() < 0.75), _everyone(after)
        n_sides = min(len(sides), rng.choice((0, 0, 0, 1, 1, 2)), options.conditions - 1)
        conditions = [main, *(side for side in rng.sample(sides, n_sides) if side[:3] != main[:3])]
        rng.shuffle(conditions)
        return Rule(tuple(conditions), conclusion)

    rules = [rule(before, after) for before, after in zip([start, *chain], chain, strict=False)]
    # A rule that concludes a signature has conditions of lower levels only, so that negation is always stratified.
    levels = dict.fromkeys(base, 0) | {signature: i + 1 for i, signature in enumerate(chain)}
    levels |= {signature: rng.randint(1, length + 1) if i else 1 for i, signature in enumerate(spare)}
    inner = [signature for signature, level in levels.items() if level]
    known = {(frozenset(conditions), conclusion) for conditions, conclusion in rules}
    for i in range(10 * (n_rules - length)):
        if len(rules) == n_rules:
            break
        after = rng.choice(spare if spare and rng.random() < 0.7 else inner)
        backward = not negated and rng.random() < 0.3
        lower = [s for s in levels if s != after and (backward or levels[s] < levels[after])]
        # A rule depends on the decoy, as another one depends on the start, so that words do not reveal which is the
        # start.
        extra = rule(rng.choice(lower) if i or not spare else decoy, after)
        if rng.random() < 0.2:
            extra = _grounded(extra, names, rng)
        if (key := (frozenset(extra.conditions), extra.conclusion)) not in known:
            known.add(key)
            rules.append(extra)
    if len(rules) < n_rules:
        return None
    rng.shuffle(facts)
    rng.shuffle(rules)
    return Theory(tuple(facts), tuple(rules))


def _everyone(signature: _Signature, positive: bool = True) -> Literal:
    return Literal(signature[0], VARIABLE, signature[1], positive)


def _grounded(rule: Rule, names: list[str], rng: Random) -> Rule:
    """The rule for one entity instead of everyone, unless a literal would relate an entity to itself or occur twice."""
    name = rng.choice(names)
    conclusion, *conditions = (
        literal._replace(subject=name) if literal.subject == VARIABLE else literal
        for literal in (rule.conclusion, *rule.conditions)
    )
    reflexive = any(literal.object == name for literal in (conclusion, *conditions))
    if reflexive or len({literal[:3] for literal in conditions}) < len(conditions):
        return rule
    return Rule(tuple(conditions), conclusion)


def _signatures(n: int, names: list[str], relational: bool, rng: Random, options: Options) -> list[_Signature]:
    """Up to `n` signatures. Signatures that would relate one of the first two names to itself come last."""
    attributes: list[_Signature] = [(attribute, None) for attribute in options.words.attributes]
    if not relational:
        return rng.sample(attributes, min(n, len(attributes)))
    relations = rng.sample(options.words.relations, min(3, options.relations))
    safe: list[_Signature] = [(relation, name) for relation in relations for name in names[2:]]
    unsafe: list[_Signature] = [(relation, name) for relation in relations for name in names[:2]]
    n_unsafe = max(1, n - len(safe) - len(attributes))
    n_safe = min(len(safe), max(n // 2, n - n_unsafe - len(attributes)))
    pool = rng.sample(safe, n_safe) + rng.sample(attributes, min(len(attributes), n - n_safe - n_unsafe))
    rng.shuffle(pool)
    return pool + rng.sample(unsafe, min(len(unsafe), n_unsafe))


def _facts(
    n: int,
    has: dict[str, list[_Signature]],
    others: list[str],
    base: list[_Signature],
    rest: list[_Signature],
    rng: Random,
) -> list[Literal] | None:
    """`n` facts: the required facts of some entities, and random facts, distributed as evenly as possible.

    The entities in `has` get only those signatures of `base` that they have in `has`. Returns None if there are fewer
    than `n` such facts.
    """
    extra = {name: [signature for signature in rest if signature not in base] for name in has}
    has = has | {name: [] for name in others}
    order = rng.sample(list(has), len(has))
    for _ in range(n - sum(map(len, has.values()))):
        for name in sorted(order, key=lambda name: len(has[name])):
            choices = extra[name] if name in extra else rest if rng.random() < 0.3 else base
            free = [s for s in choices if s[1] != name and s not in has[name]]
            if free:
                has[name].append(rng.choice(free))
                break
        else:
            return None
    return [Literal(predicate, name, thing) for name in has for predicate, thing in has[name]]
