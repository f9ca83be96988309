"""Tokens of a task's data, made once per task, language and tokenizer, and read by every run."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.base.files import whole
from xlgrid.data.encoders import check_encoder
from xlgrid.data.formats import read_table
from xlgrid.heads.encoding import Encoding
from xlgrid.tasks import Columns, task

if TYPE_CHECKING:
    import pyarrow as pa

# The examples that are encoded at once.
BATCH = 2000
# The tokens that two windows of a context share, as in BERT's run_squad.py.
STRIDE = 128


def tokenize(
    data: str | Path,
    encoder: str | Path,
    kind: str,
    max_length: int,
    out: str | Path,
    one_separator: bool = False,
    stride: int = STRIDE,
    columns: Columns | Mapping[str, Any] | None = None,
) -> None:
    """Tokenise one split of a task's data into an Arrow IPC file, which `xlgrid.data.batches.read` opens.

    The rows are the examples in the order of the data, or their windows. The columns are `input_ids`, list<int32>, special
    tokens included; `context_length`, int32, the tokens of the first segment with the special token before it and the one
    after it; those of the task's head (`Head.fields`); `example`, int32, the number of each row's example, where examples
    have several rows; and `depth`, int32, where the data have it. For heads with several inputs in a row, the first two are
    lists of these types.

    The metadata, JSON under the key `xlgrid`, have the number of inputs that were cut, or of examples that were split into
    windows (`truncated`), and the number of words without a token (`lost_words`).

    Args:
        kind: a key of `xlgrid.tasks.TASKS`, or a head.
        max_length: the most tokens of an input, special tokens included.
        one_separator, stride: see `xlgrid.heads.encoding.Encoding`.
        columns: the columns of a task that is described by its head.

    Raises:
        FileNotFoundError: the data or the encoder is missing.
        ValueError: either is damaged, the data do not fit the task, or `max_length` leaves no room.
    """
    import pyarrow as pa

    described = task(kind, columns)
    head, choices = described.head, len(described.choices)
    table = read_table(data)
    described.check(table, str(data))
    tokenizer = load_tokenizer(encoder)
    if max_length > (most := room(encoder, tokenizer)):
        raise ValueError(
            f"max_length {max_length} is more than the {most} tokens that {encoder} takes: lower it in the study"
        )
    encoding = Encoding(tokenizer, max_length, one_separator, stride)
    batches = []
    for start in range(0, table.num_rows, BATCH):
        columns = head.encode(table.slice(start, BATCH), described, encoding)
        columns["example"] = [start + number for number in columns.get("example", range(len(columns["input_ids"])))]
        batches.append(columns)
    fields = head.fields()
    if sum(len(columns["example"]) for columns in batches) > table.num_rows and not _has(fields, "example"):
        fields.append(pa.field("example", pa.int32()))
    if "depth" in table.column_names:
        fields.append(pa.field("depth", pa.int32()))
        depths = table["depth"].to_pylist()
        for columns in batches:
            columns["depth"] = [depths[example] for example in columns["example"]]
    about = {
        "task": kind,
        "labels": list(described.labels),
        "head": head.name,
        "pad_id": tokenizer.pad_token_id,
        "max_length": max_length,
        "rows": table.num_rows,
        "truncated": encoding.truncated,
        "lost_words": encoding.lost_words,
    }
    if choices:
        about["choices"] = choices
    if encoding.truncated:
        change = "examples were split into windows of" if _has(fields, "example") else "inputs were cut to"
        print(
            f"{data}: {encoding.truncated} of {table.num_rows * max(1, choices)} {change} {max_length} tokens; "
            "raise max_length to keep them whole",
            file=sys.stderr,
        )
    if encoding.lost_words:
        print(f"{data}: {encoding.lost_words} words have no token, and are not scored", file=sys.stderr)
    with whole(out) as aside, TokensFile(aside, fields, about) as file:
        for columns in batches:
            file.write(columns)


def load_tokenizer(encoder: str | Path) -> Any:
    """The tokenizer of an encoder's folder.

    Raises:
        FileNotFoundError: the encoder is missing.
        ValueError: the encoder is damaged, or has no fast tokenizer.
    """
    from transformers import AutoTokenizer

    check_encoder(encoder)
    tokenizer = AutoTokenizer.from_pretrained(str(encoder), use_fast=True)
    if not tokenizer.is_fast:
        raise ValueError(f"{encoder} has no tokenizer.json, which the alignment of words and tokens needs")
    return tokenizer


def room(encoder: str | Path, tokenizer: Any) -> int:
    """The most tokens that an encoder takes, special tokens included."""
    config = json.loads((Path(encoder) / "config.json").read_text(encoding="utf-8"))
    most: int = config.get("max_position_embeddings", tokenizer.model_max_length)
    # The families of RoBERTa count positions from the padding id + 1.
    return most - (tokenizer.pad_token_id + 1) * ("roberta" in config["model_type"])


class TokensFile:
    """A tokens file that is being written: `input_ids`, `context_length`, and further columns.

    Args:
        about: the metadata; `choices` in it makes the first two columns lists of their types.
    """

    def __init__(self, path: Path, fields: Sequence["pa.Field"], about: Mapping[str, Any]) -> None:
        import pyarrow as pa

        types = {"input_ids": pa.list_(pa.int32()), "context_length": pa.int32()}
        inputs = [pa.field(name, pa.list_(kind) if "choices" in about else kind) for name, kind in types.items()]
        self.schema = pa.schema([*inputs, *fields], metadata={b"xlgrid": json.dumps(about).encode()})
        self.writer = pa.ipc.new_file(str(path), self.schema)

    def __enter__(self) -> "TokensFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.writer.close()

    def write(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """Add rows, as one record batch."""
        import pyarrow as pa

        arrays = [pa.array(columns[field.name], field.type) for field in self.schema]
        self.writer.write_batch(pa.record_batch(arrays, schema=self.schema))


def _has(fields: Sequence["pa.Field"], name: str) -> bool:
    return any(field.name == name for field in fields)
