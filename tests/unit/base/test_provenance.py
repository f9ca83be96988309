"""The version, commit and command that records state."""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import xlgrid
from xlgrid.base import provenance


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Each test asks git itself."""
    provenance.commit.cache_clear()
    yield
    provenance.commit.cache_clear()


def git(*words: str) -> str:
    identity = ["-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *identity, *words], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one commit that has the module; returns the module's file."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "provenance.py"
    shutil.copy(provenance.__file__, file)
    monkeypatch.setattr(provenance, "__file__", str(file))
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "m")
    return file


def test_a_checkout_has_its_commit_and_says_whether_files_differ(checkout: Path) -> None:
    head = git("rev-parse", "HEAD")
    assert provenance.commit() == head
    (checkout.parent / "results.txt").write_text("a file that git does not track")
    provenance.commit.cache_clear()
    assert provenance.commit() == head
    checkout.write_text("changed")
    provenance.commit.cache_clear()
    assert provenance.commit() == f"{head}-dirty"


@pytest.mark.usefixtures("checkout")
def test_git_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    head = provenance.commit()
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: pytest.fail("git was asked again"))
    assert provenance.commit() == head


def test_an_installation_within_a_checkout_of_something_else_has_no_commit(checkout: Path) -> None:
    git("rm", "--quiet", "--cached", checkout.name)
    git("commit", "--quiet", "--allow-empty", "-m", "m")
    assert provenance.commit() is None


def test_without_git_only_the_commit_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    made = provenance.provenance()
    assert made["commit"] is None and made["xlgrid"] and made["command"]


@pytest.mark.parametrize(
    "program", ["/home/me/my venv/bin/xlgrid", f"{Path(xlgrid.__file__).parent}/__main__.py"], ids=["script", "module"]
)
def test_the_command_can_be_pasted(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["train", "--recipe", '{"task": "it\'s"}', "--output", "a b"]
    monkeypatch.setattr(sys, "argv", [program, *words])
    assert shlex.split(provenance.command()) == ["xlgrid", *words]
