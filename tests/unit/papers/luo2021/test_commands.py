"""The commands that fetch and label training data."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from xlgrid.cli.app import app
from xlgrid.data.formats import read_table


@pytest.fixture
def source(tmp_path: Path) -> str:
    row = {"tokens": ["Ada", "sleeps"], "ner_tags": ["B-PER", "O"]}
    (tmp_path / "en.jsonl").write_text(json.dumps(row) + "\n")
    return json.dumps({"local": f"{tmp_path}/{{language}}.jsonl"})


def test_rows_are_fetched_without_their_labels(source: str, tmp_path: Path) -> None:
    options = [f"--source={source}", f"--lock={tmp_path / 'lock'}", f"--output={tmp_path / 'out.parquet'}"]
    result = CliRunner().invoke(app, ["fetch-unlabelled", "wikiann", "en", *options])
    assert result.exit_code == 0, result.output
    assert read_table(tmp_path / "out.parquet").to_pylist() == [{"tokens": ["Ada", "sleeps"]}]


def test_rows_are_labelled_by_a_run_that_is_there(tmp_path: Path) -> None:
    folders = [f"--{name}={tmp_path}" for name in ("run", "encoder", "tokenizer")]
    options = [*folders, "--max-length=8", f"--output={tmp_path / 'out.parquet'}"]
    result = CliRunner().invoke(app, ["label-data", "wikiann", "en", str(tmp_path / "rows.parquet"), *options])
    assert result.exit_code == 1 and "run.json" in result.output
