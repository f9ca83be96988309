"""Token ids of one or two segments, with special tokens as BERT (one separator) and XLM-R (two) place them."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from tokenizers_fixture import KINDS, LETTERS, PIECES, tokenizer_of

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


def test_long_inputs_lose_the_end_of_the_first_segment_and_are_counted() -> None:
    encoding = Encoding(tokenizer(1), 6)
    columns = encoding.cut([["a b c d", "a"], ["e f", "e f"]], "question")
    assert columns["input_ids"] == [[CLS, 2, SEP, 6, 7, SEP], [CLS, 2, SEP, 6, 7, SEP]]
    assert encoding.truncated == 1


def test_a_last_segment_that_leaves_no_room_is_named() -> None:
    with pytest.raises(
        ValueError, match="max_length 4 leaves no room for a context next to the longest text of question"
    ):
        Encoding(tokenizer(1), 4).cut([["a"], ["b c d"]], "question")


def of_bytes(first: str, last: str, pair: str, **names: str) -> Any:
    """A tokenizer of bytes with a few merges, whose inputs begin and end with these tokens, as those of ModernBERT and EuroBERT."""
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("a", "b"), ("Ġ", "a"), ("Ġa", "b")]
    tokens = [first, last, "<pad>", "<mask>", *letters, *("".join(merge) for merge in merges)]
    backend = Tokenizer(models.BPE({token: number for number, token in enumerate(tokens)}, merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = [(first, 0), (last, 1)]
    backend.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}", pair=pair.format(first=first, last=last), special_tokens=special
    )
    return PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="<pad>", mask_token="<mask>", **names)


BYTES = {
    "modernbert": of_bytes("[CLS]", "[SEP]", "{first} $A {last} $B:1 {last}", cls_token="[CLS]", sep_token="[SEP]"),
    "mmbert": of_bytes("<bos>", "<eos>", "{first} $A {last} $B:1 {last}", bos_token="<bos>", eos_token="<eos>"),
    "no separator": of_bytes("<s>", "</s>", "{first} $A $B:1 {last}", bos_token="<s>", eos_token="</s>"),
}


@pytest.mark.parametrize("kind", BYTES)
def test_sentences_have_the_tokens_of_running_text_with_the_word_of_each(kind: str) -> None:
    encoding = Encoding(BYTES[kind], 20)
    sentences = [["ab", "a", "abab"], [], ["ab"]]
    rows = encoding.words(sentences)
    assert [ids for ids, _ in rows] == encoding.tokenizer(["ab a abab", "", "ab"])["input_ids"]
    assert [word_of for _, word_of in rows] == [[None, 0, 1, 2, 2, 2, None], [None, None], [None, 0, None]]
    assert encoding.lost_words == 0


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [({"unk_token": "<unk>"}, "<unk>"), ({"mask_token": "<mask>"}, "<mask>"), ({}, "[SEP]")],
    ids=["the unknown token", "the mask", "padding"],
)
@pytest.mark.parametrize(
    ("words", "word_of"),
    [
        (["", "a b", "", "", "c", ""], [None, 0, 1, 1, 2, 3, 4, 5, None]),
        ([""], [None, 0, None]),
    ],
    ids=["between others", "alone"],
)
def test_a_word_that_the_tokenizer_drops_has_a_token_in_its_place(
    tokens: dict[str, str], expected: str, words: list[str], word_of: list[int | None]
) -> None:
    dropping = tokenizer(1)
    dropping.add_special_tokens(tokens)
    encoding = Encoding(dropping, 20)
    known = [CLS, *map(dropping.convert_tokens_to_ids, "abc"), SEP]
    [(ids, numbers)] = encoding.words([words])
    assert numbers == word_of
    number = dropping.convert_tokens_to_ids(expected)
    in_place = [at for at, word in enumerate(numbers) if word is not None and not words[word]]
    assert [ids[at] for at in in_place] == [number] * words.count("")
    rest = [token for at, token in enumerate(ids) if at not in in_place]
    assert rest == (known if len(words) > 1 else [CLS, SEP])
    assert encoding.lost_words == words.count("")


TOKENIZERS = {kind: tokenizer_of(kind) for kind in KINDS}
WORDS = st.lists(
    st.sampled_from([*PIECES, "a"]) | st.text(f"{LETTERS}жя语", min_size=1, max_size=8), min_size=1, max_size=6
)


@pytest.mark.parametrize("kind", KINDS)
@given(sentence=WORDS)
@settings(max_examples=100)
def test_each_piece_of_running_text_is_of_the_word_at_its_place(kind: str, sentence: list[str]) -> None:
    """The place of a piece in running text, which has no list of words, tells to which word it belongs; a space belongs to the word
    after it. Vocabularies of all kinds then label the same words, since each word has a piece."""
    [(ids, word_of)] = Encoding(TOKENIZERS[kind], 64).words([sentence])
    text = TOKENIZERS[kind](" ".join(sentence), return_offsets_mapping=True, verbose=False)
    assert ids == text["input_ids"]
    word_at = [number for number, word in enumerate(sentence) for _ in f" {word}"][1:]
    places = [word_at[max(0, end - 1)] for _, end in text["offset_mapping"][1:-1]]
    assert word_of == [None, *places, None]
    assert {*places} == {*range(len(sentence))}


@pytest.mark.parametrize("kind", BYTES)
def test_packed_inputs_begin_and_end_as_the_tokenizer_has_them(kind: str) -> None:
    encoding = Encoding(BYTES[kind], 6)
    assert encoding.frame == ([0], [1]) and encoding.separator == 1
    assert encoding.packed([[9, 10], [11, 12]]) == [[0, 9, 10, 1, 11, 1]]
    assert encoding.last_packed() == [[0, 12, 1]]


@pytest.mark.parametrize(("kind", "length"), [("modernbert", 4), ("mmbert", 4), ("no separator", 3)])
def test_a_context_without_a_separator_ends_where_the_second_segment_begins(kind: str, length: int) -> None:
    columns = Encoding(BYTES[kind], 20).cut([["a b"], ["b b b"]], "question")
    # The tokens of the context are a and Ġ b, of which the vocabulary has no merge.
    assert columns["context_length"] == [length + 1]


def test_a_vocabulary_without_a_last_token_cannot_separate_texts() -> None:
    backend = Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))
    from transformers import PreTrainedTokenizerFast

    encoding = Encoding(PreTrainedTokenizerFast(tokenizer_object=backend), 4)
    with pytest.raises(ValueError, match="no special token between texts or at the end of an input: write `sep_token`"):
        encoding.packed([[0, 0]])
