"""Similarity: the number of the parts that two sentences share."""

from collections import Counter

from xlgrid.synthetic.miniatures import similarity

OPTIONS = similarity.Options(n=400)
EXAMPLES = similarity.examples(OPTIONS, (400, 0, 0))


def test_equal_sentences_have_the_largest_number() -> None:
    for example in EXAMPLES:
        row = similarity.row(example, "qa1", OPTIONS)
        assert (row["score"] == 5) == (example.first == example.second)
        assert row["score"] < 5 or row["sentence1"] == row["sentence2"]


def test_the_numbers_are_those_of_shared_parts() -> None:
    counts = Counter(example.score for example in EXAMPLES)
    assert {*counts} == {0.0, 1.25, 2.5, 3.75, 5.0} and min(counts.values()) > 10


def test_a_part_counts_only_as_a_whole() -> None:
    [first, *_] = EXAMPLES
    other = first.first._replace(time="other time", positive=not first.first.positive)
    assert similarity.Example(first.first, other).score == 2.5
