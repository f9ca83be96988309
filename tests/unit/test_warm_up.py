"""What a worker imports ahead is all that a command then needs."""

import subprocess
import sys

import pytest
from typer.main import get_command

from xlgrid.cli import app
from xlgrid.warm import LIBRARIES, warm_up

# Runs a command in a process that is warm for it, and tells how many modules it imported all the same.
WARM = """
import sys
import xlgrid.cli
from xlgrid.warm import warm_up
words = sys.argv[1:]
warm_up(words)
before = set(sys.modules)
sys.argv = ["xlgrid", *words]
try:
    xlgrid.cli.app()
except SystemExit as end:
    assert not end.code, end.code
print(len(set(sys.modules) - before))
"""


def imported(*words: str) -> int:
    done = subprocess.run([sys.executable, "-c", WARM, *words], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1])


def test_libraries_are_those_of_commands_that_exist() -> None:
    assert LIBRARIES.keys() <= set(get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("words", [[], ["status", "x.yaml"], ["no-such-command"], ["--help"]])
def test_a_command_without_libraries_needs_nothing(words: list[str]) -> None:
    warm_up(words)


def test_data_and_tokens_import_little_more(tmp_path: object) -> None:
    folder = str(tmp_path)
    assert imported("meanings", "wikiann", "--options", '{"n": 100}', "--output", f"{folder}/m.parquet") < 60
    said = ["data", "wikiann", "qa1", "--options", '{"n": 100}', "--meanings", f"{folder}/m.parquet"]
    assert imported(*said, "--output", f"{folder}/data") < 60
