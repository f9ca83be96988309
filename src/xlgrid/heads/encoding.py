"""Encode one or two segments of text as token ids, in the same way for all heads."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any, Literal

# The label of tokens without a prediction, which torch's cross entropy ignores.
IGNORED = -100


@dataclass
class Encoding:
    """The settings of a tokens file, and counts of texts that did not fit.

    Attributes:
        tokenizer: a fast tokenizer of transformers.
        max_length: the maximum number of tokens of an input, special tokens included.
        one_separator: whether inputs of XLM-R have one special token between two segments; its tokenizer puts two.
        options: those of the head (`Head.options`).
        documents, lines: see `xlgrid.tasks.mlm.Options`.
        carry: the tokens of packed texts that do not fill an input yet; the next input begins with them.
        truncated: the number of inputs that were cut, or of examples that have several windows.
        lost_words: the number of words that the tokenizer drops; the unknown token takes their place.
    """

    tokenizer: Any
    max_length: int
    one_separator: bool = False
    options: Any = None
    documents: Literal["cut", "split", "pack"] = "cut"
    lines: Literal["joined", "segments"] = "joined"
    carry: list[int] = field(default_factory=list)
    truncated: int = 0
    lost_words: int = 0

    @cached_property
    def frame(self) -> tuple[list[int], list[int]]:
        """The special tokens before and after a text, such as [CLS] and [SEP], or <bos> and <eos>."""
        [encoding] = self.tokenizer("a").encodings
        # A tokenizer that does not know the letter may drop it; then the first special token is before the text.
        inside = [at for at, segment in enumerate(encoding.sequence_ids) if segment is not None] or [1, 0]
        return encoding.ids[: inside[0]], encoding.ids[inside[-1] + 1 :]

    @cached_property
    def separator(self) -> int:
        """The special token between two texts, or the last token of an input if the tokenizer has no separator.

        Raises:
            ValueError: the tokenizer has neither of these tokens.
        """
        if (separator := self.tokenizer.sep_token_id) is not None:
            return int(separator)
        if not self.frame[1]:
            raise ValueError(
                "the tokenizer has no special token between texts or at the end of an input: write `sep_token` into "
                "its tokenizer_config.json, or set `documents: cut`"
            )
        return self.frame[1][-1]

    @cached_property
    def needs_spaces(self) -> bool:
        """Whether the tokens of a word depend on a space before it, as in the tokenizers of ModernBERT, mmBERT and
        EuroBERT."""
        alone = self.tokenizer(["a", "a"], is_split_into_words=True, add_special_tokens=False)
        return bool(alone["input_ids"] != self.tokenizer("a a", add_special_tokens=False)["input_ids"])

    def spaced(self, sentences: Sequence[list[str]]) -> list[list[str]]:
        """The words of sentences with the spaces that give each word its tokens in running text."""
        if not self.needs_spaces:
            return list(sentences)
        return [[*words[:1], *(word and f" {word}" for word in words[1:])] for words in sentences]

    @cached_property
    def unknown(self) -> int:
        """The token that replaces a word which the tokenizer drops: the unknown token, or else the mask or padding
        token.

        A byte-level tokenizer may have no unknown token.
        """
        ids = (self.tokenizer.unk_token_id, self.tokenizer.mask_token_id, self.tokenizer.pad_token_id)
        return next(int(number) for number in ids if number is not None)

    def words(self, sentences: Sequence[list[str]]) -> list[tuple[list[int], list[int | None]]]:
        """The token ids of each sentence, special tokens included, and the word number of each token; None for special
        tokens.

        Every word has a token. Tokenizers drop empty words and words of control characters. Such words get the unknown
        token, so that they are counted and scored like other words.

        Args:
            sentences: lists of words.
        """
        encoded = self.tokenizer(
            self.spaced(sentences), is_split_into_words=True, add_special_tokens=False, verbose=False
        )
        before, after = self.frame
        outer = [None] * len(before), [None] * len(after)
        rows = []
        for words, ids, encoding in zip(sentences, encoded["input_ids"], encoded.encodings, strict=True):
            dropped = {*range(len(words))}.difference(encoding.word_ids)
            self.lost_words += len(dropped)
            tokens = list(zip(encoding.word_ids, ids, strict=True))
            if dropped:
                # The sort is stable, so the tokens of a word stay in their order.
                tokens = sorted([*tokens, *((word, self.unknown) for word in dropped)], key=itemgetter(0))
            word_of = [*outer[0], *(word for word, _ in tokens), *outer[1]]
            rows.append((self._whole([number for _, number in tokens]), word_of))
        return rows

    def cut(self, segments: Sequence[list[str]], last: str) -> dict[str, list[Any]]:
        """The columns `input_ids` and `context_length` of inputs. The first segment of a long input is cut at its end.

        Args:
            segments: one or two lists of texts.
            last: the name of the column of the last segment, for messages.

        Raises:
            ValueError: the longest of the last segments leaves no room for a context within `max_length`.
        """
        try:
            encoded = self.tokenizer(*segments, truncation="only_first", max_length=self.max_length)
        except Exception as error:  # The tokenizers library raises bare Exceptions.
            raise ValueError(
                f"max_length {self.max_length} leaves no room for a context next to the longest text of {last}: raise "
                f"max_length ({error})"
            ) from error
        return self.columns(encoded)

    def columns(self, encoded: Any) -> dict[str, list[Any]]:
        """The columns `input_ids` and `context_length` from the output of the tokenizer. Also counts inputs that it
        cut."""
        self.truncated += sum(bool(encoding.overflowing) for encoding in encoded.encodings)
        contexts = [context_length(encoding) for encoding in encoded.encodings]
        return {"input_ids": self.separated(encoded["input_ids"], contexts), "context_length": contexts}

    def packed(self, texts: Sequence[list[int]]) -> list[list[int]]:
        """Inputs that are filled with consecutive texts, with a separator between two texts. Tokens that do not fill an
        input stay in `carry`.

        Each input has special tokens at both ends. An input has `max_length` tokens, or one fewer if its last token
        would be a separator between two texts.

        Args:
            texts: token ids without special tokens.
        """
        for ids in texts:
            if ids:
                self.carry += ids
                self.carry.append(self.separator)
        room = self.max_length - self.tokenizer.num_special_tokens_to_add()
        inputs, start = [], 0
        while len(self.carry) - start >= room:
            ids = self.carry[start : start + room]
            start += room
            if ids[-1] == self.separator:
                ids.pop()
            elif self.carry[start] == self.separator:
                start += 1
            inputs.append(self._whole(ids))
        del self.carry[:start]
        return inputs

    def last_packed(self) -> list[list[int]]:
        """The input with the remaining tokens in `carry`; no input if no tokens remain."""
        # The separator after the last text would occur twice, because every input ends with a separator.
        left, self.carry = self.carry[:-1], []
        return [self._whole(left)] if left else []

    def _whole(self, ids: list[int]) -> list[int]:
        before, after = self.frame
        return [*before, *ids, *after]

    def separated(self, rows: list[list[int]], contexts: list[int]) -> list[list[int]]:
        """The token ids of inputs. With `one_separator`, the second of two separators between the segments is
        removed."""
        if not self.one_separator:
            return rows
        separator = [self.tokenizer.sep_token_id]
        return [
            ids[:at] + ids[at + 1 :] if ids[at:-1][:1] == separator else ids
            for ids, at in zip(rows, contexts, strict=True)
        ]


def context_length(encoding: Any) -> int:
    """The number of tokens in the first segment of an encoding, including the special tokens before and after it."""
    segment_of = encoding.sequence_ids
    after: int = segment_of.index(1) if 1 in segment_of else len(segment_of)
    # BERT has one special token between the segments. XLM-R has two; the first of them ends the context. Other encoders
    # have none.
    while 1 < after < len(segment_of) and segment_of[after - 1] is None:
        after -= 1
    return after + 1 if after < len(segment_of) and segment_of[after] is None else after
