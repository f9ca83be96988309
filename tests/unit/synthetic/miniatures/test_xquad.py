"""Questions about facts of artificial languages."""

import pytest

from xlgrid.synthetic import world
from xlgrid.synthetic.artificial import QUESTIONS, artificial
from xlgrid.synthetic.miniatures import xquad

CODES = ("qa1", "qb1", "qf2", "qh3", "qt9")
OPTIONS = xquad.Options(n=200)
FOUND = xquad.examples(OPTIONS, (140, 20, 40))


@pytest.mark.parametrize("code", CODES)
def test_the_answer_is_the_name_that_is_asked_for(code: str) -> None:
    language = artificial(code)
    for question in FOUND:
        row = xquad.row(question, code, OPTIONS)
        [text], [start] = row["answers"]["text"], row["answers"]["answer_start"]
        assert row["context"][start : start + len(text)] == text
        entity = world.entities()[question.entity]
        roles = ("", "object", *world.RELATIONS)
        names = [" ".join(token.form for token in language._name(entity.id, role)) for role in roles]
        assert text in names


@pytest.mark.parametrize("code", CODES)
def test_a_question_is_its_fact_with_a_question_word_for_the_answer(code: str) -> None:
    language = artificial(code)
    asks = {language._words[word].form.lower() for word in QUESTIONS}
    for question in FOUND[:50]:
        row = xquad.row(question, code, OPTIONS)
        statement_words = (
            language.sentence(question.facts[question.asked]).lower().rstrip(language._letters.stop).split()
        )
        question_words = row["question"].lower().rstrip(language._letters.stop).split()
        assert len(asks & set(question_words)) == 1
        # Agreement and the subject's case may change with it, most words do not.
        assert len(set(question_words) & set(statement_words)) >= len(question_words) / 3


def test_a_context_has_three_sentences_and_no_verb_twice() -> None:
    for question in FOUND:
        assert len({fact.predicate for fact in question.facts}) == len(question.facts) == 3


def test_no_two_splits_share_a_fact() -> None:
    train, rest = ({fact for question in part for fact in question.facts} for part in (FOUND[:140], FOUND[140:]))
    assert not train & rest


def test_where_the_answer_stands_in_the_context_varies() -> None:
    places = [question.asked for question in FOUND]
    assert all(places.count(place) > 0.2 * len(places) for place in range(3))
