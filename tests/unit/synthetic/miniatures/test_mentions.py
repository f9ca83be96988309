"""Mentions: the labels of a sentence are the types of its named entities."""

from collections import Counter

from xlgrid.synthetic.artificial import artificial
from xlgrid.synthetic.miniatures import mentions


def test_the_labels_are_the_types_of_the_words_of_the_sentence() -> None:
    options = mentions.Options(n=60)
    for fact in mentions.examples(options, (40, 10, 10)):
        row = mentions.row(fact, "qa1", options)
        types = {token.ner.partition("-")[2] for token in artificial("qa1").realise(fact)} - {""}
        assert {label for label, has in zip(mentions.LABELS, row["labels"], strict=True) if has} == types


def test_sentences_have_no_label_one_or_several() -> None:
    options = mentions.Options(n=400)
    counts = Counter(
        sum(mentions.row(fact, "qa1", options)["labels"]) for fact in mentions.examples(options, (400, 0, 0))
    )
    assert min(counts[number] for number in (0, 1, 2)) > 40
