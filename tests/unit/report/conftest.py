"""Fixtures of more than one file."""

from pathlib import Path

import pytest
from status_fixture import STUDY, write


@pytest.fixture
def tiny_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory in which there is the study `tiny`, and nothing has run."""
    monkeypatch.chdir(tmp_path)
    write("studies/tiny.yaml", STUDY)
