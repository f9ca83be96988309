"""Remarks on unusual texts and words."""

import pyarrow as pa
import pytest

from xlgrid.data.remarks import text_remarks
from xlgrid.tasks import task

NER = task("token", {"inputs": ["words"], "target": "tags", "labels": ["O", "B-PER"]})
TOPIC = task("sequence", {"inputs": ["text"], "target": "label", "labels": ["a", "b"]})


@pytest.mark.parametrize("mark", ["\x00", "\x07", "\x1b", "\x7f", "\x85", "\ufeff", "\ufffd"])
def test_characters_that_no_text_has_are_remarked(mark: str) -> None:
    expected = f"1 of 3 rows have control characters in column '{{}}', the first one U+{ord(mark):04X} in row 2: "
    [of_words] = text_remarks(pa.table({"words": [["a"], ["b", f"c{mark}"], []]}), NER)
    [of_text] = text_remarks(pa.table({"text": ["a", f"{mark}b", None]}), TOPIC)
    assert of_words.startswith(expected.format("words")) and of_text.startswith(expected.format("text"))


@pytest.mark.parametrize("text", ["a\tb\r\nc", "\u200cنمی\u200cخواهم", "\u2028", "e\u0301", "👩\u200d🔬", "\xa0"])
def test_other_characters_are_not(text: str) -> None:
    assert not [*text_remarks(pa.table({"text": [text]}), TOPIC)]


def test_a_sentence_that_is_a_whole_file_is_remarked_with_its_size() -> None:
    [remark] = text_remarks(pa.table({"words": [["a"] * 1200, ["b"]]}), NER)
    assert len([*text_remarks(pa.table({"words": [["a"] * 120]}), NER)]) == 1
    assert remark.startswith("the longest of 2 rows has 1,200 words: see whether the file has an empty line")
    assert not [*text_remarks(pa.table({"words": [["a"] * 900, ["b"]]}), NER)]
