"""`xlgrid doctor` compares Python and packages with what the project needs, and names what figures cannot show."""

import re
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import metadata
from pathlib import Path

import pytest

from xlgrid.preflight import State, doctor

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("version", "state"), [("3.11.7", State.GOOD), ("3.13.1", State.GOOD), ("3.10.4", State.PROBLEM)]
)
def test_a_python_that_is_too_old_is_a_problem(version: str, state: State) -> None:
    assert doctor.python_line(version, ">=3.11").state is state


def test_the_lines_of_a_lock_that_are_for_another_python_do_not_count(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("# a comment\nnumpy==2.1.0\ntomli==2.0 ; python_version < '3.0'\n")
    assert doctor.locked(lock) == {"numpy": "2.1.0"}


def test_packages_of_the_locked_versions_are_in_order(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text(f"torch=={metadata.version('torch').partition('+')[0]}\nnumpy=={metadata.version('numpy')}\n")
    assert doctor.environment_line(lock).state is State.GOOD


def test_missing_packages_and_other_versions_are_named(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("numpy==0.1\nno-such-package==1.0\n")
    line = doctor.environment_line(lock)
    assert line.state is State.PROBLEM
    assert (
        "missing: no-such-package" in line.text
        and "instead of 0.1" in line.text
        and f"pip install -r {lock}" in line.text
    )


def test_without_a_lock_the_packages_are_not_compared(tmp_path: Path) -> None:
    assert doctor.environment_line(tmp_path / "lock.txt").state is State.OPEN


def test_scripts_without_a_font_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xlgrid.exhibits.drawing.plots.FONTS", ("DejaVu Sans",))
    line = doctor.font_line()
    assert line.state is State.OPEN and "Hans" in line.text and "Latn" not in line.text


@pytest.mark.parametrize(
    ("visible", "cuda", "state", "words"),
    [
        (
            "0",
            "13.0",
            State.PROBLEM,
            "CUDA_VISIBLE_DEVICES=0.*no driver.*CUDA 13.0 needs driver 580 or newer.*--index-url",
        ),
        ("0", "12.6", State.PROBLEM, "needs driver 525 or newer"),
        ("0", None, State.PROBLEM, "install the build of torch for CUDA"),
        ("", None, State.GOOD, "none"),
    ],
)
def test_a_gpu_that_torch_cannot_use_is_named_with_the_driver_that_it_needs(
    monkeypatch: pytest.MonkeyPatch, visible: str, cuda: str | None, state: State, words: str
) -> None:
    import torch

    def init() -> None:
        raise RuntimeError("Found no driver.")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "init", init)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    line = doctor.gpu_line()
    assert line.state is state
    assert re.search(words, line.text), line.text


def test_a_full_disk_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.disk_line(tmp_path).state is State.GOOD
    monkeypatch.setattr(doctor, "LITTLE", 10**18)
    assert doctor.disk_line(tmp_path).state is State.PROBLEM


def test_each_part_of_the_machine_has_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "cluster_lines", lambda submit: [])
    things = [line.thing for line in doctor.machine_lines()]
    assert {"Python", "xlgrid", "snakemake", "packages", "GPUs", "fonts", "results", "disk"} <= {*things}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the profiles of this one, on a machine without Slurm."""
    for name in ("slurm", "laptop"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands(project: Path, sinfo: str) -> None:
    """Commands of Slurm, of which sinfo does this."""
    for name in ("sbatch", "squeue", "scontrol", "scancel", "sinfo"):
        (project / "bin" / name).write_text(f"#!/bin/sh\n{sinfo}\n")
        (project / "bin" / name).chmod(0o755)


SILENT = "echo 'Unable to contact slurm controller' >&2; exit 1"


@pytest.mark.parametrize(("submit", "state"), [(False, State.OPEN), (True, State.PROBLEM)])
@pytest.mark.parametrize(("sinfo", "reason"), [(None, "sbatch"), (SILENT, "Unable to contact slurm controller")])
def test_a_cluster_that_is_missing_or_silent_is_a_problem_only_for_a_job(
    project: Path, submit: bool, state: State, sinfo: str | None, reason: str
) -> None:
    if sinfo:
        commands(project, sinfo)
    [line] = doctor.cluster_lines(submit)
    assert line.state is state and reason in line.text


def test_what_a_cluster_says_about_itself_is_shown(project: Path) -> None:
    commands(project, "echo gpu 4; echo cpu 20")
    [line] = doctor.cluster_lines()
    assert line.state is State.GOOD and "gpu with 4 nodes, cpu with 20 nodes" in line.text


@pytest.mark.slow
def test_a_job_of_a_second_runs(
    slurm: Callable[[], AbstractContextManager[None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "slurm", tmp_path / "slurm")
    monkeypatch.chdir(tmp_path)
    with slurm():
        answer, job = doctor.cluster_lines(submit=True)
    assert (answer.state, job.state) == (State.GOOD, State.GOOD), job


def test_a_command_that_is_not_on_path_says_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "`xlgrid` is not on PATH" in str(doctor.elsewhere("xlgrid"))
    assert ". .venv/bin/activate" in str(doctor.elsewhere("xlgrid"))


def command(folder: Path) -> Path:
    folder.mkdir(parents=True)
    path = folder / "tool"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_command_of_another_environment_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, other = command(tmp_path / "here/bin"), command(tmp_path / "other/bin")
    monkeypatch.setattr(doctor.sys, "prefix", str(tmp_path / "here"))
    monkeypatch.setenv("PATH", str(here.parent))
    assert doctor.elsewhere("tool") is None
    monkeypatch.setenv("PATH", f"{other.parent}:{here.parent}")
    assert str(other) in str(doctor.elsewhere("tool")) and str(here) in str(doctor.elsewhere("tool"))


def test_a_folder_that_does_not_exist_yet_is_written_in_the_one_above(tmp_path: Path) -> None:
    assert doctor.unwritable(tmp_path / "results/demo") is None
    assert [*tmp_path.iterdir()] == []


def test_a_folder_that_cannot_be_written_is_named() -> None:
    """Nobody makes folders in /sys, root included."""
    assert "/sys cannot be written" in str(doctor.unwritable(Path("/sys")))
