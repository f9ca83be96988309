"""Commands that make data say in the last line which results are damaged."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from xlgrid.cli.app import app


def test_the_last_line_names_the_results_to_delete_and_never_a_file_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("results/s/a b")
    for meanings in (folder / "m.parquet", Path("my.parquet")):
        meanings.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"split": ["train"]}), meanings)
        output = CliRunner().invoke(app, ["data", "wikiann", "en", f"--meanings={meanings}", "--output=out"]).output
        error, *rest = output.splitlines()
        assert error.startswith(f"error: {meanings} has no column 'meaning'")
        assert rest == (["delete: 'results/s/a b/m.parquet'"] if meanings.parent == folder else [])
