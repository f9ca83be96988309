"""Parallel sentences of artificial languages."""

import pytest

from xlgrid.synthetic.artificial import artificial
from xlgrid.synthetic.miniatures import translation
from xlgrid.tasks import task

OPTIONS = translation.Options(n=20)


def test_source_and_target_state_one_fact_in_the_languages_of_the_pair() -> None:
    for fact in translation.examples(OPTIONS, (14, 2, 4)):
        row = translation.row(fact, "qa1-qb1", OPTIONS)
        assert row == {"source": artificial("qa1").sentence(fact), "target": artificial("qb1").sentence(fact)}
        assert translation.row(fact, "qb1-qa1", OPTIONS) == {"source": row["target"], "target": row["source"]}


def test_a_language_alone_is_copied() -> None:
    (fact,) = translation.examples(OPTIONS, (1, 0, 0))
    row = translation.row(fact, "qa1", OPTIONS)
    assert row["source"] == row["target"] == artificial("qa1").sentence(fact)


def test_a_natural_language_has_no_sentences() -> None:
    (fact,) = translation.examples(OPTIONS, (1, 0, 0))
    with pytest.raises(ValueError, match="'en'"):
        translation.row(fact, "en-qa1", OPTIONS)


def test_the_task_reads_the_source_and_scores_the_target_by_bleu() -> None:
    described = task("translation")
    assert (described.inputs, described.target, described.second) == (("source",), "target", "target")
    assert described.metrics == ("bleu",)
