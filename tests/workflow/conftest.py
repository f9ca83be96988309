"""A project in which the demo, cut down to a minute, has run: what README.md promises is tried on it word by word."""

from pathlib import Path

import pytest
from project import project, shell, small


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which `make demo` has run."""
    folder = project(tmp_path_factory.mktemp("project"), small())
    done = shell(folder, "make demo")
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.splitlines()[-1] == "Open results/demo/report.html"
    return folder
