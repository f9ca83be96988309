"""A command that runs without a shell must mean what it means to one."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snakemake_executor_plugin_submitit import forked

# Prints its arguments, and where they go.
ECHO = f"{shlex.quote(sys.executable)} -c 'import json, sys; print(json.dumps(sys.argv[1:]))'"
PIECES = st.lists(
    st.one_of(
        st.sampled_from(["a", "1", "=", "-x", "ä", "/", ".", ",", "'b c'", '"d e"', "\\ ", "\\\n", "\\'", '\\"', "''"]),
        st.sampled_from(['"\\$x"', '"\\\\"', '"\\n"', '"a\\\nb"', "'\n'", " ", "  ", "\t", "+", ":", "%", "^", "@"]),
        st.sampled_from(
            ["$HOME", "*", "~", "#", "!", "{a,b}", "[a]", "`x`", "$(x)", ";", "&", "|", "(", '"$x"', "\n", '"', "'"]
        ),
    ),
    max_size=8,
)


@settings(deadline=None, max_examples=150)
@given(PIECES)
def test_words_are_those_of_bash(pieces: list[str]) -> None:
    text = "".join(pieces)
    parsed = forked.plain(f"script {text}")
    if parsed is None:
        return
    process = subprocess.run(["bash", "-c", f"{ECHO} {text}"], capture_output=True, text=True, check=True)
    assert parsed.words[1:] == json.loads(process.stdout), text


@pytest.mark.parametrize(
    "command",
    [
        "script $HOME",
        "script *.txt",
        "script ~/a",
        "script a | script b",
        "script a && script b",
        "script a; script b",
        "script a &",
        "script `date`",
        'script "$(date)"',
        "VARIABLE=1 script a",
        "script a\nscript b",
        "if true; then script a; fi",
        "script {a,b}",
        "script a # comment",
        "script <<END\nEND",
        "script <(date)",
        "script a >&file",
        "script 'open",
        "> file",
        "",
    ],
)
def test_what_takes_a_shell_is_left_to_the_shell(command: str) -> None:
    assert forked.plain(command) is None


@pytest.mark.parametrize(
    ("command", "redirections"),
    [
        ("script a 2> log", [(2, ">", "log")]),
        ("script a 2>log", [(2, ">", "log")]),
        ("script a > 'out file' 2>&1", [(1, ">", "out file"), (2, ">&", "1")]),
        ("script a >> out < in", [(1, ">>", "out"), (0, "<", "in")]),
        ("script 2 > out", [(1, ">", "out")]),
    ],
)
def test_redirections(command: str, redirections: list[tuple[int, str, str]]) -> None:
    parsed = forked.plain(command)
    assert parsed and parsed.redirections == redirections


def test_a_script_of_another_environment_is_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "pip"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    forked.script.cache_clear()
    assert forked.runnable("pip list", ["pip"]) is None
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    forked.script.cache_clear()
    assert forked.runnable("pytest --version", ["pytest"])
    assert forked.runnable("pytest --version", []) is None, "a script that was not named"


# Redirections.

# A descriptor that no test has open.
FREE = 77


def test_redirections_are_those_of_a_shell(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    for operator, text in ((">", b"longer"), (">", b"a"), (">>", b"b")):
        forked.redirect([(FREE, operator, path)])
        os.write(FREE, text)
    forked.redirect([(FREE, "<", path)])
    assert os.read(FREE, 100) == b"ab"
    os.close(FREE)


def test_a_descriptor_may_stand_for_another_and_none_is_left_open(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    forked.redirect([(FREE, ">", str(tmp_path / "file")), (FREE + 1, ">&", str(FREE))])
    assert set(os.listdir("/proc/self/fd")) - before == {str(FREE), str(FREE + 1)}
    os.write(FREE + 1, b"text")
    assert (tmp_path / "file").read_bytes() == b"text"
    for number in (FREE, FREE + 1):
        os.close(number)


def test_a_file_may_get_the_number_of_its_own_descriptor(tmp_path: Path) -> None:
    """The lowest free number is the one that the kernel gives to the file."""
    number = os.open(os.devnull, os.O_RDONLY)
    os.close(number)
    forked.redirect([(number, ">", str(tmp_path / "file"))])
    os.write(number, b"text")
    os.close(number)


def test_a_new_file_has_the_mode_that_a_shell_would_give_it(tmp_path: Path) -> None:
    umask = os.umask(0o022)
    try:
        forked.redirect([(FREE, ">", str(tmp_path / "file"))])
    finally:
        os.umask(umask)
    os.close(FREE)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644


# Libraries that a fork shares.


class Entry(NamedTuple):
    """The entry point of a console script."""

    module: str


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("def warm_up(arguments): print('warm', *arguments)", "warm a b\n"),
        ("x = 1", ""),
        ("def warm_up(arguments): raise ValueError('no')", "ValueError: no\n"),
        ("import nothing_of_that_name", "ModuleNotFoundError: No module named 'nothing_of_that_name'\n"),
    ],
)
def test_a_script_may_warm_up_and_an_error_of_it_is_left_to_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str, printed: str
) -> None:
    (tmp_path / "warmed.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "warmed", raising=False)
    monkeypatch.setattr(forked, "script", lambda name: ("/bin/warmed", Entry("warmed")))
    forked.prepare(["warmed", "a", "b"])
    output = capsys.readouterr()
    assert (output.out + output.err).endswith(printed) and bool(output.out + output.err) == bool(printed)
    sys.modules.pop("warmed", None)


@pytest.mark.parametrize(("is_initialized", "is_forkable"), [(True, False), (False, True), (None, True)])
def test_a_process_that_has_used_a_gpu_cannot_be_forked(
    monkeypatch: pytest.MonkeyPatch, is_initialized: bool | None, is_forkable: bool
) -> None:
    """None stands for a process without torch."""
    torch: Any = SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: is_initialized))
    monkeypatch.setitem(sys.modules, "torch", torch)
    if is_initialized is None:
        monkeypatch.delitem(sys.modules, "torch")
    assert forked.forkable() == is_forkable


def test_a_script_that_is_no_entry_point_is_not_run_in_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    forked.script.cache_clear()
    assert forked.script("python") is None
    path_and_entry = forked.script("pytest")
    assert path_and_entry and Path(path_and_entry[0]).name == "pytest"
    assert forked.script("pytest") is path_and_entry, "the entry points are listed anew for each job"
    forked.script.cache_clear()
