"""`xlgrid new` says what it wrote and what to run next."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from xlgrid.cli.app import app


def test_the_files_and_the_next_commands_are_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "studies").mkdir()
    result = CliRunner().invoke(app, ["new", "study", "mine"])
    expected = ["wrote studies/mine.yaml", "next:", "  xlgrid check mine"]
    assert result.exit_code == 0 and result.output.splitlines()[:3] == expected
    again = CliRunner().invoke(app, ["new", "study", "mine"])
    assert again.exit_code == 1 and "studies/mine.yaml exists already" in again.output
