"""What is wrong with a machine or a folder ends in one clear line: PATH, Python, read-only results, Slurm, spaces in names."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from project import ROOT, project, shell, small

TEXT = "results/demo/text/qa1.parquet"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return project(tmp_path / "project", small())


def lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]


def test_an_environment_that_is_not_active_says_how_to_activate_it(folder: Path) -> None:
    # Tools of the system stay on PATH.
    done = subprocess.run(
        [folder / ".venv/bin/snakemake", "--cores", "1", TEXT],
        cwd=folder,
        env={**os.environ, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    [told] = [line for line in lines(done) if "xlgrid" in line and "PATH" in line]
    assert ". .venv/bin/activate" in told
    assert "Traceback" not in done.stderr and not (folder / "results").exists()


def test_results_that_cannot_be_written_are_told_before_any_job(folder: Path) -> None:
    """Nobody makes folders in /sys, root included."""
    (folder / "results").symlink_to("/sys")
    done = shell(folder, f"snakemake --cores 1 {TEXT}")
    assert done.returncode == 1
    [told] = [line for line in lines(done) if "cannot be written" in line]
    assert "results" in told and "run the same command again" in told
    assert "Traceback" not in done.stderr and "rule text" not in done.stderr


def test_a_python_that_is_too_old_is_told_in_a_line(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("envs", "packages"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    old = tmp_path / "python3.10"
    code = "import sys; sys.version_info = (3, 10, 4); exec(sys.argv[1])"
    old.write_text(
        f'#!/bin/sh\nif [ "$1" = --version ]; then echo Python 3.10.4; else exec {sys.executable} -c "{code}" "$2"; fi\n'
    )
    old.chmod(0o755)
    rest = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "demo", f"PYTHON={old}"]
    done = subprocess.run(command, cwd=tmp_path, env=rest, capture_output=True, text=True)
    assert done.returncode == 2
    first, *others = lines(done)
    assert first.startswith("xlgrid needs Python 3.11 or newer") and "Python 3.10.4" in first and "PYTHON=" in first
    assert len(others) == 1 and others[0].startswith("make: ***")
    assert not (tmp_path / ".venv").exists()


@pytest.mark.slow
def test_a_slurm_that_does_not_answer_ends_the_run_after_the_minutes_of_the_setting(folder: Path) -> None:
    """The commands of Slurm are there, but the controller is not."""
    commands = folder / "slurm-commands"
    commands.mkdir()
    for name in ("sbatch", "squeue", "sacct", "scancel", "sinfo"):
        (commands / name).write_text(
            f"#!/bin/sh\necho '{name}: error: Unable to contact slurm controller' >&2\nexit 1\n"
        )
        (commands / name).chmod(0o755)
    command = f"snakemake --profile slurm --submitit-unreachable-minutes 1 {TEXT}"
    done = shell(folder, f"export PATH={commands}:$PATH; {command}")
    assert done.returncode == 1
    output = done.stdout + done.stderr
    assert "Unable to contact slurm controller" in output
    assert "asking again, for 1 minutes at most (--submitit-unreachable-minutes)" in output
    assert "the cluster has not answered for 1 minutes" in output and "run the same command again" in output
    assert not (folder / TEXT).exists()


@pytest.mark.slow
def test_a_folder_with_spaces_in_its_name_is_as_good_as_any(tmp_path: Path) -> None:
    folder = project(tmp_path / "a folder with spaces", small())
    done = shell(folder, f"snakemake --profile laptop {TEXT} && make -n demo && xlgrid check demo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / TEXT).exists()
