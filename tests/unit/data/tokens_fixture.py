"""Files of tokens for tests, and batches of them."""

import json
from pathlib import Path

import pyarrow as pa
import torch

from xlgrid.base.arrays import Ints
from xlgrid.heads import HEADS
from xlgrid.heads.tokens import Tokens


def write(
    path: Path,
    ids: list[list[int]],
    head: str = "sequence",
    depths: list[int] | None = None,
    contexts: list[int] | None = None,
    labels: list[int] | None = None,
    chunk: int = 7,
) -> Path:
    columns = {
        "input_ids": pa.array(ids, pa.list_(pa.int32())),
        "context_length": pa.array(contexts or [max(1, len(row) // 2) for row in ids], pa.int32()),
    }
    about = {"labels": ["a", "b", "c"], "head": head, "pad_id": 0}
    about |= {"mask_id": 4, "special_ids": [0, 2, 4], "vocabulary": 50}
    if head == "token":
        columns["labels"] = pa.array([[-100, *[t % 3 for t in row[1:]]] for row in ids], pa.list_(pa.int64()))
        columns["example"] = pa.array(range(len(ids)), pa.int32())
    elif not HEADS[head].is_pretrained:
        columns["label"] = pa.array(labels or [row[0] % 2 for row in ids], pa.int64())
    if depths is not None:
        columns["depth"] = pa.array(depths, pa.int32())
    table = pa.table(columns).replace_schema_metadata({"xlgrid": json.dumps(about)})
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=chunk)
    return path


def rows(count: int, start: int = 1) -> list[list[int]]:
    return [[start + i] * (2 + i * 7 % 11) for i in range(count)]


def ids(tokens: Tokens) -> list[list[int]]:
    return [tokens.values[a:b].tolist() for a, b in zip(tokens.offsets[:-1], tokens.offsets[1:], strict=True)]


def collate(tokens: Tokens, rows: Ints, token_types: bool = False) -> dict[str, torch.Tensor]:
    """The batch that the tokens' head makes of some rows."""
    return HEADS[tokens.head].collate(tokens, rows, token_types)
