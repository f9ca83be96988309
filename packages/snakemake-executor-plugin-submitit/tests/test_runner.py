"""The decisions of the worker, without processes: what it notes about a job that ends, and about the next start of a job."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from alone import Alone

from snakemake_executor_plugin_submitit import failures, worker
from snakemake_executor_plugin_submitit.bundles import Bundle, Job, Status
from snakemake_executor_plugin_submitit.worker import RESUMABLE

KILLED = -signal.SIGKILL


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Returns a runner of a bundle with these jobs and settings."""

    def runner(*jobs: Job, **settings: Any) -> Alone:
        alone = Alone(tmp_path, *jobs, **settings)
        monkeypatch.setattr(worker, "kill", lambda group, number: alone.kills.append((group, number)))
        return alone

    return runner


# The end of a job.


@pytest.mark.parametrize(
    ("code", "kills", "cause"),
    [
        (KILLED, 3, failures.OUT_OF_MEMORY),
        (128 + signal.SIGKILL, 3, failures.OUT_OF_MEMORY),
        (KILLED, 2, failures.KILLED),
        (128 + signal.SIGKILL, 2, failures.KILLED),
        (-signal.SIGSEGV, 3, failures.KILLED),
        (1, 3, failures.EXCEPTION),
    ],
)
def test_a_job_is_out_of_memory_if_it_was_killed_and_the_kernel_has_killed_a_process_for_its_memory(
    begin: Any, monkeypatch: pytest.MonkeyPatch, code: int, kills: int, cause: str
) -> None:
    runner = begin()
    runner.memory_kills = 2
    monkeypatch.setattr(failures, "memory_kills", lambda: kills)
    assert runner.cause_of(code, []) == cause
    assert runner.cause_of(KILLED, []) == failures.KILLED, "a kill is the cause of one failure only"


def test_a_job_that_is_done_leaves_the_times_of_its_outputs_and_its_output_in_the_log_of_the_task(
    begin: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out.txt").touch()
    runner = begin(Job("key", "rule", "shell", "true", outputs=("out.txt",)))
    process = runner.run()
    runner.end(process, 0)
    [(number, status)] = runner.notes
    assert (number, status.state, status.cause) == (0, "done", None)
    assert status.stamps == ((tmp_path / "out.txt").stat().st_mtime_ns,)
    assert capfd.readouterr().out == "--- out.txt\nthe output of the job\n"
    assert not process.output.exists(), "the outputs of jobs fill the folder of the bundle"


def test_a_failure_cites_the_logs_that_have_text_and_the_output(begin: Any, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("ValueError: no\n")
    (tmp_path / "b.log").touch()
    runner = begin(Job("key", "rule", "shell", "true", logs=("a.log", "b.log")))
    runner.end(runner.run(), 3)
    [(_, status)] = runner.notes
    assert (status.state, status.cause) == ("failed", failures.EXCEPTION)
    assert status.message == "exit code 3\na.log:\nValueError: no\noutput:\nthe output of the job"


def test_the_cause_may_lie_further_up_than_what_is_cited(begin: Any) -> None:
    """A nested Snakemake cites the command of its job, which may be long."""
    runner = begin()
    process = runner.run()
    after = f"Command '{'x' * 5000}' returned non-zero exit status 1."
    process.output.write_text(
        f'MemoryError\nRuleException:\nCalledProcessError in file "Snakefile", line 9:\n{after}\n'
    )
    runner.end(process, 1)
    [(_, status)] = runner.notes
    assert status.cause == failures.OUT_OF_MEMORY and len(status.message) < 3000


def handled(
    runner: Any, monkeypatch: pytest.MonkeyPatch, code: int, asked: bool, received: int | None = None, **status: Any
) -> list[float]:
    """Handle the end of a job, after which the worker may receive a signal; returns the seconds that it waits for the signal."""
    waits: list[float] = []

    def wait(signals: set[int], seconds: float) -> Any:
        waits.append(seconds)
        return SimpleNamespace(si_signo=received) if received else None

    monkeypatch.setattr(worker.signal, "sigtimedwait", wait)
    process = runner.run(**status)
    process.asked_at = time.time() if asked else None
    del runner.running[1000]
    runner.handle_end(process, code)
    return waits


@pytest.mark.parametrize(
    ("code", "asked", "requeues", "state", "cause"),
    [
        (0, False, 0, "done", None),
        (0, True, 0, "done", None),
        (3, False, 0, "failed", failures.EXCEPTION),
        (RESUMABLE, False, 0, "failed", failures.EXCEPTION),
        (RESUMABLE, True, 0, "stopped", None),
        (RESUMABLE, True, 1, "stopped", None),
        (RESUMABLE, True, 2, "failed", failures.TIMEOUT),
        (3, True, 0, "failed", failures.TIMEOUT),
        (KILLED, True, 0, "failed", failures.TIMEOUT),
    ],
)
def test_a_job_at_its_limit_goes_on_if_it_has_saved_its_state_and_not_too_often(
    begin: Any,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    asked: bool,
    requeues: int,
    state: str,
    cause: str | None,
) -> None:
    runner = begin(Job("key", "rule", "shell", "true", limit=90), max_requeues=2)
    handled(runner, monkeypatch, code, asked, requeues=requeues)
    [(_, status)] = runner.notes
    assert (status.state, status.cause) == (state, cause)
    assert list(runner.todo) == ([0] if state == "stopped" else [])
    assert status.requeues == requeues + (state == "stopped")
    if cause == failures.TIMEOUT:
        assert status.message.startswith("it ran for longer than its limit of 1.5 minutes\n")


def test_a_job_that_a_cluster_signals_before_the_worker_is_stopped_and_not_failed(
    begin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = begin()
    with pytest.raises(SystemExit) as ended:
        handled(runner, monkeypatch, -signal.SIGTERM, False, signal.SIGTERM)
    assert (ended.value.code, runner.states()) == (128 + signal.SIGTERM, ["stopped"])


# The end of the task.

NESTED = Job("key", "rule", "snakemake", "true")


def paused(runner: Any, code: int, requeues: int = 0, minutes_left: float = 0.0) -> bool:
    """Let the only job save its state so many minutes before the limit of an hour; its process ends with this code."""
    runner.began = time.time() - 3600 + 60 * minutes_left
    runner.run(requeues=requeues)
    runner.codes = [code]
    return runner.pause()


@pytest.mark.parametrize(
    ("code", "minutes_left", "state", "cause"),
    [
        (0, 1, "done", None),
        (0, 20, "done", None),
        (3, 1, "failed", failures.EXCEPTION),
        (128, 1, "failed", failures.EXCEPTION),
        (RESUMABLE, 1, "stopped", None),
        (RESUMABLE, 20, "stopped", None),
        (128 + signal.SIGUSR2, 1, "failed", failures.TIMEOUT),
        (-signal.SIGUSR2, 1, "failed", failures.TIMEOUT),
        (-signal.SIGUSR2, 20, "stopped", None),
        (128 + signal.SIGTERM, 20, "stopped", None),
    ],
)
def test_a_task_that_has_to_end_stops_its_jobs_and_fails_those_that_would_never_end(
    begin: Any, code: int, minutes_left: float, state: str, cause: str | None
) -> None:
    """At the time limit a job that saves no state would begin anew for ever. A preempted job may have more time next."""
    runner = begin(limit=3600, grace=60)
    again = paused(runner, code, minutes_left=minutes_left)
    [(_, status)] = runner.notes
    assert (status.state, status.cause) == (state, cause), status.message
    assert (list(runner.todo), again) == (([0], True) if state == "stopped" else ([], False))
    assert runner.kills == [(1000, signal.SIGUSR2)]
    assert not list(runner.folder.glob("output-*")), "the output of the job is left"


@pytest.mark.parametrize(
    ("minutes_left", "limit", "requeues"),
    [(1, 3600, 1), (129.5 / 60, 3600, 1), (131 / 60, 3600, 0), (20, 3600, 0), (1, None, 0)],
)
def test_a_warning_of_slurm_that_comes_up_to_a_minute_early_counts_as_the_time_limit(
    begin: Any, minutes_left: float, limit: float | None, requeues: int
) -> None:
    runner = begin(limit=limit, grace=60)
    paused(runner, RESUMABLE, minutes_left=minutes_left)
    assert [status.requeues for _, status in runner.notes] == [requeues]


@pytest.mark.parametrize(("requeues", "state"), [(1, "stopped"), (2, "failed")])
def test_a_job_reaches_the_time_limit_of_its_task_as_often_as_the_setting_says(
    begin: Any, requeues: int, state: str
) -> None:
    runner = begin(limit=3600, grace=60, max_requeues=2)
    paused(runner, RESUMABLE, requeues)
    [(_, status)] = runner.notes
    assert status.state == state
    if state == "failed":
        assert status.cause == failures.TIMEOUT
        assert status.message.startswith("the task reached its time limit 3 times")


@pytest.mark.parametrize("code", [3, -signal.SIGUSR2, RESUMABLE])
def test_a_nested_snakemake_that_is_stopped_goes_on_whatever_its_exit_code(begin: Any, code: int) -> None:
    """It ends with a code of its own, whatever became of its job."""
    runner = begin(NESTED, limit=3600, grace=60)
    paused(runner, code)
    assert runner.states() == ["stopped"]


@pytest.mark.parametrize(("codes", "why"), [([-signal.SIGUSR2], "it saves no state"), ([], "within 40 s")])
def test_a_job_that_is_slow_to_save_its_state_has_another_message(begin: Any, codes: list[int], why: str) -> None:
    runner = begin(limit=3600, grace=60)
    runner.began = time.time() - 3590
    runner.run()
    drain, again = runner.drain, []

    def collect(handle: Any, seconds: float = 0) -> None:
        again.append(seconds)
        runner.codes = codes if len(again) == 1 else [KILLED]
        drain(handle)

    runner.drain = collect
    runner.pause()
    [(_, status)] = runner.notes
    assert status.cause == failures.TIMEOUT and why in status.message
    assert ((1000, signal.SIGKILL) in runner.kills) == (not codes)


def test_a_job_that_is_stopped_before_it_has_an_output_goes_on(begin: Any) -> None:
    """The signal may come between the fork and the first step of the new process."""
    runner = begin(limit=3600)
    runner.run().output.unlink()
    runner.codes = [-signal.SIGUSR2]
    assert runner.pause()
    assert runner.states() == ["stopped"]


def test_a_revoked_task_is_not_requeued(begin: Any) -> None:
    runner = begin(limit=3600)
    (runner.folder / "revoked").touch()
    assert not paused(runner, RESUMABLE)


# The start of a job.


def started(runner: Any, monkeypatch: pytest.MonkeyPatch, before: Status | None = None, ends: bool = False) -> None:
    """Start the first job. No shell runs."""
    monkeypatch.setattr(worker, "spawn", lambda *_: (2**22 + 1, os.open(os.devnull, os.O_WRONLY)))
    monkeypatch.setattr(worker, "must_end", lambda: ends)
    if before:
        runner.known[0] = before
    runner.start(0)


@pytest.mark.parametrize(("state", "counts"), [(None, (1, 0, 0)), ("running", (5, 2, 2)), ("stopped", (5, 2, 1))])
def test_a_start_counts_earlier_attempts_and_the_workers_that_died(
    begin: Any, monkeypatch: pytest.MonkeyPatch, state: Any, counts: tuple[int, int, int]
) -> None:
    runner = begin()
    started(runner, monkeypatch, Status(state, 1.0, "other", attempt=4, requeues=2, lost=1) if state else None)
    [(_, status)] = runner.notes
    assert (status.state, status.host) == ("running", "host")
    assert (status.attempt, status.requeues, status.lost) == counts


@pytest.mark.parametrize(("lost", "state"), [(1, "running"), (2, "failed")])
def test_a_job_loses_its_worker_as_often_as_the_setting_says(
    begin: Any, monkeypatch: pytest.MonkeyPatch, lost: int, state: str
) -> None:
    runner = begin(max_requeues=2)
    started(runner, monkeypatch, Status("running", 1.0, "other", lost=lost))
    [(_, status)] = runner.notes
    assert status.state == state
    if state == "failed":
        assert (status.cause, status.message) == (failures.NODE_FAILURE, "its worker died 3 times while it ran")
        assert not runner.running


def test_a_job_whose_end_snakemake_knows_is_not_started(begin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = begin()
    (runner.folder / "status" / "0.closed").touch()
    started(runner, monkeypatch)
    assert (runner.notes, runner.running) == ([], {})


def test_a_worker_that_has_to_end_keeps_the_job_for_its_next_start(begin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = begin()
    runner.todo.append(7)
    started(runner, monkeypatch, ends=True)
    assert (runner.states(), list(runner.todo), runner.running) == (["running", "stopped"], [0, 7], {})


@pytest.mark.parametrize(("inputs", "directory"), [(("in.txt",), "."), ((), "/nowhere")])
def test_a_job_without_its_inputs_or_its_working_directory_fails(
    begin: Any, inputs: tuple[str, ...], directory: str
) -> None:
    runner = begin(Job("key", "rule", "shell", "true", inputs=inputs), latency_wait=0)
    runner.bundle = replace(runner.bundle, directory=directory)
    runner.start(0)
    assert runner.states() == ["running", "failed"] and (*inputs, directory)[0] in runner.notes[1][1].message
    assert not runner.running


@pytest.mark.parametrize(
    ("jobs", "settings", "has_deadline"),
    [(1, {"limit": 100}, False), (2, {"limit": 100}, True), (1, {"limit": 100, "seconds": 9}, True), (1, {}, True)],
    ids=["alone", "with another job", "in an array with larger bundles", "without a limit of the task"],
)
def test_a_job_has_its_limit_unless_the_task_has_the_same(
    begin: Any, monkeypatch: pytest.MonkeyPatch, jobs: int, settings: dict[str, float], has_deadline: bool
) -> None:
    runner = begin(*(Job(str(number), "rule", "shell", "true", limit=50) for number in range(jobs)), **settings)
    started(runner, monkeypatch)
    [process] = runner.running.values()
    assert (process.deadline is not None) == has_deadline
    assert not has_deadline or abs(process.deadline - time.time() - 50) < 10


@pytest.mark.parametrize(
    ("gpus", "visible", "state"),
    [
        (1, "0", "running"),
        (1, None, "running"),
        (1, "all", "running"),
        (0, "NoDevFiles", "running"),
        (1, "NoDevFiles", "failed"),
        (2, "", "failed"),
        (1, "-1", "failed"),
    ],
)
def test_a_job_that_requested_a_gpu_does_not_run_without_one(
    begin: Any, monkeypatch: pytest.MonkeyPatch, gpus: int, visible: str | None, state: str
) -> None:
    """Slurm names no device where its configuration has no file for it."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    runner = begin(gpus=gpus)
    started(runner, monkeypatch)
    _, status = runner.notes[-1]
    assert status.state == state
    assert state == "running" or f"{gpus} GPUs are requested, but CUDA_VISIBLE_DEVICES is {visible!r}" in status.message


def test_a_bundle_is_closed_after_its_seconds_or_when_it_is_revoked(begin: Any) -> None:
    runner = begin(seconds=100)
    assert not runner.is_closed()
    runner.since -= 100
    assert runner.is_closed()
    runner.bundle = Bundle((), "")
    assert not runner.is_closed(), "a bundle without a number of seconds is closed"
    (runner.folder / "revoked").touch()
    assert runner.is_closed()
