"""Generate premises, and hypotheses that follow from them, contradict them or do neither (XNLI: Conneau et al. 2018).

Unlike RuleTaker's theories, premises are read under the open-world assumption: a statement that does not follow may be
true or false. Facts and rules are positive or negative, so that "not" reveals no label. A rule has one condition and
implies its contraposition: "Anne is not big" follows from "if someone is big then they are kind" and "Anne is not
kind". At most one rule concludes each signature (predicate and object of a literal), from an earlier signature.
Therefore, rules never contradict one another, and applying them in order derives every consequence.

A neutral hypothesis states a property of one entity that is known of another entity, at the same depth. The same words
thus occur with every label, and the label depends on which entity has which attribute.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import count
from random import Random
from typing import Any, NamedTuple

from pydantic import Field, PositiveInt

from xlgrid.synthetic.logic import VARIABLE, Literal, Rule, read_theory
from xlgrid.synthetic.sizes import ATTEMPTS, Sizes

LABELS = ("entailment", "neutral", "contradiction")
# Share of negative facts, conclusions and hypotheses.
_NEGATED = 0.5

_Signature = tuple[str, str | None]


class Example(NamedTuple):
    """A premise (positive and negative facts and rules), a hypothesis and its label.

    `depth` is the number of rules that have to be applied in sequence to derive the hypothesis or its negation. A
    neutral hypothesis has the depth of the known statement about another entity.
    """

    facts: tuple[Literal, ...]
    rules: tuple[Rule, ...]
    hypothesis: Literal
    label: str
    depth: int


class Options(Sizes):
    """The size and content of generated premises and hypotheses."""

    n: PositiveInt = Field(30_000, description="number of examples in all three splits; every three share a premise")
    facts: tuple[int, int] = Field((3, 6), description="minimum and maximum number of facts in a premise, at least 1")
    rules: tuple[int, int] = Field(
        (0, 3), description="minimum and maximum number of rules in a premise, which never has fewer than max_depth"
    )


def examples(n: int, options: Options) -> Iterator[Example]:
    """The first `n` examples of an infinite sequence, which the other `options` determine.

    Examples 3 k to 3 k + 2 share a premise and have each label once, in random order. No two premises have the same
    facts and rules. Each depth occurs once in every max_depth + 1 premises.

    Raises:
        ValueError: while iterating, if the options leave no room for further premises.
    """
    rng = Random(f"premises {options.seed}")
    known: set[frozenset[Any]] = set()
    depths: list[int] = []
    for i in count(step=3):
        depths = depths or rng.sample(range(options.max_depth + 1), options.max_depth + 1)
        depth, positive = depths.pop(), rng.random() >= _NEGATED
        for _ in range(ATTEMPTS):
            premise = _premise(rng, options)
            if premise and (statements := frozenset([*premise[0], *premise[1]])) not in known:
                hypotheses = _hypotheses(*premise, depth, positive, rng)
                if hypotheses:
                    break
        else:
            raise ValueError(
                f"found no further premise with hypotheses of depth {depth} in {ATTEMPTS} attempts after {len(known)} "
                f"with facts {options.facts}, rules {options.rules} and up to {options.entities} entities: "
                "allow more concepts or entities, or fewer or more facts"
            )
        known.add(statements)
        labelled = list(zip(LABELS, hypotheses, strict=True))
        rng.shuffle(labelled)
        for label, hypothesis in labelled[: n - i]:
            yield Example(*premise, hypothesis, label, depth)
        if i + 3 >= n:
            return


def consequences(facts: Iterable[Literal], rules: Iterable[Rule]) -> dict[Literal, int]:
    """The facts and their consequences, each with the minimum number of rules in sequence that derive it.

    Args:
        facts: positive or negative literals about entities.
        rules: rules about everyone with one condition; each implies its contraposition.
    """
    arcs: dict[Literal, list[Literal]] = {}
    for (condition,), conclusion in rules:
        arcs.setdefault(condition, []).append(conclusion)
        arcs.setdefault(_negation(conclusion), []).append(_negation(condition))
    depths = dict.fromkeys(facts, 0)
    queue = deque(depths)
    while queue:
        literal = queue.popleft()
        for arc in arcs.get(literal._replace(subject=VARIABLE), ()):
            follows = arc._replace(subject=literal.subject)
            if follows not in depths:
                depths[follows] = depths[literal] + 1
                queue.append(follows)
    return depths


def to_json(example: Example) -> str:
    """An example as one line of JSON, which `from_json` reads."""
    return json.dumps(example._asdict(), ensure_ascii=False, separators=(",", ":"))


def from_json(text: str) -> Example:
    """The example that `to_json` wrote."""
    fields = json.loads(text)
    return Example(*read_theory(fields), Literal(*fields["hypothesis"]), fields["label"], fields["depth"])


def _negation(literal: Literal) -> Literal:
    return literal._replace(positive=not literal.positive)


def _premise(rng: Random, options: Options) -> tuple[tuple[Literal, ...], tuple[Rule, ...]] | None:
    """Random facts and rules with a chain of max_depth rules; None if the draw cannot be completed."""
    relational = rng.random() < options.relational
    words = options.words.animals if relational else options.words.persons
    names = rng.sample(words, rng.randint(2 + relational, min(options.entities, len(words))))
    n_rules = rng.randint(max(options.rules[0], options.max_depth), options.rules[1])
    pool = _signatures(n_rules + rng.randint(2, 4), names, relational, rng, options)

    def some(signature: _Signature, subject: str) -> Literal:
        return Literal(signature[0], subject, signature[1], rng.random() >= _NEGATED)

    general = [some(signature, VARIABLE) for signature in pool]
    rules = []
    for i in range(1, min(n_rules + 1, len(pool))):
        # The chain comes first. The condition of another rule may be the conclusion of a rule or its negation.
        condition = general[i - 1] if i <= options.max_depth else some(rng.choice(pool[:i]), VARIABLE)
        rules.append(Rule((condition,), general[i]))
    if options.max_depth and pool[0][1] == names[0]:
        return None
    facts = [general[0]._replace(subject=names[0])] if options.max_depth else []
    for _ in range(rng.randint(*options.facts) - len(facts)):
        subjects = [fact.subject for fact in facts]
        name = min(rng.sample(names, len(names)), key=subjects.count)
        known = consequences(facts, rules)
        fresh = [some(signature, name) for signature in pool if signature[1] != name]
        fresh = [fact for fact in fresh if fact not in known and _negation(fact) not in known]
        if not fresh:
            return None
        facts.append(rng.choice(fresh))
    rng.shuffle(facts)
    rng.shuffle(rules)
    return tuple(facts), tuple(rules)


def _signatures(n: int, names: list[str], relational: bool, rng: Random, options: Options) -> list[_Signature]:
    """Up to `n` signatures in random order. If `relational`, half of them are relations to one of the names."""
    relations: list[_Signature] = []
    if relational:
        some = rng.sample(options.words.relations, min(2, options.relations))
        relations = [(relation, name) for relation in some for name in names]
        relations = rng.sample(relations, min(n // 2, len(relations)))
    attributes = rng.sample(options.words.attributes, min(n - len(relations), options.attributes))
    pool = [*relations, *((attribute, None) for attribute in attributes)]
    rng.shuffle(pool)
    return pool


def _hypotheses(
    facts: tuple[Literal, ...], rules: tuple[Rule, ...], depth: int, positive: bool, rng: Random
) -> tuple[Literal, ...] | None:
    """A hypothesis for each label, in the order of LABELS, from statements that are `positive` or negative; None if the
    premise has no such statements."""
    known = consequences(facts, rules)
    names = sorted({name for fact in facts for name in (fact.subject, fact.object) if name})
    pairs = [
        (literal, like)
        for literal, steps in known.items()
        for like in (literal._replace(subject=name) for name in names)
        if (steps, literal.positive) == (depth, positive)
        and literal.object not in (literal.subject, like.subject)
        and like not in known
        and _negation(like) not in known
    ]
    if not pairs:
        return None
    (follows, _), (_, neutral), (denied, _) = (rng.choice(pairs) for _ in LABELS)
    # This draw decides nothing. Without it, all later draws would differ, and with them the data of studies.
    rng.random()
    return follows, neutral._replace(positive=rng.random() < 0.5), _negation(denied)
