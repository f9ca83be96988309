"""Tokenised data."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from xlgrid import batches
from xlgrid.data import make_data, make_meanings, read_table
from xlgrid.mini import MiniEncoder, make_mini
from xlgrid.text import TextSettings, make_text
from xlgrid.tokens import tokenize, tokenize_text

TINY = {"vocab": 400, "hidden": 8, "layers": 1, "heads": 1, "intermediate": 8, "steps": 1, "batch": 2}


@pytest.fixture(scope="module", params=["bert", "xlmr"])
def world(request, tmp_path_factory):
    """A folder with an encoder and small data of every head."""
    folder = tmp_path_factory.mktemp("tokens")
    texts = {language: folder / f"{language}.parquet" for language in ("en", "qa1")}
    for language, path in texts.items():
        make_text(language, path, TextSettings(sentences=100))
    make_mini(MiniEncoder(kind=request.param, languages=("en", "qa1"), **TINY), texts, folder / "encoder", print)
    for kind, language in (("ruletaker", "en"), ("wikiann", "qa1")):
        make_meanings(kind, {"n": 40}, folder / f"{kind}.parquet")
        make_data(kind, {"n": 40}, language, folder / f"{kind}.parquet", folder / kind)
    return folder


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


def test_words_beyond_the_length_are_counted(world):
    _, meta = tokens(world, "wikiann", 6)
    assert meta["truncated"] > 0 and meta["lost_words"] > 0


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
    assert train.contexts.tolist() == train.lengths.tolist() and not train.switched.any()


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


def test_one_separator_is_one_on_every_encoder_and_nothing_else_changes(world):
    out = world / "one.arrow"
    tokenize(world / "ruletaker" / "train.parquet", world / "encoder", "ruletaker", 512, out, one_separator=True)
    one, usual, sep = batches.read(out), tokens(world, "ruletaker")[0].to_pylist(), tokenizer(world).sep_token_id
    for i, row in enumerate(usual):
        ids, at = row["input_ids"], row["context_length"]
        found = one.values[one.offsets[i] : one.offsets[i + 1]].tolist()
        assert found.count(sep) == 2 and one.contexts[i] == at
        assert found == ids[:at] + [token for token in ids[at:-1] if token != sep] + [sep]
