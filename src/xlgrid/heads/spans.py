"""Answers to questions as spans of long contexts: windows of tokens, and from their logits back to a text.

Windows and the search for the best span are those of SQuAD's usual preprocessing and post-processing (`run_squad.py` of
BERT, Devlin et al. 2019; `run_qa.py` of transformers). Ours are three choices: a fast tokenizer's character offsets say what
text a span is, so that nothing has to be aligned; padding never counts as a place for an answer, so that a batch's padding
changes nothing; and a question for which no window has a permitted span among its best is answered by the empty text.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xlgrid.heads import metrics

if TYPE_CHECKING:
    import pyarrow as pa

Ints = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]

# Starts and ends of a window that are considered, the most likely ones; tokens of the longest answer.
BEST = 20
LONGEST = 30


@dataclass(frozen=True)
class Spans:
    """What it takes to tell the answers that windows give, beside their token ids.

    Attributes:
        first, last: of each token of all windows, flat, the characters of its window's text where it starts and ends; -1
            for those that are not of the context.
        examples: of each window, the number of the example that it is of.
        texts: of each window, the part of the context in it.
        answers: of each window, all correct answers to its question.
    """

    first: NDArray[np.int32]
    last: NDArray[np.int32]
    examples: Ints
    texts: "pa.Array"
    answers: "pa.Array"

    def take(self, windows: Ints, tokens: Ints) -> "Spans":
        """Those of `windows`, whose `tokens` these are."""
        import pyarrow as pa

        chosen = pa.array(windows)
        texts, answers = self.texts.take(chosen), self.answers.take(chosen)
        return Spans(self.first[tokens], self.last[tokens], self.examples[windows], texts, answers)

    @staticmethod
    def joined(parts: Sequence["Spans"]) -> "Spans":
        """Those of all parts, one after another, which keep the numbers of their examples."""
        import pyarrow as pa

        return Spans(
            first=np.concatenate([part.first for part in parts]),
            last=np.concatenate([part.last for part in parts]),
            examples=np.concatenate([part.examples for part in parts]),
            texts=pa.concat_arrays([part.texts for part in parts]),
            answers=pa.concat_arrays([part.answers for part in parts]),
        )


class Answer(NamedTuple):
    """A span's text, and the sum of the logits of its first and last token."""

    score: float
    text: str


NOTHING = Answer(-np.inf, "")


def best(starts: Floats, ends: Floats, first: NDArray[np.int32], last: NDArray[np.int32], text: str) -> Answer:
    """The best span of a window: within the context, of at most `LONGEST` tokens, among the `BEST` starts and ends.

    Args:
        starts, ends: logits of the window's tokens.
        first, last, text: as `Spans` has them.
    """
    # Of equal ones, those that come first.
    begins, finishes = (np.argsort(-logits, kind="stable")[:BEST] for logits in (starts, ends))
    scores = starts[begins][:, None] + ends[finishes][None, :]
    lengths = finishes[None, :] - begins[:, None] + 1
    allowed = (lengths >= 1) & (lengths <= LONGEST)
    allowed &= (first[begins] >= 0)[:, None] & (first[finishes] >= 0)[None, :]
    if not allowed.any():
        return NOTHING
    row, column = np.unravel_index(np.argmax(np.where(allowed, scores, -np.inf)), scores.shape)
    return Answer(float(scores[row, column]), text[first[begins[row]] : last[finishes[column]]].strip())


def outcomes(spans: Spans, found: Sequence[Answer]) -> list[metrics.Outcome]:
    """The outcome of each example, in their order: that of the best of its windows' answers, the first of equal ones.

    Args:
        found: the best of each window.
    """
    chosen: dict[int, int] = {}
    for window, example in enumerate(spans.examples.tolist()):
        if example not in chosen or found[window].score > found[chosen[example]].score:
            chosen[example] = window
    return [metrics.answer(found[window].text, spans.answers[window].as_py()) for _, window in sorted(chosen.items())]


class Window(NamedTuple):
    """Tokens of a context, from `start` to before `end`, and where the answer is among them: None if not wholly there."""

    start: int
    end: int
    answer: tuple[int, int] | None


def windows(offsets: Sequence[tuple[int, int]], answer: tuple[int, int], room: int, stride: int) -> Iterator[Window]:
    """Windows of at most `room` tokens over a context, each of which begins `stride` tokens before the last one ends.

    Args:
        offsets: first character of each token of the context, and that after its last.
        answer: likewise of the answer.
    """
    firsts, lasts = (np.array([offset[side] for offset in offsets], np.int64) for side in (0, 1))
    start = 0
    while True:
        end = min(start + room, len(offsets))
        place = None
        if start < end and firsts[start] <= answer[0] and lasts[end - 1] >= answer[1]:
            # From the last token that starts before it to the first one that ends after it.
            begin = int(np.searchsorted(firsts[start:end], answer[0], "right")) - 1
            # A piece of one character may share it with the mark of the word before it.
            place = start + begin, start + max(begin, int(np.searchsorted(lasts[start:end], answer[1], "left")))
        yield Window(start, end, place)
        if end == len(offsets):
            return
        start += room - stride
