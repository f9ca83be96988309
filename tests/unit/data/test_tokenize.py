"""Data of tasks as tokens."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from xlgrid.data import batches
from xlgrid.data.formats import read_table
from xlgrid.data.generated import make_data, make_meanings
from xlgrid.data.tokenize import tokenize
from xlgrid.heads import HEADS


def tokens(world, kind, max_length=512):
    out = world / f"{kind}-{max_length}.arrow"
    tokenize(world / kind / "train.parquet", world / "encoder", kind, max_length, out)
    table = pa.ipc.open_file(pa.memory_map(str(out))).read_all()
    return table, json.loads(table.schema.metadata[b"xlgrid"])


def tokenizer(world):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(world / "encoder")


def test_the_context_is_cut_off_where_its_length_says(world):
    found, meta = tokens(world, "ruletaker")
    reader, data = tokenizer(world), read_table(world / "ruletaker" / "train.parquet").to_pylist()
    assert meta["truncated"] == 0 and meta["pad_id"] == reader.pad_token_id
    for row, said in zip(found.to_pylist(), data, strict=True):
        ids, n = row["input_ids"], row["context_length"]
        assert ids == reader(said["context"], said["question"])["input_ids"]
        assert ids[:n] == reader(said["context"])["input_ids"]
        assert meta["labels"][row["label"]] == said["label"] and row["depth"] == said["depth"]


def test_long_inputs_lose_the_end_of_the_context(world):
    found, meta = tokens(world, "ruletaker", 40)
    whole, _ = tokens(world, "ruletaker")
    assert meta["truncated"] == sum(len(ids) > 40 for ids in whole["input_ids"].to_pylist()) > 0
    for cut, full in zip(found.to_pylist(), whole.to_pylist(), strict=True):
        assert len(cut["input_ids"]) == min(40, len(full["input_ids"]))
        question = full["input_ids"][full["context_length"] :]
        assert cut["input_ids"][cut["context_length"] :] == question


def test_more_tokens_than_the_encoder_takes_are_an_error(world):
    with pytest.raises(ValueError, match="max_length 513 is more than the 512 tokens"):
        tokens(world, "ruletaker", 513)


def test_no_room_for_the_question_is_an_error(world):
    with pytest.raises(ValueError, match="max_length 6 leaves no room"):
        tokens(world, "ruletaker", 6)


def test_the_first_piece_of_each_word_has_its_label(world):
    found, meta = tokens(world, "wikiann")
    data = read_table(world / "wikiann" / "train.parquet").to_pylist()
    assert meta["lost_words"] == 0 and meta["head"] == "token"
    for row, said in zip(found.to_pylist(), data, strict=True):
        assert [label for label in row["labels"] if label != -100] == said["ner_tags"]
        assert len(row["labels"]) == len(row["input_ids"]) == row["context_length"]
        assert row["labels"][0] == row["labels"][-1] == -100


def test_a_long_sentence_becomes_windows_with_each_word_once(world, capsys):
    found, meta = tokens(world, "wikiann", 8)
    data = read_table(world / "wikiann" / "train.parquet").to_pylist()
    whole, _ = tokens(world, "wikiann")
    long = sum(len(ids) > 8 for ids in whole["input_ids"].to_pylist())
    assert meta["truncated"] == long > 0 and meta["lost_words"] == 0 and len(found) > len(data)
    assert f"{long} of {len(data)} examples were split into windows of 8 tokens" in capsys.readouterr().err
    words = [[] for _ in data]
    for row in found.to_pylist():
        assert len(row["input_ids"]) == len(row["labels"]) == row["context_length"] <= 8
        words[row["example"]] += [label for label in row["labels"] if label != -100]
    assert words == [row["ner_tags"] for row in data]


def test_a_file_without_windows_has_no_column_for_them(world):
    assert tokens(world, "wikiann")[0].column_names == ["input_ids", "context_length", "labels"]


def test_words_without_a_token_are_reported(world, tmp_path, capsys):
    pq.write_table(pa.table({"tokens": [["Bob", "", "runs"]], "ner_tags": [[1, 0, 0]]}), tmp_path / "d.parquet")
    tokenize(tmp_path / "d.parquet", world / "encoder", "wikiann", 64, tmp_path / "t.arrow")
    assert HEADS["token"].counts(batches.read(tmp_path / "t.arrow", "qa1")) == {"words": 2}
    assert "d.parquet: 1 words have no token, and are not scored" in capsys.readouterr().err


def test_an_empty_second_segment_has_no_tokens(world):
    made = {"n": 40, "probe": "context-only"}
    make_meanings("lot", made, world / "lot.parquet")
    make_data("lot", made, "en", world / "lot.parquet", world / "lot")
    found, _ = tokens(world, "lot")
    for row, said in zip(found.to_pylist(), read_table(world / "lot" / "train.parquet").to_pylist(), strict=True):
        assert said["phrase"] == "" and row["context_length"] == len(row["input_ids"])
        alone = tokenizer(world)(said["context"])["input_ids"]
        assert row["input_ids"][: len(alone)] == alone
        assert set(row["input_ids"][len(alone) :]) == {alone[-1]}, "more than separators follows the context"


def test_types_are_those_that_training_reads(world):
    found, _ = tokens(world, "ruletaker")
    assert found.schema.field("input_ids").type == pa.list_(pa.int32())
    assert found.schema.field("label").type == pa.int64()
    assert found.schema.field("context_length").type == found.schema.field("depth").type == pa.int32()


def test_data_of_another_task_are_an_error(world, tmp_path):
    pq.write_table(pa.table({"words": [["a"]]}), tmp_path / "d.parquet")
    with pytest.raises(ValueError, match="no column 'tokens'"):
        tokenize(tmp_path / "d.parquet", world / "encoder", "udpos", 16, tmp_path / "out.arrow")


def test_one_separator_is_one_on_every_encoder_and_nothing_else_changes(world):
    out = world / "one.arrow"
    tokenize(world / "ruletaker" / "train.parquet", world / "encoder", "ruletaker", 512, out, one_separator=True)
    one, usual, sep = batches.read(out), tokens(world, "ruletaker")[0].to_pylist(), tokenizer(world).sep_token_id
    for i, row in enumerate(usual):
        ids, at = row["input_ids"], row["context_length"]
        found = one.values[one.offsets[i] : one.offsets[i + 1]].tolist()
        assert found.count(sep) == 2 and one.contexts[i] == at
        assert found == ids[:at] + [token for token in ids[at:-1] if token != sep] + [sep]
