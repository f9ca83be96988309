"""What the worker does while jobs run: it waits for signals, limits and ends."""

import contextlib
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from alone import Alone
from submitit.core.utils import DelayedSubmission

from snakemake_executor_plugin_submitit import worker
from snakemake_executor_plugin_submitit.bundles import Bundle, Job, Status, read_statuses
from snakemake_executor_plugin_submitit.worker import RESUMABLE, Worker


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A runner with two jobs, whose processes nobody collects."""
    alone = Alone(tmp_path, Job("a", "rule", "shell", "true"), Job("b", "rule", "shell", "true"))
    alone.reap = lambda handle: None
    monkeypatch.setattr(worker, "kill", lambda group, number: alone.kills.append((group, number)))
    return alone


def waited(runner: Any, monkeypatch: pytest.MonkeyPatch, received: int | None = None) -> float:
    """Let the runner wait until it receives a signal (None for none); returns for how long it would have waited at most."""
    waits: list[float] = []

    def wait(signals: set[int], seconds: float) -> Any:
        waits.append(seconds)
        return SimpleNamespace(si_signo=received) if received else None

    monkeypatch.setattr(worker.signal, "sigtimedwait", wait)
    runner.wait()
    return waits[0]


# Waiting.


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(("code", "state"), [(0, "done"), (3, "stopped"), (-signal.SIGTERM, "stopped")])
def test_a_signal_of_the_cluster_ends_the_jobs_and_the_worker(
    runner: Any, monkeypatch: pytest.MonkeyPatch, number: int, code: int, state: str
) -> None:
    runner.run()
    runner.codes = [code]
    with pytest.raises(SystemExit) as ended:
        waited(runner, monkeypatch, number)
    assert (ended.value.code, runner.states()) == (128 + number, [state])
    assert runner.kills == [(1000, signal.SIGTERM)]


@pytest.mark.parametrize("has_handler", [True, False], ids=["submitit's handler", "no handler"])
def test_a_warning_of_the_cluster_saves_the_state_of_the_jobs_and_asks_for_a_requeue(
    runner: Any, monkeypatch: pytest.MonkeyPatch, has_handler: bool
) -> None:
    calls: list[int] = []
    handler = (lambda number, frame: calls.append(number)) if has_handler else signal.SIG_DFL
    monkeypatch.setattr(worker.signal, "getsignal", lambda number: handler)
    runner.run()
    runner.codes = [RESUMABLE]
    with pytest.raises(SystemExit) as ended:
        waited(runner, monkeypatch, signal.SIGUSR2)
    assert (ended.value.code, runner.states()) == (RESUMABLE, ["stopped"])
    assert calls == ([signal.SIGUSR2] if has_handler else [])


# Statuses.


@pytest.mark.parametrize(
    ("state", "has_end"), [("running", False), ("stopped", False), ("done", True), ("failed", True)]
)
def test_only_a_final_status_has_an_end(tmp_path: Path, state: Any, has_end: bool) -> None:
    """The head learns from it how long the jobs of a rule take."""
    alone = Alone(tmp_path)
    worker.Runner.note(alone, 0, Status(state, 1.0, "host"))  # type: ignore[arg-type]
    [(_, status, _)] = read_statuses(alone.folder)
    assert (status.ended is not None) == has_end
    assert alone.known[0] == status, "the next start of the job counts from another status"


def test_a_worker_whose_bundle_is_gone_ends_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(seconds: float) -> None:
        raise AssertionError("the worker waits for a folder that was deleted")

    alone = Alone(tmp_path)
    monkeypatch.setattr(worker.time, "sleep", sleep)
    alone.folder = tmp_path / "gone"
    with pytest.raises(FileNotFoundError):
        worker.Runner.note(alone, 0, Status("done", 1.0, "host"))  # type: ignore[arg-type]


# The checkpoint of submitit.


@pytest.mark.parametrize(("pauses", "is_requeued"), [(None, True), (True, True), (False, False)])
def test_a_task_is_requeued_before_it_has_begun_or_if_jobs_are_left(pauses: bool | None, is_requeued: bool) -> None:
    task = Worker("folder")
    task.runner = None if pauses is None else SimpleNamespace(pause=lambda: pauses)  # type: ignore[assignment]
    answer = task.checkpoint()
    assert (answer is not None) == is_requeued
    if is_requeued:
        assert isinstance(answer, DelayedSubmission) and answer.function.folder == "folder"
        assert answer.function.runner is None, "the runner holds processes, and cannot be pickled"


# The loop.


@pytest.mark.parametrize(("slots", "at_once"), [(1, 1), (2, 2), (3, 2)])
def test_no_more_jobs_run_at_a_time_than_the_task_has_slots(
    runner: Any, slots: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []

    def wait() -> None:
        counts.append(len(runner.running))
        runner.running.popitem()

    runner.bundle = Bundle(runner.bundle.jobs, "", slots=slots)
    runner.todo.extend([0, 1])
    runner.start = lambda number: Alone.run(runner, number)
    runner.wait = wait
    loop(runner, monkeypatch)
    assert max(counts) == at_once and len(counts) == 2


def test_a_runner_that_ends_by_an_error_kills_its_jobs(runner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def wait() -> None:
        raise ValueError("something is wrong")

    runner.run()
    runner.wait = wait
    with pytest.raises(ValueError, match="something is wrong"):
        loop(runner, monkeypatch)
    assert runner.kills == [(1000, signal.SIGKILL)]


def test_a_worker_that_is_asked_to_end_handles_the_signal_before_it_returns(
    runner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """submitit would not requeue a task whose worker has returned."""

    def wait() -> None:
        raise SystemExit(RESUMABLE)

    runner.todo.append(0)
    runner.wait = wait
    monkeypatch.setattr(worker, "must_end", lambda: True)
    with pytest.raises(SystemExit):
        loop(runner, monkeypatch)
    assert list(runner.todo) == [0], "a job was started"


def loop(runner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the loop of the real runner, without a guard."""
    monkeypatch.setattr(worker, "Guard", lambda heartbeat: contextlib.nullcontext())
    worker.Runner.run(runner)
