"""Texts of the embedded world."""

import re

import pytest

from xlgrid.synthetic.artificial import Dials, artificial
from xlgrid.synthetic.customs import Customs, customs
from xlgrid.synthetic.natural import concepts, taxonomy
from xlgrid.synthetic.texts import TextOptions, generated


def texts(language, n=30, seed=0, dials=None, own=None, **options):
    return generated(language, n, seed, dials or Dials(), own or Customs(), TextOptions(**options))


@pytest.mark.parametrize("language", ["en", "qa1"])
def test_a_larger_text_begins_alike(language):
    short, long = texts(language, 10), texts(language, 30)
    assert long[:10] == short


def test_another_seed_is_another_text():
    assert texts("en", seed=0) != texts("en", seed=1)


def test_the_same_id_has_as_many_sentences_in_every_language():
    english, french = (texts(code) for code in ("en", "fr"))
    assert [text.count(".") for text in english] == [text.count(".") for text in french]


def test_positive_last_statements_repeat_a_fact():
    theories = texts("en", 200, rules=0.0, relational=0.0)
    repeated = negated = 0
    for text in theories:
        *facts, last = text.removesuffix(".").replace("\n", " ").split(". ")
        if " not " in last:
            negated += 1
            assert last.replace(" not ", " ") not in facts, text
        else:
            repeated += 1
            assert last in facts, text
    assert min(repeated, negated) > 60


def test_a_rule_concludes_nothing_that_a_statement_is_about():
    """A statement follows from the facts alone, so that its masked words can be looked up there."""
    theories = texts("en", 200, rules=1.0, relational=0.0)
    for text in theories:
        facts, statement = text.split("\n")
        (conclusion,) = re.findall(r"then they are (\w+)\.", facts)
        predicates = {
            re.findall(r"(\w+)\.", sentence)[0] for sentence in re.findall(r"[^.]*\.", facts) if "If" not in sentence
        }
        assert conclusion not in predicates, text
        assert conclusion not in statement, text


def test_texts_have_from_two_to_four_facts():
    theories = texts("en", 200, rules=0.0, statements=0)
    assert {text.count(".") for text in theories} == {2, 3, 4}


def test_texts_about_persons_take_two_of_them():
    theories = texts("en", 20, relational=0.0, persons=2, animals=0)
    assert len(theories) == 20


@pytest.mark.parametrize(("animals", "about_persons"), [(2, True), (3, False)])
def test_texts_about_animals_take_three_of_them(animals, about_persons):
    """With fewer, all texts are about persons."""
    rows = texts("en", animals=animals, relational=1.0)
    assert {any(f"{name.title()} " in row for name in concepts().persons) for row in rows} == {about_persons}


def test_a_share_of_texts_tells_who_is_what():
    theories = texts("en", 400, taxonomy=0.5)
    assert 150 < sum(" is a " in text or " is an " in text for text in theories) < 250


def test_what_texts_tell_of_the_taxonomy_is_true():
    kinds = {f"The {name}".replace("_", " "): kind for kind, names in taxonomy().items() for name in names}
    pairs = set()
    for text in texts("en", 300, taxonomy=1.0, statements=2):
        has = {}
        # What classes have may stand after what follows from it.
        for sentence in sorted(
            text.replace("\n", " ").removesuffix(".").split(". "), key=lambda s: s.startswith("The")
        ):
            subject, _, rest = sentence.partition(" is ")
            rest, positive = rest.removeprefix("not "), not rest.startswith("not ")
            article, _, word = rest.partition(" ")
            if article in ("a", "an"):
                assert (kinds[subject] == word) is positive, sentence
                pairs.add((subject, word))
            elif subject in kinds:
                assert has[kinds[subject], rest] is positive, text
            else:
                has[subject.split(" ")[1], rest] = positive
    assert set(kinds.items()) <= pairs, "not every hypernymy is told"


def test_dials_reach_the_artificial_language():
    plain = texts("qa1")
    assert plain != texts("qa1", dials=Dials(overlap=0.1))


def test_a_share_of_the_rows_states_customs_of_the_language():
    plain = texts("qa1", 400)
    with_customs = texts("qa1", 400, own=Customs(facts=20, share=0.25))
    stated = [artificial("qa1").sentence(fact) for fact in customs("qa1", 20)]
    rows = [row for row, text in enumerate(with_customs) if text in stated]
    assert 70 < len(rows) < 130
    assert {with_customs[row] for row in rows} == set(stated), "400 rows state each of 20 customs"
    assert all(with_customs[row] == plain[row] for row in range(400) if row not in rows), "other rows stay the same"
