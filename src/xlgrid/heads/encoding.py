"""Token ids of one or two segments, as all heads make them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any, Literal

# The label of tokens at which no prediction is due, which torch's cross entropy leaves out.
IGNORED = -100


@dataclass
class Encoding:
    """The settings of a tokens file, and counts of what did not fit.

    Attributes:
        tokenizer: a fast tokenizer of transformers.
        max_length: the most tokens of an input, special tokens included.
        one_separator: XLM-R's inputs have one special token between two segments, where its tokenizer puts two.
        stride: the tokens that two windows of a context share.
        documents, lines: see `xlgrid.tasks.mlm.Options`.
        carry: the tokens of packed texts that do not fill an input yet, which begin the next one.
        truncated: the number of inputs that were cut; or of examples that have several windows.
        lost_words: the number of words that the tokenizer drops, which have the unknown token in place of tokens.
    """

    tokenizer: Any
    max_length: int
    one_separator: bool = False
    stride: int = 128
    documents: Literal["cut", "split", "pack"] = "cut"
    lines: Literal["joined", "segments"] = "joined"
    carry: list[int] = field(default_factory=list)
    truncated: int = 0
    lost_words: int = 0

    @cached_property
    def frame(self) -> tuple[list[int], list[int]]:
        """The special tokens that the tokenizer puts before and after a text, such as [CLS] and [SEP], or <bos> and <eos>."""
        [encoding] = self.tokenizer("a").encodings
        # A vocabulary that does not know the letter may leave it out: then the first special token is before a text.
        inside = [at for at, segment in enumerate(encoding.sequence_ids) if segment is not None] or [1, 0]
        return encoding.ids[: inside[0]], encoding.ids[inside[-1] + 1 :]

    @cached_property
    def separator(self) -> int:
        """The special token between two texts; the last one of an input where the tokenizer names none for this purpose.

        Raises:
            ValueError: there is no such token.
        """
        if (separator := self.tokenizer.sep_token_id) is not None:
            return int(separator)
        if not self.frame[1]:
            raise ValueError(
                "the vocabulary has no token between texts, and none at the end of an input: write `sep_token` into its "
                "tokenizer_config.json, or set `documents: cut`"
            )
        return self.frame[1][-1]

    @cached_property
    def needs_spaces(self) -> bool:
        """Whether a word has other tokens after a space than alone, as in the vocabularies of ModernBERT, mmBERT and EuroBERT."""
        alone = self.tokenizer(["a", "a"], is_split_into_words=True, add_special_tokens=False)
        return bool(alone["input_ids"] != self.tokenizer("a a", add_special_tokens=False)["input_ids"])

    def spaced(self, sentences: Sequence[list[str]]) -> list[list[str]]:
        """The words of sentences, such that each has the tokens that it has in running text."""
        if not self.needs_spaces:
            return list(sentences)
        return [[*words[:1], *(word and f" {word}" for word in words[1:])] for words in sentences]

    @cached_property
    def unknown(self) -> int:
        """The token in place of a word that the tokenizer drops; vocabularies of bytes may have none that is for this purpose."""
        ids = (self.tokenizer.unk_token_id, self.tokenizer.mask_token_id, self.tokenizer.pad_token_id)
        return next(int(number) for number in ids if number is not None)

    def words(self, sentences: Sequence[list[str]]) -> list[tuple[list[int], list[int | None]]]:
        """The token ids of each sentence, special tokens included, and the number of each token's word, None for special tokens.

        Every word has a token. Tokenizers drop words of control characters, and empty ones; these have the unknown token, so that they
        are counted and scored as any other.

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
        """The columns `input_ids` and `context_length` of inputs that lose the end of the first segment if they are too long.

        Args:
            segments: one or two lists of texts.
            last: the name of the last segment's column.

        Raises:
            ValueError: the longest last segment leaves no room for a context within `max_length`.
        """
        try:
            encoded = self.tokenizer(*segments, truncation="only_first", max_length=self.max_length)
        except Exception as error:  # The tokenizers library raises bare Exceptions.
            raise ValueError(
                f"max_length {self.max_length} leaves no room for a context beside the longest of {last}: raise it ({error})"
            ) from error
        return self.columns(encoded)

    def columns(self, encoded: Any) -> dict[str, list[Any]]:
        """The columns `input_ids` and `context_length` of inputs as the tokenizer returns them; counts those that it has cut."""
        self.truncated += sum(bool(encoding.overflowing) for encoding in encoded.encodings)
        contexts = [context_length(encoding) for encoding in encoded.encodings]
        return {"input_ids": self.separated(encoded["input_ids"], contexts), "context_length": contexts}

    def packed(self, texts: Sequence[list[int]]) -> list[list[int]]:
        """Inputs that are filled with texts one after another and a separator between two; the tokens that do not fill an
        input stay in `carry`.

        Inputs have `max_length` tokens, or one fewer where a separator between two texts would be the last of them: an input
        has special tokens of its own at both ends.

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
        """The input with what is left in `carry`, if there is any."""
        # The separator after the last text would occur twice, because every input ends with one.
        left, self.carry = self.carry[:-1], []
        return [self._whole(left)] if left else []

    def _whole(self, ids: list[int]) -> list[int]:
        before, after = self.frame
        return [*before, *ids, *after]

    def separated(self, rows: list[list[int]], contexts: list[int]) -> list[list[int]]:
        """Token ids of inputs, with `one_separator` without the second of two separators between the segments."""
        if not self.one_separator:
            return rows
        separator = [self.tokenizer.sep_token_id]
        return [
            ids[:at] + ids[at + 1 :] if ids[at:-1][:1] == separator else ids
            for ids, at in zip(rows, contexts, strict=True)
        ]


def context_length(encoding: Any) -> int:
    """The tokens of an encoding's first segment, with the special token before it and the one after it."""
    segment_of = encoding.sequence_ids
    after: int = segment_of.index(1) if 1 in segment_of else len(segment_of)
    # BERT has one special token between the segments and XLM-R two, the first of which closes the context. Others have none.
    while 1 < after < len(segment_of) and segment_of[after - 1] is None:
        after -= 1
    return after + 1 if after < len(segment_of) and segment_of[after] is None else after
