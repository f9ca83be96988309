"""LeapOfThought: right answers by another reading of its sentences, no way round the hypernymy, options that do one thing."""

import re
from collections import Counter
from itertools import accumulate

import pytest

from xlgrid.data.generated import sizes
from xlgrid.plan.load import load_study
from xlgrid.synthetic.logic import IS_A, Literal
from xlgrid.synthetic.miniatures import lot
from xlgrid.synthetic.miniatures.lot import Example, Options, examples, row
from xlgrid.synthetic.natural import lexicon, natural_codes, taxonomy

SIZES = (1400, 200, 400)
KIND = {name: kind for kind, names in taxonomy().items() for name in names}
SENTENCE = re.compile(r"(The|An?) ([a-z ]+) is (not )?(an? )?([a-z]+)\.", re.IGNORECASE)


def made(sizes=SIZES, **options):
    return examples(Options(**options), sizes)


def split(sample):
    return sample[: SIZES[0]], sample[SIZES[0] :]


def said(text):
    """Of English sentences: who is what, and who has what, each with the polarity."""
    assert SENTENCE.sub("", text).strip() == "", text
    kinds, has = {}, {}
    for _, subject, negative, article, word in SENTENCE.findall(text):
        statements, key = kinds if article else has, (subject.lower().replace(" ", "_"), word)
        assert key not in statements, f"{key} is said twice: {text}"
        statements[key] = not negative
    return kinds, has


def needed(example):
    """The hypernymies of the one that the statement is about."""
    return [fact for fact in example.context if fact.predicate == IS_A and fact.subject == example.statement.subject]


@pytest.mark.parametrize("negate", [True, False])
@pytest.mark.parametrize("evaluation", ["implicit", "explicit", "mix"])
def test_answers_follow_from_what_english_says(evaluation, negate):
    options = Options(evaluation=evaluation, negate=negate)
    cases = set()
    for example in examples(options, SIZES):
        line = row(example, "en", options)
        _, has = said(line["context"])
        _, question = said(line["phrase"])
        (((who, attribute), positive),) = question.items()
        # What is not said of a class is false of it.
        truth = has.get((KIND[who], attribute), False)
        assert line["answer"] == ("true" if truth is positive else "false"), line
        cases.add((has.get((KIND[who], attribute)), positive))
    assert cases == {(truth, positive) for truth in (True, False, None) for positive in {True, not negate}}


def test_contexts_agree_with_the_taxonomy_and_with_themselves():
    for example in made(evaluation="explicit"):
        kinds, has = said(row(example, "en", Options())["context"])
        assert all((KIND[name] == kind) is positive for (name, kind), positive in kinds.items())
        for name, attribute in has:
            # That a member has an attribute is never said beside whether its class does.
            assert name in taxonomy() or (KIND[name], attribute) not in has, example


def test_implicit_contexts_never_say_what_is_needed():
    train, rest = split(made(evaluation="implicit"))
    assert not any(map(needed, rest))
    assert 0.45 < sum(not needed(example) for example in train) / len(train) < 0.55


def test_explicit_contexts_say_once_what_is_needed():
    _, rest = split(made(evaluation="explicit"))
    for example in rest:
        assert needed(example) == [Literal(IS_A, example.statement.subject, KIND[example.statement.subject])]


def test_half_of_the_contexts_of_a_mix_are_implicit():
    for part in split(made(evaluation="mix")):
        assert sum(not needed(example) for example in part) / len(part) == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize("negate", [True, False])
@pytest.mark.parametrize("sizes", [SIZES, (1402, 203, 405)])
def test_labels_are_balanced_exactly_in_every_split(negate, sizes):
    sample = made(sizes, negate=negate)
    for end, size in zip(accumulate(sizes), sizes, strict=True):
        labels = [example.label for example in sample[end - size : end]]
        assert abs(labels.count(True) - labels.count(False)) == size % 2


def from_the_context(example):
    """The best guess of a reader who sees no statement: what holds of somebody whose class is told."""
    rules = {fact.subject: fact for fact in example.context if fact.subject in taxonomy()}
    polarities = [
        rules[fact.object].positive for fact in example.context if fact.predicate == IS_A and fact.object in rules
    ]
    return polarities[0] if polarities else False


def accuracy(guess, sample):
    return sum(guess(example) is example.label for example in sample) / len(sample)


def test_the_modification_brings_a_reader_of_the_context_to_chance():
    _, original = split(made(evaluation="explicit", negate=False))
    _, modified = split(made(evaluation="explicit"))
    assert accuracy(from_the_context, original) > 0.75
    assert accuracy(from_the_context, modified) == pytest.approx(0.5, abs=0.06)


def test_a_reader_who_does_not_know_who_is_what_is_at_chance():
    """Whoever takes the one that is asked about for a member of the class nothing else is said of, or that is said to have it."""

    def by_elimination(example):
        attribute = example.statement.predicate
        ruled = [fact for fact in example.context if fact.predicate == attribute and fact.subject in taxonomy()]
        others = [fact.object or fact.subject for fact in example.context if fact not in ruled]
        left = [fact for fact in ruled if fact.subject not in others]
        return left[0].positive is example.statement.positive if len(left) == 1 else example.statement.positive

    for negate in (True, False):
        sample = examples(Options(evaluation="implicit", negate=negate), (0, 4000, 0))
        assert accuracy(by_elimination, sample) == pytest.approx(0.5, abs=0.03)
        assert accuracy(lambda example: example.statement.positive, sample) == pytest.approx(0.5, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("study", [pytest.param("foroutan2023", marks=pytest.mark.thorough), "foroutan2023-mini"])
@pytest.mark.parametrize("negate", [True, False])
def test_how_long_a_context_is_tells_nothing(study, negate):
    entry = load_study(f"studies/{study}.yaml").tasks["lot"]
    options = Options(**entry.options | {"negate": negate})
    train, *rest = sizes(options.n)
    sample = examples(options, (train, *rest))
    for part in (sample[:train], sample[train:]):
        counts = Counter((len(example.context), example.label) for example in part)
        right = sum(max(counts[length, True], counts[length, False]) for length, _ in counts) / 2
        assert right / len(part) < 0.53, f"who counts sentences is right in {right / len(part):.1%}: {counts}"


def test_the_modification_negates_half_of_the_statements_with_their_labels():
    original, modified = made(negate=False), made()
    negated = Counter()
    for before, after in zip(original, modified, strict=True):
        assert before.statement.positive and before.context == after.context
        assert before.statement == after.statement._replace(positive=True)
        assert (before.label != after.label) is not after.statement.positive
        negated[before.label, after.statement.positive] += 1
    assert negated == dict.fromkeys(((label, sign) for label in (True, False) for sign in (True, False)), 500)


def test_implicit_and_explicit_sets_differ_in_the_hypernymy_alone():
    for implicit, explicit in zip(made(evaluation="implicit"), made(evaluation="explicit"), strict=True):
        assert (implicit.statement, implicit.label) == (explicit.statement, explicit.label)
        left_out = [fact for fact in explicit.context if fact not in needed(explicit)]
        assert list(implicit.context) in (left_out, list(explicit.context))


@pytest.mark.parametrize(
    ("probe", "subject", "attribute"),
    [("subject-swap", True, False), ("object-swap", False, True), ("both-swap", True, True)],
)
def test_swaps_change_what_they_name_in_every_evaluated_statement(probe, subject, attribute):
    (train, plain), (same, swapped) = split(made()), split(made(probe=probe))
    assert train == same
    for before, after in zip(plain, swapped, strict=True):
        assert (before.statement.subject != after.statement.subject) is subject
        assert (before.statement.predicate != after.statement.predicate) is attribute
        assert before.statement.positive is after.statement.positive
        assert (before.context, before.label) == (after.context, after.label)
    assert len({example.statement.subject for example in swapped}) > (len(KIND) * 0.9 if subject else 5)


def test_the_context_only_probe_empties_every_statement_and_nothing_else():
    plain, probed = Options(), Options(probe="context-only")
    for before, after in zip(examples(plain, SIZES), examples(probed, SIZES), strict=True):
        assert row(after, "en-de", probed) == row(before, "en-de", plain) | {"phrase": ""}


def names(example):
    return {fact.subject for fact in (*example.context, example.statement)} & set(KIND)


def test_training_says_nothing_of_the_members_that_are_asked_about():
    train, rest = split(made())
    subjects = {example.statement.subject for example in rest}
    assert {KIND[name] for name in subjects} == set(taxonomy())
    assert len(subjects) == sum(len(members) // 3 for members in taxonomy().values())
    assert not subjects & set().union(*map(names, train))


def test_no_meaning_comes_twice():
    sample = made(negate=False, evaluation="explicit")
    kinds = [Literal(IS_A, example.statement.subject, KIND[example.statement.subject]) for example in sample]
    meant = {
        (frozenset((*example.context, one)), example.statement) for example, one in zip(sample, kinds, strict=True)
    }
    assert len(meant) == len(sample)


def test_too_few_distinct_meanings_are_an_error():
    with pytest.raises(ValueError, match="distinct examples with 0 distractors: lower n"):
        made((1000, 10, 20), attributes=3, distractors=(0, 0))


def test_every_language_says_the_same_meanings():
    options = Options()
    for example in examples(options, (60, 0, 0)):
        lines = {code: row(example, code, options) for code in natural_codes()}
        assert {line["answer"] for line in lines.values()} == {lot.LABELS[example.label]}
        for code, line in lines.items():
            sentences = list(map(lexicon(code).statement, (*example.context, example.statement)))
            assert all(sentence in line["context"] for sentence in sentences[:-1]), (code, line)
            assert len(line["context"]) == sum(map(len, sentences[:-1])) + len(lexicon(code).join(["", ""])) * (
                len(sentences) - 2
            )
            assert line["phrase"] == sentences[-1]


EXAMPLE = Example(
    (
        Literal(IS_A, "salmon", "fish"),
        Literal("kind", "fish"),
        Literal("kind", "insect", positive=False),
        Literal(IS_A, "bee", "mammal", positive=False),
    ),
    Literal("kind", "salmon", positive=False),
    label=False,
)
GOLDEN = {
    "en": (
        "The salmon is a fish. A fish is kind. An insect is not kind. The bee is not a mammal.",
        "The salmon is not kind.",
    ),
    "fr": (
        "Le saumon est un poisson. Un poisson est gentil. Un insecte n'est pas gentil. L'abeille n'est pas un mammifère.",
        "Le saumon n'est pas gentil.",
    ),
    "de": (
        "Der Lachs ist ein Fisch. Ein Fisch ist freundlich. Ein Insekt ist nicht freundlich. Die Biene ist kein Säugetier.",
        "Der Lachs ist nicht freundlich.",
    ),
    "es": (
        "El salmón es un pez. Un pez es amable. Un insecto no es amable. La abeja no es un mamífero.",
        "El salmón no es amable.",
    ),
    "it": (
        "Il salmone è un pesce. Un pesce è gentile. Un insetto non è gentile. L'ape non è un mammifero.",
        "Il salmone non è gentile.",
    ),
    "ru": ("Лосось — рыба. Рыба добрая. Насекомое не доброе. Пчела не млекопитающее.", "Лосось не добрый."),
    "zh": ("银鲑是鱼。鱼很善良。昆虫不善良。蜜蜂不是哺乳动物。", "银鲑不善良。"),
    "fa": (
        "سالمون یک ماهی است. ماهی مهربان است. حشره مهربان نیست. زنبور یک پستاندار نیست.",
        "سالمون مهربان نیست.",
    ),
    "ar": ("السلمون سمكة. السمكة طيبة. الحشرة ليست طيبة. النحلة ليست حيوانًا ثدييًا.", "السلمون ليس طيبًا."),
}


@pytest.mark.parametrize("code", GOLDEN)
def test_golden_row(code):
    context, phrase = GOLDEN[code]
    assert row(EXAMPLE, code, Options()) == {"context": context, "phrase": phrase, "answer": "false"}
