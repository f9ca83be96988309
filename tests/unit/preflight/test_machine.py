"""A command that is not that of the environment, and a folder that cannot be written, are explained in one sentence."""

from pathlib import Path

import pytest

from xlgrid.preflight import machine


def test_a_command_that_is_not_on_path_says_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "`xlgrid` is not on PATH" in str(machine.elsewhere("xlgrid"))
    assert ". .venv/bin/activate" in str(machine.elsewhere("xlgrid"))


def command(folder: Path) -> Path:
    folder.mkdir(parents=True)
    path = folder / "tool"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_command_of_another_environment_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, other = command(tmp_path / "here/bin"), command(tmp_path / "other/bin")
    monkeypatch.setattr(machine.sys, "prefix", str(tmp_path / "here"))
    monkeypatch.setenv("PATH", str(here.parent))
    assert machine.elsewhere("tool") is None
    monkeypatch.setenv("PATH", f"{other.parent}:{here.parent}")
    assert str(other) in str(machine.elsewhere("tool")) and str(here) in str(machine.elsewhere("tool"))


def test_a_folder_that_does_not_exist_yet_is_written_in_the_one_above(tmp_path: Path) -> None:
    assert machine.unwritable(tmp_path / "results/demo") is None
    assert [*tmp_path.iterdir()] == []


def test_a_folder_that_cannot_be_written_is_named() -> None:
    """Nobody makes folders in /sys, root included."""
    assert "/sys cannot be written" in str(machine.unwritable(Path("/sys")))
