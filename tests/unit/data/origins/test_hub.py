"""Data sets on the Hub."""

from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fetch_fixture import DATE, MASAKHA, NER, XNLI, fetch_data, fetched

from xlgrid.data import fetch
from xlgrid.data.formats import read_table
from xlgrid.data.origins.hub import Hub
from xlgrid.tasks import task

CELLS = [("01", "NA"), ("02", ""), ("1e5", "a, b"), ("TRUE", "null")]


def csv_of(rows: list[tuple[str, str]]) -> str:
    quoted = [(code, f'"{text}"' if "," in text else text) for code, text in rows]
    return "".join(f"{code},{text}\n" for code, text in [("code", "text"), *quoted])


def hub_rows(source: Hub, folder: Path) -> list[tuple[str, str | None]]:
    """The cells of the test set in English."""
    (folder / "lock.yaml").write_text(f"dataset/{source.hub}@main: " + "a" * 40)
    described = task("sequence", {"inputs": ["text"], "target": "code", "labels": ["01", "02"]})
    table, _, _ = fetch.fetch_table(source, described, "en", "test", folder / "lock.yaml")
    return [*zip(table["code"].to_pylist(), table["text"].to_pylist(), strict=True)]


def with_missing(rows: list[tuple[str, str]], missing: list[str] | None) -> list[tuple[str, str | None]]:
    values = [""] if missing is None else missing
    return [(code, None if text in values else text) for code, text in rows]


@pytest.mark.parametrize("files", ["{name}/{split}/*.parquet", "{name}/{split}/0000.parquet"])
def test_files_of_a_repository_without_configurations_are_chosen_by_a_pattern(tmp_path, files):
    """A folder that `datasets` reads as it reads the Hub, laid out as the branch refs/convert/parquet."""
    pytest.importorskip("datasets")
    for name in ("swa", "yor"):
        for split in ("train", "validation", "test"):
            (tmp_path / "hub" / name / split).mkdir(parents=True)
            row = {"words": [name, split], "tags": [1, 0]}
            pq.write_table(pa.Table.from_pylist([row]), tmp_path / "hub" / name / split / "0000.parquet")
    (tmp_path / "lock.yaml").write_text(f"dataset/{tmp_path}/hub@refs/convert/parquet: " + "a" * 40)
    source = {"hub": f"{tmp_path}/hub", "revision": "refs/convert/parquet", "files": files}
    source |= {"name": "{language}", "names": {"sw": "swa", "yo": "yor"}}
    for language, name in (("sw", "swa"), ("yo", "yor")):
        for split, there in (("dev", "validation"), ("test", "test")):
            out = tmp_path / f"{language}-{split}.parquet"
            fetch.fetch_data("token", source, language, split, out, tmp_path / "lock.yaml", NER)
            assert read_table(out)["words"].to_pylist() == [[name, there]]


# A label with a 0 before it, words that `datasets` takes for missing values, a missing value, and a comma in quotes.


@pytest.mark.parametrize("missing", [None, ["NA"], []], ids=str)
def test_csv_of_a_pattern_is_read_as_text(monkeypatch, tmp_path, missing):
    huggingface_hub = pytest.importorskip("huggingface_hub")
    files = {"en/a.csv": CELLS[:2], "en/b.csv": CELLS[2:], "de/a.csv": [("9", "de")], "README.md": []}
    for path, rows in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(csv_of(rows))
    monkeypatch.setattr(huggingface_hub, "list_repo_files", lambda *arguments, **named: [*files][::-1])
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda _, path, **named: str(tmp_path / path))
    source = Hub(hub="a/b", files="{name}/*.csv", missing=missing)
    assert hub_rows(source, tmp_path) == with_missing(CELLS, missing)
    (tmp_path / "en/b.csv").write_text("code,other\n1,2\n")
    with pytest.raises(ValueError, match=r"en/b\.csv has the columns code, other, and en/a\.csv has code, text"):
        hub_rows(source, tmp_path)


def test_csv_of_a_configuration_is_read_as_text(tmp_path):
    """A folder that `datasets` reads as it reads the Hub."""
    pytest.importorskip("datasets")
    (tmp_path / "hub").mkdir()
    (tmp_path / "hub" / "cells.csv").write_text(csv_of(CELLS))
    card = "configs:\n- config_name: en\n  data_files:\n  - split: test\n    path: cells.csv\n"
    (tmp_path / "hub" / "README.md").write_text(f"---\n{card}---\n")
    source = Hub(hub=f"{tmp_path}/hub", name="{language}")
    assert hub_rows(source, tmp_path) == with_missing(CELLS, None)


def test_a_pair_from_the_hub_is_joined_at_one_commit(monkeypatch, tmp_path):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {"premise": datasets.Value("string"), "hypothesis": datasets.Value("string"), "label": datasets.ClassLabel(3)}
    )
    calls = []

    def load_dataset(path, name, split, revision):
        calls.append((name, split, revision))
        columns = {"premise": [f"{name} premise"], "hypothesis": [f"{name} hypothesis"], "label": [1]}
        return datasets.Dataset.from_dict(columns, features)

    monkeypatch.setattr(datasets, "load_dataset_builder", lambda **arguments: SimpleNamespace(config=None))
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    (tmp_path / "lock.yaml").write_text("dataset/facebook/xnli@main: " + "b" * 40)
    source = {"hub": "facebook/xnli", "name": "{language}", "labels": XNLI}
    fetch_data("xnli", source, "en-fr", tmp_path / "out", tmp_path / "lock.yaml")
    assert calls[:3] == [("en", "train", "b" * 40), ("fr", "train", "b" * 40), ("en", "validation", "b" * 40)]
    expected = {"premise": "en premise", "hypothesis": "fr hypothesis", "label": "neutral"}
    assert read_table(tmp_path / "out" / "test.parquet").to_pylist() == [expected]
    fetch_data("xnli", source | {"names": {"en-fr": "mixed"}}, "en-fr", tmp_path / "out", tmp_path / "lock.yaml")
    assert read_table(tmp_path / "out" / "test.parquet")["premise"].to_pylist() == ["mixed premise"]
    with pytest.raises(ValueError, match=r"for both languages: put \{language\} into `name`"):
        fetch_data("xnli", source | {"name": "all"}, "en-fr", tmp_path / "out", tmp_path / "lock.yaml")


def test_the_hub_is_asked_for_the_locked_commit(monkeypatch, tmp_path):
    datasets = pytest.importorskip("datasets")
    calls = []

    def load_dataset(path, name, split, revision):
        calls.append((path, name, split, revision))
        return datasets.Dataset.from_dict({"tokens": [["a", "b"]], "pos_tags": [[0, 1]]})

    monkeypatch.setattr(datasets, "load_dataset_builder", lambda **arguments: SimpleNamespace(config=None))
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    (tmp_path / "lock.yaml").write_text("dataset/some/udpos@main: " + "a" * 40)
    source = {"hub": "some/udpos", "name": "udpos.{language}", "names": {"fr": "udpos.French"}}
    fetch_data("udpos", source, "fr", tmp_path / "out", tmp_path / "lock.yaml")
    assert calls[1] == ("some/udpos", "udpos.French", "validation", "a" * 40)
    assert read_table(tmp_path / "out" / "test.parquet")["tokens"].to_pylist() == [["a", "b"]]


def test_a_file_of_words_in_a_repository_of_the_hub_is_downloaded_at_the_locked_commit(monkeypatch, tmp_path):
    huggingface_hub = pytest.importorskip("huggingface_hub")
    (tmp_path / "swa.txt").write_text(MASAKHA)
    present = ["data/swa/test.txt", "data/swa/test.tsv"]
    monkeypatch.setattr(huggingface_hub, "list_repo_files", lambda *arguments, **named: present)
    downloads = []

    def download(repository, file, repo_type, revision):
        downloads.append((repository, file, repo_type, revision))
        return str(tmp_path / "swa.txt")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    (tmp_path / "lock.yaml").write_text("dataset/masakhane/ner@main: " + "a" * 40)
    source = {"hub": "masakhane/ner", "files": "data/{name}/{split}.txt", "names": {"sw": "swa"}}
    assert len(fetched("wikiann", source, tmp_path, DATE, "sw")) == 2
    assert downloads == [("masakhane/ner", "data/swa/test.txt", "dataset", "a" * 40)]
    with pytest.raises(ValueError, match=r"masakhane/ner \(data/swa/test\.txt, aaaaaaa\), row 1, .* unknown label"):
        fetched("wikiann", source, tmp_path, None, "sw")
    with pytest.raises(ValueError, match=r"unknown file 'data/swa/b\*\.txt', did you mean 'data/swa/test\.txt'"):
        fetched("wikiann", source | {"files": "data/{name}/b*.txt"}, tmp_path, DATE, "sw")
    (tmp_path / "swa.tsv").write_text("a\tb\tneutral\n")
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda *arguments, **named: str(tmp_path / "swa.tsv"))
    source |= {"files": "data/{name}/{split}.tsv", "columns": ["premise", "hypothesis", "label"]}
    assert fetched("xnli", source, tmp_path, None, "sw") == [{"premise": "a", "hypothesis": "b", "label": "neutral"}]


def test_the_hub_s_validation_is_dev_unless_the_study_says_otherwise() -> None:
    assert Hub(hub="a/b").named("dev") == Hub(hub="a/b", splits={"test": "dev"}).named("dev") == "validation"
    assert Hub(hub="a/b", splits={"test": "dev"}).named("test") == "dev"
    assert Hub(hub="a/b", splits={"dev": "dev"}).named("dev") == "dev"


@pytest.mark.parametrize(
    ("files", "settings", "is_file"),
    [
        ("data/{name}/{split}.tsv", {}, True),
        ("data/{name}.csv.gz", {}, True),
        ("data/{name}/*.csv", {}, True),
        ("data/{name}/*.txt", {"columns": ["premise"]}, True),
        ("data/{name}.parquet", {}, False),
        (None, {}, False),
    ],
)
def test_csv_and_tsv_of_the_hub_are_read_as_local_files_are(files, settings, is_file):
    assert Hub(hub="a/b", files=files, **settings).is_file(task("xnli")) is is_file
