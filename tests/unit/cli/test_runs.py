"""Commands about runs refuse arguments that do not belong together."""

from pathlib import Path

from typer.testing import CliRunner

from xlgrid.cli import app


def test_attention_is_compared_on_two_targets(tmp_path: Path) -> None:
    folders = [f"--{name}={tmp_path}" for name in ("run", "encoder", "vocabulary")]
    result = CliRunner().invoke(app, ["attention", *folders, "--tokens=en=a.arrow", f"--output={tmp_path / 'out'}"])
    assert result.exit_code == 1
    assert result.output == "error: attention is compared on two targets, got 1: give --tokens twice\n"
