"""RuleTaker: balance, form and size of its questions."""

from xlgrid.tasks.ruletaker import Options, examples, row


def rows(n=20, **options):
    chosen = Options(n=n, **options)
    return [row(example, "en", chosen) for example in examples(chosen, (n, 0, 0))]


def test_labels_are_balanced_and_config_names_the_depth():
    made = rows(n=60, max_depth=2)
    assert sum(row["label"] == "entailment" for row in made) == 30
    assert {row["config"] for row in made} == {"depth-2"}
    assert {row["depth"] for row in made} == {0, 1, 2}


def test_questions_can_be_interrogative():
    assert all(row["question"].endswith("?") for row in rows(question_form="interrogative"))
    assert all(row["question"].endswith(".") for row in rows())


def test_fewer_concepts_are_the_first_ones():
    theory = Options(persons=3, animals=3, attributes=5, relations=1).theory()
    assert theory.persons == ("anne", "bob", "charlie")
    assert (len(theory.animals), len(theory.attributes), len(theory.relations)) == (3, 5, 1)


def test_options_reach_the_generator():
    options = Options(facts=(2, 3), rules=(0, 1), conditions=1, entities=2, relational=0.0, questions_per_theory=5)
    theory = options.theory()
    assert (theory.facts, theory.rules, theory.conditions, theory.entities) == ((2, 3), (0, 1), 1, 2)
    assert (theory.relational, theory.questions_per_theory) == (0.0, 5)
