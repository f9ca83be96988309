"""Commands are listed for people first, and import only what they need."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from xlgrid.cli.app import COMMANDS, app


def test_the_help_begins_with_the_commands_for_people() -> None:
    output = CliRunner().invoke(app, ["--help"]).output
    places = [output.index(section) for section, commands in COMMANDS.items() if commands]
    assert places == sorted(places) and next(iter(COMMANDS)) == "For people"


LISTED: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", LISTED)
def test_every_option_of_a_command_says_what_it_is(name: str) -> None:
    assert [option.name for option in LISTED[name].params if not option.help] == []


@pytest.mark.parametrize("name", LISTED)
def test_the_meaning_of_a_command_is_a_sentence_of_at_most_two_lines(name: str) -> None:
    """The first paragraph of its help stands in the list of `xlgrid --help`, on a terminal of 80 columns."""
    first = LISTED[name].help.partition("\n\n")[0]
    assert first.endswith(".") and len(first) <= 120, first


def test_the_commands_load_no_heavy_library_before_one_is_chosen() -> None:
    """A grid is thousands of short processes."""
    heavy = "torch", "transformers", "pandas", "matplotlib", "pyarrow", "pydantic"
    code = f"import sys, xlgrid.cli.app; print([name for name in {heavy!r} if name in sys.modules])"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


def test_the_package_is_the_command() -> None:
    process = subprocess.run([sys.executable, "-m", "xlgrid", "--help"], capture_output=True, text=True, check=True)
    assert "Grids of cross-lingual transfer" in process.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR2])
def test_a_signal_of_a_scheduler_leaves_no_half_written_file(tmp_path: Path, number: signal.Signals) -> None:
    code = (
        "import os\nfrom types import SimpleNamespace\nfrom xlgrid.cli import app as cli\nfrom xlgrid.base.files import whole\n"
        "def app(args):\n    with whole('out.txt') as aside:\n        aside.write_text('half')\n"
        f"        os.kill(os.getpid(), {number:d})\ncli.parser = lambda: SimpleNamespace(main=app)\ncli.main()\n"
    )
    process = subprocess.run([sys.executable, "-c", code], cwd=tmp_path)
    assert process.returncode == 128 + number and [*tmp_path.iterdir()] == []


def test_the_schema_of_studies_loads_no_torch() -> None:
    """Snakemake reads the study at its start, and so does nearly every command."""
    code = "import sys, xlgrid.study.schema; print([name for name in ('torch', 'transformers') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
