"""Parts of speech of artificial languages."""

import pyarrow as pa
import pytest

from xlgrid.synthetic.miniatures.udpos import LABELS, Options, examples, row
from xlgrid.tasks import task


def rows(count=20):
    options = Options(n=count)
    return [row(fact, "qa1", options) for fact in examples(options, (count, 0, 0))]


def test_every_word_has_a_part_of_speech():
    for sentence in rows():
        assert len(sentence["tokens"]) == len(sentence["pos_tags"]) > 0
        assert [LABELS[tag] == "PUNCT" for tag in sentence["pos_tags"]] == [word == "." for word in sentence["tokens"]]


def test_unequal_numbers_of_tokens_and_tags_are_an_error():
    sentences = rows()
    sentences[3]["pos_tags"].append(0)
    with pytest.raises(ValueError, match="row 4"):
        task("udpos").check(pa.Table.from_pylist(sentences), "here")
