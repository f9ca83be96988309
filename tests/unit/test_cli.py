"""Commands say in one line what a person can act on, and import only what they need."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from xlgrid.cli import app

STUDY_COMMANDS = ("status", "cost", "partial", "claims")
ARGUMENTS = {"partial": ["--output=x"], "claims": ["--output=x"], "exhibit": ["x", "--output=x"]}


@pytest.mark.parametrize("command", [*STUDY_COMMANDS, "exhibit"])
def test_a_study_that_does_not_exist_is_told_in_a_line(command: str) -> None:
    result = CliRunner().invoke(app, [command, "demmo", *ARGUMENTS.get(command, [])])
    assert result.exit_code == 1
    assert result.output.startswith(
        "error: no study file studies/demmo.yaml: unknown study 'demmo', did you mean 'demo'"
    )
    assert "Traceback" not in result.output


def test_the_last_line_names_the_results_to_delete_and_never_a_file_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("results/s/a b")
    for meanings in (folder / "m.parquet", Path("my.parquet")):
        meanings.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"split": ["train"]}), meanings)
        output = CliRunner().invoke(app, ["data", "wikiann", "en", f"--meanings={meanings}", "--output=out"]).output
        error, *rest = output.splitlines()
        assert error.startswith(f"error: {meanings} has no column 'meaning'")
        assert rest == (["delete: 'results/s/a b/m.parquet'"] if meanings.parent == folder else [])


@pytest.mark.parametrize("command", STUDY_COMMANDS)
def test_the_help_of_a_study_s_command_says_how_to_name_it(command: str) -> None:
    output = CliRunner().invoke(app, [command, "--help"]).output
    assert "STUDY" in output and "name" in output


def test_the_commands_load_no_heavy_library_before_one_is_chosen() -> None:
    """A grid is thousands of short processes."""
    heavy = "torch", "transformers", "pandas", "matplotlib", "pyarrow", "pydantic"
    code = f"import sys, xlgrid.cli; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
