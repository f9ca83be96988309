"""Fixtures of more than one file."""

from pathlib import Path

import pandas as pd
import pytest
from page_fixture import NAN, frame
from status_fixture import STUDY, write


@pytest.fixture
def tiny_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory in which there is the study `tiny`, and nothing has run."""
    monkeypatch.chdir(tmp_path)
    write("studies/tiny.yaml", STUDY)


@pytest.fixture
def cells() -> pd.DataFrame:
    return frame(full__en=[90, 94], full__ar=[60, NAN], bitfit__en=[NAN, NAN])


@pytest.fixture
def curves() -> pd.DataFrame:
    rows = [("logic", "mini", "full", "en", seed, step, 50 + step / 10 + seed) for seed in (0, 1) for step in (0, 100)]
    return pd.DataFrame(rows, columns=["task", "encoder", "method", "source", "seed", "step", "score"])
