"""Tokens of text for masked language modelling, in memory that does not grow with the text."""

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Literal

from xlgrid.base.files import whole
from xlgrid.data.formats import read_text, rows
from xlgrid.data.streams import Progress
from xlgrid.data.tokenize import BATCH, TokensFile, load_tokenizer, room
from xlgrid.heads.encoding import Encoding
from xlgrid.tasks import TASKS
from xlgrid.tasks.mlm import DEV_INPUTS

# One row of the text in so many is for the dev set.
DEV_EVERY = 50
# The characters of text that are tokenised at once.
CHARACTERS = 2**20
# The token ids of an input, and the number of those in the first segment.
Input = tuple[list[int], int]


def tokenize_text(
    texts: list[str | Path],
    encoder: str | Path,
    train: str | Path,
    dev: str | Path,
    one_separator: bool = False,
    documents: Literal["cut", "split"] = "cut",
    max_length: int | None = None,
    dev_inputs: int = DEV_INPUTS,
) -> None:
    """Tokenise one text, or the parallel texts of a pair side by side, for masked language modelling.

    The columns are `input_ids` and `context_length`, as `xlgrid.data.tokenize.tokenize` writes them. Every `DEV_EVERY`th row
    is for `dev`, with all of its inputs, unless `dev` would then have more than `dev_inputs` inputs: such a row goes to
    `train`. Long work reports its progress on stderr.

    Args:
        texts: one or two files with the columns `id` and `text`; rows of one id mean the same.
        one_separator: see `xlgrid.heads.encoding.Encoding`.
        documents: "cut" makes one input of a row and drops the tokens that do not fit; "split" makes as many inputs of a
            row of one text as its tokens need, and leaves out rows without tokens.
        max_length: the most tokens of an input, special tokens included; None for the most that the encoder takes.

    Raises:
        FileNotFoundError: a text or the encoder is missing.
        ValueError: one of them is damaged, two texts have too few ids in common, `max_length` is more than the encoder
            takes or leaves no room, or no row for `dev` fits.
    """
    tokenizer = load_tokenizer(encoder)
    most, special = room(encoder, tokenizer), tokenizer.num_special_tokens_to_add(pair=len(texts) > 1)
    if max_length and not special + len(texts) <= max_length <= most:
        raise ValueError(
            f"max_length {max_length} does not fit: {encoder} takes {most} tokens, of which {special} are special; "
            "change it in the study's task"
        )
    encoding = Encoding(tokenizer, max_length or most, one_separator, split=documents == "split")
    about = {
        "labels": [],
        "head": TASKS["mlm"].head.name,
        "pad_id": tokenizer.pad_token_id,
        "mask_id": tokenizer.mask_token_id,
        "special_ids": tokenizer.all_special_ids,
        "vocabulary": len(tokenizer),
    }
    names = " and ".join(map(str, texts))
    progress = Progress()
    number = 0
    text_rows = rows(texts[0], ("text", "id")) if len(texts) == 1 else _paired(texts)
    with closing(text_rows), whole(dev) as dev_path, whole(train) as train_path:
        with TokensFile(dev_path, [], about) as dev_file, TokensFile(train_path, [], about) as train_file:
            held_out, trained = _Buffer(dev_file), _Buffer(train_file)
            for batch in _batches(row[: len(texts)] for row in text_rows):
                for inputs in _encoded(batch, encoding):
                    fits = number % DEV_EVERY == 0 and held_out.count + len(inputs) <= dev_inputs
                    (held_out if fits else trained).add(inputs)
                    number += 1
                if progress.due():
                    progress.say(f"{texts[0]}: {number:,} rows, {held_out.count + trained.count:,} inputs")
            held_out.flush()
            trained.flush()
        if number < 2 and len(texts) > 1:
            raise ValueError(f"{names} have {number} ids in common: make them with one setting")
        if number < 2:
            raise ValueError(
                f"{names} has {number} rows with text: it takes two, one of them to choose checkpoints with"
            )
        if not held_out.count:
            raise ValueError(
                f"{names}: none of the rows to choose checkpoints with has as few as {dev_inputs} inputs: raise dev_inputs"
            )
    if encoding.truncated:
        advice = "" if len(texts) > 1 else "; `documents: split` in the study's text keeps them whole"
        progress.say(
            f"{names}: {encoding.truncated:,} of {number:,} rows were cut to {encoding.max_length} tokens{advice}"
        )


class _Buffer:
    """Inputs on their way into a tokens file; `count` is the number of all that were added."""

    def __init__(self, file: TokensFile) -> None:
        self.file, self.count = file, 0
        self.waiting: list[Input] = []

    def add(self, inputs: list[Input]) -> None:
        self.count += len(inputs)
        for entry in inputs:
            self.waiting.append(entry)
            if len(self.waiting) == BATCH:
                self.flush()

    def flush(self) -> None:
        if self.waiting:
            ids, contexts = zip(*self.waiting, strict=True)
            self.file.write({"input_ids": ids, "context_length": contexts})
        self.waiting = []


def _paired(texts: list[str | Path]) -> Generator[tuple[str, ...], None, None]:
    """The texts of each id that all files have, in the order of the first file."""
    by_id = [read_text(path) for path in texts]
    return (tuple(text[number] for text in by_id) for number in by_id[0] if all(number in text for text in by_id))


def _batches(text_rows: Iterable[tuple[str, ...]]) -> Iterator[list[tuple[str, ...]]]:
    """Lists of rows that are small enough to tokenise at once."""
    batch: list[tuple[str, ...]] = []
    size = 0
    for row in text_rows:
        batch.append(row)
        size += sum(map(len, row))
        if len(batch) == BATCH or size >= CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _encoded(batch: list[tuple[str, ...]], encoding: Encoding) -> Iterator[list[Input]]:
    """The inputs of each row that has any."""
    import pyarrow as pa

    task = TASKS["mlm"]
    if len(batch[0]) > 1:
        task = replace(task, inputs=tuple(f"{task.inputs[0]}{number + 1}" for number in range(len(batch[0]))))
    table = pa.table(dict(zip(task.inputs, map(list, zip(*batch, strict=True)), strict=True)))
    columns = task.head.encode(table, task, encoding)
    inputs = zip(columns["example"], columns["input_ids"], columns["context_length"], strict=True)
    for _, group in groupby(inputs, key=lambda entry: entry[0]):
        yield [(ids, context) for _, ids, context in group]
