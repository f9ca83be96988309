"""Types of files by the ends of their names, and files that are compressed."""

import bz2
import gzip
import lzma
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pytest

from xlgrid.base.errors import Damaged
from xlgrid.data.formats import Reading, has_words, read_table, rows, type_of
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


def zstd(content: bytes) -> bytes:
    compressed: bytes = pa.compress(content, codec="zstd", asbytes=True)
    return compressed


COMPRESS = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress, ".zst": zstd}
WORDS = Reading(words=("words", "tags"))


def read(path: Path) -> None:
    """All contents, in each way in which files of this type are read."""
    ways: list[Callable[[], object]] = [lambda: read_table(path, WORDS)]
    if type_of(path) in (".jsonl", ".csv", ".txt"):
        ways.append(lambda: [*rows(path, ["text"])])
    problems = []
    for way in ways:
        try:
            way()
        except Damaged as problem:
            problems.append(problem)
    assert len(problems) == len(ways), "a damaged file was read as if it were whole"
    raise problems[-1]


@pytest.mark.parametrize("end", COMPRESS)
@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.json", "x.conll", "x.txt"])
@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda whole: whole[:-20], r"is damaged or cut short after byte [\d,]+ of its decompressed contents \(.+\)"),
        (lambda whole: whole[:40] + b"junk" * 99 + whole[436:], "(is damaged|line [0-9]+)"),
        (lambda whole: b"junk" * 99, "is damaged or not a .* file"),
        (
            lambda whole: b'{"text": "a"}\n',
            "is damaged or not a .* file, .*: if it is not compressed, remove .* from its name",
        ),
        (lambda whole: b"", "is empty"),
    ],
    ids=["cut", "spoilt", "junk", "plain", "empty"],
)
def test_a_damaged_compressed_file_is_named_with_its_problem(
    tmp_path: Path, name: str, end: str, damage: Callable[[bytes], bytes], problem: str
) -> None:
    path = tmp_path / f"{name}{end}"
    # Text that cannot be compressed to fewer bytes than are damaged.
    lines = [f'{{"text": "{sha256(str(number).encode()).hexdigest()}"}}' for number in range(99)]
    path.write_bytes(damage(COMPRESS[end]("\n".join([*["text"] * (name != "x.jsonl"), *lines]).encode())))
    with pytest.raises(Damaged, match=rf"{re.escape(str(path))},? {problem}") as refused:
        read(path)
    assert refused.value.paths == (), "the user's own file would be deleted"


@pytest.mark.parametrize("end", COMPRESS)
@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.txt", "x.jsonl.gz", "x.jsonl.bz2"])
def test_compression_that_the_name_does_not_say_is_named(tmp_path: Path, name: str, end: str) -> None:
    if name.endswith(end):
        return
    (tmp_path / name).write_bytes(COMPRESS[end](b'{"text": "a"}\n'))
    with pytest.raises(Damaged, match=rf"{name} is compressed, but its name does not show it: end the name in \{end}"):
        read(tmp_path / name)


@pytest.mark.parametrize("end", COMPRESS)
def test_compressed_nothing_is_empty(tmp_path: Path, end: str) -> None:
    (tmp_path / f"x.csv{end}").write_bytes(COMPRESS[end](b""))
    with pytest.raises(Damaged, match=rf"x\.csv\{end} is empty"):
        read(tmp_path / f"x.csv{end}")


@pytest.mark.parametrize(
    ("start", "problem"),
    [(b"PK\x03\x04rest", "is a zip archive: unpack it"), (b"PAR1rest", "is parquet: end its name")],
)
def test_other_files_under_the_name_of_text_are_named(tmp_path: Path, start: bytes, problem: str) -> None:
    (tmp_path / "x.csv").write_bytes(start)
    with pytest.raises(Damaged, match=rf"x\.csv {problem}"):
        read(tmp_path / "x.csv")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.json", "x.conllu", "x.txt", "x.txt.gz"])
def test_another_encoding_of_unicode_is_named(tmp_path: Path, name: str, encoding: str) -> None:
    content = 'text,label\n"Тигр идёт по лесу",0\n'.encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    with pytest.raises(
        Damaged, match=rf"{re.escape(name)} is in {encoding[:6].upper()}.*but must be in UTF-8: save it"
    ):
        read(tmp_path / name)


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.json", "x.conll", "x.txt"])
def test_a_byte_of_latin_1_is_named_by_line_and_byte(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes("text O\nTür O\n".encode("latin-1"))
    with pytest.raises(Damaged, match=rf"{name}, line 2, byte 2: not UTF-8 \(0xFC: .*Latin-1"):
        if name == "x.jsonl":
            [*text_lines(tmp_path / name)]
        elif name == "x.txt":
            [*rows(tmp_path / name, ["text"])]
        else:
            read_table(tmp_path / name, WORDS)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "x.csv").mkdir()
    with pytest.raises(ValueError, match=r"x\.csv is a folder: name a file in it"):
        read_table(tmp_path / "x.csv")


@pytest.mark.parametrize("name", ["x.parquet.gz", "x.zip", "x.txt"])
def test_a_file_of_another_type_names_the_types(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("?")
    expected = (
        r"expected \.parquet, \.jsonl or \.csv; all except \.parquet may be compressed \(\.gz, \.xz, \.bz2, \.zst\)!"
    )
    with pytest.raises(ValueError, match=rf"{name} is of an unknown type: {expected}$"):
        existing(tmp_path / name, (".parquet", ".jsonl", ".csv"), "!")
