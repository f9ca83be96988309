"""The ledger is read whatever stands in it."""

import json
import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from status_fixture import NOW, bundle, failed, running, states, write

from xlgrid.report import ledger

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["jobs", "outputs", "rule", "state", "time", "logs"]), inner, max_size=4)
    ),
    max_leaves=12,
)

pytestmark = pytest.mark.usefixtures("tiny_project")


def test_no_ledger_is_an_empty_one() -> None:
    assert ledger.read("nowhere") == {}


def test_a_job_is_queued_until_its_status_file_says_otherwise() -> None:
    gone = {"state": "failed", "started": NOW, "ended": NOW, "cause": "timeout", "message": "after\n1 h"}
    bundle("1/a", ("a", None), ("b", running()), ("c", {"state": "done", "started": NOW}), ("d", gone))
    assert states() == {"a": "queued", "b": "running", "c": "done", "d": "failed"}
    assert ledger.read(ledger.FOLDER)["d"] == ledger.Job("train", ("d",), "failed", "timeout", "after\n1 h")


def test_the_end_of_a_job_stands_when_snakemake_knows_it() -> None:
    bundle("1/a", ("a", {"state": "failed", "cause": "timeout"}), ("b", {"state": "stopped"}), ("c", {"state": "done"}))
    for number in (0, 2):
        status_file = ledger.FOLDER / f"1/a/status/{number}.json"
        status_file.rename(status_file.with_suffix(".closed"))
    assert states() == {"a": "failed", "b": "queued", "c": "done"}


def test_nothing_of_a_revoked_bundle_is_under_way() -> None:
    bundle("1/a", ("a", {"state": "failed"}), ("b", {"state": "done"}), ("c", running()), ("d", None))
    write(ledger.FOLDER / "1/a/revoked")
    bundle("0/a", ("d", None), when=NOW - 60)
    assert states() == {"a": "failed", "b": "done", "c": "revoked", "d": "revoked"}


@pytest.mark.parametrize(
    ("host", "begins", "expected"), [("", 0, "running"), ("", 1, "revoked"), ("elsewhere", 1, "running")]
)
def test_a_task_of_this_machine_that_is_gone_runs_nothing(host: str, begins: int, expected: str) -> None:
    """After a reboot another process may have the task's id; of another machine nothing is known."""
    began = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]) - begins
    bundle("1/0", ("a", running()))
    about = {"cluster": "local", "host": host or socket.gethostname(), "tasks": [f"{os.getpid()}.{began}"]}
    write(ledger.FOLDER / "1/array.json", json.dumps(about))
    assert states() == {"a": expected}


def test_a_task_that_has_ended_and_that_nothing_has_waited_for_is_gone() -> None:
    child = subprocess.Popen(["true"])
    while (fields := Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split())[0] != "Z":
        time.sleep(0.01)
    bundle("1/0", ("a", running()))
    about = {"cluster": "local", "host": socket.gethostname(), "tasks": [f"{child.pid}.{fields[19]}"]}
    write(ledger.FOLDER / "1/array.json", json.dumps(about))
    assert states() == {"a": "revoked"}
    child.wait()


@pytest.mark.parametrize(("old", "new"), [("1/a", "2/a"), ("2/a", "1/a")])
def test_the_newest_bundle_of_an_output_counts(old: str, new: str) -> None:
    bundle(old, ("a", running()), when=NOW)
    bundle(new, ("a", None), when=NOW + 60)
    assert states() == {"a": "queued"}


@pytest.mark.parametrize("submitted", [True, False])
@pytest.mark.parametrize("job_status", [None, running(NOW + 5)])
def test_a_failure_counts_until_the_job_is_tried_again(job_status: dict[str, Any] | None, submitted: bool) -> None:
    bundle("1/a", ("a", job_status), when=NOW, submitted=submitted)
    again = "running" if job_status else "queued"
    failed("a", NOW - 1)
    assert states() == {"a": again}, "it was submitted after the failure"
    failed("a", NOW + 10)
    assert states() == {"a": "failed"}, "what killed the job left no status"
    bundle("1/a", ("a", running(NOW + 20)), when=NOW, submitted=submitted)
    assert states() == {"a": "running"}, "its bundle was started again"


def test_the_latest_failure_of_an_output_counts() -> None:
    failed("a", NOW, "timeout")
    failed("a", NOW + 1, "NaN", "the loss")
    assert ledger.read(ledger.FOLDER)["a"] == ledger.Job("train", ("a",), "failed", "NaN", "the loss", "a.log")


def test_what_vanishes_while_it_is_read_or_is_half_written_is_passed_over() -> None:
    bundle("1/a", ("a", None), ("b", None))
    for name in ("0.json", "2.json"):
        path = ledger.FOLDER / "1/a/status" / name
        path.parent.mkdir(exist_ok=True)
        path.symlink_to("gone")  # listed, but not there when it is opened
    (ledger.FOLDER / "1/empty").mkdir()
    write(ledger.FOLDER / "1/bad/bundle.json", '{"jobs": [{"rule"')
    failed("c", NOW)
    with (ledger.FOLDER / "failures.jsonl").open("a") as file:
        file.write('{"outputs": ["d"], "ti')
    assert states() == {"a": "queued", "b": "queued", "c": "failed"}


def test_the_status_of_what_exists_is_not_read() -> None:
    bundle("1/a", ("a", running()), ("b", running()))
    jobs = ledger.read(ledger.FOLDER, existing={"a"})
    assert {output: job.state for output, job in jobs.items()} == {"a": "done", "b": "running"}


@settings(max_examples=60)
@given(anything, anything, anything, anything)
def test_any_json_is_read(array: object, jobs: object, job_status: object, failure: object) -> None:
    folder = ledger.FOLDER / "1"
    write(folder / "array.json", json.dumps(array))
    write(folder / "a/bundle.json", json.dumps({"jobs": jobs}))
    write(folder / "a/status/0.json", json.dumps(job_status))
    write(ledger.FOLDER / "failures.jsonl", json.dumps(failure) + "\n")
    assert all(isinstance(job, ledger.Job) for job in ledger.read(ledger.FOLDER).values())
