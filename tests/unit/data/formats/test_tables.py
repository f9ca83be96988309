"""Local files of every format: what is read, and which file and line an error names."""

import codecs
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from xlgrid.base.errors import Damaged
from xlgrid.data.formats import notes, read_table, rows

LABELS = {"x.jsonl": [0, 1], "x.csv": ["0", "1"]}
TABLE = pa.table({"text": ["a", "b"], "label": [0, 1]})
JSON = '{"text": "a", "label": 0}\n{"text": "b", "label": 1}\n'
CSV = "text,label\na,0\nb,1\n"


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
@pytest.mark.parametrize(("name", "contents"), [("x.jsonl", JSON), ("x.csv", CSV)])
def test_tables_are_read_with_a_byte_order_mark_and_without(tmp_path, name, contents, mark):
    (tmp_path / name).write_bytes(mark + contents.encode())
    assert read_table(tmp_path / name).to_pydict() == {"text": ["a", "b"], "label": LABELS[name]}
    assert list(rows(tmp_path / name, ["text", "label"])) == list(zip(["a", "b"], LABELS[name], strict=True))


def reads_table(path):
    return read_table(path)


def reads_rows(path):
    return list(rows(path, ["text"]))


@pytest.mark.parametrize("read", [reads_table, reads_rows])
@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"text": "cut', r"not JSON \(Unterminated string starting at, column 10\)"),
        (b"\xff", "not UTF-8"),
        (b'["no", "columns"]', r"expected an object with a value for each column, got \[\"no\", \"columns\"\]"),
    ],
)
def test_a_damaged_line_is_named_by_its_number_and_to_be_mended(tmp_path, read, line, problem):
    path = tmp_path / "my.jsonl"
    path.write_bytes(b'{"text": "a"}\n' * 199 + b"\n" + line + b"\n")
    with pytest.raises(ValueError, match=rf"my\.jsonl, line 201(, byte 1)?: {problem}.*; mend this line") as refusal:
        read(path)
    assert "delete" not in str(refusal.value)


def test_a_column_with_two_types_is_named(tmp_path):
    (tmp_path / "my.jsonl").write_text(JSON + '{"text": "c", "label": "yes"}\n')
    with pytest.raises(
        ValueError, match=r"my\.jsonl, column 'label': row 3 has text, 'yes', and the rows before have numbers; give"
    ):
        read_table(tmp_path / "my.jsonl")


def test_line_separators_inside_a_string_end_no_line(tmp_path):
    (tmp_path / "x.jsonl").write_text(json.dumps({"text": "one\u2028two"}, ensure_ascii=False), encoding="utf-8")
    assert reads_table(tmp_path / "x.jsonl")["text"].to_pylist() == ["one\u2028two"]
    assert reads_rows(tmp_path / "x.jsonl") == [("one\u2028two",)]


@pytest.mark.parametrize("read", [reads_table, reads_rows])
def test_missing_empty_and_cut_files_are_told_apart(tmp_path, read):
    with pytest.raises(FileNotFoundError, match=r"no file .*nowhere\.parquet"):
        read(tmp_path / "nowhere.parquet")
    (tmp_path / "empty.parquet").touch()
    with pytest.raises(ValueError, match="is empty"):
        read(tmp_path / "empty.parquet")
    pq.write_table(TABLE, tmp_path / "whole.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "whole.parquet").read_bytes()[:-100])
    with pytest.raises(Damaged, match=r"cut\.parquet is damaged .*; fetch, copy or make it again") as refused:
        read(tmp_path / "cut.parquet")
    assert refused.value.paths == (tmp_path / "cut.parquet",)


def test_notes_are_what_the_writer_of_a_parquet_file_has_added(tmp_path):
    with pq.ParquetWriter(tmp_path / "x.parquet", TABLE.schema) as writer:
        writer.add_key_value_metadata({"rows": "2"})
        writer.write_table(TABLE)
    assert notes(tmp_path / "x.parquet") == {"rows": "2"}
    pq.write_table(TABLE, tmp_path / "plain.parquet")
    (tmp_path / "x.jsonl").write_text(JSON)
    assert notes(tmp_path / "plain.parquet") == notes(tmp_path / "x.jsonl") == {}
    (tmp_path / "y.parquet").write_bytes((tmp_path / "x.parquet").read_bytes()[:-9])
    with pytest.raises(Damaged, match=r"y\.parquet is damaged or not parquet"):
        notes(tmp_path / "y.parquet")


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.jsonl.gz", "x.parquet"])
def test_a_pointer_of_git_lfs_is_no_data(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:1234\nsize 9\n")
    with pytest.raises(ValueError, match=r"is a pointer of Git LFS.* `git lfs pull`"):
        read_table(tmp_path / name)
