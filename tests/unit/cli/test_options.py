"""What commands share."""

import subprocess
import sys
from pathlib import Path

import pytest

from xlgrid.cli.options import folder_of


@pytest.mark.parametrize("name", ["run/delta.safetensors", "run/run.json", "run"])
def test_a_folder_is_named_by_itself_or_by_a_file_in_it(name: str) -> None:
    assert folder_of(Path(name)) == Path("run")


def test_a_reader_that_has_read_enough_is_no_error(tmp_path: Path) -> None:
    """As `head` in `xlgrid doctor | head -1`."""
    (tmp_path / "studies").mkdir()
    command = f"{sys.executable} -m xlgrid new study mine | true"
    assert subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True).stderr == ""
