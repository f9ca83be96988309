"""Correct answers that are not at their `answer_start`, after the loss of leading blanks or, for training, in general.

XQuAD, the secondary task of TyDiQA and XTREME's copy of MLQA on the Hub were produced by scripts that strip contexts
and keep the offsets of the contexts before stripping (huggingface/datasets#2585 reports the same mistake in SQuAD).
Every offset in such a context is too large by the number of lost blanks.

A single wrong offset looks the same. Therefore, offsets are corrected only if several answers in a context agree on the
number of blanks, or if this is the case in another context of the same file.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

# The treatment of a training question whose answer is not at its offset.
Misplaced = Literal["error", "drop", "search"]
# The maximum number of blanks that a context may have lost. In XQuAD, 33 contexts lost one blank, and one context two.
MOST_BLANKS = 2


class Placed(NamedTuple):
    """The answers to questions after the correction of their offsets.

    Attributes:
        answers: the answers to each question; None for a question to leave out.
        shifted: the number of answers that were moved because their contexts lost leading blanks.
        contexts: the number of these contexts.
        searched: the number of answers that were moved to another occurrence in their contexts.
    """

    answers: list[Any]
    shifted: int
    contexts: int
    searched: int


def placed(contexts: Sequence[Any], answers: Sequence[Any], misplaced: str = "error") -> Placed:
    """Answers with corrected offsets.

    Answers that no rule corrects stay as they are, and so do values that are not answers.

    Args:
        contexts: the context of each question.
        answers: the lists `text` and `answer_start` of each question.
        misplaced: a value of `Misplaced`: the treatment of a question with an answer that lost blanks do not explain.
            `search` moves the answer to its occurrence nearest to the offset, or to the earlier of two, and leaves out
            a question whose context does not contain the answer.
    """
    result = list(answers)
    of_context: dict[str, list[int]] = defaultdict(list)
    for row, (context, given) in enumerate(zip(contexts, answers, strict=True)):
        if _is_readable(context, given):
            of_context[context].append(row)
    shifts = _shifts({context: [answers[row] for row in rows] for context, rows in of_context.items()})
    shifted = searched = 0
    for context, rows in of_context.items():
        if shift := shifts.get(context):
            for row in rows:
                starts = [start - shift for start in answers[row]["answer_start"]]
                result[row] = {**answers[row], "answer_start": starts}
                shifted += len(starts)
            continue
        wrong = [row for row in rows if not _are_placed(context, answers[row])]
        for row in wrong:
            if misplaced == "drop":
                result[row] = None
            elif misplaced == "search":
                result[row], found = _searched(context, answers[row])
                searched += found
    return Placed(result, shifted, len(shifts), searched)


def _shifts(answers: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, int]:
    """The contexts of a file that lost their leading blanks, with the number of lost blanks.

    Two or more answers at different characters that share a shift are evidence. Answers at a single character may be a
    separate mistake, and count only if another context of the file has this evidence.

    Args:
        answers: context -> the answers to its questions.
    """
    lost = {context: blanks for context, given in answers.items() if (blanks := lost_blanks(context, given))}
    is_shown = any(len({start for each in answers[context] for start in each["answer_start"]}) > 1 for context in lost)
    return lost if is_shown else {}


def lost_blanks(context: str, answers: Sequence[Mapping[str, Any]]) -> int:
    """The number of leading blanks that a context may have lost: the smallest number, up to `MOST_BLANKS`, by which the
    offsets of all its answers are too large.

    The number is 0 if no number explains the offsets, if an answer is at its own offset, or if the context still begins
    with a blank. Several numbers may explain the offsets, for instance for a digit among equal digits. The text at the
    corrected offset is the answer for each of them.
    """
    pairs = [pair for each in answers for pair in zip(each["text"], each["answer_start"], strict=True)]
    if not pairs or context[:1].isspace() or any(is_at(context, text, start) for text, start in pairs):
        return 0
    return next(
        (n for n in range(1, MOST_BLANKS + 1) if all(is_at(context, text, start - n) for text, start in pairs)), 0
    )


def is_at(context: str, text: str, start: int) -> bool:
    """Whether a context contains a text at a character."""
    return start >= 0 and context.startswith(text, start)


def _is_readable(context: Any, answers: Any) -> bool:
    """Whether the values are a context and the answers to a question."""
    if not isinstance(context, str) or not isinstance(answers, Mapping):
        return False
    texts, starts = answers.get("text"), answers.get("answer_start")
    if not isinstance(texts, list) or not isinstance(starts, list) or len(texts) != len(starts):
        return False
    return all(isinstance(text, str) and text for text in texts) and all(isinstance(start, int) for start in starts)


def _are_placed(context: str, answers: Mapping[str, Any]) -> bool:
    """Whether all answers to a question are at their offsets."""
    return all(
        is_at(context, text, start) for text, start in zip(answers["text"], answers["answer_start"], strict=True)
    )


def _searched(context: str, answers: Mapping[str, Any]) -> tuple[dict[str, Any] | None, int]:
    """The answers to a question at their nearest occurrences, or None if the context lacks one; and the number of moved
    answers."""
    starts = answers["answer_start"]
    found = [_nearest(context, text, start) for text, start in zip(answers["text"], starts, strict=True)]
    if None in found:
        return None, 0
    moved = sum(new != old for new, old in zip(found, starts, strict=True))
    return {**answers, "answer_start": found}, moved


def _nearest(context: str, text: str, start: int) -> int | None:
    """The first character of the occurrence of a text nearest to a given character, or of the earlier of two."""
    start = max(start, 0)
    places = [place for place in (context.rfind(text, 0, start + len(text)), context.find(text, start)) if place >= 0]
    return min(places, key=lambda place: abs(place - start), default=None)
