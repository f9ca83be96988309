"""The head `span`: the answer to a question as a span of a context, which is cut into windows if it is long.

The windows and the search for the best span follow SQuAD's usual preprocessing and post-processing (`run_squad.py` of
BERT, Devlin et al. 2019; `run_qa.py` of transformers), with three differences:

- the text of a span is read from a fast tokenizer's character offsets, so that nothing has to be aligned;
- an answer is never in the padding, so that the padding of a batch changes nothing;
- if no window has a permitted span among its best ones, the answer is the empty text.
"""

import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, NonNegativeInt

from xlgrid.base.arrays import Ints
from xlgrid.base.settings import Strict
from xlgrid.heads.encoding import Encoding, context_length
from xlgrid.heads.forms import Normalized, in_form, with_values
from xlgrid.heads.head import Evaluated, Example, Head, TaskColumns, without_labels
from xlgrid.heads.metrics import SQUAD_EM, SQUAD_F1, Outcome
from xlgrid.heads.span.misplaced import is_at, placed
from xlgrid.heads.tokens import Tokens

if TYPE_CHECKING:
    import pyarrow as pa
    import torch
    from transformers import PreTrainedModel

Floats = NDArray[np.floating[Any]]

# The number of the most likely starts and ends of a window that are combined, and the maximum tokens of an answer.
BEST = 20
LONGEST = 30
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


class Answer(NamedTuple):
    """A predicted answer.

    Attributes:
        score: the sum of the logits of its first and last token.
        text: the text of the span.
    """

    score: float
    text: str


NO_ANSWER = Answer(-np.inf, "")


class Windows(Strict):
    """The options of a task of question answering."""

    stride: NonNegativeInt = Field(128, description="tokens that two windows of a long context share")


class SpanHead(Head):
    """The answer to a question as a span of its context.

    The inputs are the question and the context, in this order, which is also the order of the segments. The target has
    the answers: the lists `text` and `answer_start`, as in SQuAD. In a pair, the question is in the second language. A
    context that does not fit next to its question becomes several windows. Neighbouring windows share `stride` tokens.

    The columns of tokens files are:

    - `start`, `end`: the first and last token of the first answer; both are 0 (the first special token) if the window
      lacks a part of the answer;
    - `example`: the number of the question;
    - `first`, `last`: for each token, the characters of the window's text where the token starts and ends; -1 for
      tokens outside of the context;
    - `text`: the window's part of the context;
    - `answers`: the texts of all correct answers.

    An outcome is `[F1, exact match]` for a question.
    """

    name = "span"
    model_suffix = "QuestionAnswering"
    modules = ("qa_outputs", "classifier")
    all_metrics = (SQUAD_F1, SQUAD_EM)
    token_columns = ("first", "last")
    inputs_allowed = (2, 2)
    has_labels = False
    options = Windows
    # Tokens outside of the context have probability 0, so the loss cannot spread probability over all tokens.
    allows_smoothing = False
    keeps_answers = True

    def prepared(
        self, table: "pa.Table", task: TaskColumns, unanswerable: str | None, misplaced: str | None
    ) -> "tuple[pa.Table, dict[str, int]]":
        import pyarrow as pa

        counts: dict[str, int] = {}
        if unanswerable == "drop":
            has_answer = [bool(answer and answer["text"]) for answer in table[task.target].to_pylist()]
            counts["questions without an answer left out"] = has_answer.count(False)
            table = table.filter(pa.array(has_answer, pa.bool_()))
        contexts, answers = (table[column].to_pylist() for column in (task.inputs[1], task.target))
        after = placed(contexts, answers, misplaced or "error")
        is_kept = [new is not None or old is None for new, old in zip(after.answers, answers, strict=True)]
        counts |= {
            "contexts that lack their leading blanks": after.contexts,
            "answers moved to the left by these blanks": after.shifted,
            "answers moved to their nearest occurrence": after.searched,
            "questions left out because an answer is not at its answer_start": is_kept.count(False),
        }
        if after.shifted or after.searched:
            at, kind = table.column_names.index(task.target), table.schema.field(task.target).type
            table = table.set_column(at, task.target, pa.array(after.answers, kind))
        return table.filter(pa.array(is_kept, pa.bool_())), {what: count for what, count in counts.items() if count}

    def in_form(self, table: "pa.Table", task: TaskColumns, normalized: Normalized) -> "pa.Table":
        """The rows with normalized contexts, questions and answers. An answer starts where the normalized text before
        it ends.

        An answer that begins between a letter and its mark is not at this place, and `check` reports it.
        """
        rows = []
        for context, answers in zip(table[task.inputs[1]].to_pylist(), table[task.target].to_pylist(), strict=True):
            if isinstance(context, str) and isinstance(answers, dict) and {"text", "answer_start"} <= answers.keys():
                starts = [len(normalized(context[:start])) for start in answers["answer_start"]]
                answers |= {"text": [*map(normalized, answers["text"])], "answer_start": starts}
            rows.append(answers)
        return with_values(in_form(table, task.inputs, normalized), task.target, rows)

    def second(self, task: TaskColumns) -> str:
        return task.inputs[0]

    def parallel(self, task: TaskColumns) -> str:
        """The column `id`, because answers are parts of contexts and differ between languages."""
        return "id"

    def check(self, table: "pa.Table", task: TaskColumns, where: str, first_row: int = 1) -> None:
        super().check(table, task, where, first_row)
        columns = (table[column].to_pylist() for column in (task.inputs[1], task.target))
        for row, (context, answers) in enumerate(zip(*columns, strict=True), start=first_row):
            if problem := wrong_answers(context, answers):
                raise ValueError(f"{where}, row {row}, column {task.target!r}: {problem}")

    def fields(self) -> list["pa.Field"]:
        import pyarrow as pa

        number, numbers = pa.int32(), pa.list_(pa.int32())
        return [
            *(pa.field(name, number) for name in ("start", "end", "example")),
            *(pa.field(name, numbers) for name in ("first", "last")),
            pa.field("text", pa.string()),
            pa.field("answers", pa.list_(pa.string())),
        ]

    def encode(self, table: "pa.Table", task: TaskColumns, encoding: Encoding) -> dict[str, list[Any]]:
        question_column, context_column = task.inputs
        stride = encoding.options.stride
        questions = [question.lstrip() for question in table[question_column].to_pylist()]
        contexts, answers = (table[column].to_pylist() for column in (context_column, task.target))
        encoded = encoding.tokenizer(questions, contexts, return_offsets_mapping=True, verbose=False)
        rows: list[dict[str, Any]] = []
        examples = zip(encoded.encodings, encoded["input_ids"], encoded["offset_mapping"], answers, strict=True)
        for example, (segments, ids, offsets, answer) in enumerate(examples):
            inside = [at for at, segment in enumerate(segments.sequence_ids) if segment == 1]
            if not inside:
                raise ValueError(f"the context {contexts[example]!r} has no tokens: correct the data")
            begin, after, length = inside[0], inside[-1] + 1, context_length(segments)
            before, tail = ids[:begin], ids[after:]
            if encoding.one_separator:
                before = before[:length]
            room = encoding.max_length - len(before) - len(tail)
            if room < 1 or (room < len(inside) and room <= stride):
                raise ValueError(
                    f"max_length {encoding.max_length} leaves {max(0, room)} tokens for a context beside the question "
                    f"{questions[example]!r}, and neighbouring windows share {stride}: raise max_length, or "
                    "lower the task's option `stride`"
                )
            context_offsets, start = offsets[begin:after], answer["answer_start"][0]
            answer_place = start, start + len(answer["text"][0])
            pieces = list(windows(context_offsets, answer_place, room, stride))
            encoding.truncated += len(pieces) > 1
            for piece in pieces:
                here = context_offsets[piece.start : piece.end]
                origin, shift = here[0][0], len(before) - piece.start
                outside = [-1] * len(before), [-1] * len(tail)
                rows.append(
                    {
                        "input_ids": [*before, *ids[begin + piece.start : begin + piece.end], *tail],
                        "context_length": length,
                        "start": piece.answer[0] + shift if piece.answer else 0,
                        "end": piece.answer[1] + shift if piece.answer else 0,
                        "example": example,
                        "first": [*outside[0], *(first - origin for first, _ in here), *outside[1]],
                        "last": [*outside[0], *(last - origin for _, last in here), *outside[1]],
                        "text": contexts[example][origin : here[-1][1]],
                        "answers": answer["text"],
                    }
                )
        names = ["input_ids", "context_length", *(field.name for field in self.fields())]
        return {name: [row[name] for row in rows] for name in names}

    def segment_languages(self, codes: Sequence[str]) -> tuple[str, str]:
        return codes[-1], codes[0]

    def batch_labels(self, tokens: Tokens, rows: Ints, arrays: Mapping[str, np.ndarray], positions: Ints) -> np.ndarray:
        """The first and last token of the answer of each row, [rows, 2]."""
        return np.stack([tokens.columns[name][rows] for name in ("start", "end")], axis=1)

    def settings(self, labels: int) -> dict[str, int]:
        """The setting for two outputs of the model: the logits of the start and of the end."""
        return {"num_labels": 2}

    def scores(
        self, model: "PreTrainedModel", batch: dict[str, "torch.Tensor"]
    ) -> tuple["torch.Tensor", "torch.Tensor"]:
        """The logits of the start for all rows, followed by the logits of the end, [2 * rows, longest], and the
        labels."""
        import torch

        inputs, labels = without_labels(batch)
        output = model(**inputs)
        padding = inputs["attention_mask"].repeat(2, 1) == 0
        logits = torch.cat([output.start_logits, output.end_logits]).masked_fill(padding, -float("inf"))
        return logits, labels.T.flatten()

    def predict(
        self, model: "PreTrainedModel", batch: dict[str, "torch.Tensor"], tokens: Tokens, rows: Ints
    ) -> list[Answer]:
        """The best answer of each window."""
        logits, _ = self.scores(model, batch)
        starts, ends = logits.float().cpu().numpy().reshape(2, len(rows), -1)
        answers = []
        for at, row in enumerate(rows.tolist()):
            here, size = slice(tokens.offsets[row], tokens.offsets[row + 1]), int(tokens.sizes[row])
            first, last = (tokens.token_columns[name][here] for name in ("first", "last"))
            answers.append(best(starts[at, :size], ends[at, :size], first, last, tokens.columns["text"][row].as_py()))
        return answers

    def answers(self, tokens: Tokens, predictions: Sequence[Answer]) -> list[str]:
        """The text of the best answer to each question among its windows, or of the first of several best ones."""
        chosen: dict[int, Answer] = {}
        for answer, example in zip(predictions, tokens.example_of.tolist(), strict=True):
            if example not in chosen or answer.score > chosen[example].score:
                chosen[example] = answer
        return [answer.text for _, answer in sorted(chosen.items())]

    def outcomes(self, tokens: Tokens, answers: Sequence[str]) -> list[Outcome]:
        # All windows of a question have the same gold answers and the same languages.
        _, rows = np.unique(tokens.example_of, return_index=True)
        return [self.answer_outcome(text, tokens, row) for text, row in zip(answers, rows.tolist(), strict=True)]

    def answer_outcome(self, predicted: str, tokens: Tokens, row: int) -> list[float]:
        """The outcome of an answer to the question of a row."""
        # The answers are in the language of the context, the second segment.
        language = tokens.languages[tokens.language_of[row, 1]]
        gold = tokens.columns["answers"][row].as_py()
        return answer_outcome(*(self.normalised(text, language) for text in (predicted, *gold)))

    def examples(self, seen: Evaluated) -> list[Example]:
        """The correct answers to each question, separated by ` / `, and the model's answer, which is right if it matches one of
        them exactly."""
        gold = [" / ".join(dict.fromkeys(answer["text"])) for answer in seen.data[seen.task.target].to_pylist()]
        is_right = (match == 1 for _, match in seen.outcomes)
        return seen.rows(zip(gold, seen.answers, is_right, strict=True))

    def normalised(self, text: str, language: str) -> str:
        """The normalised text of an answer, with single spaces between its words. Equal answers have equal texts."""
        return normalised(text)


def wrong_answers(context: str, answers: Any) -> str | None:
    """The problem with the answers to a question; None if they are correct."""
    if not isinstance(answers, dict) or not {"text", "answer_start"} <= answers.keys():
        return f"expected the lists `text` and `answer_start`, as in SQuAD, got {answers!r}"
    texts, starts = answers["text"], answers["answer_start"]
    if not texts and not starts:
        return "the question has no answer in its context; `unanswerable: drop` in `data` leaves out such questions"
    if len(texts) != len(starts):
        return f"got {len(texts)} texts and {len(starts)} starts of answers, expected the same number of both"
    if not all(isinstance(start, int) and not isinstance(start, bool) for start in starts):
        return f"got the starts of answers {starts!r}, expected whole numbers"
    for text, start in zip(texts, starts, strict=True):
        if not text or not is_at(context, text, start):
            there = context[max(start, 0) :][: len(text)]
            return (
                f"the answer {text!r} is not in the context at character {start}"
                + (f"; the context has {there!r} there" if text else "")
                + ": `answer_start` counts characters (not bytes) from 0; correct it (for training sets only, "
                "`misplaced: drop` in `data` leaves out such questions, and `misplaced: search` uses the nearest "
                "occurrence of the answer)"
            )
    return None


class Window(NamedTuple):
    """A window over the tokens of a context.

    Attributes:
        start: the first token of the window.
        end: the first token after the window.
        answer: the first and last token of the answer; None if the window lacks a part of the answer.
    """

    start: int
    end: int
    answer: tuple[int, int] | None


def windows(offsets: Sequence[tuple[int, int]], answer: tuple[int, int], room: int, stride: int) -> Iterator[Window]:
    """The windows of at most `room` tokens over a context. Each window begins `stride` tokens before the end of the
    window before it.

    Args:
        offsets: for each token of the context, its first character and the character after its last one.
        answer: the first character of the answer and the character after its last one.
    """
    firsts, lasts = (np.array([offset[side] for offset in offsets], np.int64) for side in (0, 1))
    start = 0
    while True:
        end = min(start + room, len(offsets))
        place = None
        if start < end and firsts[start] <= answer[0] and lasts[end - 1] >= answer[1]:
            # The answer's tokens range from the last token that starts before it to the first token that ends after it.
            begin = int(np.searchsorted(firsts[start:end], answer[0], "right")) - 1
            # A token of one character may share it with the token before, which marks the beginning of the word.
            place = start + begin, start + max(begin, int(np.searchsorted(lasts[start:end], answer[1], "left")))
        yield Window(start, end, place)
        if end == len(offsets):
            return
        start += room - stride


def best(starts: Floats, ends: Floats, first: NDArray[np.int32], last: NDArray[np.int32], text: str) -> Answer:
    """The best span of a window: in the context, of at most `LONGEST` tokens, with one of the `BEST` starts and ends.

    Args:
        starts, ends: [tokens], the logits.
        first, last, text: the columns of these names, see `SpanHead`.
    """
    # A stable sort keeps equal values in their order.
    begins, finishes = (np.argsort(-logits, kind="stable")[:BEST] for logits in (starts, ends))
    scores = starts[begins][:, None] + ends[finishes][None, :]
    lengths = finishes[None, :] - begins[:, None] + 1
    allowed = (lengths >= 1) & (lengths <= LONGEST)
    allowed &= (first[begins] >= 0)[:, None] & (first[finishes] >= 0)[None, :]
    if not allowed.any():
        return NO_ANSWER
    row, column = np.unravel_index(np.argmax(np.where(allowed, scores, -np.inf)), scores.shape)
    return Answer(float(scores[row, column]), text[first[begins[row]] : last[finishes[column]]].strip())


def normalised(text: str) -> str:
    """An answer in the form in which SQuAD's evaluation compares answers.

    The form is lower case, without ASCII punctuation and English articles, with single spaces between words. XQuAD's
    evaluation uses it for all languages (Artetxe et al. 2020).
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def answer_outcome(predicted: str, *gold: str) -> list[float]:
    """The F1 over words and the exact match of a predicted answer, each the highest over the gold answers (Rajpurkar et
    al. 2016, section 6). All answers are normalised."""
    return [max(words_f1(predicted.split(), answer.split()) for answer in gold), float(predicted in gold)]


def words_f1(guess: Sequence[str], answer: Sequence[str]) -> float:
    """The F1 over the words of two answers; 0 if one of them has no words. All gold answers of SQuAD v1.1 have
    words."""
    shared = (Counter(guess) & Counter(answer)).total()
    return 2 * shared / (len(guess) + len(answer)) if shared else 0.0
