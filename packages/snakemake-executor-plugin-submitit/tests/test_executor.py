"""The executor between Snakemake and the dispatcher, with neither of them."""

import asyncio
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest
from executor_stub import Alone, Dispatcher, Scheduler, job
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

import snakemake_executor_plugin_submitit as plugin
from snakemake_executor_plugin_submitit import ExecutorSettings, failures
from snakemake_executor_plugin_submitit.bundles import Job
from snakemake_executor_plugin_submitit.dispatch import Unreachable
from snakemake_executor_plugin_submitit.ending import RunningJob
from snakemake_executor_plugin_submitit.resources import Request
from snakemake_executor_plugin_submitit.verdicts import Verdict


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch) -> Alone:
    """An executor with a dispatcher that only notes calls. The key and the output of a job are the name of the job."""

    def describe(job: Any, nested: Any, minutes: int | None) -> tuple[Job, str | None]:
        kind: Any = "snakemake" if job.name == "nested" else "shell"
        return Job(job.name, "rule", kind, "true", outputs=(f"{job.name}.txt",)), None

    monkeypatch.setattr(plugin, "describe", describe)
    monkeypatch.setattr(plugin, "identify", lambda job: Job(job.name, "rule", "shell", ""))
    monkeypatch.setattr(plugin, "members_of", lambda job: [job])
    monkeypatch.setattr(plugin, "protected", lambda job: [])
    monkeypatch.setattr(RemoteExecutor, "__init__", lambda self: None)
    alone = Alone()
    alone.events, alone.messages, alone.marks = [], [], {}
    alone.dispatcher = Dispatcher()
    alone.defaults = Request()
    alone.executor_settings = ExecutorSettings()
    alone.logger = SimpleNamespace(error=alone.messages.append)
    persistence = SimpleNamespace(external_jobids=lambda job: alone.marks.get(job.name, []))
    alone.workflow = SimpleNamespace(
        persistence=persistence,
        dag_settings=SimpleNamespace(targets={"all"}),
        remote_execution_settings=SimpleNamespace(seconds_between_status_checks=5),
    )
    return alone


def submit(executor: Alone, *names: str) -> dict[str, Any]:
    submitted = {name: job(name) for name in names}
    executor.run_jobs([*submitted.values()])
    return submitted


def check(executor: Alone) -> list[str]:
    """Have the executor look for verdicts; returns the names of the jobs that it goes on following."""

    async def active() -> list[str]:
        infos = list(executor.infos.values())
        return [info.job.name async for info in executor.check_active_jobs(infos)]

    return asyncio.run(active())


def verdict(executor: Alone, name: str, cause: str | None = None, message: str = "") -> None:
    job = executor.descriptions[id(executor.infos[name].job)]
    executor.dispatcher.verdicts.append(Verdict(job, cause, message, "7_0"))


# Submission.


def test_a_rejected_job_fails_and_does_not_keep_the_next_from_being_submitted(executor: Alone) -> None:
    submit(executor, "first", "bad", "last")
    assert executor.dispatcher.added == ["first", "last"]
    assert [event for event in executor.events if event[0] != "begin"] == [("failure", "bad")]
    [(key, cause, message)] = executor.dispatcher.failed
    assert (key, cause) == ("bad", failures.REJECTED) and "runtime" in message


def test_snakemake_learns_once_that_a_job_has_a_task_and_knows_the_last_task(executor: Alone) -> None:
    submit(executor, "first")
    description = executor.descriptions[id(executor.infos["first"].job)]
    executor.note_submission(description, "7_0")
    assert ("submitted", "first") in executor.events
    executor.note_submission(description, "8_0")
    assert executor.events.count(("submitted", "first")) == 1
    assert executor.infos["first"].external_jobid == "8_0"


@pytest.mark.parametrize(
    ("name", "marks", "is_recorded"), [("first", [], True), ("first", ["7_0"], False), ("nested", [], False)]
)
def test_snakemake_has_recorded_the_end_of_a_job_that_has_no_mark(
    executor: Alone, name: str, marks: list[str], is_recorded: bool
) -> None:
    """A nested Snakemake removes the mark as well, so there it proves nothing."""
    submitted = submit(executor, name)
    executor.marks[name] = marks
    assert executor.recorded(executor.descriptions[id(submitted[name])]) == is_recorded


# Verdicts.


def test_jobs_without_a_verdict_are_followed_further(executor: Alone) -> None:
    submit(executor, "first", "second", "third")
    verdict(executor, "first")
    verdict(executor, "third", failures.TIMEOUT, "too long")
    assert check(executor) == ["second"]
    assert executor.events[-2:] == [("success", "first"), ("failure", "third")]


def test_a_failure_is_reported_with_its_cause_and_the_command_that_repeats_it(
    executor: Alone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["snakemake", "-F", "--cores", "2", "all"])
    submit(executor, "first")
    verdict(executor, "first", failures.NAN, "exit code 1")
    check(executor)
    lines = [line.strip() for line in executor.messages[0].splitlines()]
    assert lines[:2] == ["NaN: exit code 1", "again: snakemake --cores 2 -- first.txt"]


def test_an_error_of_the_dispatcher_is_printed_and_costs_no_verdict(executor: Alone) -> None:
    submit(executor, "first", "second")
    executor.dispatcher.error = ValueError("something is wrong")
    verdict(executor, "first")
    assert check(executor) == ["second"]
    assert executor.messages == ["submitit executor: ValueError: something is wrong"]


def test_an_unreachable_cluster_ends_the_run(executor: Alone) -> None:
    submit(executor, "first")
    executor.dispatcher.error = Unreachable("no answer for 120 minutes")
    with pytest.raises(WorkflowError, match="no answer for 120 minutes"):
        check(executor)


def test_before_there_is_a_dispatcher_all_jobs_are_followed_further(executor: Alone) -> None:
    """Snakemake starts the thread that checks before the executor is complete."""
    submit(executor, "first")
    executor.dispatcher = None
    assert check(executor) == ["first"]


@pytest.mark.parametrize(
    ("words", "again"),
    [
        (["--cores", "2", "all"], "snakemake --cores 2 -- out.txt"),
        (["--forceall", "--force", "-F", "-f", "--cores", "2", "--", "all"], "snakemake --cores 2 -- out.txt"),
        (["all", "--cores", "2"], "snakemake --cores 2 -- out.txt"),
        (["--forcerun", "train", "x", "--cores", "2", "-R", "y"], "snakemake --cores 2 -- out.txt"),
        (["all"], "snakemake -- out.txt"),
        (["--config", "a=b c", "all", "all"], "snakemake --config 'a=b c' -- out.txt"),
    ],
)
def test_a_job_is_run_again_with_the_present_command_and_its_output_as_the_only_target(
    executor: Alone, monkeypatch: pytest.MonkeyPatch, words: list[str], again: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["/bin/snakemake", *words])
    assert executor.again(Job("key", "rule", "shell", "", outputs=("out.txt", "other.txt"))) == again
    assert executor.again(Job("key", "rule", "shell", "")) == again.replace("out.txt", "rule")


# The end of a job.


def test_a_job_that_snakemake_has_taken_note_of_is_forgotten(executor: Alone) -> None:
    submitted = submit(executor, "first", "second")
    verdict(executor, "first")
    check(executor)
    executor.handle_job_success(submitted["first"])
    assert executor.dispatcher.closed == ["first"]
    assert (set(executor.infos), len(executor.descriptions), executor.succeeded) == ({"second"}, 1, set())


def test_a_job_whose_outputs_snakemake_rejects_is_noted_with_the_reason_if_there_is_one(executor: Alone) -> None:
    submitted = submit(executor, "first", "second")
    verdict(executor, "first")
    verdict(executor, "second")
    check(executor)
    try:
        raise ValueError("out.txt is missing")
    except ValueError:
        executor.handle_job_error(submitted["first"])
    executor.handle_job_error(submitted["second"])
    assert [failure[1:] for failure in executor.dispatcher.failed] == [
        (failures.REJECTED, "out.txt is missing"),
        (failures.REJECTED, "see the log of Snakemake"),
    ]
    assert executor.dispatcher.closed == ["first", "second"]


def test_a_job_that_was_never_described_can_end(executor: Alone) -> None:
    """The executor has rejected it, and Snakemake reports the error back."""
    submitted = submit(executor, "bad")
    executor.handle_job_error(submitted["bad"])
    assert len(executor.dispatcher.failed) == 1, "the failure is noted twice"
    assert executor.dispatcher.closed == []


def asked(executor: Alone) -> Scheduler:
    """Snakemake's scheduler after SIGTERM."""
    scheduler = Scheduler()

    def graceful(_: Any) -> None:
        scheduler.graceful += 1

    executor.workflow.scheduler = scheduler
    executor.requests = SimpleNamespace(first="SIGTERM", snakemake=graceful, is_final=False)
    return scheduler


def test_after_sigterm_the_executor_waits_for_running_jobs_and_then_ends_the_run(executor: Alone) -> None:
    submit(executor, "runs", "waits")
    scheduler = asked(executor)
    executor.dispatcher.running = [RunningJob("runs.txt", None)]
    check(executor)
    check(executor)
    assert (scheduler.graceful, scheduler.errors) == (1, [])
    assert "runs.txt" in executor.dispatcher.news[0]
    executor.dispatcher.running = []
    for _ in range(3):
        check(executor)
    [error] = scheduler.errors
    assert "2 jobs were not started or not finished" in error


def test_after_sigterm_jobs_that_snakemake_runs_itself_end_first(executor: Alone) -> None:
    submit(executor, "waits")
    scheduler = asked(executor)
    local = job("table")
    local.output = ["table.csv"]
    scheduler.running = [local]
    for _ in range(3):
        check(executor)
    assert not scheduler.errors and "table.csv" in executor.dispatcher.news[0]


def test_after_sigterm_the_end_of_a_job_reaches_snakemake_before_the_run_ends(executor: Alone) -> None:
    submitted = submit(executor, "done", "waits")
    scheduler = asked(executor)
    verdict(executor, "done")
    for _ in range(3):
        check(executor)
    assert not scheduler.errors, "Snakemake has not taken note of the job"
    executor.handle_job_success(submitted["done"])
    for _ in range(3):
        check(executor)
    assert len(scheduler.errors) == 1


def test_after_sigterm_snakemake_ends_a_run_by_itself_in_which_no_job_is_left(executor: Alone) -> None:
    scheduler = asked(executor)
    for _ in range(3):
        check(executor)
    assert not scheduler.errors


# Pauses between checks.


def paused(executor: Alone, cluster: str, seconds: float) -> float:
    """How long the executor sleeps if the last verdict came so many seconds ago."""
    pauses: list[float] = []
    executor.executor_settings.cluster = cluster
    executor.progress = time.monotonic() - seconds
    executor.mail = SimpleNamespace(wait=pauses.append)  # type: ignore[assignment]
    asyncio.run(executor.sleep())
    return pauses[0]


@pytest.mark.parametrize(
    ("cluster", "seconds", "pause"),
    [("slurm", 0, 0.1), ("slurm", 10, 2), ("slurm", 1000, 5), ("local", 0, 0.1), ("local", 1000, 0.3)],
)
def test_the_executor_checks_often_while_jobs_end_and_seldom_otherwise(
    executor: Alone, cluster: str, seconds: float, pause: float
) -> None:
    assert paused(executor, cluster, seconds) == pytest.approx(pause, abs=0.02)
