"""BUCC's own files: two pools and the gold pairs."""

from pathlib import Path

import pytest

from xlgrid.data.fetch import fetch_data
from xlgrid.data.formats import read_table
from xlgrid.data.origins.pools import read_pools
from xlgrid.data.sources import origin_of

FILES = {
    "fr": "fr-1\tUn.\nfr-2\tDeux, \tdouble.\n\nfr-3\tTrois.\r\n",
    "en": "en-1\tThree.\nen-2\tFour.\n",
    "gold": "fr-3\ten-1\n",
}
SOURCE = {"local": "{language}/{language}.{split}.{part}", "splits": {"test": "training", "dev": "sample"}}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fr-en").mkdir()
    paths = [Path(f"fr-en/fr-en.training.{part}") for part in FILES]
    for path, text in zip(paths, FILES.values(), strict=True):
        path.write_bytes(text.encode())
    return paths


def test_sentences_of_both_pools_have_ids_sides_and_gold(files: list[Path]) -> None:
    assert read_pools(files).to_pylist() == [
        {"id": "fr-1", "side": 0, "sentence": "Un.", "gold": []},
        {"id": "fr-2", "side": 0, "sentence": "Deux, \tdouble.", "gold": []},
        {"id": "fr-3", "side": 0, "sentence": "Trois.", "gold": ["en-1"]},
        {"id": "en-1", "side": 1, "sentence": "Three.", "gold": []},
        {"id": "en-2", "side": 1, "sentence": "Four.", "gold": []},
    ]


def test_a_split_of_a_pair_is_read_from_its_three_files(files: list[Path]) -> None:
    origin = origin_of(SOURCE)
    assert origin.paths_of("fr-en", "test", True) == list(map(str, files))
    fetch_data("bucc", SOURCE, "fr-en", "test", "out.parquet", "lock")
    assert read_table("out.parquet").select(["id", "side", "sentence", "gold"]).equals(read_pools(files))


@pytest.mark.parametrize(
    ("part", "text", "message"),
    [
        (
            "gold",
            "fr-4\ten-1\n",
            r"the pool .*training.fr lacks 1 of the 1 ids in .*gold, such as 'fr-4': use the pools",
        ),
        (
            "gold",
            "fr-3\ten-9\n",
            r"lacks 1 of the 1 sentences of the second language whose ids are in `gold`, such as 'en-9'",
        ),
        ("en", "\n", r"training.en is empty, but mining needs a pool of sentences in each language"),
        (
            "fr",
            "fr-1\n",
            r"training.fr, line 1: expected two fields with a tab between them, got 'fr-1'; mend this line",
        ),
        (
            "en",
            "en-1\tOne.\nen-1\tTwo.\n",
            r"has 2 sentences with the id 'en-1' in the second language: make the ids unique",
        ),
        ("gold", "", r"gold is empty"),
    ],
)
def test_files_that_do_not_fit_are_errors(files: list[Path], part: str, text: str, message: str) -> None:
    Path(f"fr-en/fr-en.training.{part}").write_text(text)
    with pytest.raises(ValueError, match=message):
        fetch_data("bucc", SOURCE, "fr-en", "test", "out.parquet", "lock")
    assert not Path("out.parquet").exists()


def test_a_pair_without_files_names_the_missing_one(files: list[Path]) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file de-en/de-en.training.de: check the path, or get"):
        fetch_data("bucc", SOURCE, "de-en", "test", "out.parquet", "lock")


def test_text_that_is_no_utf8_names_its_line(files: list[Path]) -> None:
    files[0].write_bytes(b"fr-1\tUn.\nfr-2\t\xff\n")
    with pytest.raises(ValueError, match=r"training.fr, line 2, byte \d+: not UTF-8"):
        read_pools(files)


def test_parts_have_no_columns_to_rename() -> None:
    with pytest.raises(ValueError, match="leave out `where`, `begins` and `rename`"):
        origin_of(SOURCE | {"rename": {"a": "b"}})


def test_a_language_alone_is_no_pair(files: list[Path]) -> None:
    with pytest.raises(
        ValueError, match="bucc compares sentences of two languages, got fr: write a pair, such as fr-en"
    ):
        fetch_data("bucc", SOURCE, "fr", "test", "out.parquet", "lock")
