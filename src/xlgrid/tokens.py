"""Tokenised data: made once per task, language and tokenizer, read by every run."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.data import read_table, read_text
from xlgrid.encoders import check_encoder
from xlgrid.files import whole
from xlgrid.tasks import Task, task

if TYPE_CHECKING:
    import pyarrow as pa

_IGNORED = -100  # the label of tokens that are not scored
# Of a text's rows, each of this number is for the dev set.
DEV_EVERY = 50
_BATCH = 2000


def tokenize(
    data: str | Path, encoder: str | Path, kind: str, max_length: int, out: str | Path, one_separator: bool = False
) -> None:
    """Tokenise one split of a task's data into an Arrow IPC file (`xlgrid.batches.read` opens it), one row per example, in the order of the data.

    Columns: `input_ids` list<int32>, specials included; `context_length` int32, the tokens of the first segment with
    the special before and the one after it (= len(input_ids) where there is one segment); `label` int64 for the
    sequence head or `labels` list<int64> for the token head, -100 for specials and all but the first piece of a word;
    `depth` int32 where the data have it. Inputs of more than `max_length` tokens lose the end of the context.

    With `one_separator`, XLM-R's inputs have one special token between two segments where its tokenizer puts two.

    The metadata say how many inputs were cut (`truncated`) and how many words have no token (`lost_words`).

    Raises:
        FileNotFoundError: there are no data, or no encoder.
        ValueError: either is damaged or not what the task needs, or `max_length` leaves no room for a question.
    """
    import pyarrow as pa
    from transformers import AutoTokenizer

    made = task(kind)
    table = read_table(data)
    made.check(table, str(data))
    check_encoder(encoder)
    tokenizer = AutoTokenizer.from_pretrained(str(encoder), use_fast=True)
    if not tokenizer.is_fast:
        raise ValueError(f"{encoder} has no tokenizer.json, which the alignment of words and tokens needs")
    if max_length > (most := room(encoder, tokenizer)):
        raise ValueError(
            f"max_length {max_length} is more than the {most} tokens that {encoder} takes: lower it in the study"
        )
    counts = {"truncated": 0, "lost_words": 0}
    fields = [pa.field("input_ids", pa.list_(pa.int32())), pa.field("context_length", pa.int32())]
    sequence = made.head == "sequence"
    fields.append(pa.field("label", pa.int64()) if sequence else pa.field("labels", pa.list_(pa.int64())))
    if "depth" in table.column_names:
        fields.append(pa.field("depth", pa.int32()))
    encode = _pairs if sequence else _words
    batches = []
    for start in range(0, table.num_rows, _BATCH):
        columns = encode(tokenizer, made, table.slice(start, _BATCH), max_length, counts)
        if one_separator:
            columns["input_ids"] = _separated_once(tokenizer, columns["input_ids"], columns["context_length"])
        arrays = [pa.array(columns[field.name], field.type) for field in fields]
        batches.append(pa.record_batch(arrays, schema=pa.schema(fields)))
    if counts["truncated"]:
        print(
            f"{data}: {counts['truncated']} of {table.num_rows} inputs were cut to {max_length} tokens; "
            "raise max_length to keep them whole",
            file=sys.stderr,
        )
    meta = {
        "task": kind,
        "labels": list(made.labels),
        "head": made.head,
        "pad_id": tokenizer.pad_token_id,
        "max_length": max_length,
        "rows": table.num_rows,
        **counts,
    }
    schema = pa.schema(fields, metadata={b"xlgrid": json.dumps(meta).encode()})
    with whole(out) as aside, pa.ipc.new_file(str(aside), schema) as writer:
        for batch in batches:
            writer.write_batch(batch.replace_schema_metadata(schema.metadata))


def tokenize_text(
    texts: list[str | Path], encoder: str | Path, train: str | Path, dev: str | Path, one_separator: bool = False
) -> None:
    """Tokenise text, or the parallel texts of a pair side by side, for masked language modelling.

    Columns as those of `tokenize`, without labels. Every `DEV_EVERY`th row is for `dev`. Inputs are cut to what the encoder takes.

    Args:
        texts: one or two files with the columns `id` and `text`; rows of one id mean the same.
        one_separator: as that of `tokenize`.

    Raises:
        FileNotFoundError: a text or the encoder is missing.
        ValueError: one is damaged, or two texts have too few ids in common.
    """
    import pyarrow as pa
    from transformers import AutoTokenizer

    check_encoder(encoder)
    tokenizer = AutoTokenizer.from_pretrained(str(encoder), use_fast=True)
    rows = [read_text(path) for path in texts]
    # A line break is for the mini encoders, which take what follows as a second segment.
    said = [
        [row[number].replace("\n", " ") for row in rows] for number in rows[0] if all(number in row for row in rows)
    ]
    if len(said) < 2:
        raise ValueError(f"{' and '.join(map(str, texts))} have {len(said)} ids in common: make them with one setting")
    meta = {
        "labels": [],
        "head": "mlm",
        "pad_id": tokenizer.pad_token_id,
        "mask_id": tokenizer.mask_token_id,
        "special_ids": tokenizer.all_special_ids,
        "vocabulary": len(tokenizer),
    }
    fields = [pa.field("input_ids", pa.list_(pa.int32())), pa.field("context_length", pa.int32())]
    schema = pa.schema(fields, metadata={b"xlgrid": json.dumps(meta).encode()})
    for out, chosen in ((dev, said[::DEV_EVERY]), (train, [one for i, one in enumerate(said) if i % DEV_EVERY])):
        with whole(out) as aside, pa.ipc.new_file(str(aside), schema) as writer:
            for start in range(0, len(chosen), _BATCH):
                segments = [list(column) for column in zip(*chosen[start : start + _BATCH], strict=True)]
                found = tokenizer(*segments, truncation=True, max_length=room(encoder, tokenizer))
                ids, contexts = found["input_ids"], [_context(one) for one in found.encodings]
                columns = [_separated_once(tokenizer, ids, contexts) if one_separator else ids, contexts]
                arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
                writer.write_batch(pa.record_batch(arrays, schema=schema))


def room(encoder: str | Path, tokenizer: Any) -> int:
    """The most tokens that an encoder takes, special ones included."""
    config = json.loads((Path(encoder) / "config.json").read_text(encoding="utf-8"))
    most: int = config.get("max_position_embeddings", tokenizer.model_max_length)
    # The families of RoBERTa count positions from the padding id + 1.
    return most - (tokenizer.pad_token_id + 1) * ("roberta" in config["model_type"])


def _context(one: Any) -> int:
    """Tokens of an encoding's first segment with the special one before and the one after it."""
    segment = one.sequence_ids
    after: int = segment.index(1) if 1 in segment else len(segment)
    # Between the segments BERT has one special token and XLM-R two; the first of them closes the context.
    while after and after < len(segment) and segment[after - 1] is None:
        after -= 1
    return after + 1 if after < len(segment) else after


def _separated_once(tokenizer: Any, rows: list[list[int]], contexts: list[int]) -> list[list[int]]:
    """Token ids without the second of two separators between the segments."""
    return [
        ids[:at] + ids[at + 1 :] if ids[at:-1][:1] == [tokenizer.sep_token_id] else ids
        for ids, at in zip(rows, contexts, strict=True)
    ]


def _pairs(tokenizer: Any, made: Task, table: "pa.Table", max_length: int, counts: dict[str, int]) -> dict[str, Any]:
    """One or two segments and a label for all."""
    segments = [table[column].to_pylist() for column in made.inputs]
    try:
        found = tokenizer(*segments, truncation="only_first", max_length=max_length)
    except Exception as error:  # the tokenizers library raises bare Exceptions
        raise ValueError(
            f"max_length {max_length} leaves no room for a context beside the longest of {made.inputs[-1]}: raise it "
            f"({error})"
        ) from error
    lengths = []
    for one in found.encodings:
        counts["truncated"] += bool(one.overflowing)
        lengths.append(_context(one))
    columns = {"input_ids": found["input_ids"], "context_length": lengths}
    columns["label"] = [made.labels.index(label) for label in table[made.target].to_pylist()]
    return columns | ({"depth": table["depth"].to_pylist()} if "depth" in table.column_names else {})


def _words(tokenizer: Any, made: Task, table: "pa.Table", max_length: int, counts: dict[str, int]) -> dict[str, Any]:
    """One segment, and a label for the first piece of each word."""
    words = table[made.inputs[0]].to_pylist()
    found = tokenizer(words, is_split_into_words=True, truncation=True, max_length=max_length)
    labels = []
    for one, tags in zip(found.encodings, table[made.target].to_pylist(), strict=True):
        counts["truncated"] += bool(one.overflowing)
        before, row = None, []
        for word in one.word_ids:
            row.append(_IGNORED if word is None or word == before else tags[word])
            before = word
        counts["lost_words"] += len(tags) - len({word for word in one.word_ids if word is not None})
        labels.append(row)
    ids = found["input_ids"]
    columns = {"input_ids": ids, "context_length": [len(row) for row in ids], "labels": labels}
    return columns | ({"depth": table["depth"].to_pylist()} if "depth" in table.column_names else {})
