"""A project in which the demo, cut down to a minute, has run: the commands of README.md and docs/ run in it as they stand."""

import fcntl
import os
import shutil
from pathlib import Path

import pytest
from project import project, shell, small
from shipped import STUDIES


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which `make demo` has run, once for all processes of pytest-xdist. No test changes it."""
    base = tmp_path_factory.getbasetemp()
    together = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    first = together / "demo"
    with (together / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not first.exists():
            first.mkdir()
            process = shell(project(first, small()), "make demo")
            assert process.returncode == 0, process.stderr[-4000:]
            assert process.stdout.splitlines()[-1] == "Open results/demo/report.html"
            (first / "make-demo.log").write_text(process.stderr)
    assert (first / "results/demo/report.html").exists(), "the demo has failed in another process"
    return first


@pytest.fixture(scope="session")
def finished(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the demo for the tests of a process, which leave studies and results behind for each other."""
    folder = tmp_path_factory.getbasetemp() / "finished"
    shutil.copytree(demo, folder, symlinks=True)
    for name in ("first", "foroutan2023"):
        shutil.copy(STUDIES[name], folder / "studies")
    return folder
