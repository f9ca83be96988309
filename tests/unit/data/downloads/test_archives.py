"""Files of archives; files that are not what their names say."""

import gzip
import io
import lzma
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from xlgrid.base.errors import Damaged
from xlgrid.data.downloads.archives import problem, unpack

CONTENT = b"one\ttwo\n" * 5000


def write_tar(path: Path, **files: bytes) -> Path:
    modes: dict[str, Any] = {".gz": "w:gz", ".bz2": "w:bz2", ".xz": "w:xz", ".tar": "w"}
    with tarfile.open(path, modes[path.suffix]) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def write_zip(path: Path, **files: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


FILES = {"veco/model.bin": CONTENT, "veco/notes/model.bin.md5": b"x", "README": b"read"}


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz", "a.tar.bz2", "a.tar.xz"])
@pytest.mark.parametrize("member", ["model.bin", "veco/model.bin", "./veco/model.bin"])
def test_a_file_is_found_by_the_end_of_its_path(tmp_path: Path, name: str, member: str) -> None:
    archive = (write_zip if name.endswith("zip") else write_tar)(tmp_path / name, **FILES)
    unpack(archive, member, tmp_path / "out/model.bin")
    assert (tmp_path / "out/model.bin").read_bytes() == CONTENT


def test_a_part_of_a_name_is_no_end_of_a_path(tmp_path: Path) -> None:
    archive = write_tar(tmp_path / "a.tar", **FILES)
    with pytest.raises(
        ValueError, match=r"has no file 'del\.bin'; it has: veco/model\.bin, .*README\. Correct `member`"
    ):
        unpack(archive, "del.bin", tmp_path / "out")


def test_two_files_of_one_name_are_an_error_that_lists_them(tmp_path: Path) -> None:
    archive = write_zip(tmp_path / "a.zip", **{"a/x": b"1", "b/x": b"2"})
    with pytest.raises(ValueError, match=r"has several files 'x': a/x, b/x\. Correct"):
        unpack(archive, "x", tmp_path / "out")


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.tar.bz2", "a.tar.xz"])
@pytest.mark.parametrize("damage", ["cut", "page"])
def test_a_damaged_archive_is_named_and_leaves_no_file(tmp_path: Path, name: str, damage: str) -> None:
    files = {"x": bytes(i * i % 251 for i in range(200_000))}
    archive = (write_zip if name.endswith("zip") else write_tar)(tmp_path / name, **files)
    whole = archive.read_bytes()
    archive.write_bytes(whole[: len(whole) // 2] if damage == "cut" else b"<html>not found</html>")
    with pytest.raises(Damaged, match=rf"{name} is damaged or no archive"):
        unpack(archive, "x", tmp_path / "out/x")
    assert not list((tmp_path / "out").iterdir())


def test_a_file_that_is_what_its_name_says_is_no_problem(tmp_path: Path) -> None:
    part = tmp_path / "x.part"
    for name, content in {
        "x.gz": gzip.compress(b"a"),
        "x.txt.xz": lzma.compress(b"a" * 99),
        "x.zip": write_zip(tmp_path / "z.zip", a=b"b").read_bytes(),
        "x.tar.bz2": write_tar(tmp_path / "z.bz2", a=b"b").read_bytes(),
        "x.tgz": gzip.compress(b"a"),
        "x.txt.zst": pa.compress(b"a", codec="zstd", asbytes=True),
        "x.txt": b"anything",
        "x.json": b"",
    }.items():
        part.write_bytes(content)
        assert problem(part, name) is None, name


@pytest.mark.parametrize("name", ["x.zip", "x.gz", "x.tgz", "x.bz2", "x.xz", "x.zst", "x.parquet"])
@pytest.mark.parametrize("content", [b"<html>not found</html>", b""])
def test_a_page_in_place_of_a_file_is_a_problem(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / "part").write_bytes(content)
    assert problem(tmp_path / "part", name)


@pytest.mark.parametrize("name", ["x.zip", "x.xz"])
def test_a_file_without_its_end_is_a_problem(tmp_path: Path, name: str) -> None:
    whole = (
        lzma.compress(bytes(range(256)) * 9) if name == "x.xz" else write_zip(tmp_path / "z", a=CONTENT).read_bytes()
    )
    (tmp_path / "part").write_bytes(whole[:-30])
    assert problem(tmp_path / "part", name)
