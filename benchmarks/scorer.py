"""The scores of a model on a test set, from the file of the test set to the number, without the library.

`score_cells.py` and a test hold the scores of cells against these.
"""

import bz2
import gzip
import json
import lzma
import re
import string
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from pyarrow import parquet

# A row of a test set: the values of its columns by name.
Row = dict[str, Any]
# Calls a model with its inputs, of one length each, the tokens of the first segment of each, and returns its output.
Forward = Callable[[dict[str, torch.Tensor], list[int]], Any]
# The tokens of a batch.
BATCH = 4096
OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
FILES_OF_WORDS = (".conllu", ".conll", ".iob2", ".txt", ".tsv")


class Task(NamedTuple):
    """The settings of a task on which the scores of a cell depend.

    Attributes:
        head: the name of the head.
        inputs: the columns that the encoder reads; `choices` is how many of them, at the end, are choices.
        target: the column of the answer.
        labels: the names of the labels in the order of the model's outputs.
        max_length, stride: as in the study.
        one_separator: the tokenizer puts two separators between two segments, and the study takes one.
        types: the model tells the second segment by its type.
    """

    head: str
    inputs: tuple[str, ...]
    target: str
    labels: Sequence[str]
    max_length: int
    choices: int = 0
    stride: int = 128
    one_separator: bool = False
    types: bool = False


class Input(NamedTuple):
    """Token ids for the encoder, and the number of those in the first segment, with the special tokens around it."""

    ids: list[int]
    context: int


# Test sets


def read_rows(path: Path, task: Task, columns: Sequence[str] = (), names: Mapping[str, str] = {}) -> list[Row]:
    """The rows of a file, with labels as names.

    Args:
        columns: the names of the columns of a file of words; () for those of its format.
        names: label in the file: label of the task. For the labels of spans, a type is translated, too.

    Raises:
        ValueError: the file is of another type.
    """
    kind = path.with_suffix("").suffix if path.suffix in OPENERS else path.suffix
    if kind == ".parquet":
        rows = parquet.read_table(path).to_pylist()
    else:
        with OPENERS.get(path.suffix, open)(path, "rb") as file:
            text = file.read().decode("utf-8-sig")
        if kind == ".jsonl":
            rows = [json.loads(line) for line in text.split("\n") if line.strip()]
        elif kind == ".json":
            rows = questions(json.loads(text))
        elif kind in FILES_OF_WORDS and task.head == "token":
            rows = sentences(text, kind, (task.inputs[0], task.target), columns)
        else:
            raise ValueError(f"{path} is of a type that is not read here")
    for row in rows:
        if task.head == "token":
            row[task.target] = [label_of(label, task.labels, names) for label in row[task.target]]
        elif task.head != "span":
            row[task.target] = label_of(row[task.target], task.labels, names)
    return rows


def sentences(text: str, kind: str, named: tuple[str, str], columns: Sequence[str]) -> list[Row]:
    """The sentences of a file with a word on each line: CoNLL-U, or columns between tabs or spaces."""
    is_conllu, has_tabs, rows = kind == ".conllu", "\t" in text, []
    for block in re.split(r"\n[ \t\r]*\n", text):
        words = []
        for line in block.split("\n"):
            line = line.rstrip("\r") if is_conllu else line.rstrip("\r \t")
            fields = line.split("\t") if "\t" in line else re.split(" +", line)
            is_comment = line.startswith("#") and (is_conllu or (has_tabs and "\t" not in line))
            if not line.strip() or is_comment or line.startswith("-DOCSTART-"):
                continue
            # Ranges of words (3-4) and empty nodes (3.1) of CoNLL-U are no words.
            if not is_conllu or fields[0].isdecimal():
                words.append(fields)
        if words:
            places = (1, 3) if is_conllu else (0, -1)
            if columns:
                places = (columns.index(named[0]), columns.index(named[1]))
            rows.append({name: [fields[place] for fields in words] for name, place in zip(named, places, strict=True)})
    return rows


def questions(squad: Any) -> list[Row]:
    """The questions of SQuAD's json."""
    return [
        {
            "question": question["question"],
            "context": paragraph["context"],
            "answers": {"text": [answer["text"] for answer in question["answers"]]},
        }
        for article in squad["data"]
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    ]


def label_of(label: Any, labels: Sequence[str], names: Mapping[str, str]) -> str:
    """The task's name of a label in a file, which is a name or a number."""
    text = str(label).lower() if isinstance(label, bool | np.bool_) else str(label)
    prefix, _, kind = text.partition("-")
    if text in names:
        text = names[text]
    elif len(prefix) == 1 and kind in names:
        text = "O" if names[kind] == "O" else f"{prefix}-{names[kind]}"
    return text if text in labels or not text.isdecimal() else labels[int(text)]


# Inputs


def pieces_of(words: Sequence[str], tokenizer: Any) -> list[list[int]]:
    """The token ids of each word of a sentence; those of a word that the tokenizer drops are the unknown token."""
    has_spaces = tokenizer.tokenize("a a") != 2 * tokenizer.tokenize("a")
    alone = [[f" {word}" if has_spaces and number and word else word] for number, word in enumerate(words)]
    if not alone:
        return []
    ids = tokenizer(alone, is_split_into_words=True, add_special_tokens=False, verbose=False)["input_ids"]
    return [list(each) or [tokenizer.unk_token_id] for each in ids]


def windows(words: Sequence[str], tokenizer: Any, max_length: int) -> list[tuple[Input, list[int]]]:
    """Inputs with whole words, each word in one of them, and the places of the first tokens of their words."""
    inside = tokenizer("a b", add_special_tokens=False)["input_ids"]
    whole = tokenizer("a b")["input_ids"]
    begin = next(at for at in range(len(whole)) if whole[at : at + len(inside)] == inside)
    before, after = whole[:begin], whole[begin + len(inside) :]
    room = max_length - len(before) - len(after)
    filled: list[tuple[list[int], list[int]]] = [([], [])]
    for ids in pieces_of(words, tokenizer):
        if len(filled[-1][0]) + min(len(ids), room) > room:
            filled.append(([], []))
        filled[-1][1].append(len(before) + len(filled[-1][0]))
        filled[-1][0].extend(ids[:room])
    inputs = [([*before, *ids, *after], firsts) for ids, firsts in filled]
    return [(Input(ids, len(ids)), firsts) for ids, firsts in inputs]


def cut(first: str, second: str | None, tokenizer: Any, task: Task) -> Input:
    """The input of one or two texts, of which the first one is cut."""
    texts = [first] if second is None else [first, second]
    [encoding] = tokenizer(*texts, truncation="only_first", max_length=task.max_length).encodings
    return separated(encoding.ids, context_of(encoding.sequence_ids), tokenizer, task)


def context_of(segments: Sequence[int | None]) -> int:
    """The tokens up to the special token after the first segment; where no special token follows it, up to its end."""
    last = max((at for at, segment in enumerate(segments) if segment == 0), default=0)
    return last + 2 if last + 1 < len(segments) and segments[last + 1] is None else last + 1


def separated(ids: list[int], context: int, tokenizer: Any, task: Task) -> Input:
    has_second = context < len(ids) - 1 and ids[context] == ids[context - 1] == tokenizer.sep_token_id
    return Input(ids[:context] + ids[context + 1 :] if task.one_separator and has_second else ids, context)


def outputs(inputs: Sequence[Input], forward: Forward, task: Task) -> list[tuple[torch.Tensor, ...]]:
    """The logits of each input: of its tokens, of its labels, or of starts and of ends."""
    logits: list[Any] = [None] * len(inputs)
    order = sorted(range(len(inputs)), key=lambda number: len(inputs[number].ids))
    for length, group in groupby(order, key=lambda number: len(inputs[number].ids)):
        numbers, size = list(group), max(1, BATCH // length)
        for start in range(0, len(numbers), size):
            part = numbers[start : start + size]
            ids = torch.tensor([inputs[number].ids for number in part])
            contexts = [inputs[number].context for number in part]
            tensors = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
            if task.types:
                tensors["token_type_ids"] = (torch.arange(length) >= torch.tensor(contexts)[:, None]).long()
            if task.choices:
                tensors = {name: tensor[:, None] for name, tensor in tensors.items()}
            with torch.inference_mode():
                output = forward(tensors, contexts)
            both = (output.start_logits, output.end_logits) if task.head == "span" else (output.logits,)
            for at, number in enumerate(part):
                logits[number] = tuple(each[at].float().cpu() for each in both)
    return logits


# Scores


def scores(rows: Sequence[Row], tokenizer: Any, forward: Forward, task: Task) -> dict[str, float]:
    """The scores of a model on a test set, in percent."""
    return HEADS[task.head](rows, tokenizer, forward, task)


def words_scores(rows: Sequence[Row], tokenizer: Any, forward: Forward, task: Task) -> dict[str, float]:
    """Accuracy over all words or, of the labels of spans, seqeval's F1."""
    parts = [windows(row[task.inputs[0]], tokenizer, task.max_length) for row in rows]
    logits = iter(outputs([of_window for part in parts for of_window, _ in part], forward, task))
    gold = [list(row[task.target]) for row in rows]
    predicted = [
        [task.labels[int(number)] for _, firsts in part for number in next(logits)[0][firsts].argmax(-1)]
        for part in parts
    ]
    assert [*map(len, gold)] == [*map(len, predicted)], "each word has a label and a prediction"
    if any(label.startswith(("B-", "I-")) for label in task.labels):
        from seqeval.metrics import f1_score

        return {"f1": 100 * float(f1_score(gold, predicted))}
    pairs = [pair for sentence in zip(gold, predicted, strict=True) for pair in zip(*sentence, strict=True)]
    return {"accuracy": 100 * sum(first == second for first, second in pairs) / len(pairs)}


def labels_scores(rows: Sequence[Row], tokenizer: Any, forward: Forward, task: Task) -> dict[str, float]:
    """The share of rows whose label is right: one of the model's outputs, or one of several choices."""
    inputs = []
    for row in rows:
        texts = [row[name] for name in task.inputs]
        if task.choices:
            context = " ".join(texts[: -task.choices])
            inputs += [cut(context, choice, tokenizer, task) for choice in texts[-task.choices :]]
        else:
            inputs.append(cut(texts[0], texts[1] if len(texts) > 1 else None, tokenizer, task))
    logits = torch.stack([each for (each,) in outputs(inputs, forward, task)]).view(len(rows), -1)
    right = [task.labels[int(row)] for row in logits.argmax(-1)]
    return {
        "accuracy": 100 * sum(row[task.target] == label for row, label in zip(rows, right, strict=True)) / len(rows)
    }


def answers_scores(rows: Sequence[Row], tokenizer: Any, forward: Forward, task: Task) -> dict[str, float]:
    """F1 of words and exact match, as SQuAD's evaluation has them."""
    inputs, offsets, of_row = [], [], []
    for number, row in enumerate(rows):
        texts = row[task.inputs[0]].lstrip(), row[task.inputs[1]]
        encoded = tokenizer(*texts, return_offsets_mapping=True, return_overflowing_tokens=True, verbose=False)
        if len(encoded["input_ids"][0]) > task.max_length:
            room = {"truncation": "only_second", "max_length": task.max_length, "stride": task.stride}
            encoded = tokenizer(*texts, **room, return_offsets_mapping=True, return_overflowing_tokens=True)
        for encoding, places in zip(encoded.encodings, encoded["offset_mapping"], strict=True):
            segments = encoding.sequence_ids
            inputs.append(Input(encoding.ids, context_of(segments)))
            offsets.append([place if segment == 1 else None for place, segment in zip(places, segments, strict=True)])
            of_row.append(number)
    best = [(-np.inf, "")] * len(rows)
    for number, places, (starts, ends) in zip(of_row, offsets, outputs(inputs, forward, task), strict=True):
        for score, (start, end) in spans(starts.tolist(), ends.tolist(), places):
            if score > best[number][0]:
                best[number] = score, rows[number][task.inputs[1]][start:end].strip()
    f1, matches = 0.0, 0.0
    for (_, answer), row in zip(best, rows, strict=True):
        gold = [plain(text) for text in row[task.target]["text"]]
        f1 += max(overlap(plain(answer), text) for text in gold)
        matches += plain(answer) in gold
    return {"squad-f1": 100 * f1 / len(rows), "squad-em": 100 * matches / len(rows)}


def spans(
    starts: list[float], ends: list[float], places: list[tuple[int, int] | None]
) -> Iterator[tuple[float, tuple[int, int]]]:
    """The score and the characters of spans of at most 30 tokens of the context, from the 20 best starts to the 20 best ends."""
    firsts, lasts = (sorted(range(len(places)), key=lambda at: -logits[at])[:20] for logits in (starts, ends))
    for first in firsts:
        for last in lasts:
            begin, end = places[first], places[last]
            if begin and end and first <= last < first + 30:
                yield starts[first] + ends[last], (begin[0], end[1])


def plain(text: str) -> str:
    """An answer without case, punctuation and English articles."""
    kept = "".join(character for character in text.lower() if character not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", kept).split())


def overlap(first: str, second: str) -> float:
    common = sum((Counter(first.split()) & Counter(second.split())).values())
    return 2 * common / (len(first.split()) + len(second.split())) if common else 0.0


HEADS = {"token": words_scores, "sequence": labels_scores, "choice": labels_scores, "span": answers_scores}
