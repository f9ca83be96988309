"""The command that compares attention."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from xlgrid.cli.app import app
from xlgrid.papers.foroutan2023.commands import by_target


def test_attention_is_compared_on_two_targets(tmp_path: Path) -> None:
    folders = [f"--{name}={tmp_path}" for name in ("run", "encoder", "tokenizer")]
    result = CliRunner().invoke(app, ["attention", *folders, "--tokens=en=a.arrow", f"--output={tmp_path / 'out'}"])
    assert result.exit_code == 1
    assert result.output == "error: attention is compared on two targets, got 1: give --tokens twice\n"


def test_a_path_for_each_target() -> None:
    assert by_target("tokens", ["en=a.arrow", "en-fr=b=c.arrow"]) == {"en": Path("a.arrow"), "en-fr": Path("b=c.arrow")}
    for wrong in ("a.arrow", "en="):
        with pytest.raises(ValueError, match="--tokens must be TARGET=PATH"):
            by_target("tokens", [wrong])
