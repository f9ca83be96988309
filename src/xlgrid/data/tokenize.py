"""Tokenize the data of a task, once per task, language and tokenizer. All runs read the same tokens files."""

import json
import os
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from xlgrid.base.errors import Damaged, check_is_whole_file, first_sentence
from xlgrid.base.files import whole
from xlgrid.data.encoders import token_ids
from xlgrid.data.formats import COLUMN, notes, read_table, rows, tables
from xlgrid.data.remarks import strings
from xlgrid.data.streams import Progress
from xlgrid.data.text import END, End, differ
from xlgrid.heads.encoding import Encoding
from xlgrid.heads.head import FILE
from xlgrid.heads.tokens import PARALLEL_IDS
from xlgrid.tasks import Columns, Task, task
from xlgrid.tasks.mlm import DEV_ROWS, HELD_OUT_EVERY, HoldOut

if TYPE_CHECKING:
    import pyarrow as pa

# The number of rows, or of bytes in a parquet batch, that are encoded at once.
BATCH = 2000
BYTES = 2**20
# A column of parallel texts: the split to which the row belongs in each of the two texts.
SPLITS_OF_TEXTS = "splits"
# At most this many texts are compared with their NFC form.
COMPARED = 1000


def tokenize(
    data: Sequence[str | Path],
    tokenizer: str | Path,
    kind: str,
    max_length: int,
    out: str | Path,
    one_separator: bool = False,
    columns: Columns | Mapping[str, Any] | None = None,
    split: str | None = None,
    documents: Literal["cut", "split", "pack"] = "cut",
    dev_rows: int = DEV_ROWS,
    lines: Literal["joined", "segments"] = "joined",
    options: Mapping[str, Any] | None = None,
) -> None:
    """Tokenise one split of a task's data into an Arrow IPC file, which `xlgrid.data.batches.read` opens.

    Each row is an example, or a window of an example, in the order of the data. The columns are:

    - `input_ids`, list<int32>: the input with its special tokens;
    - `context_length`, int32: the number of tokens in the first segment, including the special tokens before and after
      it;
    - the columns of the task's head (`Head.fields`);
    - `depth`, int32, if the data have this column.

    For heads with several inputs in a row, the first two columns are lists of these types.

    Parquet files are read in parts, so that memory does not grow with them. Progress is printed on stderr. The
    tokenizer uses OMP_NUM_THREADS threads, else RAYON_NUM_THREADS, else all cores; the output is the same.

    Args:
        data: one of these:
            - the file of the split, and optionally a file with the same examples in another language (parallel
              examples), whose tokens become the column `PARALLEL_IDS`;
            - the files of the splits that the head reads together (`Head.splits`);
            - a text with the columns `id` and `text`;
            - two parallel texts, where rows with the same id are translations. Each input has both rows.
        tokenizer: the folder of the tokenizer.
        kind: the name of a task in `xlgrid.tasks.ALL_TASKS`, or of a head.
        max_length: the maximum number of tokens in an input, special tokens included.
        one_separator: see `xlgrid.heads.encoding.Encoding`.
        columns: the columns of a task that is described by its head.
        split: `train`, `dev` or `test` takes the rows of a text that belong to this split, and pairs of rows that both
            belong to it; None takes all rows.
        documents, lines: see `xlgrid.tasks.mlm.Options`.
        dev_rows: the maximum number of rows in `dev`, and in `test`.
        options: those of the head (`Head.options`), which are stored in the file for cells.

    Raises:
        FileNotFoundError: the data are missing.
        ValueError: the data or the tokenizer is damaged; the data do not fit the task; no row belongs to the split;
            packed rows for `train` do not fill one input; two texts have too few ids in common; parallel examples are
            not the same examples; or `max_length` is too small for the special tokens or more than the tokenizer's
            `model_max_length`.
    """
    import pyarrow as pa

    # Snakemake and the executor set the first variable for each job; the tokenizers library reads the second.
    if cores := os.environ.get("OMP_NUM_THREADS"):
        os.environ["RAYON_NUM_THREADS"] = cores
    described = task(kind, columns)
    head, choices = described.head, len(described.choices)
    where = " and ".join(map(str, data))
    _check_files(data, described, kind)
    parallel = None
    if described.target and len(data) > 1:
        parallel = _parallel(data[0], data[1], described)
        data = data[:1]
    has_splits = len(head.splits("test")) > 1
    if len(data) > 1 and not has_splits:
        described = replace(described, inputs=tuple(f"text{number}" for number in range(1, len(data) + 1)))
    loaded = load_tokenizer(tokenizer)
    check_tokenizer(loaded, tokenizer, described, max_length)
    settings = head.options.model_validate(options or {})
    encoding = Encoding(loaded, max_length, one_separator, settings, documents, lines)
    if has_splits:
        parts = _in_turn(data)
    else:
        parts = _side_by_side(data, described.inputs, dev_rows) if len(data) > 1 else tables(data[0], BATCH)
    first = next(parts)
    fields = head.fields()
    if has_depth := "depth" in first.column_names and pa.types.is_integer(first.schema.field("depth").type):
        fields.append(pa.field("depth", pa.int32()))
    if parallel:
        fields.append(pa.field(PARALLEL_IDS, pa.list_(pa.int32())))
    about = {
        "labels": list(described.labels),
        "head": head.name,
        "pad_id": loaded.pad_token_id,
        "mask_id": loaded.mask_token_id,
        "special_ids": loaded.all_special_ids,
        "vocabulary": len(loaded),
    }
    if choices:
        about["choices"] = choices
    if head.options.model_fields:
        about["options"] = settings.model_dump(mode="json")
    # The log counts the examples that were cut, and not their parallel examples.
    of_parallel = replace(encoding, carry=[])
    rows_read = examples = rows_written = 0
    hold_out = HoldOut(dev_rows)
    progress = Progress()
    forms = Forms(loaded, described)
    with whole(out) as aside, TokensFile(aside, fields, about) as file:
        for table in chain([first], parts):
            described.check(table, where, rows_read + 1)
            rows_read += table.num_rows
            if split is not None:
                if len(data) > 1:
                    of_rows = table[SPLITS_OF_TEXTS].to_pylist()
                else:
                    of_rows = [[hold_out.split_of(number)] for number in table["id"].to_pylist()]
                table = table.filter(pa.array([{*of_texts} == {split} for of_texts in of_rows], pa.bool_()))
            for batch in _batches(table):
                encoded = head.encode(batch, described, encoding)
                forms.read(batch)
                example = list(encoded.get("example", range(batch.num_rows)))
                if parallel:
                    same = parallel.slice(examples, batch.num_rows)
                    encoded[PARALLEL_IDS] = _of_examples(head.encode(same, described, of_parallel), example)
                if has_depth:
                    encoded["depth"] = batch["depth"].take(example).to_pylist()
                encoded["example"] = [examples + number for number in example]
                file.write(encoded)
                examples += batch.num_rows
                rows_written += len(example)
                if progress.due():
                    progress.say(f"{where}: {rows_read:,} rows read, {rows_written:,} written")
            # All further rows of a text are for training.
            if split in ("dev", "test") and len(data) == 1 and rows_read >= HELD_OUT_EVERY * dev_rows:
                break
        if (rest := head.remainder(encoding)).get("input_ids"):
            if split == "train" and not rows_written:
                raise ValueError(
                    f"{where} has {rows_read} rows with {len(rest['input_ids'][0])} tokens for train, which do not "
                    f"fill one input of max_length {max_length}, as `documents: pack` requires: lower max_length, get "
                    "more text, or set `documents: cut`"
                )
            file.write(rest)
            rows_written += len(rest["input_ids"])
        if not rows_written:
            raise ValueError(
                f"{where} has {rows_read} rows, and no row with text for {split}: the first row with text among rows 1 "
                "to 25 is for dev, which chooses checkpoints, and the first among rows 26 to 50 is for test; all other "
                "rows are for train. A pair belongs to a split if both of its rows do. Get more text"
            )
    for remark in (*_remarks(encoding, described, examples * max(1, choices)), *forms.remarks()):
        print(f"{where}: {remark}", file=sys.stderr)


class Forms:
    """Counts of texts and words that are not in the Unicode normalization form NFC, and of those that have other tokens
    in NFC."""

    def __init__(self, tokenizer: Any, described: Task) -> None:
        self.tokenizer, self.columns = tokenizer, described.inputs
        self.read_texts = self.not_composed = self.compared = self.differ = 0

    def read(self, table: "pa.Table") -> None:
        """Count the texts of a table. Only the first ones that are not in NFC are tokenized again."""
        for column in self.columns:
            texts = [text for value in table[column].to_pylist() for text in strings(value)]
            apart = [text for text in texts if not unicodedata.is_normalized("NFC", text)]
            self.read_texts += len(texts)
            self.not_composed += len(apart)
            if compared := apart[: COMPARED - self.compared]:
                composed = [unicodedata.normalize("NFC", text) for text in compared]
                ids, others = (self.tokenizer(each, verbose=False)["input_ids"] for each in (compared, composed))
                self.compared += len(compared)
                self.differ += sum(first != other for first, other in zip(ids, others, strict=True))

    def remarks(self) -> Iterator[str]:
        """A sentence for the log, if the tokens of a text differ in NFC."""
        if self.differ:
            yield (
                f"{self.not_composed:,} of {self.read_texts:,} texts or words are not in the normalization form NFC, "
                f"and {self.differ:,} of {self.compared:,} that were compared have other tokens in NFC; `normalize: "
                "NFC` in `data` converts them to this form"
            )


def _check_files(data: Sequence[str | Path], described: Task, kind: str) -> None:
    """Raise ValueError if the number of files does not suit the task."""
    where = " and ".join(map(str, data))
    splits = described.head.splits("test")
    if len(splits) > 1 and len(data) != len(splits):
        sets = " and ".join(f"of the {split} set" for split in splits)
        raise ValueError(f"a task of kind {kind} needs the files {sets}, got {where}: give a file for each")
    if described.target and len(data) > (1 if described.choices else 2):
        raise ValueError(
            f"a task of kind {kind} needs "
            f"{'one file' if described.choices else 'one file, or one file and another one with parallel examples'}, "
            f"got {where}: only text can have two files"
        )


def _remarks(encoding: Encoding, described: Task, inputs: int) -> Iterator[str]:
    """Sentences for the log about the numbers of cut inputs and of words without a token."""
    if encoding.truncated:
        has_windows = any(field.name == "example" for field in described.head.fields())
        change = "examples were split into windows of" if has_windows else "inputs were cut to"
        is_text = len(described.inputs) < 2 and not described.target
        advice = "`documents: split`, or a larger max_length," if is_text else "raise max_length"
        yield f"{encoding.truncated:,} of {inputs:,} {change} {encoding.max_length} tokens; {advice} to keep them whole"
    if encoding.lost_words:
        yield f"{encoding.lost_words:,} words have no token and are read as unknown words"


def _in_turn(data: Sequence[str | Path]) -> Iterator["pa.Table"]:
    """The rows of each file, one file after another, with the column `FILE`, in parts."""
    import pyarrow as pa

    for number, path in enumerate(data):
        for table in tables(path, BATCH):
            yield table.append_column(FILE, pa.array([number] * table.num_rows, pa.int32()))


def _side_by_side(texts: Sequence[str | Path], columns: Sequence[str], dev_rows: int) -> Iterator["pa.Table"]:
    """The texts of each id that occurs in all files, in parts, with the column `SPLITS_OF_TEXTS`."""
    import pyarrow as pa

    noted = [notes(path) for path in texts]
    ends = [End(*json.loads(entries[END])) for entries in noted if END in entries]
    if len(ends) == len(texts) and differ(ends):
        # A line that is missing in one text shifts all later lines. Comparing ids would not show this.
        raise ValueError(
            f"{' and '.join(map(str, texts))} are parallel texts, but their last rows are rows "
            f"{' and '.join(str(end.row + 1) for end in ends)}: row i must have the same content in both, so add an "
            "empty row where one of them lacks a row"
        )
    count = 0
    common = _common(texts, dev_rows)
    while part := list(islice(common, BATCH)):
        count += len(part)
        if count > 1:
            by_text = zip(*(row_texts for _, row_texts in part), strict=True)
            yield pa.table(dict(zip(columns, by_text, strict=True)) | {SPLITS_OF_TEXTS: [splits for splits, _ in part]})
    if count < 2:
        raise ValueError(
            f"{' and '.join(map(str, texts))} have {count} ids in common: make both texts with the same settings"
        )


def _common(texts: Sequence[str | Path], dev_rows: int) -> Iterator[tuple[list[str], list[str]]]:
    """For each id that occurs in all files: its split in each file, and its text in each file."""
    readers = [_ascending(path, dev_rows) for path in texts]
    currents = [next(reader, None) for reader in readers]
    while not any(current is None for current in currents):
        present = [current for current in currents if current]
        last = max(number for number, _, _ in present)
        behind = [number < last for number, _, _ in present]
        if not any(behind):
            yield [split for _, split, _ in present], [text for _, _, text in present]
            behind = [True] * len(readers)
        for at, reader in enumerate(readers):
            if behind[at]:
                currents[at] = next(reader, None)


def _ascending(path: str | Path, dev_rows: int) -> Iterator[tuple[int, str, str]]:
    """The id, the split and the text of each row of a text."""
    hold_out = HoldOut(dev_rows)
    before = None
    for row, (number, text) in enumerate(rows(path, ["id", COLUMN]), start=1):
        if before is not None and number <= before:
            raise Damaged(
                f"{path}, row {row}: id {number} follows id {before}, but ids must ascend: make the text again", path
            )
        before = number
        yield number, hold_out.split_of(number), text


def _batches(table: "pa.Table") -> Iterator["pa.Table"]:
    """Split a table into parts of few rows and bytes, which can be encoded at once even if documents are long."""
    size = max(1, min(BATCH, table.num_rows * BYTES // max(1, table.nbytes)))
    return (table.slice(start, size) for start in range(0, table.num_rows, size))


def _parallel(path: str | Path, parallel: str | Path, described: Task) -> "pa.Table":
    """Read the parallel examples of the examples in `path`, and check that they are the same examples.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged, or the two files do not have the same examples.
    """
    table, other = read_table(path), read_table(parallel)
    described.check(table, str(path))
    described.check(other, str(parallel))
    advice = "row i must have the same content in both, so add the missing translations, or leave the language out"
    if table.num_rows != other.num_rows:
        raise ValueError(
            f"{path} has {table.num_rows} examples, and {parallel}, which has the parallel examples, has "
            f"{other.num_rows}: {advice}"
        )
    label = described.head.parallel(described)
    for column in dict.fromkeys(filter(None, (label, "id"))):
        if not (column in table.column_names and column in other.column_names):
            continue
        values, others = table[column].to_pylist(), other[column].to_pylist()
        # Some data have different ids in each language. Columns without any common value are not compared.
        if column != label and {*values}.isdisjoint(others):
            continue
        if unlike := [row for row, pair in enumerate(zip(values, others, strict=True), start=1) if pair[0] != pair[1]]:
            raise ValueError(
                f"{parallel} does not have the parallel examples of {path}: the {column} differs in row {unlike[0]}; "
                f"{advice}"
            )
    return other


def _of_examples(encoded: Mapping[str, Sequence[Any]], example: Sequence[int]) -> list[list[int]]:
    """The token ids of the parallel example of each row. All windows of a long example get the first window of its
    parallel example."""
    numbers = list(encoded.get("example", range(len(encoded["input_ids"]))))
    first = dict(zip(numbers[::-1], encoded["input_ids"][::-1], strict=True))
    return [list(first[number]) for number in example]


def load_tokenizer(tokenizer: str | Path) -> Any:
    """The tokenizer in a folder.

    Raises:
        ValueError: the tokenizer is missing or damaged.
    """
    from transformers import AutoTokenizer

    token_ids(tokenizer)
    for name in ("config.json", "tokenizer_config.json", "special_tokens_map.json"):
        _check_json(Path(tokenizer) / name)
    try:
        return AutoTokenizer.from_pretrained(str(tokenizer), use_fast=True)
    except Exception as error:  # Transformers raises errors of many types.
        raise Damaged(
            f"the tokenizer {tokenizer} is damaged ({first_sentence(error)}): see its config.json and "
            "tokenizer_config.json, or save, make or fetch it again",
            tokenizer,
        ) from error


def _check_json(path: Path) -> None:
    if not path.is_file():
        return
    check_is_whole_file(path)
    try:
        if not isinstance(json.loads(path.read_text(encoding="utf-8")), dict):
            raise ValueError("it has no keys")
    except ValueError as error:
        raise Damaged(f"{path} is damaged or not JSON ({error}): save, copy or fetch it again", path.parent) from error


def check_tokenizer(tokenizer: Any, folder: str | Path, described: Task, max_length: int) -> None:
    """Check that a tokenizer has the special tokens that a task needs, and that inputs of `max_length` tokens fit.

    Args:
        tokenizer: a fast tokenizer of transformers.
        folder: its folder, for errors.

    Raises:
        ValueError: the tokenizer has no padding token, or lacks a mask token that the task needs; or `max_length` is
            too small or too large for the tokenizer.
    """
    if tokenizer.pad_token_id is None:
        raise ValueError(
            f"the tokenizer {folder} has no padding token: write `pad_token` into its tokenizer_config.json, in "
            "agreement with `pad_token_id` in the encoder's config.json"
        )
    described.head.check_tokenizer(tokenizer)
    segments = min(len(described.inputs), 2)
    least, most = tokenizer.num_special_tokens_to_add(pair=segments > 1) + segments, tokenizer.model_max_length
    if not least <= max_length <= most:
        raise ValueError(
            f"max_length {max_length} does not fit: inputs in the tokenizer {folder} have {least} to {most} tokens; "
            "change it in the study's task"
        )


class TokensFile:
    """A tokens file that is being written, with the columns `input_ids`, `context_length` and further columns.

    Args:
        about: the metadata. If they have `choices`, the first two columns are lists of their types.
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
