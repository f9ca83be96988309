"""A command that runs without a shell must mean what it means to one."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

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
    done = subprocess.run(["bash", "-c", f"{ECHO} {text}"], capture_output=True, text=True, check=True)
    assert parsed.words[1:] == json.loads(done.stdout), text


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


def test_a_rule_s_lines_with_continuations_are_one_command() -> None:
    parsed = forked.plain("\n    script train --recipe '{\"a\": 1}' \\\n        --output out 2>log\n    ")
    assert parsed == forked.Plain(["script", "train", "--recipe", '{"a": 1}', "--output", "out"], [(2, ">", "log")])


def test_a_script_of_another_environment_is_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "pip"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    forked.script.cache_clear()
    assert forked.runnable("pip list", ["pip"]) is None


def test_only_the_scripts_that_were_named_run_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    forked.script.cache_clear()
    assert forked.runnable("pytest --version", ["pytest"])
    assert forked.runnable("pytest --version", []) is None
