"""What the worker does for a job before and after its command: it waits for inputs, shows the end of the log, and leaves no process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import wait_for

from snakemake_executor_plugin_submitit import worker
from snakemake_executor_plugin_submitit.bundles import Bundle, Job
from snakemake_executor_plugin_submitit.clusters import birth
from snakemake_executor_plugin_submitit.process import make_ready


def job_with_input(tmp_path: Path) -> tuple[Job, Bundle]:
    job = Job("key", "rule", "shell", "true", inputs=("in.txt",))
    return job, Bundle((job,), str(tmp_path), latency_wait=60)


def test_a_job_whose_inputs_are_there_does_not_wait(tmp_path: Path) -> None:
    (tmp_path / "in.txt").touch()

    def must_end() -> bool:
        raise AssertionError("the job waits for inputs that are there")

    assert make_ready(*job_with_input(tmp_path), must_end) is None


def test_a_job_waits_for_an_input_that_comes_late(tmp_path: Path) -> None:
    def must_end() -> bool:
        (tmp_path / "in.txt").touch()
        return False

    assert make_ready(*job_with_input(tmp_path), must_end) is None


def test_a_worker_that_has_to_end_waits_for_no_input(tmp_path: Path) -> None:
    problem = make_ready(*job_with_input(tmp_path), lambda: True)
    assert problem and problem.endswith("in.txt")


@pytest.mark.parametrize("size", [0, 1, worker.TAIL, worker.TAIL + 1, 5 * worker.TAIL])
def test_the_end_of_a_log_is_shown(tmp_path: Path, size: int) -> None:
    text = "".join(str(number % 10) for number in range(size))
    (tmp_path / "log").write_text(text)
    assert worker.tail(tmp_path / "log") == (text if size <= worker.TAIL else f"… {text[-worker.TAIL :]}")


def test_a_process_that_has_ended_but_is_not_waited_for_has_no_birth() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        assert birth(process.pid)
        assert process.stdin
        process.stdin.close()
        wait_for(lambda: not birth(process.pid), "a zombie has a birth")
    finally:
        process.wait()


def test_the_guard_kills_the_jobs_of_a_worker_that_is_killed_and_no_job_that_has_ended() -> None:
    """A worker starts two process groups, tells the guard of both, and then that the second has ended."""
    program = """
import struct, subprocess, os, time
from snakemake_executor_plugin_submitit.worker import guard
pipe = guard()
groups = [subprocess.Popen(["sleep", "60"], start_new_session=True).pid for _ in range(2)]
for number in (*groups, -groups[1]):
    os.write(pipe, struct.pack("i", number))
print(*groups, flush=True)
time.sleep(60)
"""
    started = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert started.stdout
    killed, ended = map(int, started.stdout.readline().split())
    try:
        started.kill()
        wait_for(lambda: not birth(killed), "the job goes on without its worker")
        assert birth(ended), "the guard has killed a process group that it was told has ended"
    finally:
        started.wait()
        os.killpg(ended, signal.SIGKILL)
