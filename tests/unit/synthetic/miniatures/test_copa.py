"""The rows of COPA in miniature; tests/unit/synthetic/test_causality.py has the questions."""

from xlgrid.synthetic.miniatures.copa import CHOICES, Options, examples, row


def test_the_label_is_the_index_of_the_right_choice() -> None:
    for example in examples(Options(), (50, 0, 0)):
        question = row(example, "qa1", Options())
        assert question["label"] == example.right and question["question"] == example.question
        assert len({question[choice] for choice in CHOICES}) == len(CHOICES)
