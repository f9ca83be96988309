"""Tokenised data: made once per task, language and tokenizer, read by every run."""

import json
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from xlgrid.base.files import whole
from xlgrid.data.encoders import check_encoder
from xlgrid.data.formats import read_table, rows
from xlgrid.data.sources import read_text
from xlgrid.data.streams import Progress
from xlgrid.data.text import DEV_INPUTS
from xlgrid.heads.spans import windows
from xlgrid.tasks import Task, task

if TYPE_CHECKING:
    import pyarrow as pa

_IGNORED = -100  # the label of tokens that are not scored
# Of a text's rows, each of this number is for the dev set.
DEV_EVERY = 50
_BATCH = 2000
# Tokens that two windows of a context share, as in BERT's run_squad.py.
STRIDE = 128
# Characters of text to tokenise at once.
_CHARACTERS = 2**20
# Token ids, and the tokens of the first segment.
_Input = tuple[list[int], int]


def tokenize(
    data: str | Path,
    encoder: str | Path,
    kind: str,
    max_length: int,
    out: str | Path,
    one_separator: bool = False,
    stride: int = STRIDE,
) -> None:
    """Tokenise one split of a task's data into an Arrow IPC file (`xlgrid.data.batches.read` opens it), one row per example, in the order of the data.

    Columns: `input_ids` list<int32>, specials included; `context_length` int32, the tokens of the first segment with
    the special before and the one after it (= len(input_ids) where there is one segment); `label` int64 for the
    sequence head or `labels` list<int64> for the token head, -100 for specials and all but the first piece of a word;
    `depth` int32 where the data have it. Inputs of more than `max_length` tokens lose the end of the context.

    For the choice head both are lists, of an input for each choice: everything else, separated by spaces, and the choice.
    For the span head there is a row per window of a context that is too long beside its question (the first segment), two
    of which share `stride` tokens; `start` and `end` int32 are the first and last token of the answer, both 0 (the first
    special token) where the window has it not whole; `example` int32 is the number of the question; `first` and `last`
    list<int32>, `text` and `answers` list<string> are as `xlgrid.heads.spans.Spans` has them.

    With `one_separator`, XLM-R's inputs have one special token between two segments where its tokenizer puts two.

    The metadata say how many inputs were cut (`truncated`; of questions, how many have several windows) and how many words have no token (`lost_words`).

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
    if made.head == "span":
        numbers, flat = pa.int32(), pa.list_(pa.int32())
        fields += [pa.field(name, numbers) for name in ("start", "end", "example")]
        fields += [pa.field("first", flat), pa.field("last", flat)]
        fields += [pa.field("text", pa.string()), pa.field("answers", pa.list_(pa.string()))]
    elif made.head == "choice":
        fields = [pa.field(field.name, pa.list_(field.type)) for field in fields] + [pa.field("label", pa.int64())]
    else:
        sequence = made.head == "sequence"
        fields.append(pa.field("label", pa.int64()) if sequence else pa.field("labels", pa.list_(pa.int64())))
    # A question has several windows.
    names = [] if made.head == "span" else table.column_names
    if "depth" in names:
        fields.append(pa.field("depth", pa.int32()))
    batches = []
    for start in range(0, table.num_rows, _BATCH):
        here = table.slice(start, _BATCH)
        if made.head == "span":
            columns = _windows(tokenizer, made, here, max_length, counts, stride, one_separator)
            columns["example"] = [start + number for number in columns["example"]]
        elif made.head == "choice":
            columns = _choices(tokenizer, made, here, max_length, counts, one_separator)
        else:
            columns = (_pairs if sequence else _words)(tokenizer, made, here, max_length, counts)
            if one_separator:
                columns["input_ids"] = _separated_once(tokenizer, columns["input_ids"], columns["context_length"])
        if "depth" in names:
            columns["depth"] = here["depth"].to_pylist()
        arrays = [pa.array(columns[field.name], field.type) for field in fields]
        batches.append(pa.record_batch(arrays, schema=pa.schema(fields)))
    if counts["truncated"]:
        told = "contexts were cut into windows of" if made.head == "span" else "inputs were cut to"
        total = table.num_rows * max(1, len(made.choices))
        print(
            f"{data}: {counts['truncated']} of {total} {told} {max_length} tokens; raise max_length to keep them whole",
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
    if made.choices:
        meta["choices"] = len(made.choices)
    schema = pa.schema(fields, metadata={b"xlgrid": json.dumps(meta).encode()})
    with whole(out) as aside, pa.ipc.new_file(str(aside), schema) as writer:
        for batch in batches:
            writer.write_batch(batch.replace_schema_metadata(schema.metadata))


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
    """Tokenise text, or the parallel texts of a pair side by side, for masked language modelling.

    Columns as those of `tokenize`, without labels. Every `DEV_EVERY`th row is for `dev`, with all of its inputs; those
    that would be more than `dev_inputs` go to `train`. The memory for one text does not grow with it; long work says on
    stderr how far it is.

    Args:
        texts: one or two files with the columns `id` and `text`; rows of one id mean the same.
        one_separator: as that of `tokenize`.
        documents: "cut" makes one input of a row and drops the tokens that are too many for it; "split" makes as many
            of a row of one text as its tokens need, and leaves out rows without tokens, as if they were not there.
        max_length: tokens of an input, special ones included; None for what the encoder takes.

    Raises:
        FileNotFoundError: a text or the encoder is missing.
        ValueError: one is damaged, two texts have too few ids in common, `max_length` is more than the encoder takes or
            leaves no room, or no row for `dev` fits.
    """
    import pyarrow as pa
    from transformers import AutoTokenizer

    check_encoder(encoder)
    tokenizer = AutoTokenizer.from_pretrained(str(encoder), use_fast=True)
    most, taken = room(encoder, tokenizer), tokenizer.num_special_tokens_to_add(pair=len(texts) > 1)
    if max_length and not taken + len(texts) <= max_length <= most:
        raise ValueError(
            f"max_length {max_length} does not fit: {encoder} takes {most} tokens, of which {taken} are special; "
            "change it in the study's text"
        )
    length = max_length or most
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
    split = documents == "split" and len(texts) == 1
    progress = Progress()
    number = lost = 0
    found = rows(texts[0], ("text", "id")) if len(texts) == 1 else _paired(texts)
    with closing(found), whole(dev) as one, whole(train) as other:
        with _Inputs(one, schema) as held_out, _Inputs(other, schema) as trained:
            for piece in _pieces(row[: len(texts)] for row in found):
                for inputs, dropped in _encoded(tokenizer, piece, length, split, one_separator):
                    fits = number % DEV_EVERY == 0 and held_out.count + len(inputs) <= dev_inputs
                    (held_out if fits else trained).add(inputs)
                    number, lost = number + 1, lost + dropped
                if progress.due():
                    progress.say(f"{texts[0]}: {number:,} rows, {held_out.count + trained.count:,} inputs")
        said = " and ".join(map(str, texts))
        if number < 2 and len(texts) > 1:
            raise ValueError(f"{said} have {number} ids in common: make them with one setting")
        if number < 2:
            raise ValueError(
                f"{said} has {number} rows with text: it takes two, one of them to choose checkpoints with"
            )
        if not held_out.count:
            raise ValueError(
                f"{said}: none of the rows to choose checkpoints with has as few as {dev_inputs} inputs: raise dev_inputs"
            )
    if lost:
        advice = "" if len(texts) > 1 else "; `documents: split` in the study's text keeps them whole"
        progress.say(f"{said}: {lost:,} of {number:,} rows were cut to {length} tokens{advice}")


class _Inputs:
    """A tokens file that is being written; `count` are the inputs so far."""

    def __init__(self, path: Path, schema: "pa.Schema") -> None:
        import pyarrow as pa

        self.schema, self.count = schema, 0
        self.waiting: list[_Input] = []
        self.writer = pa.ipc.new_file(str(path), schema)

    def __enter__(self) -> "_Inputs":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and self.waiting:
            self._write()
        self.writer.close()

    def add(self, inputs: list["_Input"]) -> None:
        self.count += len(inputs)
        for one in inputs:
            self.waiting.append(one)
            if len(self.waiting) == _BATCH:
                self._write()

    def _write(self) -> None:
        import pyarrow as pa

        columns = zip(*self.waiting, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self.schema, strict=True)]
        self.writer.write_batch(pa.record_batch(arrays, schema=self.schema))
        self.waiting = []


def _paired(texts: list[str | Path]) -> Generator[tuple[str, ...], None, None]:
    """The texts of each id that all have, in the order of the first."""
    read = [read_text(path) for path in texts]
    return (tuple(one[number] for one in read) for number in read[0] if all(number in one for one in read))


def _pieces(found: Iterable[tuple[str, ...]]) -> Iterator[list[tuple[str, ...]]]:
    """Rows, so many at once as are no burden to tokenise."""
    piece: list[tuple[str, ...]] = []
    size = 0
    for row in found:
        piece.append(row)
        size += sum(map(len, row))
        if len(piece) == _BATCH or size >= _CHARACTERS:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def _encoded(
    tokenizer: Any, piece: list[tuple[str, ...]], length: int, split: bool, one_separator: bool
) -> Iterator[tuple[list["_Input"], bool]]:
    """The inputs of each row, and whether it lost tokens; of a split row without tokens nothing."""
    # A line break is for the mini encoders, which take what follows as a second segment.
    segments = [[text.replace("\n", " ") for text in column] for column in zip(*piece, strict=True)]
    found = tokenizer(
        *segments,
        truncation=True,
        max_length=length,
        return_overflowing_tokens=split,
        return_attention_mask=False,
        return_token_type_ids=False,
    )
    ids = found["input_ids"]
    if split:
        inputs: list[list[_Input]] = [[] for _ in piece]
        empty = tokenizer.num_special_tokens_to_add(pair=False)
        for row, one in zip(found["overflow_to_sample_mapping"], ids, strict=True):
            if len(one) > empty:
                inputs[row].append((one, len(one)))
        yield from ((one, False) for one in inputs if one)
        return
    contexts = [_context(one) for one in found.encodings] if len(segments) > 1 else [len(one) for one in ids]
    cut = [bool(one.overflowing) for one in found.encodings]
    if one_separator:
        ids = _separated_once(tokenizer, ids, contexts)
    yield from (([one], lost) for one, lost in zip(zip(ids, contexts, strict=True), cut, strict=True))


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
    columns = _cut(tokenizer, segments, max_length, counts, made.inputs[-1])
    columns["label"] = [made.labels.index(label) for label in table[made.target].to_pylist()]
    return columns


def _cut(
    tokenizer: Any, segments: list[list[str]], max_length: int, counts: dict[str, int], last: str
) -> dict[str, Any]:
    """One or two segments; the first loses its end where an input is too long. `last` is what the other one is called."""
    try:
        found = tokenizer(*segments, truncation="only_first", max_length=max_length)
    except Exception as error:  # the tokenizers library raises bare Exceptions
        raise ValueError(
            f"max_length {max_length} leaves no room for a context beside the longest of {last}: raise it ({error})"
        ) from error
    lengths = []
    for one in found.encodings:
        counts["truncated"] += bool(one.overflowing)
        lengths.append(_context(one))
    return {"input_ids": found["input_ids"], "context_length": lengths}


def _choices(
    tokenizer: Any, made: Task, table: "pa.Table", max_length: int, counts: dict[str, int], one_separator: bool
) -> dict[str, Any]:
    """For each choice an input, and which of them is right."""
    count, rows = len(made.choices), table.to_pylist()
    told = [" ".join(row[column] for column in made.inputs[:-count]) for row in rows]
    segments = [[one for one in told for _ in made.choices], [row[column] for row in rows for column in made.choices]]
    columns = _cut(tokenizer, segments, max_length, counts, " and ".join(made.choices))
    if one_separator:
        columns["input_ids"] = _separated_once(tokenizer, columns["input_ids"], columns["context_length"])
    columns = {name: [found[at : at + count] for at in range(0, len(found), count)] for name, found in columns.items()}
    return columns | {"label": [made.labels.index(str(row[made.target])) for row in rows]}


def _windows(
    tokenizer: Any,
    made: Task,
    table: "pa.Table",
    max_length: int,
    counts: dict[str, int],
    stride: int,
    one_separator: bool,
) -> dict[str, Any]:
    """Windows over each context beside its question; `example` counts from 0."""
    asked, context, target = *made.inputs, made.target
    rows = table.to_pylist()
    questions, contexts = [row[asked].lstrip() for row in rows], [row[context] for row in rows]
    found = tokenizer(questions, contexts, return_offsets_mapping=True, verbose=False)
    columns: dict[str, list[Any]] = {
        name: []
        for name in ("input_ids", "context_length", "start", "end", "example", "first", "last", "text", "answers")
    }
    for number, (row, one, ids, offsets) in enumerate(
        zip(rows, found.encodings, found["input_ids"], found["offset_mapping"], strict=True)
    ):
        inside = [at for at, segment in enumerate(one.sequence_ids) if segment == 1]
        if not inside:
            raise ValueError(f"the context {row[context]!r} has no tokens: look at the data")
        begin, after, length = inside[0], inside[-1] + 1, _context(one)
        before, tail = ids[:begin], ids[after:]
        if one_separator:
            before = before[:length]
        room = max_length - len(before) - len(tail)
        if room < 1 or (room < len(inside) and room <= stride):
            raise ValueError(
                f"max_length {max_length} leaves {max(0, room)} tokens for a context beside the question {row[asked]!r}, of "
                f"which windows share {stride}: raise max_length, or lower the task's stride"
            )
        answers, inner = row[target], offsets[begin:after]
        start = answers["answer_start"][0]
        made_windows = list(windows(inner, (start, start + len(answers["text"][0])), room, stride))
        counts["truncated"] += len(made_windows) > 1
        for window in made_windows:
            here = inner[window.start : window.end]
            origin = here[0][0]
            shift = len(before) - window.start
            outside = [-1] * len(before), [-1] * len(tail)
            told = {
                "input_ids": [*before, *ids[begin + window.start : begin + window.end], *tail],
                "context_length": length,
                "start": window.answer[0] + shift if window.answer else 0,
                "end": window.answer[1] + shift if window.answer else 0,
                "example": number,
                "first": [*outside[0], *(first - origin for first, _ in here), *outside[1]],
                "last": [*outside[0], *(last - origin for _, last in here), *outside[1]],
                "text": row[context][origin : here[-1][1]],
                "answers": answers["text"],
            }
            for name, value in told.items():
                columns[name].append(value)
    return columns


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
    return {"input_ids": ids, "context_length": [len(row) for row in ids], "labels": labels}
