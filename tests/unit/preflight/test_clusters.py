"""A cluster that is missing, does not answer, or answers; a job runs on it only if asked for."""

import shutil
from pathlib import Path

import pytest

from xlgrid.preflight.clusters import cluster_lines
from xlgrid.preflight.lines import State

ROOT = Path(__file__).parents[3]


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


@pytest.mark.parametrize(("submit", "state"), [(False, State.OPEN), (True, State.PROBLEM)])
def test_a_machine_without_the_cluster_is_a_problem_only_for_a_job(project: Path, submit: bool, state: State) -> None:
    [line] = cluster_lines(submit)
    assert line.state is state and "sbatch" in line.text


@pytest.mark.parametrize(("submit", "state"), [(False, State.OPEN), (True, State.PROBLEM)])
def test_a_cluster_that_does_not_answer_is_a_problem_only_for_a_job(project: Path, submit: bool, state: State) -> None:
    commands(project, "echo 'Unable to contact slurm controller' >&2; exit 1")
    [line] = cluster_lines(submit)
    assert line.state is state and "Unable to contact slurm controller" in line.text


def test_what_a_cluster_says_about_itself_is_shown(project: Path) -> None:
    commands(project, "echo gpu 4; echo cpu 20")
    [line] = cluster_lines()
    assert line.state is State.GOOD and "gpu with 4 nodes, cpu with 20 nodes" in line.text


@pytest.mark.slow
@pytest.mark.usefixtures("slurm")
def test_a_job_of_a_second_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "slurm", tmp_path / "slurm")
    monkeypatch.chdir(tmp_path)
    answer, job = cluster_lines(submit=True)
    assert (answer.state, job.state) == (State.GOOD, State.GOOD), job
