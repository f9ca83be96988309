"""The plan of a small study, for all tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from products_fixture import STUDY

from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plan]:
    monkeypatch.chdir(tmp_path)
    Path("studies").mkdir()
    Path("studies/tiny.yaml").write_text(STUDY)
    yield load_plan("tiny")
