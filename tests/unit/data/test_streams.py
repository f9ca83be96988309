"""Rows of data on the Hub, read over the network one after another."""

import json
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from xlgrid.data.formats import read_table
from xlgrid.data.text import TextSettings, make_text

COMMIT = "b" * 40


@pytest.fixture
def wikipedia(tmp_path):
    """A folder that `datasets` reads as it reads the Hub, and the command line that makes text of it."""
    pytest.importorskip("datasets")
    hub = tmp_path / "wikipedia"
    (hub / "20231101.qu").mkdir(parents=True)
    for shard in range(2):
        numbers = range(1500 * shard, 1500 * shard + 1500)
        table = pa.table({"id": list(map(str, numbers)), "text": [f"Qillqa {i}" for i in numbers]})
        pq.write_table(table, hub / "20231101.qu" / f"train-{shard:05}-of-00002.parquet", row_group_size=500)
    configs = "- config_name: 20231101.qu\n  data_files:\n  - split: train\n    path: 20231101.qu/train-*\n"
    (hub / "README.md").write_text(f"---\nconfigs:\n{configs}---\n")
    (tmp_path / "lock.yaml").write_text(f"dataset/{hub}@main: {COMMIT}")

    def run(limit=None, **settings):
        data = {"hub": str(hub), "name": "20231101.{language}"} | ({"limit": limit} if limit else {})
        out = tmp_path / "qu.parquet"
        json_text = json.dumps({"data": data, "column": "text", **settings})
        command = ["text", "qu", "--settings", json_text, "--lock", str(tmp_path / "lock.yaml"), "--output", str(out)]
        # In a process of its own, whose end shows whether the reading left threads behind, which abort it.
        code = f"from xlgrid.cli.app import app; app({command})"
        environment = os.environ | {"HF_HOME": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}
        process = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        return process, read_table(out)["text"].to_pylist() if out.exists() else None

    return run


@pytest.mark.slow
@pytest.mark.parametrize(("settings", "rows"), [({}, 3000), ({"limit": 700, "most_characters": 99}, 12)])
def test_text_from_the_hub_is_streamed(wikipedia, tmp_path, settings, rows):
    process, texts = wikipedia(**settings)
    assert process.returncode == 0, process.stderr
    assert texts == [f"Qillqa {i}" for i in range(rows)]
    assert f"(20231101.qu, train, bbbbbbb): {rows:,} rows" in process.stderr
    assert not list((tmp_path / "cache").rglob("*.arrow")), "the data were downloaded"


def hub_of(monkeypatch, tmp_path, rows):
    """Settings and lock of data on the Hub that `rows`, a generator, has; what the Hub was asked for."""
    datasets = pytest.importorskip("datasets")
    calls = []

    class Builder:
        config = None

        def __init__(self, path, name, revision):
            self.name = name
            calls.append((path, name, revision))

        def as_streaming_dataset(self, split):
            calls.append(split)
            return datasets.IterableDataset.from_generator(rows, gen_kwargs={"name": self.name})

    monkeypatch.setattr(datasets, "load_dataset_builder", Builder)
    (tmp_path / "lock.yaml").write_text(f"dataset/facebook/xnli@main: {COMMIT}")
    return {"data": {"hub": "facebook/xnli", "name": "{language}"}, "column": "premise"}, calls


def test_text_from_the_hub_is_fetched_at_the_locked_commit(tmp_path, monkeypatch):
    settings, calls = hub_of(monkeypatch, tmp_path, lambda name: [{"premise": f"{name} premise"}])
    with pytest.raises(ValueError, match="needs a lock file: pass --lock"):
        make_text("fr", tmp_path / "fr.parquet", TextSettings(**settings))
    make_text("fr", tmp_path / "fr.parquet", TextSettings(**settings), tmp_path / "lock.yaml")
    assert calls == [("facebook/xnli", "fr", COMMIT), "train"]
    assert read_table(tmp_path / "fr.parquet").to_pylist() == [{"id": 0, "text": "fr premise"}]


def test_a_misspelt_column_of_the_hub_is_told(tmp_path, monkeypatch):
    settings, _ = hub_of(monkeypatch, tmp_path, lambda name: [{"premise": "a"}])
    with pytest.raises(ValueError, match=r"\(fr, train, bbbbbbb\): unknown column 'premises', did you mean 'premise'"):
        text_settings = TextSettings(**settings | {"column": "premises"})
        make_text("fr", tmp_path / "fr.parquet", text_settings, tmp_path / "lock.yaml")


def test_no_more_is_read_than_asked_for(tmp_path, monkeypatch):
    read = []

    def rows(name):
        for i in range(100_000):
            read.append(i)
            yield {"premise": f"{i}"}

    settings, _ = hub_of(monkeypatch, tmp_path, rows)
    make_text("fr", tmp_path / "fr.parquet", TextSettings(**settings, most_characters=4), tmp_path / "lock.yaml")
    assert read_table(tmp_path / "fr.parquet").num_rows == 4
    assert len(read) < 5000


def test_a_connection_that_breaks_is_told_with_what_was_being_fetched(tmp_path, monkeypatch):
    def rows(name):
        yield from ({"premise": f"{i}"} for i in range(2500))
        raise ConnectionError("reset by peer")

    settings, _ = hub_of(monkeypatch, tmp_path, rows)
    message = r"cannot fetch facebook/xnli \(fr, train, bbbbbbb\), after 2,000 rows: ConnectionError: reset .* again"
    with pytest.raises(ValueError, match=message):
        make_text("fr", tmp_path / "fr.parquet", TextSettings(**settings), tmp_path / "lock.yaml")
    assert not list(tmp_path.glob("*.parquet"))
