"""Types of files by the ends of their names, and files that are compressed."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from xlgrid.base.errors import Damaged
from xlgrid.data.formats import Reading, has_words, type_of
from xlgrid.data.formats.files import existing, opened, text_lines


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a/en.train.txt", ".txt"), ("en.tsv.gz", ".tsv"), ("x.jsonl.xz", ".jsonl"), ("x.bz2", ""), ("x", ""), ("", "")],
)
def test_the_type_of_a_file_stands_before_its_compression(name: str, expected: str) -> None:
    assert type_of(name) == expected


def test_text_and_tables_are_files_of_words_for_tasks_of_words_alone() -> None:
    of_words = Reading(words=("tokens", "tags"))
    assert all(has_words(f"x{end}", of_words) for end in (".txt", ".tsv.gz", ".conllu", ".conll", ".iob2.xz"))
    assert not any(has_words(f"x{end}", of_words) for end in (".csv", ".jsonl", ".parquet", ".json"))
    assert not has_words("x.txt", Reading()) and has_words("x.conllu", Reading())


@pytest.mark.parametrize(
    ("end", "compress"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)]
)
def test_lines_are_numbered_from_one(tmp_path: Path, end: str, compress: Callable[[bytes], bytes]) -> None:
    path = tmp_path / f"x.txt{end}"
    path.write_bytes(compress("\ufeffone\r\n\ntwo\u2028three".encode()))
    assert list(text_lines(path)) == [(1, "one"), (2, ""), (3, "two\u2028three")]
    with opened(path) as file:
        assert file.read().endswith(b"three")


def test_a_cut_compressed_file_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "x.txt.gz").write_bytes(gzip.compress(b"one\n" * 1000)[:-9])
    with pytest.raises(Damaged, match=r"x\.txt\.gz is damaged: Compressed file ended.*; mend it") as refused:
        list(text_lines(tmp_path / "x.txt.gz"))
    assert refused.value.paths == ()


@pytest.mark.parametrize("name", ["x.parquet.gz", "x.zip", "x.txt"])
def test_a_file_of_another_type_names_the_types(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("?")
    expected = (
        r"expected \.parquet, \.jsonl or \.csv, of which all but \.parquet may be compressed \(\.gz, \.xz, \.bz2\)!"
    )
    with pytest.raises(ValueError, match=rf"{name} is of an unknown type: {expected}$"):
        existing(tmp_path / name, (".parquet", ".jsonl", ".csv"), "!")
