"""Premises and hypotheses as the task xnli, in natural languages."""

import pytest

from xlgrid.synthetic.miniatures import xnli
from xlgrid.synthetic.natural import natural_codes
from xlgrid.synthetic.premises import Options, examples
from xlgrid.tasks import task


def made(n=300, **options):
    return list(examples(n, Options(n=n, **options)))


@pytest.mark.parametrize("language", natural_codes())
def test_premises_are_the_same_text_for_their_hypotheses_in_every_language(language):
    sample = made(90, max_depth=1)
    rows = [xnli.row(example, language, Options()) for example in sample]
    assert [row["label"] for row in rows] == [example.label for example in sample]
    assert [len({row["premise"] for row in rows[i : i + 3]}) for i in range(0, 90, 3)] == [1] * 30
    assert len({row["premise"] for row in rows}) == 30
    assert all(row["hypothesis"].strip() for row in rows)


def test_labels_stand_in_the_order_of_the_hub():
    assert task("xnli").labels == ("entailment", "neutral", "contradiction")
