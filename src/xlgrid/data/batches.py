"""Open tokens files, mix them, and cut them into batches of a token budget. Everything is determined by seeds."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from xlgrid.base.arrays import Ints
from xlgrid.base.errors import Damaged, is_result
from xlgrid.heads import ALL_HEADS
from xlgrid.heads.head import Mix
from xlgrid.heads.tokens import Tokens, Vocabulary, joined, offsets_of
from xlgrid.heads.values import Values
from xlgrid.languages.sources import Target

# The first bytes of an Arrow file.
_ARROW = b"ARROW1"


def read(path: str | Path, code: str = "") -> Tokens:
    """Open a tokens file (Arrow IPC, memory-mapped).

    Args:
        code: the language or pair of languages of the file.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is truncated, or is not a tokens file.
    """
    import pyarrow as pa

    # The workflow may have written a damaged file itself.
    if not is_result(path) and _is_other(Path(path)):
        raise ValueError(f"{path} is not a tokens file: name a file that `xlgrid tokenize` has written")
    try:
        if not Path(path).stat().st_size:
            raise ValueError("it is empty")
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        about = json.loads(table.schema.metadata[b"xlgrid"])
        head = ALL_HEADS.find(about["head"])
        ids, contexts = table.column("input_ids").chunks, _array(table, "context_length")
        inputs_per_row = about.get("choices", 1)
        if inputs_per_row > 1:
            ids, contexts = [piece.flatten() for piece in ids], contexts.flatten()
        # DLPack is used because pyarrow's `to_numpy` imports pandas, which takes longer than loading the model.
        pieces = [np.from_dlpack(piece.flatten()).astype(np.int32, copy=False) for piece in ids]
        offsets = offsets_of([np.diff(_numbers(piece.offsets)) for piece in ids])
        row_columns = [name for name in table.column_names[2:] if name not in head.token_columns]
        codes = Target(code).languages if code else ("",)
        languages = tuple(dict.fromkeys(codes))
        segments = np.array([languages.index(code) for code in head.segment_languages(codes)], np.int16)
        columns = {name: _row_column(_array(table, name)) for name in row_columns}
        return Tokens(
            head=about["head"],
            label_names=tuple(about["labels"]),
            pad_id=about["pad_id"],
            values=pieces[0] if len(pieces) == 1 else Values(pieces),
            offsets=offsets,
            contexts=np.from_dlpack(contexts).astype(np.int32, copy=False),
            languages=languages,
            language_of=np.broadcast_to(head.language_of(segments, columns), (len(offsets) - 1, 2)),
            columns=columns,
            token_columns={name: np.from_dlpack(_array(table, name).flatten()) for name in head.token_columns},
            vocabulary=Vocabulary(about["vocabulary"], about["mask_id"], tuple(about["special_ids"])),
            inputs_per_row=inputs_per_row,
            options=about.get("options", {}),
        )
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path} does not exist: make it with `xlgrid tokenize`") from error
    except (pa.ArrowInvalid, OSError, KeyError, TypeError, ValueError) as error:
        raise Damaged(
            f"{path} is damaged or is not a tokens file ({error}): delete it and tokenize again", path
        ) from error


def _is_other(path: Path) -> bool:
    """Whether a path is a folder, or a file that does not begin like an Arrow file.

    An empty file may be a damaged tokens file.
    """
    if not path.is_file():
        return path.is_dir()
    with path.open("rb") as file:
        return file.read(len(_ARROW)) not in (_ARROW, b"")


def _numbers(array: Any) -> Ints:
    return np.from_dlpack(array).astype(np.int64)


def _array(table: Any, name: str) -> Any:
    """A column as one Arrow array."""
    column = table.column(name).combine_chunks()
    # `combine_chunks` of a column without rows returns a chunked array.
    return column if not hasattr(column, "chunks") else column.chunk(0)


def _row_column(array: Any) -> Any:
    """A column as a numpy array if it has numbers; a column of text or lists is returned unchanged."""
    import pyarrow as pa

    if pa.types.is_integer(array.type):
        return _numbers(array)
    return np.from_dlpack(array) if pa.types.is_floating(array.type) else array


def mix(parts: Sequence[Tokens], seed: int, way: Mix | None = None) -> Tokens:
    """Mix the data sets of several languages.

    With `shares`, each example is taken from one randomly chosen part. Example i must be the same example in every
    part, in another language. Of n examples and k parts, each part contributes n/k examples. With `whole`, the result
    has all rows of all parts, one part after another. The parts need not be translations.

    Args:
        seed: determines from which part each example is taken.
        way: `shares` or `whole`; None uses the default of the head (`Head.mixes`).

    Raises:
        ValueError: the parts differ in their labels or tokenizer or, with `shares`, in their number of examples.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    if len({(part.label_names, part.head, part.pad_id, part.vocabulary) for part in parts}) > 1:
        raise ValueError(
            "the parts of a mix differ in labels or tokenizer: tokenize them again with one encoder and task"
        )
    if (way or ALL_HEADS.find(first.head).mixes[0]) == "whole":
        return joined(_numbered_on(parts))
    if len({part.examples for part in parts}) > 1:
        raise ValueError(
            f"the parts of a mix have {', '.join(str(part.examples) for part in parts)} examples: a mix "
            "needs the same examples in each language, row by row; use parallel data, set `mix: whole` in the task to "
            "take all rows of each language, or train on each language separately"
        )
    order = np.random.default_rng([seed]).permutation(first.examples)
    part_of = np.empty(first.examples, np.int64)
    part_of[order] = np.arange(first.examples) % len(parts)
    chosen = [np.flatnonzero(part_of[part.example_of] == number) for number, part in enumerate(parts)]
    example_of = np.concatenate([part.example_of[rows] for part, rows in zip(parts, chosen, strict=True)])
    mixed = joined([part.take(rows) for part, rows in zip(parts, chosen, strict=True)])
    # This restores the order of the examples: example i of the mix is example i of its part.
    return mixed.take(np.argsort(example_of, kind="stable"))


def _numbered_on(parts: Sequence[Tokens]) -> list[Tokens]:
    """The parts with new numbers of examples, which continue from one part to the next, so that all numbers differ."""
    before = np.cumsum([0, *(part.examples for part in parts)])
    return [
        replace(part, columns={**part.columns, "example": part.columns["example"] + first})
        if "example" in part.columns
        else part
        for part, first in zip(parts, before.tolist(), strict=False)
    ]


def cut(lengths: Ints, rows: Ints, budget: int, most: int = sys.maxsize) -> list[Ints]:
    """Split `rows`, sorted by length, into batches of at most `most` rows and, padding included, `budget` tokens.

    A row that is longer than the budget is a batch of its own.
    """
    batches: list[Ints] = []
    start = 0
    # A loop over millions of rows is faster on a list than on an array.
    sizes = lengths[rows].tolist()
    for at in range(1, len(rows) + 1):
        if at == len(rows) or at - start == most or sizes[at] * (at - start + 1) > budget:
            batches.append(rows[start:at])
            start = at
    return batches
