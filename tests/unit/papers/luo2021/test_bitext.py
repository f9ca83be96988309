"""Bitext from archives in the layout of OPUS."""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from xlgrid.base.errors import Damaged
from xlgrid.papers.luo2021 import bitext
from xlgrid.papers.luo2021.bitext import join_bitext


def write(folder: Path, name: str, sides: Mapping[str, list[str] | bytes], corpus: str = "Books") -> Path:
    """An archive of a corpus: its pair, and the lines of each language by the code in the name of the file."""
    path = folder / corpus / f"{name}.txt.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("README", "read")
        archive.writestr("LICENSE", "free")
        for code, lines in sides.items():
            content = lines if isinstance(lines, bytes) else "".join(f"{line}\n" for line in lines).encode()
            archive.writestr(f"{corpus}.{name}.{code}", content)
        archive.writestr(f"{corpus}.{name}.xml", "<x/>")
    return path


def numbered(code: str, n: int) -> list[str]:
    return [f"{code} {i}" for i in range(n)]


def read(folder: Path) -> dict[str, list[tuple[str, str]]]:
    return {
        split: [
            (row["first"], row["second"]) for row in map(json.loads, (folder / f"{split}.jsonl").open(encoding="utf-8"))
        ]
        for split in ("train", "dev", "test")
    }


@pytest.mark.parametrize("pair", ["en-de", "de-en"])
@pytest.mark.parametrize("name", ["de-en", "en-de"])
def test_sides_are_those_of_the_pair_in_whichever_order_the_name_has_them(tmp_path: Path, pair: str, name: str) -> None:
    archive = write(tmp_path, name, {"de": numbered("de", 40), "en": numbered("en", 40)})
    join_bitext([archive], pair, tmp_path / "out")
    splits = read(tmp_path / "out")
    first, second = pair.split("-")
    rows = [row for split in splits.values() for row in split]
    assert sorted(rows) == sorted(zip(numbered(first, 40), numbered(second, 40), strict=True))
    assert {split: len(rows) for split, rows in splits.items()} == {"train": 32, "dev": 4, "test": 4}


def test_all_corpora_are_joined_and_held_out_rows_are_drawn_from_all_of_them(tmp_path: Path) -> None:
    films = write(tmp_path, "en-zh_cn", {"en": numbered("film", 300), "zh_cn": numbered("电影", 300)}, "Films")
    books = write(tmp_path, "en-zh", {"en": numbered("book", 300), "zh": numbered("书", 300)})
    join_bitext([films, books], "en-zh", tmp_path / "out")
    splits = read(tmp_path / "out")
    for rows in splits.values():
        assert {first.split()[0] for first, _ in rows} == {"film", "book"}
        assert all(first.split()[1] == second.split()[1] for first, second in rows)
    first = (tmp_path / "out/dev.jsonl").read_bytes()
    join_bitext([films, books], "en-zh", tmp_path / "out")
    assert (tmp_path / "out/dev.jsonl").read_bytes() == first, "the same archives give the same files"


def test_more_pairs_than_are_held_out_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bitext, "HELD_OUT", 7)
    archive = write(tmp_path, "de-en", {"de": numbered("de", 500), "en": numbered("en", 500)})
    join_bitext([archive], "en-de", tmp_path / "out")
    splits = read(tmp_path / "out")
    assert {split: len(rows) for split, rows in splits.items()} == {"train": 486, "dev": 7, "test": 7}
    assert len({row for rows in splits.values() for row in rows}) == 500
    places = [int(first.split()[1]) for split in ("dev", "test") for first, _ in splits[split]]
    assert min(places) < 200 and max(places) > 300, "they are drawn from the whole archive"


def test_pairs_that_are_held_out_are_nowhere_in_the_training_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = {"de": numbered("de", 30) * 4, "en": numbered("en", 30) * 4}
    join_bitext([write(tmp_path, "de-en", lines)], "en-de", tmp_path / "out")
    splits = read(tmp_path / "out")
    apart = {*splits["dev"], *splits["test"]}
    assert splits["train"] and not apart & {*splits["train"]}
    repeated = 120 - sum(map(len, splits.values()))
    assert repeated and f"{repeated} that repeat these" in capsys.readouterr().err


@pytest.mark.parametrize("held_out", [3, 1000])
def test_dev_and_test_have_different_pairs_however_often_one_occurs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held_out: int
) -> None:
    """More pairs than are held out at most, and fewer, of which one in four is the same."""
    monkeypatch.setattr(bitext, "HELD_OUT", held_out)
    german = [f"de {i if i % 4 else 0}" for i in range(400)]
    english = [f"en {i if i % 4 else 0}" for i in range(400)]
    join_bitext([write(tmp_path, "de-en", {"de": german, "en": english})], "en-de", tmp_path / "out")
    splits = read(tmp_path / "out")
    rows = splits["dev"] + splits["test"]
    assert len(splits["dev"]) == len(splits["test"]) == min(held_out, 301 // 10)
    assert len({*rows}) == len(rows) and not {*rows} & {*splits["train"]}


def test_a_pair_is_as_likely_to_be_held_out_however_often_it_occurs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bitext, "HELD_OUT", 5)
    once = write(tmp_path, "de-en", {"de": numbered("de", 300), "en": numbered("en", 300)})
    often = write(tmp_path, "de-en", {"de": numbered("de", 30) * 99, "en": numbered("en", 30) * 99}, "Films")
    held_out = []
    for archives in ([once], [often, once]):
        join_bitext(archives, "en-de", tmp_path / "out")
        held_out.append([read(tmp_path / "out")[split] for split in ("dev", "test")])
    assert held_out[0] == held_out[1]


def test_both_directions_of_a_pair_hold_out_the_same_pairs(tmp_path: Path) -> None:
    archive = write(tmp_path, "de-en", {"de": numbered("de", 50), "en": numbered("en", 50)})
    for pair in ("en-de", "de-en"):
        join_bitext([archive], pair, tmp_path / pair)
    there, back = read(tmp_path / "en-de"), read(tmp_path / "de-en")
    assert there["test"] == [(first, second) for second, first in back["test"]]


def test_empty_sides_and_bytes_that_are_no_text_are_left_out_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    german = "\n".join(["", " ", *numbered("de", 48)]).encode() + b"\n"
    english = "\n".join(numbered("en", 49)).encode() + b"\n\xff\xfe broken\n"
    join_bitext([write(tmp_path, "de-en", {"de": german, "en": english})], "en-de", tmp_path / "out")
    rows = [row for split in read(tmp_path / "out").values() for row in split]
    assert sorted(rows) == sorted((f"en {i + 2}", f"de {i}") for i in range(47))
    said = capsys.readouterr().err
    assert "2 left out because one side is empty" in said and "1 left out because one side is not in UTF-8" in said


def test_lines_end_at_line_feeds_alone(tmp_path: Path) -> None:
    """A mark of byte order, carriage returns, and separators of lines that stand in sentences."""
    odd = ["a\u2028b", "c\x85d", "e\x0cf", "g\u2029h", *numbered("en", 16)]
    german = b"\xef\xbb\xbf" + "".join(f"{line}\r\n" for line in numbered("de", 20)).encode()
    english = "\n".join(odd).encode()
    join_bitext([write(tmp_path, "de-en", {"de": german, "en": english})], "en-de", tmp_path / "out")
    rows = [row for split in read(tmp_path / "out").values() for row in split]
    assert sorted(rows) == sorted(zip(odd, numbered("de", 20), strict=True))


def test_files_of_different_lengths_are_an_error_with_both_numbers(tmp_path: Path) -> None:
    archive = write(tmp_path, "de-en", {"de": numbered("de", 31), "en": numbered("en", 40)})
    with pytest.raises(
        ValueError, match=r"de-en\.txt\.zip is not parallel: .*\.en has 40 lines, and .*\.de has 31: leave out"
    ):
        join_bitext([archive], "en-de", tmp_path / "out")
    assert not (tmp_path / "out/train.jsonl").exists()


def test_an_archive_without_a_language_is_an_error_that_lists_its_files(tmp_path: Path) -> None:
    archive = write(tmp_path, "de-en", {"en": numbered("en", 40)})
    with pytest.raises(ValueError, match=r"has no file in de; it has: README, LICENSE, Books\.de-en\.en"):
        join_bitext([archive], "en-de", tmp_path / "out")


def test_too_few_pairs_are_an_error(tmp_path: Path) -> None:
    archive = write(tmp_path, "de-en", {"de": numbered("de", 9), "en": numbered("en", 9)})
    with pytest.raises(ValueError, match="have 9 different pairs of sentences in en-de: at least 10 are needed"):
        join_bitext([archive], "en-de", tmp_path / "out")


def test_a_cut_archive_is_named(tmp_path: Path) -> None:
    archive = write(tmp_path, "de-en", {"de": numbered("de", 900), "en": numbered("en", 900)})
    archive.write_bytes(archive.read_bytes()[:4000])
    with pytest.raises(Damaged, match=r"de-en\.txt\.zip is damaged"):
        join_bitext([archive], "en-de", tmp_path / "out")
