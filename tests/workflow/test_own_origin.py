"""The package of docs/how-to/origin.md, installed as the page says: a study takes its data from a database, and follows a change of it."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from project import commands, installed, planned, project, refused, shown, succeeds, tiny

from xlgrid.data.formats import read_table

PAGE = "docs/how-to/origin.md"
DATA = "results/reviews/data/reviews/de/test.parquet"
WORDS = {"english": {1: "a poor book", 5: "a great book"}, "german": {1: "ein schlechtes Buch", 5: "ein tolles Buch"}}
ROWS = {"train": 40, "dev": 10, "test": 10}


def reviews(language: str, split: str) -> list[tuple[str, str, int]]:
    """The rows of a split in a table of the database."""
    stars = [1, 5] * (ROWS[split] // 2)
    return [(split, f"{WORDS[language][number]} {split} {row}", number) for row, number in enumerate(stars)]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project in which the package is installed and the table of the page's study, cut down, is made."""
    folder = project(tmp_path_factory.mktemp("project"), tiny(yaml.safe_load(shown(PAGE))), "reviews")
    with closing(sqlite3.connect(folder / "reviews.db")) as database:
        for language in WORDS:
            database.execute(f"CREATE TABLE {language} (split TEXT, review TEXT, stars INTEGER)")
            for split in ROWS:
                database.executemany(f"INSERT INTO {language} VALUES (?, ?, ?)", reviews(language, split))
        database.commit()
    with installed(PAGE, folder):
        succeeds(folder, *commands(PAGE))
        yield folder


def test_the_data_are_the_rows_of_the_split_with_the_names_of_the_task(built: Path) -> None:
    table = read_table(built / DATA)
    expected = [{"text": text, "label": {1: "bad", 5: "good"}[stars]} for _, text, stars in reviews("german", "test")]
    assert table.select(["text", "label"]).to_pylist() == expected


def test_a_cell_is_evaluated_on_the_rows(built: Path) -> None:
    [cell] = (built / "results/reviews/cells").rglob("en/de/seed1.json")
    assert json.loads(cell.read_text())["n"] == ROWS["test"]


def test_a_table_that_is_missing_is_told_with_the_database(built: Path) -> None:
    study = (built / "studies" / "reviews.yaml").read_text()
    (built / "studies" / "wrong.yaml").write_text(study.replace("german", "dutch"))
    refused(built, "snakemake --cores 1 results/wrong/data/reviews/de/test.parquet")
    log = (built / "results/wrong/logs/data/reviews/de/test.log").read_text()
    assert "reviews.db, table 'dutch'" in log


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("database:", "databas:", "did you mean 'database'"),
        ("kind: sqlite", "kind: sqlit", "did you mean 'sqlite'"),
    ],
)
def test_a_mistake_in_the_keys_of_the_place_is_told_with_its_neighbour(
    built: Path, old: str, new: str, message: str
) -> None:
    study = (built / "studies" / "reviews.yaml").read_text()
    assert old in study
    (built / "studies" / "misspelt.yaml").write_text(study.replace(old, new))
    said = refused(built, "xlgrid check misspelt")
    assert "tasks.reviews.data.place" in said and message in said


def test_a_change_of_the_database_reads_the_data_again(built: Path) -> None:
    assert planned(built, DATA) == {}
    with closing(sqlite3.connect(built / "reviews.db")) as database:
        database.execute("UPDATE german SET review = 'ein gutes Buch' WHERE split = 'test' AND stars = 5")
        database.commit()
    assert planned(built, DATA) == {"fetch_data": 1}
