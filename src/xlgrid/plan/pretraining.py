"""The time, text and disk of pre-training an encoder from scratch, or of training a language-modelling head."""

from typing import NamedTuple

# A token stands for so many bytes of text, as counted for XLM-R on Wikipedia in many languages.
BYTES = 4.5
# Bytes on disk of a weight, of a token, and of an input beside its tokens: where it begins, and where its first segment ends.
WEIGHT, TOKEN, INPUT = 4, 4, 8
# The state has each weight, its two moments and the best weights so far. It is replaced by one written beside it.
STATE = 2 * 4 * WEIGHT


class Pretraining(NamedTuple):
    """The time, text and disk of one pre-training.

    Attributes:
        updates: optimiser steps.
        update_tokens: tokens of one update.
        evaluated: inputs of the dev sets, in all evaluations together.
        hours: of one GPU, those of the dev sets included.
        inputs, tokens: of the tokens files of all languages and pairs; None if the size of a text is not known.
        text_tokens: of the texts of the languages, which pairs have again; None likewise.
        weights: parameters of the encoder with its language-modelling head.
        trained: the number of these in the state, which is that of a new head alone where nothing else trains.
        snapshots: encoders that it keeps on the way.
    """

    updates: int
    update_tokens: int
    evaluated: int
    hours: float
    inputs: int | None
    tokens: int | None
    text_tokens: int | None
    weights: int
    trained: int
    snapshots: int

    @property
    def read_tokens(self) -> int:
        """Tokens of all updates; those of a text that is read again count again."""
        return self.updates * self.update_tokens

    @property
    def text_gigabytes(self) -> float | None:
        """The size of the texts without compression."""
        return None if self.text_tokens is None else BYTES * self.text_tokens / 1e9

    @property
    def tokens_gigabytes(self) -> float | None:
        """The size of the tokens files."""
        if self.tokens is None or self.inputs is None:
            return None
        return (TOKEN * self.tokens + INPUT * self.inputs) / 1e9

    @property
    def state_gigabytes(self) -> float:
        """The disk that the training needs beside its results until it is done."""
        return STATE * self.trained / 1e9

    @property
    def stored_gigabytes(self) -> float:
        """The encoder and its snapshots."""
        return WEIGHT * self.weights * (1 + self.snapshots) / 1e9


def attention_work(layers: int, hidden: int, length: int) -> int:
    """Floating-point operations of training on a token in the attention itself, which the parameters do not count: a product of
    queries and keys and one of weights and values, forward, and twice as many back."""
    return 3 * 4 * layers * hidden * length
