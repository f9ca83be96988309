"""Commands that make encoders name what they need and do not get."""

from pathlib import Path

from typer.testing import CliRunner

from xlgrid.cli.app import app


def test_a_folder_that_is_no_tokenizer_is_told_in_a_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["fetch-tokenizer", str(tmp_path), f"--output={tmp_path / 'out'}"])
    assert result.exit_code == 1
    assert result.output.startswith("error: ") and str(tmp_path) in result.output
    assert not (tmp_path / "out").exists()
