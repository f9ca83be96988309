"""Slurm that is missing, does not answer, or answers; a job runs on it only if asked for."""

from pathlib import Path

import pytest

from xlgrid.preflight.lines import State
from xlgrid.preflight.slurm import settings_of_profile, slurm_lines

ROOT = Path(__file__).parents[3]


def sinfo(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "sinfo").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "sinfo").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.parametrize(("submit", "state"), [(False, State.OPEN), (True, State.PROBLEM)])
def test_a_machine_without_slurm_is_a_problem_only_for_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, submit: bool, state: State
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    [line] = slurm_lines(submit)
    assert line.state is state


@pytest.mark.parametrize(("submit", "state"), [(False, State.OPEN), (True, State.PROBLEM)])
def test_a_slurm_that_does_not_answer_is_a_problem_only_for_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, submit: bool, state: State
) -> None:
    sinfo(tmp_path, "echo 'Unable to contact slurm controller' >&2; exit 1", monkeypatch)
    [line] = slurm_lines(submit)
    assert line.state is state and "Unable to contact slurm controller" in line.text


def test_the_partitions_of_a_slurm_that_answers_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sinfo(tmp_path, "echo gpu 4; echo cpu 20", monkeypatch)
    [line] = slurm_lines()
    assert line.state is State.GOOD and "gpu with 4 nodes, cpu with 20 nodes" in line.text


def test_the_job_goes_where_the_profile_sends_jobs(tmp_path: Path) -> None:
    profile = tmp_path / "profile.yaml"
    profile.write_text("submitit-partition: gpu\nsubmitit-array-parallelism: 64\njobs: unlimited\n")
    assert settings_of_profile(profile) == {"slurm_partition": "gpu"}
    profile.write_text("submitit-account: 0123\nsubmitit-qos: yes\nsubmitit-gres: 'gpu:1'\n")
    assert settings_of_profile(profile) == {"slurm_account": "0123", "slurm_qos": "yes", "slurm_gres": "gpu:1"}
    assert settings_of_profile(ROOT / "slurm/profile.v9+.yaml") == {}


@pytest.mark.slow
@pytest.mark.usefixtures("slurm")
def test_a_job_of_a_second_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer, job = slurm_lines(submit=True)
    assert (answer.state, job.state) == (State.GOOD, State.GOOD), job
