"""The rows of Social IQa in miniature; tests/unit/synthetic/test_causality.py has the questions."""

from xlgrid.synthetic.miniatures.siqa import Options, examples, row
from xlgrid.synthetic.world import Phrase


def test_the_label_is_the_number_of_the_right_answer_counted_from_1() -> None:
    for example in examples(Options(), (50, 0, 0)):
        assert row(example, "qa1", Options())["label"] == str(example.right + 1)


def test_questions_for_causes_and_effects_differ_and_name_the_agent() -> None:
    """As those of Social IQa do."""
    example = examples(Options(), (50, 0, 0))[0]
    questions = [
        row(example._replace(question=question), "qa1", Options())["question"] for question in ("cause", "effect")
    ]
    assert questions[0] != questions[1]
    of_another_agent = example._replace(premise=example.premise._replace(agents=(Phrase("per7"),)))
    assert row(of_another_agent, "qa1", Options())["question"] not in questions
