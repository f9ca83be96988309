"""Texts as tokens: rows cut or split, pairs side by side, and a dev set apart."""

import itertools
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from xlgrid.data import batches
from xlgrid.data.formats import read_table
from xlgrid.data.text import TextSettings, make_text
from xlgrid.data.tokenize_text import tokenize_text


def tokenizer(world):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(world / "encoder")


def numbered(path, lines):
    """A file of text as `make_text` writes it."""
    pq.write_table(pa.table({"id": pa.array(range(len(lines)), pa.int32()), "text": lines}), path)
    return path


def of_text(world, lines, **settings):
    """The inputs of train and dev, of a text of `lines`."""
    path = numbered(world / "lines.parquet", lines)
    out = [world / f"lines-{split}.arrow" for split in ("train", "dev")]
    tokenize_text([path], world / "encoder", *out, **settings)
    found = (batches.read(one, "en") for one in out)
    return [[one.values[a:b].tolist() for a, b in itertools.pairwise(one.offsets)] for one in found]


def inside(reader, row):
    """An input's tokens without the special ones, which are where they should be."""
    taken = reader.num_special_tokens_to_add() // 2
    empty = reader("")["input_ids"]
    assert row[:taken] == empty[:taken] and row[-taken:] == empty[-taken:]
    return row[taken:-taken]


WORDS = st.lists(st.sampled_from(["Bob", "is", "not", "xyzzy", "Ébène", "木", "\n", "."]), max_size=30).map(" ".join)


def test_parallel_texts_stand_side_by_side_and_every_50th_is_for_dev(world):
    texts = [world / "en.parquet", world / "fr.parquet"]
    make_text("fr", texts[1], TextSettings(sentences=60))
    out = [world / f"text-{split}.arrow" for split in ("train", "dev")]
    tokenize_text(texts, world / "encoder", *out)
    reader, (train, dev) = tokenizer(world), (batches.read(path, "en-fr") for path in out)
    assert (len(train), len(dev)) == (58, 2), "ids that both texts have, every 50th for dev"
    first, second = (read_table(path)["text"].to_pylist()[1].replace("\n", " ") for path in texts)
    expected = reader(first, second)["input_ids"]
    assert train.values[: train.offsets[1]].tolist() == expected
    assert expected[train.contexts[0] - 1] == reader.sep_token_id
    assert train.vocabulary.mask_id == reader.mask_token_id and train.vocabulary.size == len(reader)


def test_one_text_is_one_segment(world):
    out = [world / f"one-{split}.arrow" for split in ("train", "dev")]
    tokenize_text([world / "qa1.parquet"], world / "encoder", *out)
    train = batches.read(out[0], "qa1")
    assert (
        train.contexts.tolist() == train.lengths.tolist() and not train.segments(np.arange(len(train))).switched.any()
    )


def test_texts_without_a_common_id_are_refused(world):
    path = world / "other.parquet"
    table = read_table(world / "en.parquet")
    pq.write_table(table.set_column(0, "id", pa.array(range(1000, 1000 + len(table)))), path)
    with pytest.raises(ValueError, match="0 ids in common"):
        tokenize_text([world / "en.parquet", path], world / "encoder", world / "a", world / "b")


def test_parallel_texts_have_one_separator_where_asked_for(world):
    texts = [world / "en.parquet", world / "fr.parquet"]
    make_text("fr", texts[1], TextSettings(sentences=60))
    found = []
    for one in (False, True):
        out = [world / f"separators-{one}-{split}.arrow" for split in ("train", "dev")]
        tokenize_text(texts, world / "encoder", *out, one_separator=one)
        found.append(batches.read(out[0], "en-fr"))
    usual, once = found
    reader = tokenizer(world)
    extra = reader.num_special_tokens_to_add(pair=True) - 3
    assert once.contexts.tolist() == usual.contexts.tolist()
    for i, at in enumerate(once.contexts):
        ids, full = (one.values[one.offsets[i] : one.offsets[i + 1]].tolist() for one in (once, usual))
        assert ids.count(reader.sep_token_id) == 2 and ids == full[:at] + full[at + extra :]


def test_rows_of_text_are_cut_one_by_one_as_ever(world, capsys):
    """To the byte: a batch of 2,000 rows after another, the metadata, and nothing else."""
    said = read_table(world / "en.parquet")["text"].to_pylist() * 25
    path, out = numbered(world / "long.parquet", said), [world / f"long-{split}.arrow" for split in ("train", "dev")]
    tokenize_text([path], world / "encoder", *out, max_length=16)
    reader = tokenizer(world)
    meta = {
        "labels": [],
        "head": "mlm",
        "pad_id": reader.pad_token_id,
        "mask_id": reader.mask_token_id,
        "special_ids": reader.all_special_ids,
        "vocabulary": len(reader),
    }
    fields = [pa.field("input_ids", pa.list_(pa.int32())), pa.field("context_length", pa.int32())]
    schema = pa.schema(fields, metadata={b"xlgrid": json.dumps(meta).encode()})
    rows = [reader(text.replace("\n", " "), truncation=True, max_length=16)["input_ids"] for text in said]
    for made, chosen in zip(out, ([row for i, row in enumerate(rows) if i % 50], rows[::50]), strict=True):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, schema) as writer:
            for start in range(0, len(chosen), 2000):
                part = chosen[start : start + 2000]
                lengths = [len(row) for row in part]
                arrays = [pa.array(part, fields[0].type), pa.array(lengths, pa.int32())]
                writer.write_batch(pa.record_batch(arrays, schema=schema))
        assert made.read_bytes() == sink.getvalue().to_pybytes()
    cut = sum(len(reader(text.replace("\n", " "))["input_ids"]) > 16 for text in said)
    assert f"{path}: {cut:,} of 2,500 rows were cut to 16 tokens; `documents: split`" in capsys.readouterr().err


@given(st.lists(WORDS, min_size=2, max_size=8), st.integers(5, 9))
@settings(max_examples=30)
def test_split_documents_lose_nothing(world, documents, max_length):
    reader = tokenizer(world)
    ids = [reader(text.replace("\n", " "), add_special_tokens=False)["input_ids"] for text in documents]
    expected = [row for row in ids if row]
    assume(len(expected) > 1)
    found = of_text(world, documents, documents="split", max_length=max_length)
    for rows, wanted in zip(found, (expected[1:], expected[:1]), strict=True):
        assert all(len(row) <= max_length for row in rows)
        room = max_length - reader.num_special_tokens_to_add()
        pieces = [ids[start : start + room] for ids in wanted for start in range(0, len(ids), room)]
        assert [inside(reader, row) for row in rows] == pieces


def test_documents_of_dev_are_not_in_train(world):
    names = list(dict.fromkeys(read_table(world / "en.parquet")["text"].to_pylist()))[:60]
    documents = [f"{name} " * 9 for name in names]
    reader, found = tokenizer(world), of_text(world, documents, documents="split", max_length=20)
    for rows, chosen in zip(found, (documents[1:50] + documents[51:], [documents[0], documents[50]]), strict=True):
        expected = [reader(text.replace("\n", " "), add_special_tokens=False)["input_ids"] for text in chosen]
        chained = itertools.chain.from_iterable
        assert [*chained(inside(reader, row) for row in rows)] == [*chained(expected)]


def test_rows_for_dev_that_do_not_fit_are_trained_on(world):
    reader = tokenizer(world)
    long, short = "Bob is not kind . " * 20, "Bob is kind ."
    lines = [short] * 200
    lines[50] = long
    train, dev = of_text(world, lines, documents="split", max_length=20, dev_inputs=2)
    assert [inside(reader, row) for row in dev] == [reader(short, add_special_tokens=False)["input_ids"]] * 2
    tokens = sum(len(reader(line, add_special_tokens=False)["input_ids"]) for line in lines)
    assert sum(len(inside(reader, row)) for row in train + dev) == tokens
    with pytest.raises(ValueError, match="none of the rows to choose checkpoints with has as few as 2 inputs"):
        of_text(world, [long] * 60, documents="split", max_length=20, dev_inputs=2)
    assert not list(world.glob(".lines*")), "half-written files are left"


@pytest.mark.parametrize("length", [2, 513])
def test_a_length_that_no_input_of_text_can_have_is_an_error(world, length):
    with pytest.raises(ValueError, match=rf"max_length {length} does not fit: .* takes 512 tokens, of which 2 are"):
        of_text(world, ["a", "b"], max_length=length)


def test_a_text_of_one_row_is_refused(world):
    with pytest.raises(ValueError, match="has 1 rows with text: it takes two"):
        of_text(world, ["a"])


def test_a_pair_of_long_documents_is_cut(world):
    path = numbered(world / "pair.parquet", ["Bob is kind . " * 40] * 60)
    out = [world / f"pair-{split}.arrow" for split in ("train", "dev")]
    tokenize_text([path, path], world / "encoder", *out, documents="split", max_length=30)
    train, dev = (batches.read(one, "en-fr") for one in out)
    assert (len(train), len(dev)) == (58, 2) and set(train.lengths.tolist()) == {30}
