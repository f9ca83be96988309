"""Answers that are not at their `answer_start`: contexts that lost their leading blanks, and what a training set may do about the rest.

The scripts from which XQuAD, the secondary task of TyDiQA and XTREME's copy of MLQA on the Hub were made strip contexts and keep the
offsets of the unstripped ones (huggingface/datasets#2585 is the report of the same mistake in SQuAD). Every offset in such a context
is too large by the number of blanks.

A single wrong offset looks the same. Offsets are therefore corrected only in a context in which several answers agree, and in other
contexts of a file that has such a context.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

# What a training set does with a question whose answer is not at its offset.
Misplaced = Literal["error", "drop", "search"]
# The most blanks that a context may have lost. In XQuAD, 33 contexts have lost one, and one context two.
MOST_BLANKS = 2


class Placed(NamedTuple):
    """Answers to questions, as far as possible at their offsets.

    Attributes:
        answers: those of each question; None for a question to leave out.
        shifted: the number of answers whose offsets were corrected by the blanks that their contexts have lost.
        contexts: the number of these contexts.
        searched: the number of answers that were found elsewhere in their contexts.
    """

    answers: list[Any]
    shifted: int
    contexts: int
    searched: int


def placed(contexts: Sequence[Any], answers: Sequence[Any], misplaced: str = "error") -> Placed:
    """Answers with corrected offsets.

    Answers that no rule corrects, and values that are no answers, stay as they are.

    Args:
        contexts: the context of each question.
        answers: the lists `text` and `answer_start` of each question.
        misplaced: a value of `Misplaced`: what becomes of a question with an answer that no shift explains. `search` takes the occurrence of the answer
            that is nearest to its offset, the earlier of two, and leaves out a question with an answer that its context lacks.
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
    """The contexts of a file that have lost their leading blanks, and how many each has lost.

    Answers at two characters or more that share a shift show it. Answers at one character alone may be a mistake of their own,
    and count only if another context of the file shows a shift.

    Args:
        answers: context -> the answers to its questions.
    """
    lost = {context: blanks for context, given in answers.items() if (blanks := lost_blanks(context, given))}
    is_shown = any(len({start for each in answers[context] for start in each["answer_start"]}) > 1 for context in lost)
    return lost if is_shown else {}


def lost_blanks(context: str, answers: Sequence[Mapping[str, Any]]) -> int:
    """The number of leading blanks that a context may have lost: the smallest number of at most `MOST_BLANKS` by which the offsets of
    all its answers are too large; 0 if there is none, if an answer is at its own offset, or if the context still begins with a blank.

    Answers to one question may allow several numbers, as a digit among equal digits does. The text at the corrected offset is
    the answer in any case.
    """
    pairs = [pair for each in answers for pair in zip(each["text"], each["answer_start"], strict=True)]
    if not pairs or context[:1].isspace() or any(is_at(context, text, start) for text, start in pairs):
        return 0
    return next(
        (n for n in range(1, MOST_BLANKS + 1) if all(is_at(context, text, start - n) for text, start in pairs)), 0
    )


def is_at(context: str, text: str, start: int) -> bool:
    """Whether a text is in a context at a character."""
    return start >= 0 and context.startswith(text, start)


def _is_readable(context: Any, answers: Any) -> bool:
    """Whether these are a context and the answers to a question."""
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
    """The answers to a question at their nearest occurrences, and the number of those that moved; None if the context lacks one."""
    starts = answers["answer_start"]
    found = [_nearest(context, text, start) for text, start in zip(answers["text"], starts, strict=True)]
    if None in found:
        return None, 0
    moved = sum(new != old for new, old in zip(found, starts, strict=True))
    return {**answers, "answer_start": found}, moved


def _nearest(context: str, text: str, start: int) -> int | None:
    """The first character of the occurrence of a text that is nearest to a character, the earlier of two."""
    start = max(start, 0)
    places = [place for place in (context.rfind(text, 0, start + len(text)), context.find(text, start)) if place >= 0]
    return min(places, key=lambda place: abs(place - start), default=None)
