"""Parts of speech of artificial languages."""

from xlgrid.synthetic.miniatures.udpos import LABELS, Options, examples, row


def rows(count=20):
    options = Options(n=count)
    return [row(fact, "qa1", options) for fact in examples(options, (count, 0, 0))]


def test_every_word_has_a_part_of_speech():
    for sentence in rows():
        assert len(sentence["tokens"]) == len(sentence["pos_tags"]) > 0
        assert [LABELS[tag] == "PUNCT" for tag in sentence["pos_tags"]] == [word == "." for word in sentence["tokens"]]
