"""Token ids of one or two segments, with special tokens as BERT (one separator) and XLM-R (two) place them."""

from types import SimpleNamespace
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from xlgrid.heads.encoding import Encoding, context_length

CLS, SEP = 0, 1


def tokenizer(separators: int) -> Any:
    """A tokenizer of the words a to f with this number of separators between two segments."""
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: number for number, word in enumerate(("[CLS]", "[SEP]", *"abcdef"))}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="a"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    pair = " ".join(["[CLS] $A", *["[SEP]"] * separators, "$B:1 [SEP]"])
    special = [("[CLS]", CLS), ("[SEP]", SEP)]
    backend.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair=pair, special_tokens=special)
    return PreTrainedTokenizerFast(tokenizer_object=backend, sep_token="[SEP]", cls_token="[CLS]", pad_token="[SEP]")


@pytest.mark.parametrize(
    ("segment_of", "length"),
    [
        ([None, 0, 0, None], 4),
        ([None, 0, 0, None, 1, None], 4),
        ([None, 0, 0, None, None, 1, None], 4),
        ([None, None, 1, None], 2),
        ([None, None, None, 1, None], 2),
        ([None, 0, None, None, None], 5),
    ],
    ids=["one segment", "BERT", "XLM-R", "BERT, empty first", "XLM-R, empty first", "empty second"],
)
def test_the_context_ends_with_the_first_special_token_after_it(segment_of: list[int | None], length: int) -> None:
    assert context_length(SimpleNamespace(sequence_ids=segment_of)) == length


@pytest.mark.parametrize("separators", [1, 2])
def test_one_separator_leaves_one_between_the_segments(separators: int) -> None:
    usual = Encoding(tokenizer(separators), 16).cut([["a b"], ["c"]], "question")
    assert usual == {"input_ids": [[CLS, 2, 3, *[SEP] * separators, 4, SEP]], "context_length": [4]}
    once = Encoding(tokenizer(separators), 16, one_separator=True).cut([["a b"], ["c"]], "question")
    assert once == {"input_ids": [[CLS, 2, 3, SEP, 4, SEP]], "context_length": [4]}


@pytest.mark.parametrize("separators", [1, 2])
def test_an_empty_first_segment_keeps_the_separator_after_it(separators: int) -> None:
    columns = Encoding(tokenizer(separators), 16, one_separator=True).cut([[""], ["c"]], "question")
    assert columns == {"input_ids": [[CLS, SEP, 4, SEP]], "context_length": [2]}


def test_one_separator_changes_no_input_of_one_segment() -> None:
    columns = Encoding(tokenizer(2), 16, one_separator=True).cut([["a b"]], "text")
    assert columns == {"input_ids": [[CLS, 2, 3, SEP]], "context_length": [4]}


def test_long_inputs_lose_the_end_of_the_first_segment_and_are_counted() -> None:
    encoding = Encoding(tokenizer(1), 6)
    columns = encoding.cut([["a b c d", "a"], ["e f", "e f"]], "question")
    assert columns["input_ids"] == [[CLS, 2, SEP, 6, 7, SEP], [CLS, 2, SEP, 6, 7, SEP]]
    assert encoding.truncated == 1


def test_a_last_segment_that_leaves_no_room_is_named() -> None:
    with pytest.raises(ValueError, match="max_length 4 leaves no room for a context beside the longest of question"):
        Encoding(tokenizer(1), 4).cut([["a"], ["b c d"]], "question")
