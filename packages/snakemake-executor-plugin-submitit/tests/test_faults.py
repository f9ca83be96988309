"""Faults at random moments, and some at the worst one: see `faults`."""

import json
import os
import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import faults
import faults_jobs
import faults_verdict
import pytest
from faults_jobs import Plan
from faults_trial import Trial

from snakemake_executor_plugin_submitit import bundles
from snakemake_executor_plugin_submitit.bundles import Bundle, Job, Status

pytestmark = pytest.mark.skipif(shutil.which("flock") is None, reason="the jobs need flock, of util-linux")
WORKS = [Plan(f"c{number}", "works", 0.1) for number in range(6)]


@pytest.mark.slow
@pytest.mark.thorough
def test_random_faults():
    with ProcessPoolExecutor(2) as pool:
        failed = [(seed, wrong) for seed, wrong, _ in pool.map(faults.run_seed, range(16)) if wrong]
    assert not failed


# Faults that are drawn for a moment at which nothing fits them wait for one.
DIRECTED = {
    "no fault": Trial(1, [Plan(kind, kind, 0.02) for kind in faults_jobs.WEIGHTS], []),
    "head while it submits": Trial(1, WORKS, [(0.0, "kill head while it submits", 0.5)]),
    "head while jobs run": Trial(1, WORKS, [(0.25, "kill head", 0.5)]),
    "head between its record and close": Trial(1, WORKS, [], dies={1: 2, 2: 1}),
    "head after a failure in a bundle that goes on": Trial(
        1, [Plan("c0", "fails", 0.0), *WORKS[1:]], [], dies={1: 1}, width=1
    ),
    "answer lost": Trial(2, WORKS, [], lose=0.7),
    "answer lost, then silence": Trial(3, WORKS, [], lose=0.7, mute=0.6),
    "worker, not in a container": Trial(
        1, [Plan(f"c{number}", "works", 0.8) for number in range(2)], [(0.3, "kill worker", 0.5)], contained=False
    ),
    "interrupted head, while its tasks are ending": Trial(
        1,
        [Plan(f"c{number}", "deaf", 0.4) for number in range(4)],
        [(0.25, "interrupt head", 0.5), (0.27, "kill head", 0.5)],
    ),
    "full disk for the log": Trial(
        1, [WORKS[0], Plan("c1", "dies", 0.0), *WORKS[2:]], [(0.12, "full disk", 0.9)], bundle=6, width=1
    ),
    "nodes, again and again": Trial(1, WORKS, [(0.1 * n, "NODE_FAIL and requeue", 0.1 * n) for n in range(8)]),
    "full disk while it submits": Trial(1, WORKS, [(0.0, "full disk", 0.9)]),
    "full disk while jobs end": Trial(1, WORKS, [(0.2, "full disk", 0.9)]),
    # All are ready at once with this seed, so that one array has tasks of two jobs and one of one.
    "limit of a last job in a task of its own": Trial(
        8, [*WORKS[:4], Plan("c4", "endless", 0.0)], [], bundle=2, array=4
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("trial", DIRECTED.values(), ids=DIRECTED)
def test_directed_faults(trial: Trial):
    assert faults.run_alone(trial) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["array.json", "*/bundle.json", "*/status/*.json"])
def test_damage_while_the_head_is_away(name: str, monkeypatch: pytest.MonkeyPatch):
    """A crash of the file server: a file is empty when a new head looks, and the tasks still run."""
    trial = Trial(1, WORKS, [(0.2, "damage", 0.0), (0.21, "kill head", 0.0)], bundle=3)
    monkeypatch.setattr(faults, "DAMAGED", (f"*/{name}",))
    assert faults.run_alone(trial) == []


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A bundle's folder with one job that is done."""
    Bundle(jobs=(Job("key", "rule", "shell", "true"),), directory=str(tmp_path)).write(tmp_path / "0")
    Status("done", 1.0, "host", ended=2.0).write(tmp_path / "0", 0)
    return tmp_path / "0"


def test_status_is_found_while_it_is_closed(bundle: Path, monkeypatch: pytest.MonkeyPatch):
    """A worker that starts again may list the status files just before the head renames one."""
    listed = os.listdir(bundle / "status")
    bundles.close_job(bundle, 0)
    monkeypatch.setattr(bundles.os, "listdir", lambda _: listed)
    assert [(number, status.state, closed) for number, status, closed in bundles.read_statuses(bundle)] == [
        (0, "done", True)
    ]


# That the verdict of a trial is worth something.


@pytest.fixture
def finished(tmp_path: Path) -> tuple[Trial, Path]:
    """What a trial of one job leaves when all is well."""
    (tmp_path / "out").mkdir()
    (tmp_path / "ledger").mkdir()
    (tmp_path / "out" / "c0").write_text("begin c0\nend c0\n")
    (tmp_path / "runs.log").write_text("c0 1_0 77 10.0 start\nc0 1_0 77 10.1 end\n")
    records = [
        {"time": 10.2, "head": 1, "what": "success", "job": "c0", "task": "1_0", "whole": True},
        {"time": 10.2, "head": 1, "what": "closed", "job": "c0"},
    ]
    (tmp_path / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in records))
    (tmp_path / "controller.jsonl").write_text(
        json.dumps({"time": 9.0, "kind": "submitted", "task": "1_0", "jobs": ["c0"], "folder": "/x/0"}) + "\n"
    )
    return Trial(1, [Plan("c0", "works", 0.1)], []), tmp_path


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_no_complaint_when_all_is_well(finished: tuple[Trial, Path]):
    assert faults_verdict.violations(*finished) == []


@pytest.mark.parametrize(
    ("name", "line", "complaint"),
    [
        ("runs.log", "c0 2_0 78 11.0 start\nc0 2_0 78 11.1 end\n", "ran again without a cause"),
        ("runs.log", "c0 2_0 78 11.0 overlap\n", "two runs at a time"),
        ("controller.jsonl", '{"time": 12.0, "kind": "left", "task": "1_0"}\n', "left"),
        ("controller.jsonl", '{"time": 12.0, "kind": "survivors", "processes": []}\n', "survivors"),
        ("controller.jsonl", '{"time": 12.0, "kind": "head ended", "code": 1}\n', "a head crashed"),
        (
            "records.jsonl",
            '{"time": 11.0, "what": "failure", "job": "c0", "task": "1_0", "cause": "killed", "message": "", "last": false}\n',
            "reported as 'killed'",
        ),
    ],
)
def test_complaint(finished: tuple[Trial, Path], name: str, line: str, complaint: str):
    trial, folder = finished
    append(folder / name, line)
    assert complaint in " ".join(faults_verdict.violations(trial, folder))


def test_complaint_about_a_success_without_a_whole_run(finished: tuple[Trial, Path]):
    trial, folder = finished
    (folder / "runs.log").write_text("c0 1_0 77 10.0 start\n")
    assert "but its last run" in " ".join(faults_verdict.violations(trial, folder))


def test_complaint_about_a_lost_job(finished: tuple[Trial, Path]):
    trial, folder = finished
    (folder / "records.jsonl").write_text("")
    assert "has no verdict" in " ".join(faults_verdict.violations(trial, folder))


def test_complaint_about_leftovers(finished: tuple[Trial, Path]):
    trial, folder = finished
    (folder / "ledger" / "chunk").mkdir()
    assert "left in the ledger" in " ".join(faults_verdict.violations(trial, folder))


@pytest.mark.parametrize(("what", "complaints"), [("success", 0), ("closed", 1)])
def test_a_bundle_of_a_waiting_worker_may_stay_if_a_head_was_killed_before_it_noted_a_success(
    tmp_path: Path, what: str, complaints: int
):
    bundle = tmp_path / "ledger" / "array" / "0"
    bundle.mkdir(parents=True)
    (bundle / "bundle.json").write_text(json.dumps({"jobs": [{"outputs": ["out/c0"]}]}))
    assert len(faults_verdict.leftovers(tmp_path, [{"job": "c0", "what": what}], [])) == complaints
