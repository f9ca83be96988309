"""The head `token`, which predicts a label for each word."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xlgrid.base.arrays import Ints
from xlgrid.base.names import unknown
from xlgrid.heads.classification import confusion
from xlgrid.heads.encoding import IGNORED, Encoding
from xlgrid.heads.entities import SPAN_METRICS, WORD_METRICS, types
from xlgrid.heads.head import Evaluated, Example, Head, TaskColumns, written
from xlgrid.heads.metrics import Metric, Outcome
from xlgrid.heads.schemes import Scheme, scheme_of
from xlgrid.heads.tokens import Tokens

if TYPE_CHECKING:
    import pyarrow as pa
    import torch
    from transformers import PreTrainedModel


class Words(NamedTuple):
    """The label numbers of the words in a row."""

    gold: list[int]
    predicted: list[int]


class TokenHead(Head):
    """A label for each word of a list of words.

    The target is a list with a label number for each word. The first token of a word has the word's label, and the
    other tokens have no label. A long sentence becomes several windows of whole words without overlap, as in the
    preprocessing of XTREME (Hu et al. 2020), so that each word is scored once. The head has no pairs of languages.

    An outcome is `[gold, predicted]`, two lists with the label numbers of the words of a sentence. If the labels follow
    a tagging scheme (`xlgrid.heads.schemes`), the metrics are those of spans, otherwise those of words.
    """

    name = "token"
    model_suffix = "TokenClassification"
    modules = ("classifier",)
    all_metrics: ClassVar[tuple[Metric, ...]] = (*SPAN_METRICS, *WORD_METRICS)
    token_columns = ("labels",)
    output_per_label = True
    reads_words = True

    def problems(self, task: TaskColumns) -> list[str]:
        problems = super().problems(task)
        try:
            scheme_of(task.labels)
        except ValueError as error:
            problems.append(f"`labels`: {error}")
        return problems

    def labelled(
        self, target: "pa.ChunkedArray", task: TaskColumns, names: Mapping[str, str]
    ) -> "pa.ChunkedArray | pa.Array":
        """The target column as lists of label numbers. The source may have numbers or names, with or without
        translation.

        If the labels of the task follow a tagging scheme, the name of a type translates all labels of this type:
        `OTH: O` translates B-OTH and I-OTH to O, and `PERSON: PER` translates B-PERSON to B-PER and I-PERSON to I-PER.
        """
        import pyarrow as pa

        is_list = pa.types.is_list(target.type) or pa.types.is_large_list(target.type)
        if not is_list or (pa.types.is_integer(target.type.value_type) and not names):
            return target
        numbers = {str(number): number for number in range(len(task.labels))}
        numbers |= {label: number for number, label in enumerate(task.labels)}
        scheme = scheme_of(task.labels)
        rows = [
            None if labels is None else [_translated(label, names, scheme) for label in map(written, labels)]
            for labels in target.to_pylist()
        ]
        if all(label in numbers for labels in rows for label in labels or ()):
            numbered = [None if labels is None else [numbers[label] for label in labels] for labels in rows]
            return pa.array(numbered, pa.list_(pa.int64()))
        return pa.array(rows, pa.list_(pa.string()))

    def label_names(self, task: TaskColumns) -> tuple[str, ...]:
        return (*task.labels, *types(task.labels))

    def texts(self, task: TaskColumns) -> Sequence[str]:
        """No columns, because words are in lists, which `check` checks."""
        return ()

    def check(self, table: "pa.Table", task: TaskColumns, where: str, first_row: int = 1) -> None:
        import pyarrow as pa

        super().check(table, task, where, first_row)
        for column in (task.inputs[0], *filter(None, [task.target])):
            kind = table.schema.field(column).type
            if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
                raise ValueError(
                    f"{where}, column {column!r} is of type {kind}: expected a list with one value per word"
                )
        for row, words in enumerate(table[task.inputs[0]].to_pylist(), start=first_row):
            for number, word in enumerate(words, start=1):
                if not isinstance(word, str):
                    got = "nothing" if word is None else repr(word)
                    raise ValueError(
                        f"{where}, row {row}, column {task.inputs[0]!r}, word {number}: must be a text, got {got}"
                    )
        if not task.target:
            return
        columns = (table[column].to_pylist() for column in (task.inputs[0], task.target))
        names = {*task.labels, *map(str, range(len(task.labels)))}
        first_name = None
        for row, (words, labels) in enumerate(zip(*columns, strict=True), start=first_row):
            if len(words) != len(labels):
                raise ValueError(
                    f"{where}, row {row}: {len(words)} values in {task.inputs[0]!r} but {len(labels)} in "
                    f"{task.target!r}; give each word one value"
                )
            for word, label in zip(words, labels, strict=True):
                if isinstance(label, int) and 0 <= label < len(task.labels):
                    continue
                place = f"{where}, row {row}, column {task.target!r}, word {word!r}"
                # If `labelled` does not know one of the labels, it leaves all of them as names.
                if label not in names:
                    raise ValueError(f"{place}: {_unknown(label, task)}")
                first_name = first_name or f"{place}: expected the number of the label {label!r}; fetch the data again"
        if first_name:
            raise ValueError(first_name)

    def remarks(self, table: "pa.Table", task: TaskColumns) -> list[str]:
        scheme = scheme_of(task.labels)
        if not task.target:
            return []
        if scheme is None:
            return _types_alone(task.labels) if self.metric(task.labels).name == "accuracy" else []
        sentences = [[task.labels[number] for number in numbers] for numbers in table[task.target].to_pylist()]
        if scheme.is_strict:
            return _outside_of_spans(sentences, scheme)
        return _begun_inside(sentences, scheme) if scheme.name == "IOB" else []

    def label_counts(self, table: "pa.Table", task: TaskColumns) -> Counter[str]:
        """The number of words with each label."""
        return Counter(task.labels[number] for numbers in table[task.target].to_pylist() for number in numbers)

    def parallel(self, task: TaskColumns) -> str:
        """No column, because translations have different words with different labels."""
        return ""

    def fields(self) -> list["pa.Field"]:
        import pyarrow as pa

        return [pa.field("labels", pa.list_(pa.int64())), pa.field("example", pa.int32())]

    def encode(self, table: "pa.Table", task: TaskColumns, encoding: Encoding) -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = {name: [] for name in ("input_ids", "context_length", "labels", "example")}
        sentences = zip(encoding.words(table[task.inputs[0]].to_pylist()), table[task.target].to_pylist(), strict=True)
        for example, ((ids, word_of), word_labels) in enumerate(sentences):
            labels = [
                IGNORED if word is None or word == before else word_labels[word]
                for before, word in zip([None, *word_of], word_of, strict=False)
            ]
            pieces = windows(word_of, encoding.max_length)
            encoding.truncated += len(pieces) > 1
            for piece in pieces:
                columns["input_ids"].append([ids[at] for at in piece])
                columns["context_length"].append(len(piece))
                columns["labels"].append([labels[at] for at in piece])
                columns["example"].append(example)
        return columns

    def batch_labels(self, tokens: Tokens, rows: Ints, arrays: Mapping[str, np.ndarray], positions: Ints) -> np.ndarray:
        labels = np.full(arrays["input_ids"].shape, IGNORED, np.int64)
        labels[arrays["attention_mask"] == 1] = tokens.token_columns["labels"][positions]
        return labels

    def predict(
        self, model: "PreTrainedModel", batch: dict[str, "torch.Tensor"], tokens: Tokens, rows: Ints
    ) -> list[Words]:
        import torch

        logits, _ = self.scores(model, batch)
        labels = batch["labels"]
        # One copy from a GPU, not several for each sentence.
        both = torch.stack([labels, logits.argmax(-1).view_as(labels)]).cpu().numpy()
        return [
            Words(gold[gold != IGNORED].tolist(), guess[gold != IGNORED].tolist())
            for gold, guess in zip(*both, strict=True)
        ]

    def outcomes(self, tokens: Tokens, answers: Sequence[Words]) -> list[Outcome]:
        """The outcome of each sentence. The words of its windows are joined first, because a span may cross windows."""
        return [[*words] for words in sentences(tokens, answers)]

    def chance(self, tokens: Tokens) -> dict[str, float]:
        """The scores if the most frequent label is predicted for all words."""
        labels = tokens.token_columns["labels"]
        if not (labels != IGNORED).any():
            return {}
        majority = int(np.bincount(labels[labels != IGNORED]).argmax())
        rows = [row[row != IGNORED].tolist() for row in np.split(labels, tokens.offsets[1:-1])]
        outcomes = self.outcomes(tokens, [Words(row, [majority] * len(row)) for row in rows])
        metrics = self.metrics(tokens.label_names)
        return {each.name: score for each in metrics if (score := each.score(outcomes)) or each.is_listed}

    def counts(self, tokens: Tokens, outcomes: Sequence[Outcome]) -> dict[str, int]:
        return {"words": int((tokens.token_columns["labels"] != IGNORED).sum())}

    def metrics(self, labels: Sequence[str]) -> tuple[Metric, ...]:
        scheme = scheme_of(tuple(labels))
        metrics = SPAN_METRICS if scheme else WORD_METRICS
        named = tuple(each for metric in metrics for each in metric.of(labels))
        of_scheme = f"; labels are {scheme.description}" if scheme else ""
        return tuple(replace(each, implementation=each.implementation + of_scheme) for each in named)

    def examples(self, seen: Evaluated) -> list[Example]:
        """The labels of the words of each sentence, separated by spaces. A word without a token has no label."""
        texts = ([" ".join(seen.labels[at] for at in side) for side in outcome] for outcome in seen.outcomes)
        return seen.rows((gold, predicted, gold == predicted) for gold, predicted in texts)

    def confusion(self, labels: Sequence[str], outcomes: Sequence[Any]) -> NDArray[np.int64] | None:
        return confusion((pair for sides in outcomes for pair in zip(*sides, strict=True)), len(labels))


def sentences(tokens: Tokens, predictions: Sequence[Words]) -> list[Words]:
    """The words of each sentence, joined from its windows, in the order of the sentences."""
    sentences: dict[int, Words] = {}
    for example, words in zip(tokens.example_of.tolist(), predictions, strict=True):
        sentence = sentences.setdefault(example, Words([], []))
        sentence.gold.extend(words.gold)
        sentence.predicted.extend(words.predicted)
    return [words for _, words in sorted(sentences.items())]


def windows(word_of: Sequence[int | None], max_length: int) -> list[list[int]]:
    """The positions of the tokens of each window over a sentence. Every word begins in exactly one window.

    A window ends before the first word that does not fit, and has the special tokens of the sentence around it. A word
    that does not fit in a separate window loses its last tokens.

    Args:
        word_of: the word number of each token; None for special tokens.
        max_length: the maximum number of tokens of a window, special tokens included.

    Raises:
        ValueError: the special tokens leave no room for a word.
    """
    if len(word_of) <= max_length:
        return [list(range(len(word_of)))]
    inside = [at for at, word in enumerate(word_of) if word is not None]
    before, after = list(range(inside[0])), list(range(inside[-1] + 1, len(word_of)))
    room = max_length - len(before) - len(after)
    if room < 1:
        raise ValueError(f"max_length {max_length} leaves no room for a word beside the special tokens: raise it")
    pieces: list[list[int]] = [[]]
    for _, group in groupby(inside, key=lambda at: word_of[at]):
        word = list(group)[:room]
        if len(pieces[-1]) + len(word) > room:
            pieces.append([])
        pieces[-1] += word
    return [[*before, *piece, *after] for piece in pieces]


def _types_alone(labels: Sequence[str]) -> list[str]:
    """A remark on labels such as O, PER and LOC, which may be intended for spans."""
    others = [label for label in labels if not Scheme.is_outside(label)]
    if len(others) == len(labels):
        return []
    return [
        f"{', '.join(others[:3])} and the other labels do not say where a span begins or goes on, so that the metric "
        f"is the accuracy of words; for the F1 of spans, write I-{others[0]} and so on in `labels` of the task, and "
        "translate the labels by `labels` in `data`"
    ]


def _begun_inside(sentences: Sequence[Sequence[str]], scheme: Scheme) -> list[str]:
    """A remark on entities in IOB that begin with I-."""
    opened, free, total = 0, 0, 0
    for labels in sentences:
        tags = [scheme.tag(label) for label in labels]
        types = ["", *(tag.type for tag in tags)]
        for before, tag, begins in zip(types, tags, scheme.beginnings(labels), strict=False):
            total += begins
            opened += begins and tag.letter != "B"
            free += begins and tag.letter == "B" and before != tag.type
    if not opened:
        return []
    known = "as in IOB2, but these are not" if free else "as in IOB1, where B- only parts two neighbours of one type"
    return [
        f"{opened:,} of {total:,} entities begin with I-, not with B- ({known}); they count as entities, as seqeval "
        "and conlleval read them"
    ]


def _outside_of_spans(sentences: Sequence[Sequence[str]], scheme: Scheme) -> list[str]:
    """A remark on words that have the label of a span, but belong to no span by the rules of a strict scheme."""
    labelled = sum(scheme.tag(label).letter != "O" for labels in sentences for label in labels)
    names = [*dict.fromkeys(label for labels in sentences for label in labels)]
    numbers = np.array([names.index(label) for labels in sentences for label in labels], np.int64)
    example_of = np.repeat(np.arange(len(sentences)), [len(labels) for labels in sentences])
    spans = scheme.finder(names)(numbers, np.diff(example_of, prepend=-1) > 0)
    covered = int((spans.lasts + 1 - spans.firsts).sum())
    if covered == labelled:
        return []
    return [
        f"{labelled - covered:,} of {labelled:,} words with the label of an entity are in no whole entity of "
        f"{scheme.name}, which seqeval in its mode strict leaves out, and so does the F1 here: mend these labels, or "
        "write those of IOB2"
    ]


def _unknown(label: Any, task: TaskColumns) -> str:
    if isinstance(label, int):
        problem = f"{label} is not a number from 0 to {len(task.labels) - 1}, the labels"
    else:
        problem = unknown("label", label, task.labels)
    return f"{problem}; `labels` of the task lists its labels, and `labels` in `data` translates those of the source into them"


def _translated(label: str, names: Mapping[str, str], scheme: Scheme | None) -> str:
    """A label of the source translated to a label of the task, by its name or by its type; otherwise unchanged."""
    kind = scheme.type_of(label) if scheme else ""
    if scheme is None or label in names or kind not in names:
        return names.get(label, label)
    other = names[kind]
    return other if scheme.is_outside(other) else scheme.with_type(label, other)
