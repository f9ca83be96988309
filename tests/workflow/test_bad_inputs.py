"""Bad input ends in one clear message: in studies, data, encoders, settings and commands, and what is wrong with a machine or a folder."""

import errno
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import bad_inputs
import huggingface_hub.constants
import pytest
import yaml
from bad_commands import COMMANDS, WORKFLOW
from bad_inputs import DATA, ENCODERS, STUDY_FILE, Bad
from bad_studies import KEYS, NAMES_OF_STUDY, PARTS, YAML
from project import ROOT, project, shell, small, succeeds
from typer.testing import CliRunner

from xlgrid.cli.app import app
from xlgrid.plan import workflow

TEXT = "results/demo/text/qa1.parquet"
KINDS = (*YAML, *KEYS, *NAMES_OF_STUDY, *PARTS, *DATA, *ENCODERS, *WORKFLOW, *COMMANDS)


@pytest.fixture(scope="module")
def in_order(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which all is in order."""
    return bad_inputs.project(tmp_path_factory.mktemp("in-order"))


@pytest.fixture
def here(in_order: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project, which is the working directory. The Hub must not be asked."""
    folder = tmp_path / "project"
    shutil.copytree(in_order, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    return folder


def run(command: str) -> Any:
    """The result of a command of `xlgrid`, in this process."""
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def message(command: str) -> str:
    """The one message with which a command ends."""
    program, *targets = shlex.split(command)
    if program == "snakemake":
        # As the rules ask it, which make of it an error of the workflow.
        with pytest.raises((ValueError, FileNotFoundError)) as error:
            settings = workflow.read_settings(yaml.safe_load(Path("config.yaml").read_text()))
            workflow.load_plans(settings, targets)
        return str(error.value)
    result = run(command)
    assert result.exit_code == 1, result.output
    lines = [line for line in result.output.splitlines() if not line.startswith(("✓ ", "? ", "delete: "))]
    if lines[-1].startswith("1 problem, "):
        lines.pop()
    assert len(lines) == 1, f"more than one message:\n{result.output}"
    return re.sub("^(error:|✗) ", "", lines[0])


def test_without_a_mistake_all_is_in_order(here: Path) -> None:
    """So that what each kind changes is what its message is about."""
    lines = run("check mine").output.splitlines()
    assert lines[-1].startswith("no problems, ")


@pytest.mark.parametrize("bad", KINDS, ids=[bad.what.replace(" ", "-") for bad in KINDS])
def test_a_kind_of_bad_input_ends_in_one_clear_message(here: Path, bad: Bad) -> None:
    bad.change(here)
    expected = [re.escape(words) for words in bad.says.split("...")]
    if bad.at:
        lines = (here / STUDY_FILE).read_text().splitlines()
        number = next(number for number, line in enumerate(lines, start=1) if bad.at in line)
        expected[0] = f"{STUDY_FILE}:{number}: {expected[0]}"
    error = message(bad.command)
    assert "\n" not in error, error
    assert re.search(("^" if bad.at else "") + ".*".join(expected), error), error


@pytest.mark.parametrize("lock", ["", "model/some/encoder@main: " + "c" * 40])
def test_the_hub_that_is_out_of_reach_is_named_with_what_to_do(here: Path, lock: str) -> None:
    """Offline, with and without a locked commit."""
    Path("hub.lock.yaml").write_text(lock)
    error = message("fetch-tokenizer some/encoder --lock hub.lock.yaml --output out")
    expected = (
        "cannot fetch the tokenizer some/encoder at ccccccc: "
        if lock
        else "cannot get the commit of model some/encoder at main"
    )
    assert expected in error
    assert (
        "HF_HUB_OFFLINE" in error
        and ("set 'HF_HUB_OFFLINE=0'" if lock else "write the commit into hub.lock.yaml") in error
    )


def test_a_study_of_the_hub_is_checked_offline_and_the_check_says_what_it_could_not_ask(here: Path) -> None:
    study = bad_inputs.STUDY.replace("path: encoders/tiny", "hub: some/encoder")
    (here / STUDY_FILE).write_text(study)
    result = run("check mine")
    assert result.exit_code == 0, "what could not be asked is no mistake"
    assert "? Hub: does not answer (OfflineModeIsEnabled" in result.output
    assert (
        "? model some/encoder: was not asked for, and hub.lock.yaml has no commit: `xlgrid fetch mine`" in result.output
    )


def test_a_full_disk_is_told_with_the_file(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    expected = (
        "cannot write results/mine/cells.parquet: the disk is full: free some space, then run the same command again"
    )
    assert message("export mine").endswith(expected)


def test_snakemake_tells_the_mistake_that_the_rules_find(here: Path) -> None:
    """The kinds of bad input above are asked without Snakemake, which takes seconds."""
    for name in ("workflow", "rules"):
        shutil.copytree(ROOT / name, here / name)
    shutil.copy(ROOT / "Snakefile", here)
    process = subprocess.run(
        [sys.executable, "-m", "snakemake", "--dry-run", "results/mein/x"], capture_output=True, text=True
    )
    assert process.returncode == 1
    [error] = [line for line in lines(process) if "mein" in line]
    assert error.startswith("no study file studies/mein.yaml: unknown study 'mein', did you mean 'mine'?")
    assert "Traceback" not in process.stdout + process.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return project(tmp_path / "project", small())


def lines(process: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in (process.stdout + process.stderr).splitlines() if line.strip()]


def test_an_environment_that_is_not_active_says_how_to_activate_it(folder: Path) -> None:
    # Tools of the system stay on PATH.
    process = subprocess.run(
        [folder / ".venv/bin/snakemake", "--cores", "1", TEXT],
        cwd=folder,
        env={**os.environ, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 1
    [error] = [line for line in lines(process) if "xlgrid" in line and "PATH" in line]
    assert ". .venv/bin/activate" in error
    assert "Traceback" not in process.stderr and not (folder / "results").exists()


def test_results_that_cannot_be_written_are_told_before_any_job(folder: Path) -> None:
    """Nobody makes folders in /sys, root included."""
    (folder / "results").symlink_to("/sys")
    process = shell(folder, f"snakemake --cores 1 {TEXT}")
    assert process.returncode == 1
    [error] = [line for line in lines(process) if "cannot be written" in line]
    assert "results" in error and "run the same command again" in error
    assert "Traceback" not in process.stderr and "rule text" not in process.stderr


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
    process = subprocess.run(command, cwd=tmp_path, env=rest, capture_output=True, text=True)
    assert process.returncode == 2
    first, *others = lines(process)
    assert first.startswith("xlgrid needs Python 3.11 or newer") and "Python 3.10.4" in first and "PYTHON=" in first
    assert len(others) == 1 and others[0].startswith("make: ***")
    assert not (tmp_path / ".venv").exists()


def test_a_machine_without_slurm_says_where_to_go(folder: Path, tmp_path: Path) -> None:
    """The commands on PATH are those of the environment, and those that Snakemake needs."""
    (tmp_path / "bin").mkdir()
    for name in ("bash", "hostname", "uname"):
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    path = f"{folder / '.venv/bin'}:{tmp_path / 'bin'}"
    command = [folder / ".venv/bin/snakemake", "--profile", "slurm", TEXT]
    process = subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert process.returncode == 1
    [error] = [line for line in lines(process) if "sbatch" in line]
    assert "there is no sbatch" in error and "`--submitit-cluster local`" in error
    assert "Traceback" not in process.stderr and not (folder / "results").exists()


@pytest.mark.thorough
def test_a_slurm_that_does_not_answer_ends_the_run_after_the_minutes_of_the_setting(folder: Path) -> None:
    """The commands of Slurm are there, but the controller is not."""
    commands = folder / "slurm-commands"
    commands.mkdir()
    for name in ("sbatch", "squeue", "sacct", "scontrol", "scancel", "sinfo"):
        (commands / name).write_text(
            f"#!/bin/sh\necho '{name}: error: Unable to contact slurm controller' >&2\nexit 1\n"
        )
        (commands / name).chmod(0o755)
    command = f"snakemake --profile slurm --submitit-unreachable-minutes 1 {TEXT}"
    process = shell(folder, f"export PATH={commands}:$PATH; {command}")
    assert process.returncode == 1
    output = process.stdout + process.stderr
    assert "Unable to contact slurm controller" in output
    assert "asking again, for 1 minutes at most (--submitit-unreachable-minutes)" in output
    assert "the cluster has not answered for 1 minutes" in output and "run the same command again" in output
    assert not (folder / TEXT).exists()


@pytest.mark.slow
def test_a_folder_with_spaces_in_its_name_is_as_good_as_any(tmp_path: Path) -> None:
    folder = project(tmp_path / "a folder with spaces", small())
    succeeds(folder, f"snakemake --profile laptop {TEXT} && make -n demo && xlgrid check demo")
    assert (folder / TEXT).exists()
