"""Data of tasks as tokens; texts as tokens: rows cut or split, pairs side by side, and a dev set apart."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from tokens_fixture import ids

from xlgrid.base.errors import Damaged
from xlgrid.data import batches
from xlgrid.data import tokenize as module
from xlgrid.data.fetch import fetch_data
from xlgrid.data.formats import read_table
from xlgrid.data.generated import make_data, make_meanings
from xlgrid.data.text import TextSettings, make_text
from xlgrid.data.tokenize import Forms, load_tokenizer, tokenize
from xlgrid.heads import HEADS
from xlgrid.tasks import task


def tokens(world, kind, max_length=512):
    out = world / f"{kind}-{max_length}.arrow"
    tokenize([world / kind / "train.parquet"], world / "encoder", kind, max_length, out)
    table = pa.ipc.open_file(pa.memory_map(str(out))).read_all()
    return table, json.loads(table.schema.metadata[b"xlgrid"])


def tokenizer(world):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(world / "encoder")


def test_the_context_is_cut_off_where_its_length_says(world):
    table, meta = tokens(world, "ruletaker")
    reader, data = tokenizer(world), read_table(world / "ruletaker" / "train.parquet").to_pylist()
    assert meta["pad_id"] == reader.pad_token_id
    for row, example in zip(table.to_pylist(), data, strict=True):
        ids, n = row["input_ids"], row["context_length"]
        assert ids == reader(example["context"], example["question"])["input_ids"]
        assert ids[:n] == reader(example["context"])["input_ids"]
        assert meta["labels"][row["label"]] == example["label"] and row["depth"] == example["depth"]


def test_long_inputs_lose_the_end_of_the_context(world, capsys):
    table, _ = tokens(world, "ruletaker", 40)
    whole, _ = tokens(world, "ruletaker")
    long = sum(len(ids) > 40 for ids in whole["input_ids"].to_pylist())
    assert long and f"{long} of {len(table)} inputs were cut to 40 tokens; raise max_length" in capsys.readouterr().err
    for cut, full in zip(table.to_pylist(), whole.to_pylist(), strict=True):
        assert len(cut["input_ids"]) == min(40, len(full["input_ids"]))
        question = full["input_ids"][full["context_length"] :]
        assert cut["input_ids"][cut["context_length"] :] == question


def test_no_room_for_the_question_is_an_error(world):
    with pytest.raises(ValueError, match="max_length 6 leaves no room"):
        tokens(world, "ruletaker", 6)


def test_the_first_piece_of_each_word_has_its_label(world):
    table, meta = tokens(world, "wikiann")
    data = read_table(world / "wikiann" / "train.parquet").to_pylist()
    assert meta["head"] == "token"
    for row, example in zip(table.to_pylist(), data, strict=True):
        assert [label for label in row["labels"] if label != -100] == example["ner_tags"]
        assert len(row["labels"]) == len(row["input_ids"]) == row["context_length"]
        assert row["labels"][0] == row["labels"][-1] == -100


def test_a_long_sentence_becomes_windows_with_each_word_once(world, capsys):
    table, _ = tokens(world, "wikiann", 8)
    data = read_table(world / "wikiann" / "train.parquet").to_pylist()
    whole, _ = tokens(world, "wikiann")
    long = sum(len(ids) > 8 for ids in whole["input_ids"].to_pylist())
    assert long and len(table) > len(data)
    report = capsys.readouterr().err
    assert f"{long} of {len(data)} examples were split into windows of 8 tokens" in report and "words" not in report
    words = [[] for _ in data]
    for row in table.to_pylist():
        assert len(row["input_ids"]) == len(row["labels"]) == row["context_length"] <= 8
        words[row["example"]] += [label for label in row["labels"] if label != -100]
    assert words == [row["ner_tags"] for row in data]


def test_a_file_is_read_in_parts_whose_rows_keep_their_numbers(world, tmp_path, monkeypatch):
    whole, _ = tokens(world, "wikiann", 8)
    monkeypatch.setattr(module, "BATCH", 7)
    parts, _ = tokens(world, "wikiann", 8)
    assert parts.equals(whole) and len(parts["example"].chunks) > len(whole["example"].chunks)
    table = read_table(world / "wikiann" / "train.parquet")
    wrong = [[9] * len(tags) if row == 20 else tags for row, tags in enumerate(table["ner_tags"].to_pylist())]
    at = table.column_names.index("ner_tags")
    pq.write_table(table.set_column(at, "ner_tags", pa.array(wrong)), tmp_path / "d.parquet")
    with pytest.raises(
        ValueError, match=r"d\.parquet, row 21, column 'ner_tags', word '.*': 9 is not a number from 0 to 6"
    ):
        tokenize([tmp_path / "d.parquet"], world / "encoder", "wikiann", 64, tmp_path / "t.arrow")


def test_files_of_other_types_are_read_and_empty_ones_refused(world, tmp_path):
    table = read_table(world / "ruletaker" / "train.parquet")
    (tmp_path / "d.jsonl").write_text("\n".join(json.dumps(row) for row in table.to_pylist()))
    tokenize([tmp_path / "d.jsonl"], world / "encoder", "ruletaker", 512, tmp_path / "t.arrow")
    assert pa.ipc.open_file(tmp_path / "t.arrow").read_all().equals(tokens(world, "ruletaker")[0])
    pq.write_table(table.slice(0, 0), tmp_path / "d.parquet")
    with pytest.raises(ValueError, match=r"d\.parquet has no rows"):
        tokenize([tmp_path / "d.parquet"], world / "encoder", "ruletaker", 512, tmp_path / "t.arrow")


def test_more_files_than_one_of_parallel_examples_are_for_texts_alone(world):
    data = world / "ruletaker" / "train.parquet"
    with pytest.raises(
        ValueError,
        match=r"needs one file, or one file and another one with parallel examples, got .* and .*: only text",
    ):
        tokenize([data, data, data], world / "encoder", "ruletaker", 512, world / "t.arrow")
    with pytest.raises(ValueError, match=r"a task of kind copa needs one file, got .* and .*: only text"):
        tokenize([data, data], world / "encoder", "copa", 512, world / "t.arrow")


def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_parallel_examples_are_the_tokens_of_the_same_examples_in_the_other_file(world, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 3)
    labels = ["entailment", "neutral"] * 4
    first, second = (
        lines(
            tmp_path / f"{name}.jsonl",
            [{"premise": "Bob is " * (1 + i % 3), "hypothesis": name, "label": each} for i, each in enumerate(labels)],
        )
        for name in ("kind", "nice")
    )
    for files, out in (([first, second], "both"), ([first], "first"), ([second], "second")):
        tokenize(files, world / "encoder", "xnli", 64, tmp_path / f"{out}.arrow")
    both, alone, other = (batches.read(tmp_path / f"{name}.arrow", "fr") for name in ("both", "first", "second"))
    assert both.columns["parallel_ids"].to_pylist() == ids(other) and ids(both) == ids(alone) != ids(other)
    some = batches.mix([both, both], 1).take(np.array([5, 2]))
    assert some.columns["parallel_ids"].to_pylist() == [ids(other)[5], ids(other)[2]]


def test_all_windows_of_an_example_have_the_first_window_of_its_parallel_example(world, tmp_path):
    def row(context):
        return {"context": context, "question": "Bob", "answers": {"text": ["Bob"], "answer_start": [0]}}

    first = lines(tmp_path / "a.jsonl", [row("Bob is kind . " * 30), row("Bob is")])
    second = lines(tmp_path / "b.jsonl", [row("Bob is nice . " * 30), row("Bob")])
    for files, out in (([first, second], "both"), ([second], "second")):
        tokenize(files, world / "encoder", "xquad", 60, tmp_path / f"{out}.arrow", options={"stride": 10})
    both, other = (batches.read(tmp_path / f"{name}.arrow") for name in ("both", "second"))
    windows = both.example_of.tolist()
    assert windows.count(0) > 2 and windows.count(1) == 1
    begins = [other.example_of.tolist().index(example) for example in windows]
    assert both.columns["parallel_ids"].to_pylist() == [ids(other)[at] for at in begins]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda rows: rows[:-1],
            r"a\.jsonl has 4 examples, and .*b\.jsonl, which has the parallel examples, has 3: row i must",
        ),
        (
            lambda rows: rows[::-1],
            r"b\.jsonl does not have the parallel examples of .*a\.jsonl: the label differs in row 1; row i must",
        ),
    ],
)
def test_parallel_examples_that_are_no_translations_are_refused(world, tmp_path, change, message):
    rows = [{"premise": "Bob", "hypothesis": "is", "label": label} for label in ["neutral", "entailment"] * 2]
    files = lines(tmp_path / "a.jsonl", rows), lines(tmp_path / "b.jsonl", change(rows))
    with pytest.raises(ValueError, match=message):
        tokenize([*files], world / "encoder", "xnli", 64, tmp_path / "t.arrow")


@pytest.mark.parametrize(
    ("others", "fits"),
    [(["a", "b", "c"], True), (["x", "y", "z"], True), (["b", "a", "c"], False), (["a", "b", "z"], False)],
)
def test_parallel_examples_with_ids_have_those_of_the_examples(world, tmp_path, others, fits):
    """Sentences of words have no labels that would show it. Ids of which none is common are of each language alone."""
    files = [
        lines(tmp_path / f"{name}.jsonl", [{"tokens": ["Bob"], "ner_tags": ["O"], "id": each} for each in row_ids])
        for name, row_ids in (("first", ["a", "b", "c"]), ("second", others))
    ]
    data = []
    for file in files:
        source = {"local": str(file)}
        data.append(file.with_suffix(".parquet"))
        fetch_data("wikiann", source, "en", "train", data[-1], tmp_path / "lock.yaml")
    out = tmp_path / "t.arrow"
    if fits:
        tokenize(data, world / "encoder", "wikiann", 64, out)
        assert len(batches.read(out).columns["parallel_ids"]) == 3
        return
    row = next(row for row, each in enumerate(others) if each != "abc"[row])
    with pytest.raises(ValueError, match=f"the id differs in row {row + 1}; row i must have the same content in both"):
        tokenize(data, world / "encoder", "wikiann", 64, out)


def test_a_word_without_a_token_is_the_unknown_token_and_is_reported(world, tmp_path, capsys):
    words = ["Bob", "", "runs"]
    pq.write_table(pa.table({"tokens": [words], "ner_tags": [[1, 0, 0]]}), tmp_path / "d.parquet")
    tokenize([tmp_path / "d.parquet"], world / "encoder", "wikiann", 64, tmp_path / "t.arrow")
    assert HEADS["token"].counts(batches.read(tmp_path / "t.arrow", "qa1"), []) == {"words": 3}
    assert "d.parquet: 1 words have no token and are read as unknown words" in capsys.readouterr().err


def test_an_empty_second_segment_has_no_tokens(world):
    options = {"n": 40, "probe": "context-only"}
    make_meanings("lot", options, world / "lot.parquet")
    make_data("lot", options, "en", world / "lot.parquet", world / "lot")
    table, _ = tokens(world, "lot")
    for row, example in zip(table.to_pylist(), read_table(world / "lot" / "train.parquet").to_pylist(), strict=True):
        assert example["phrase"] == "" and row["context_length"] == len(row["input_ids"])
        alone = tokenizer(world)(example["context"])["input_ids"]
        assert row["input_ids"][: len(alone)] == alone
        assert set(row["input_ids"][len(alone) :]) == {alone[-1]}, "more than separators follows the context"


def test_types_are_those_that_training_reads(world):
    table, _ = tokens(world, "ruletaker")
    assert table.schema.field("input_ids").type == pa.list_(pa.int32())
    assert table.schema.field("label").type == pa.int64()
    assert table.schema.field("context_length").type == table.schema.field("depth").type == pa.int32()


def test_one_separator_is_one_on_every_encoder_and_nothing_else_changes(world):
    out = world / "one.arrow"
    tokenize([world / "ruletaker" / "train.parquet"], world / "encoder", "ruletaker", 512, out, one_separator=True)
    once, usual, sep = batches.read(out), tokens(world, "ruletaker")[0].to_pylist(), tokenizer(world).sep_token_id
    for i, row in enumerate(usual):
        ids, at = row["input_ids"], row["context_length"]
        ids_kept = once.values[once.offsets[i] : once.offsets[i + 1]].tolist()
        assert ids_kept.count(sep) == 2 and once.contexts[i] == at
        assert ids_kept == ids[:at] + [token for token in ids[at:-1] if token != sep] + [sep]


def numbered(path, lines):
    """A file of text as `make_text` writes it."""
    pq.write_table(pa.table({"id": pa.array(range(len(lines)), pa.int32()), "text": lines}), path)
    return path


def of_text(world, lines, **settings):
    """The inputs of train and dev, or of the splits `names`, of a text of `lines`."""
    path = numbered(world / "lines.parquet", lines)
    parts = splits(world, [path], **settings)
    return [[part.values[a:b].tolist() for a, b in itertools.pairwise(part.offsets)] for part in parts]


def splits(world, texts, code="en", max_length=512, names=("train", "dev"), **settings):
    """The tokens of train and dev, or of the splits `names`, of a text or of parallel texts."""
    out = world / "text.arrow"
    for split in names:
        tokenize(texts, world / "encoder", "mlm", max_length, out, split=split, **settings)
        yield batches.read(out, code)


def inside(reader, row):
    """An input's tokens without the special ones, which are where they should be."""
    count = reader.num_special_tokens_to_add() // 2
    empty = reader("")["input_ids"]
    assert row[:count] == empty[:count] and row[-count:] == empty[-count:]
    return row[count:-count]


WORDS = st.lists(st.sampled_from(["Bob", "is", "not", "xyzzy", "Ébène", "木", "\n", "."]), max_size=30).map(" ".join)


def test_parallel_texts_stand_side_by_side_and_every_50th_is_for_dev(world):
    texts = [world / "en.parquet", world / "fr.parquet"]
    make_text("fr", texts[1], TextSettings(sentences=60, seed=0))
    reader, (train, dev) = tokenizer(world), splits(world, texts, "en-fr")
    assert (len(train), len(dev)) == (57, 2), "ids that both texts have, every 50th for dev"
    first, second = (read_table(path)["text"].to_pylist()[1].replace("\n", " ") for path in texts)
    expected = reader(first, second)["input_ids"]
    assert train.values[: train.offsets[1]].tolist() == expected
    assert expected[train.contexts[0] - 1] == reader.sep_token_id
    assert train.vocabulary.mask_id == reader.mask_token_id and train.vocabulary.size == len(reader)


def texts_of(tokens):
    """The texts that the inputs have, as token ids without special tokens."""
    ends = zip(tokens.offsets[:-1], tokens.offsets[:-1] + tokens.contexts, tokens.offsets[1:], strict=True)
    segments = [tokens.values[a:b] for start, middle, end in ends for a, b in ((start, middle), (middle, end))]
    texts = [tuple(ids[~np.isin(ids, tokens.vocabulary.special_ids)].tolist()) for ids in segments]
    return {text for text in texts if text}


def test_a_pair_is_trained_on_only_if_both_rows_are(world):
    """French lacks rows 30 and 50, so that later rows of its text come earlier than the English rows of their ids."""
    names = ("train", "dev", "test")
    meanings = [" ".join(["Bob", "kind"][row >> bit & 1] for bit in range(8)) for row in range(200)]
    english, french = (
        numbered(world / "pair-en.parquet", [f"is {text}" for text in meanings]),
        world / "pair-fr.parquet",
    )
    shared = [row for row in range(200) if row not in (30, 50)]
    pq.write_table(
        pa.table({"id": pa.array(shared, pa.int32()), "text": [f"not {meanings[i]}" for i in shared]}), french
    )
    pairs = dict(zip(names, map(texts_of, splits(world, [english, french], "en-fr", names=names)), strict=True))
    for path in (english, french):
        alone = dict(zip(names, map(texts_of, splits(world, [path], names=names)), strict=True))
        for name, other in itertools.permutations(names, 2):
            assert not pairs[name] & alone[other], f"{name} of the pair has rows that are for {other}"
    # Both texts hold out rows 0, 100 and 150 for dev, and rows 25, 75, 125 and 175 for test. French alone holds out row 51.
    assert [len(pairs[name]) for name in names] == [2 * (198 - 3 - 4 - 1), 2 * 3, 2 * 4]


def test_an_empty_line_in_one_of_two_parallel_files_costs_its_own_row_alone(world):
    lines = {"en": [f"is Bob {number}" for number in range(120)]}
    lines["de"] = [*lines["en"][:40], "", *lines["en"][41:-1], ""]
    files = {code: str(world / f"gap-{code}.txt") for code in lines}
    for code, path in files.items():
        Path(path).write_text("".join(f"{line}\n" for line in lines[code]))
        make_text(code, world / f"gap-{code}.parquet", TextSettings(files=files))
    train, dev = splits(world, [world / "gap-en.parquet", world / "gap-de.parquet"], "en-de")
    assert (len(train), len(dev)) == (120 - 3 - 2 - 2, 3), (
        "3 rows of 120 are for dev, 2 for test, and 2 are empty in German"
    )


def test_one_text_is_one_segment(world):
    train, _ = splits(world, [world / "qa1.parquet"], "qa1")
    assert (
        train.contexts.tolist() == train.lengths.tolist() and not train.segments(np.arange(len(train))).switched.any()
    )


def test_texts_without_a_common_id_are_refused(world):
    path = world / "other.parquet"
    table = read_table(world / "en.parquet")
    pq.write_table(table.set_column(0, "id", pa.array(range(1000, 1000 + len(table)))), path)
    with pytest.raises(ValueError, match="0 ids in common"):
        [*splits(world, [world / "en.parquet", path])]


def test_bitext_of_unequal_length_is_refused(world):
    """A line that German lacks moves all later lines, though their numbers are those of lines in English."""
    english = [f"is Bob {number}" for number in range(120)]
    lines = {"en": english, "de": [*english[:40], *english[41:]], "fr": english}
    files = {code: str(world / f"lines-{code}.txt") for code in lines}
    for code in files:
        (world / f"lines-{code}.txt").write_text("".join(f"{line}\n" for line in lines[code]))
        make_text(code, world / f"lines-{code}.parquet", TextSettings(files=files))
        # What is cut at a number of characters ends with another row in each language.
        make_text(code, world / f"cut-{code}.parquet", TextSettings(files=files, most_characters=len(code) * 500))
    texts = {code: world / f"lines-{code}.parquet" for code in lines}
    with pytest.raises(ValueError, match=r"lines-en.* and .*lines-de.* their last rows are rows 120 and 119"):
        [*splits(world, [texts["en"], texts["de"]], "en-de")]
    for other in (texts["fr"], world / "cut-de.parquet"):
        train, dev = splits(world, [texts["en"], other], "en-fr")
        assert len(train) > 100 and len(dev) == 3


@pytest.mark.parametrize("longer", ["en", "de"])
def test_an_empty_line_at_the_end_of_one_of_two_files_is_no_difference(world, longer):
    files = {code: str(world / f"end-{code}.txt") for code in ("en", "de")}
    for code, path in files.items():
        Path(path).write_text("is Bob\n" * 60 + "\n" * (code == longer))
        make_text(code, world / f"end-{code}.parquet", TextSettings(files=files))
    train, dev = splits(world, [world / "end-en.parquet", world / "end-de.parquet"], "en-de")
    assert (len(train), len(dev)) == (57, 2)


def test_where_a_line_is_empty_the_next_one_is_held_out(world):
    lines = [" ".join(["Bob", "kind"][row >> bit & 1] for bit in range(6)) for row in range(60)]
    empty = (0, 25, 26, 50)
    (world / "gaps.txt").write_text("".join(f"{line * (row not in empty)}\n" for row, line in enumerate(lines)))
    make_text("en", world / "gaps.parquet", TextSettings(files={"en": str(world / "gaps.txt")}))
    parts = splits(world, [world / "gaps.parquet"], names=("train", "dev", "test"))
    train, dev, test = map(texts_of, parts)
    reader = tokenizer(world)
    ids = [tuple(reader(line, add_special_tokens=False)["input_ids"]) for line in lines]
    assert (dev, test) == ({ids[1], ids[51]}, {ids[27]}) and len(train) == 60 - len(empty) - 3


def test_parallel_texts_are_read_side_by_side(world, monkeypatch):
    """In parts of two rows; each text has ids that the other one lacks."""
    monkeypatch.setattr(module, "BATCH", 2)
    ids = {"a": [2, 3, 5, 7, 8, 25], "b": [1, 2, 3, 4, 7, 25]}
    for name, numbers in ids.items():
        table = pa.table({"id": pa.array(numbers, pa.int32()), "text": [f"{name}{number}" for number in numbers]})
        pq.write_table(table, world / f"{name}.parquet")
    tables = module._side_by_side([world / "a.parquet", world / "b.parquet"], ["x", "y"], dev_rows=10)
    assert [table.to_pylist() for table in tables] == [
        [{"x": "a2", "y": "b2", "splits": ["dev", "train"]}, {"x": "a3", "y": "b3", "splits": ["train", "train"]}],
        [{"x": "a7", "y": "b7", "splits": ["train", "train"]}, {"x": "a25", "y": "b25", "splits": ["test", "test"]}],
    ]


def test_ids_that_do_not_ascend_are_refused(world):
    numbered(world / "a.parquet", ["is Bob"] * 60)
    table = read_table(world / "a.parquet")
    pq.write_table(pa.concat_tables([table, table]), world / "b.parquet")
    with pytest.raises(ValueError, match=r"b\.parquet, row 61: id 0 follows id 59, but ids must ascend"):
        [*splits(world, [world / "a.parquet", world / "b.parquet"])]


def test_parallel_texts_have_one_separator_where_asked_for(world):
    texts = [world / "en.parquet", world / "fr.parquet"]
    make_text("fr", texts[1], TextSettings(sentences=60, seed=0))
    parts = []
    for single in (False, True):
        parts.append(next(splits(world, texts, "en-fr", one_separator=single)))
    usual, once = parts
    reader = tokenizer(world)
    extra = reader.num_special_tokens_to_add(pair=True) - 3
    assert once.contexts.tolist() == usual.contexts.tolist()
    for i, at in enumerate(once.contexts):
        ids, full = (part.values[part.offsets[i] : part.offsets[i + 1]].tolist() for part in (once, usual))
        assert ids.count(reader.sep_token_id) == 2 and ids == full[:at] + full[at + extra :]


def test_rows_of_text_are_cut_one_by_one(world, capsys):
    lines = read_table(world / "en.parquet")["text"].to_pylist() * 25
    reader = tokenizer(world)
    expected = [reader(text.replace("\n", " "), truncation=True, max_length=16)["input_ids"] for text in lines]
    train, dev = of_text(world, lines, max_length=16)
    assert train == [row for i, row in enumerate(expected) if i % 25] and dev == expected[::50]
    cut = sum(len(reader(text.replace("\n", " "))["input_ids"]) > 16 for i, text in enumerate(lines) if i % 25)
    report = capsys.readouterr().err
    assert f"lines.parquet: {cut:,} of 2,400 inputs were cut to 16 tokens; `documents: split`" in report


@given(st.lists(WORDS, min_size=2, max_size=8), st.integers(5, 9))
@settings(max_examples=30)
def test_split_documents_lose_nothing(world, documents, max_length):
    reader = tokenizer(world)
    ids = [reader(text.replace("\n", " "), add_special_tokens=False)["input_ids"] for text in documents]
    assume(ids[0] and any(ids[1:]))
    parts = of_text(world, documents, documents="split", max_length=max_length)
    for rows, expected in zip(parts, (ids[1:], ids[:1]), strict=True):
        assert all(len(row) <= max_length for row in rows)
        room = max_length - reader.num_special_tokens_to_add()
        pieces = [ids[start : start + room] for ids in expected for start in range(0, len(ids), room)]
        assert [inside(reader, row) for row in rows] == pieces


def test_documents_of_dev_are_not_in_train(world):
    names = list(dict.fromkeys(read_table(world / "en.parquet")["text"].to_pylist()))[:60]
    documents = [f"{name} " * 9 for name in names]
    reader, parts = tokenizer(world), of_text(world, documents, documents="split", max_length=20)
    for rows, chosen in zip(
        parts, (documents[1:25] + documents[26:50] + documents[51:], [documents[0], documents[50]]), strict=True
    ):
        expected = [reader(text.replace("\n", " "), add_special_tokens=False)["input_ids"] for text in chosen]
        chained = itertools.chain.from_iterable
        assert [*chained(inside(reader, row) for row in rows)] == [*chained(expected)]


def test_every_50th_row_is_for_dev_those_between_for_test_and_rows_beyond_are_trained_on(world, monkeypatch):
    reader = tokenizer(world)
    lines = [f"Bob is kind {i} ." for i in range(200)]
    monkeypatch.setattr(module, "BATCH", 30)
    parts = of_text(world, lines, dev_rows=2, names=("train", "dev", "test"))
    dev, test = [0, 50], [25, 75]
    trained = [i for i in range(200) if i not in dev + test]
    for rows, numbers in zip(parts, (trained, dev, test), strict=True):
        assert rows == [reader(lines[i])["input_ids"] for i in numbers]


def test_no_row_is_read_after_the_last_one_that_is_held_out(world, monkeypatch):
    path = numbered(world / "lines.parquet", [f"Bob is kind {i} ." for i in range(200)])
    rows_read, tables = [], module.tables

    def counted(*arguments):
        for table in tables(*arguments):
            rows_read.append(table.num_rows)
            yield table

    monkeypatch.setattr(module, "BATCH", 30)
    monkeypatch.setattr(module, "tables", counted)
    for split, count in (("train", 200), ("dev", 120), ("test", 120)):
        rows_read.clear()
        tokenize([path], world / "encoder", "mlm", 512, world / "text.arrow", split=split, dev_rows=2)
        assert sum(rows_read) == count, split


@pytest.mark.parametrize("length", [2, 513])
def test_a_length_that_no_input_of_text_can_have_is_an_error(world, length):
    with pytest.raises(ValueError, match=rf"max_length {length} does not fit: .* 3 to 512 tokens"):
        of_text(world, ["a", "b"], max_length=length)


def test_a_text_of_one_row_is_refused(world):
    with pytest.raises(
        ValueError, match="has 1 rows, and no row with text for train: the first row with text among rows 1 to 25"
    ):
        of_text(world, ["a"])


def test_a_pair_of_long_documents_is_cut(world):
    path = numbered(world / "pair.parquet", ["Bob is kind . " * 40] * 60)
    train, dev = splits(world, [path, path], "en-fr", documents="split", max_length=30)
    assert (len(train), len(dev)) == (57, 2) and set(train.lengths.tolist()) == {30}


def chained(rows, ids):
    """The ids of some rows, one row after another."""
    return itertools.chain.from_iterable(ids[row] for row in rows)


@given(st.lists(WORDS, min_size=3, max_size=40), st.integers(6, 12), st.integers(1, 7))
@settings(max_examples=30)
def test_packed_documents_fill_all_inputs_but_the_last_and_lose_nothing(world, documents, max_length, batch):
    reader = tokenizer(world)
    ids = [reader(text.replace("\n", " "), add_special_tokens=False)["input_ids"] for text in documents]
    # The tokens for training fill an input, separators included.
    trained = [ids[row] for row in range(len(ids)) if row not in (0, 25)]
    room = max_length - reader.num_special_tokens_to_add()
    assume(ids[0] and sum(len(tokens) + 1 for tokens in trained if tokens) >= room)
    with pytest.MonkeyPatch.context() as patch:
        # The rows of a batch do not fill an input.
        patch.setattr(module, "BATCH", batch)
        parts = of_text(world, documents, documents="pack", max_length=max_length)
    held_out = [row for row in (0, 25) if row < len(ids)]
    for rows, texts in zip(parts, ([i for i in range(len(ids)) if i not in held_out], [0]), strict=True):
        pieces = [inside(reader, row) for row in rows]
        assert [token for piece in pieces for token in piece if token != reader.sep_token_id] == [*chained(texts, ids)]
        ends = {*itertools.accumulate(len(ids[row]) for row in texts)}
        # Texts end where inputs do, or at separators; an input lacks one token only if its last text ends before it.
        at, separators, borders = 0, [], []
        for row, piece in zip(rows, pieces, strict=True):
            for token in piece:
                if token == reader.sep_token_id:
                    separators.append(at)
                at += token != reader.sep_token_id
            borders.append(at)
            assert len(row) == max_length or (len(row) == max_length - 1 and at in ends) or row is rows[-1]
        assert separators == sorted(ends - {0, *borders})


# Prints the threads that the tokenizer starts, beside those of Arrow.
ON_CORES = """
import os, sys
import pyarrow
from xlgrid.data.tokenize import tokenize
pyarrow.set_cpu_count(1)
text, tokenizer, out = sys.argv[1:]
tokenize([text], tokenizer, "mlm", 32, out, split="train", documents="pack")
print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_a_text_is_tokenised_on_the_cores_of_the_job_to_the_same_bytes(world):
    """Arrow may start eight threads more for reading."""
    lines = [f"line {number} " + "of a text " * (number % 7) for number in range(500)]
    path = numbered(world / "cores.parquet", lines)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TOKENIZERS_", "RAYON_"))}
    threads, contents = [], []
    for cores in ("1", "30"):
        out = world / f"cores{cores}.arrow"
        command = [sys.executable, "-c", ON_CORES, path, world / "encoder", out]
        ended = subprocess.run(command, env=environment | {"OMP_NUM_THREADS": cores}, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
        threads.append(int(ended.stdout))
        contents.append(out.read_bytes())
    assert threads[1] - threads[0] > 20, threads
    assert contents[0] == contents[1]


def test_a_text_that_fills_no_input_is_refused_where_texts_are_packed(world):
    lines = ["Bob is kind ."] * 4
    size = 2 + sum(len(ids) + 1 for ids in tokenizer(world)(lines[1:], add_special_tokens=False)["input_ids"])
    train, dev = of_text(world, lines, documents="pack", max_length=size)
    assert len(train) == 1 and len(dev) == 1 and len(dev[0]) < len(train[0])
    message = f"4 rows with {size - 1} tokens for train, which do not fill one input of max_length {size + 1}, .*: lower max_length"
    with pytest.raises(ValueError, match=message):
        of_text(world, lines, documents="pack", max_length=size + 1)
    with pytest.raises(ValueError, match="no row with text for train"):
        of_text(world, ["a"], documents="pack")


def test_check_5_nineteen_in_twenty_positions_of_a_packed_text_are_tokens(world):
    lines = read_table(world / "en.parquet")["text"].to_pylist() * 25
    train, _ = splits(world, [numbered(world / "lines.parquet", lines)], documents="pack", max_length=64)
    assert train.sizes.sum() >= 0.95 * len(train) * 64
    of_text_alone = ~np.isin(train.values[:], train.vocabulary.special_ids)
    assert of_text_alone.sum() >= 0.85 * len(train) * 64, "separators between sentences are tokens, too, but few"


def test_the_second_line_of_a_row_is_the_second_segment(world):
    lines = ["Bob is kind .\nIs Bob big ?", "Bob is kind .", "a\nb\nc"] * 20
    reader = tokenizer(world)
    expected = [reader(*text.replace("\n", "|", 1).replace("\n", " ").split("|"))["input_ids"] for text in lines]
    path = numbered(world / "lines.parquet", lines)
    train, _ = splits(world, [path], lines="segments")
    kept = [row for row in range(60) if row % 25]
    assert [train.values[a:b].tolist() for a, b in itertools.pairwise(train.offsets)] == [expected[row] for row in kept]
    for row, context, size in zip(kept, train.contexts.tolist(), train.sizes.tolist(), strict=True):
        assert (context < size) is ("\n" in lines[row])
        first = reader(lines[row].split("\n")[0])["input_ids"]
        assert expected[row][:context] == first[:context] and context == len(first)


def of_words(*words):
    """A tokenizer with a token for each word."""
    model = models.WordLevel({word: number for number, word in enumerate(["[UNK]", *words])}, unk_token="[UNK]")
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer


@pytest.mark.parametrize("composes", [False, True])
def test_texts_that_have_other_tokens_in_nfc_are_remarked(composes):
    from transformers import PreTrainedTokenizerFast

    composed, apart = "caf\u00e9", "cafe\u0301"
    tokenizer = of_words(composed, apart, "x")
    if composes:
        tokenizer.normalizer = normalizers.NFC()
    described = task("token", {"inputs": ["words"], "target": "tags", "labels": ["O", "B-X"]})
    forms = Forms(PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]"), described)
    forms.read(pa.table({"words": [[composed, apart], [apart, "x"]]}))
    said = [*forms.remarks()]
    if composes:
        assert not said
    else:
        assert said[0].startswith("2 of 4 texts or words are not in the normalization form NFC, and 2 of 2 that were")


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "special_tokens_map.json"])
@pytest.mark.parametrize("content", ["{not json", "[1]", ""])
def test_a_damaged_file_beside_the_tokenizer_is_named(tmp_path, name, content):
    of_words("x").save(str(tmp_path / "tokenizer.json"))
    (tmp_path / name).write_text(content)
    with pytest.raises(Damaged, match=rf"{name} is damaged or not JSON"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("name", ["tokenizer.json", "config.json", "tokenizer_config.json", "special_tokens_map.json"])
def test_a_pointer_of_git_lfs_beside_the_tokenizer_is_told(tmp_path, name):
    of_words("x").save(str(tmp_path / "tokenizer.json"))
    (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
    with pytest.raises(Damaged, match=rf"{name} is a pointer of Git LFS"):
        load_tokenizer(tmp_path)
