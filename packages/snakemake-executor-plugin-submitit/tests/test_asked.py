"""A head that SIGTERM or the end of the terminal asks to end, in its parts and with the real Snakemake."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from clocked import Clock, Cluster, poll, submitted
from waiting import wait_for
from workflow import LOCAL, environment, project

from snakemake_executor_plugin_submitit.bundles import Job, Status
from snakemake_executor_plugin_submitit.clusters.local import birth
from snakemake_executor_plugin_submitit.dispatch import Dispatcher
from snakemake_executor_plugin_submitit.ending import Requests, RunningJob, waiting_for
from snakemake_executor_plugin_submitit.resources import Request

TERM, HANGUP = signal.SIGTERM, signal.SIGHUP


class Scheduler:
    """The part of Snakemake's scheduler that is replaced."""

    def exit_gracefully(self) -> str:
        return "Snakemake's own"


# The handler.


@pytest.mark.parametrize("signals", [(TERM, TERM), (HANGUP,)])
def test_the_first_sigterm_is_noted_and_the_second_or_the_end_of_the_terminal_ends_the_run(
    signals: tuple[int, ...],
) -> None:
    requests = Requests(type("Own", (Scheduler,), {"exit_gracefully": Scheduler.exit_gracefully}))
    *before, last = signals
    for number in before:
        requests.take(number, None)
    assert requests.first == ("SIGTERM" if before else "")
    with pytest.raises(KeyboardInterrupt):
        requests.take(last, None)
    requests.take(TERM, None)


def test_a_second_executor_in_a_process_finds_snakemake_s_own_function() -> None:
    scheduler = type("Own", (Scheduler,), {"exit_gracefully": Scheduler.exit_gracefully})
    first, second = Requests(scheduler), Requests(scheduler)
    assert second.snakemake(scheduler()) == "Snakemake's own"
    scheduler().exit_gracefully(TERM, None)  # type: ignore[call-arg]
    assert (first.first, second.first) == ("", "SIGTERM")


@pytest.mark.parametrize("number", [signal.SIGINT, TERM])
def test_a_signal_that_another_thread_receives_is_handled_at_once(number: signal.Signals) -> None:
    """Whichever thread starts a command at that moment may receive it, while the main thread waits for a job."""
    text = f"""
import signal, threading, time
from snakemake_executor_plugin_submitit.ending import wake_on_signals

signal.signal({int(number)}, signal.default_int_handler)
wake_on_signals()
other = threading.Thread(target=time.sleep, args=[60], daemon=True)
other.start()
threading.Timer(0.5, signal.pthread_kill, [other.ident, {int(number)}]).start()
threading.Semaphore(0).acquire()
"""
    ended = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=30)
    assert ended.stderr.endswith("KeyboardInterrupt\n")


# What a person is told.


def test_a_person_is_told_what_runs_for_how_long_and_how_to_end_it() -> None:
    now = time.time()
    text = waiting_for("SIGTERM", [RunningJob("a.txt", now + 100), RunningJob("b.txt", now + 1000)])
    assert all(part in text for part in ("a.txt, b.txt", "17 minutes", f"kill {os.getpid()}")), text
    assert "without a time limit" in waiting_for("SIGTERM", [RunningJob("a.txt", now), RunningJob("b.txt", None)])
    assert "and 2 more" in waiting_for("SIGTERM", [RunningJob(str(number), None) for number in range(5)])


# The dispatcher.


def test_a_head_that_winds_down_waits_for_running_jobs_and_cancels_the_other_tasks(
    head: Dispatcher, clock: Clock, cluster: Cluster, messages: list[str]
) -> None:
    submitted(head, clock, 2)
    head.add([(Job("late", "rule", "shell", "true"), Request(), None)])
    Status("running", clock.now, "here").write(cluster.submitted[0], 0)
    assert [job.name for job in head.wind_down()] == ["rule"]
    head.add([(Job("later", "rule", "shell", "true"), Request(), None)])
    poll(head, clock, 30)
    assert len(cluster.submitted) == 2, "another job was submitted"
    assert all((folder / "revoked").exists() for folder in cluster.submitted)
    assert cluster.cancelled == ["1_1"]
    Status("done", clock.now, "here", ended=clock.now).write(cluster.submitted[0], 0)
    assert poll(head, clock, 1) == [None], "the end of the job is not heard"
    assert head.wind_down() == []


def test_a_running_job_whose_worker_dies_is_not_waited_for(head: Dispatcher, clock: Clock, cluster: Cluster) -> None:
    """As when the signal goes to all processes. The job has not failed."""
    submitted(head, clock, 1)
    Status("running", clock.now, "here").write(cluster.submitted[0], 0)
    assert head.wind_down()
    cluster.ended = {"1_0": "FAILED"}
    assert poll(head, clock, 300) == []
    assert head.wind_down() == []


def test_the_message_about_the_end_is_repeated_once_a_minute_as_it_is_then(
    head: Dispatcher, clock: Clock, messages: list[str]
) -> None:
    for second in range(100):
        head.remind_of("ending", f"{100 - second} jobs run")
        poll(head, clock, 1)
    first, second = (int(message.split()[1]) for message in messages)
    assert first == 100 and second <= 40


# The real Snakemake.

SNAKEFILE = """
rule all:
    input: expand("{x}", x=range(20))

rule job:
    output: "{x}"
    shell: "echo $$ > pid-{wildcards.x}; sleep {config[seconds]}; touch {output}"
"""


def begun(folder: Path, seconds: int) -> tuple["subprocess.Popen[str]", list[int]]:
    """A Snakemake that runs two of twenty jobs, and their processes."""
    command = [sys.executable, "-m", "snakemake", "--nocolor", *LOCAL, "--submitit-array-parallelism", "2"]
    head = subprocess.Popen(
        [*command, "--config", f"seconds={seconds}"],
        cwd=project(folder, SNAKEFILE),
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )

    def pids() -> list[int]:
        return [int(text) for path in folder.glob("pid-*") if (text := path.read_text().strip())]

    wait_for(lambda: len(pids()) == 2, "no jobs start", 120)
    return head, pids()


def finished(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name.isdigit()}


@pytest.mark.slow
def test_after_sigterm_only_the_jobs_that_run_are_finished(tmp_path: Path) -> None:
    head, _ = begun(tmp_path, 10)
    os.kill(head.pid, TERM)
    messages = head.communicate(timeout=90)[1]
    assert f"kill {head.pid}" in messages and "18 jobs were not started" in messages, messages
    assert (head.returncode, len(finished(tmp_path))) == (1, 2)
    assert not (tmp_path / ".snakemake/submitit/failures.jsonl").exists()


@pytest.mark.slow
@pytest.mark.parametrize("signals", [(TERM, TERM), (HANGUP,)], ids=["twice", "terminal"])
def test_a_second_sigterm_and_the_end_of_the_terminal_end_all(tmp_path: Path, signals: tuple[int, ...]) -> None:
    head, pids = begun(tmp_path, 600)
    for number in signals:
        os.kill(head.pid, number)
        time.sleep(0.5)
    head.communicate(timeout=60)
    assert (head.returncode, finished(tmp_path)) == (1, set())
    assert not any(map(birth, pids)), "jobs go on"
