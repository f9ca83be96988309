"""Tatoeba: both sentences of an example state one fact, in the languages of the pair."""

from xlgrid.synthetic.miniatures import tatoeba
from xlgrid.tasks import task


def test_a_row_has_a_sentence_in_each_language() -> None:
    options = tatoeba.Options(n=30)
    facts = tatoeba.examples(options, (20, 4, 6))
    for fact in facts:
        row = tatoeba.row(fact, "qa1-qb2", options)
        assert row["source_sentence"] == options.language("qa1").sentence(fact)
        assert row["target_sentence"] == options.language("qb2").sentence(fact)
    assert len(set(facts)) == 30


def test_the_options_of_evaluation_are_those_of_the_head() -> None:
    described = task("tatoeba")
    assert {*described.head.options.model_fields} < {*described.Options.model_fields}
    assert described.metrics == ("accuracy",)
    of_study = task("embed", {"inputs": ["a", "b"]})
    assert of_study.Options is of_study.head.options is described.head.options
