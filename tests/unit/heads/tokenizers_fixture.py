"""Small fast tokenizers of every kind, built as those of published encoders, for tests."""

from collections.abc import Callable, Sequence
from typing import Any

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

LETTERS = "abcdefghijklmnopqrstuvwxyzé'.,-0123456789"
# Parts of words, and words, that are one token where they begin a word.
PIECES = ("an", "ne", "is", "big", "the", "do", "gs", "see")
# How the vocabulary of EuroBERT splits text before it looks for bytes.
WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def _merges(space: str) -> list[tuple[str, str]]:
    """The merges that make the pieces of their letters, those that begin with the space first."""
    pieces = [*(f"{space}{piece}" for piece in PIECES), *PIECES]
    return [*dict.fromkeys((piece[:end], piece[end]) for piece in pieces for end in range(1, len(piece)))]


def _wordpiece(specials: Sequence[str]) -> Tokenizer:
    entries = [*specials, *LETTERS, *PIECES, *(f"##{piece}" for piece in (*LETTERS, *PIECES))]
    tokenizer = Tokenizer(models.WordPiece({entry: number for number, entry in enumerate(entries)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def _unigram(specials: Sequence[str]) -> Tokenizer:
    pieces = [*LETTERS, "▁", *PIECES, *(f"▁{piece}" for piece in PIECES)]
    scores = [(special, 0.0) for special in specials] + [(piece, -9.0 / len(piece)) for piece in pieces]
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=3))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Replace(Regex(" {2,}"), " "), normalizers.NFC()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    return tokenizer


def _bytes(specials: Sequence[str], split: str = "") -> Tokenizer:
    """Byte-pair encoding of bytes, in which a space belongs to the word after it."""
    units = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = _merges("Ġ")
    entries = dict.fromkeys([*specials, *units, *map("".join, merges)])
    tokenizer = Tokenizer(models.BPE({entry: number for number, entry in enumerate(entries)}, merges))
    bytewise = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not split)
    tokenizer.pre_tokenizer = (
        pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(split), "isolated"), bytewise]) if split else bytewise
    )
    return tokenizer


def _bytes_after_spaces(specials: Sequence[str]) -> Tokenizer:
    """A vocabulary of bytes as RoBERTa has with `add_prefix_space`: the first word of a text also has a space before it."""
    tokenizer = _bytes(specials)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return tokenizer


def _fallback(specials: Sequence[str]) -> Tokenizer:
    """Byte-pair encoding of letters, of bytes where a letter is unknown, as that of mmBERT, which is Gemma's."""
    units = [*LETTERS, "▁"]
    merges = _merges("▁")
    entries = [*specials, *(f"<0x{byte:02X}>" for byte in range(256)), *units, *map("".join, merges)]
    vocabulary = {entry: number for number, entry in enumerate(dict.fromkeys(entries))}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    return tokenizer


# The tokens for padding, for the beginning and the end of an input, for what is unknown, and for masking.
BERT_TOKENS = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]")
XLMR_TOKENS = ("<pad>", "<s>", "</s>", "<unk>", "<mask>")
# How each is made, the tokens above, and the number of tokens at the end of the first of two texts.
KINDS: dict[str, tuple[Callable[[Sequence[str]], Tokenizer], Sequence[str], int]] = {
    "wordpiece": (_wordpiece, BERT_TOKENS, 1),
    "unigram": (_unigram, XLMR_TOKENS, 2),
    "unigram of deberta": (_unigram, BERT_TOKENS, 1),
    "bytes": (_bytes, BERT_TOKENS, 1),
    "bytes after spaces": (_bytes_after_spaces, XLMR_TOKENS, 2),
    # EuroBERT fills the ends of a batch with the token at the end of an input, and nothing is unknown.
    "bytes of eurobert": (
        lambda specials: _bytes(specials, WORDS),
        ("<|end_of_text|>", "<|begin_of_text|>", "<|end_of_text|>", "", "<|mask|>"),
        1,
    ),
    "bytes of unknown letters": (_fallback, ("<pad>", "<bos>", "<eos>", "<unk>", "<mask>"), 1),
}


def tokenizer_of(kind: str) -> Any:
    """A tokenizer of transformers."""
    from transformers import PreTrainedTokenizerFast

    maker, specials, ends = KINDS[kind]
    _, first, last, *_ = specials
    backend = maker([*dict.fromkeys(filter(None, specials))])
    backend.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {' '.join([last] * ends)} $B:1 {last}",
        special_tokens=[(token, backend.token_to_id(token)) for token in (first, last)],
    )
    begins = ("bos_token", "eos_token") if first in ("<bos>", "<|begin_of_text|>") else ("cls_token", "sep_token")
    names = dict(zip(("pad_token", *begins, "unk_token", "mask_token"), specials, strict=True))
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, model_max_length=64, **{name: token for name, token in names.items() if token}
    )
