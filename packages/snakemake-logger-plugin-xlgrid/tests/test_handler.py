"""Which events and messages a display gets."""

import logging
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from events import failed, finished, planned, progress, record, started
from snakemake.settings.enums import Quietness
from snakemake_interface_logger_plugins.common import LogEvent
from xlgrid.report.overview import Failure

from snakemake_logger_plugin_xlgrid import handler
from snakemake_logger_plugin_xlgrid.displays import Lines
from snakemake_logger_plugin_xlgrid.handler import InFull, Silent, Summary, follower, full_log
from snakemake_logger_plugin_xlgrid.workflow import Workflow


class Display:
    """Notes what it is asked to show."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def begin(self, workflow: Workflow, now: float, log: str) -> None:
        self.shown.append("begin")

    def show(self, workflow: Workflow, now: float) -> None:
        self.shown.append(workflow.line())

    def fail(self, failure: Failure) -> None:
        self.shown.append(f"fail {failure.target}")

    def retry(self, failure: Failure) -> None:
        self.shown.append(f"retry {failure.target}")

    def say(self, message: str, is_error: bool) -> None:
        self.shown.append(f"error {message}" if is_error else message)

    def end(self, workflow: Workflow, now: float) -> None:
        self.shown.append("end")


@pytest.fixture
def display() -> Display:
    return Display()


@pytest.fixture
def summary(display: Display, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Summary:
    """A follower of a run without the thread that refreshes the display."""
    monkeypatch.chdir(tmp_path)
    return Summary(display, shows_progress=False, now=lambda: 0.0)


def take(summary: Summary, *records: logging.LogRecord) -> None:
    for each in records:
        summary.take(each)


def test_a_run_begins_with_its_jobs_and_ends_with_the_last_one(summary: Summary, display: Display) -> None:
    take(summary, planned(data=1), started(1, "data"), progress(0, 2), finished(1), progress(1, 2))
    assert display.shown == ["begin"]
    take(summary, progress(2, 2))
    assert display.shown == ["begin", "end"]


def test_failures_are_shown_as_they_come(summary: Summary, display: Display) -> None:
    take(summary, planned(data=1), started(1, "data"), failed(1), failed(1))
    assert display.shown == ["begin", "fail results/demo/data1"]


def test_a_job_that_is_tried_again_has_not_failed(summary: Summary, display: Display) -> None:
    again = record(message="Trying to restart job 1.")
    take(summary, planned(data=1), started(1, "data"), failed(1), again)
    assert display.shown == ["begin", "fail results/demo/data1", "retry results/demo/data1"]
    assert not summary.workflow.failures and summary.workflow.stages()[0].failed == 0


@pytest.mark.parametrize("message", handler.ENDS)
def test_the_display_ends_before_the_commands_of_onerror_print(
    summary: Summary, display: Display, message: str
) -> None:
    take(summary, planned(data=1), record(message=message + "."))
    assert display.shown[:2] == ["begin", "end"]


def test_an_error_of_snakemake_is_shown_before_the_run_and_within_it(summary: Summary, display: Display) -> None:
    errors = [record(LogEvent.ERROR, f"LockException: {what} is locked", logging.ERROR) for what in ("a", "b")]
    take(summary, errors[0], planned(data=1), errors[1])
    assert display.shown == ["error LockException: a is locked", "begin", "error LockException: b is locked"]


def test_the_exceptions_that_follow_from_a_failure_are_no_news_and_the_run_goes_on(
    summary: Summary, display: Display
) -> None:
    error = "RuleException:\nCommand 'false' returned non-zero exit status 1."
    take(summary, planned(data=2), started(1, "data"), record(LogEvent.ERROR, error, logging.ERROR), failed(1))
    take(summary, record(LogEvent.ERROR, f"WorkflowError:\n{handler.SOME_FAILED}.", logging.ERROR))
    assert display.shown == ["begin", "fail results/demo/data1"]


def test_a_job_without_its_outputs_has_failed(summary: Summary, display: Display) -> None:
    """Snakemake raises this exception where it looks for the outputs, and logs no failure of a job."""
    error = "MissingOutputException in rule data:\nJob 1 completed successfully, but some output files are missing.\na"
    take(summary, planned(data=2), started(1, "data"), record(LogEvent.ERROR, error, logging.ERROR))
    assert display.shown == ["begin", "fail results/demo/data1"]
    [failure] = summary.workflow.failures.values()
    assert failure.reason == "Job 1 completed successfully, but some output files are missing. a"


def test_messages_before_the_run_are_shown_and_those_within_it_are_in_the_full_log(
    summary: Summary, display: Display
) -> None:
    chatter = [record(message=text) for text in ("Using shell: /bin/bash", "Conda environments: ignored", "")]
    take(summary, record(message="Nothing to be done."), *chatter, planned(data=1), record(message="Select jobs..."))
    assert display.shown == ["Nothing to be done.", "begin"]


def test_warnings_and_the_executor_are_heard_once_while_jobs_run(summary: Summary, display: Display) -> None:
    warning, waits = record(message="disk is full", level=logging.WARNING), record(message="submitit: job 7 waits")
    ending = record(message=f"{handler.WAITS} (scheduler).")
    take(summary, planned(data=1), warning, warning, waits, ending, ending)
    assert display.shown == ["begin", "disk is full", "submitit: job 7 waits", f"{handler.WAITS} (scheduler)."]


DIED = record(LogEvent.ERROR, "RuleException:\nCommand 'sleep 60' died with <Signals.SIGINT: 2>.")


@pytest.mark.parametrize("jobs_are_first", [False, True])
def test_an_interrupt_is_shown_after_the_end(summary: Summary, display: Display, jobs_are_first: bool) -> None:
    events = [record(message=handler.INTERRUPT), DIED, failed(1)]
    take(summary, planned(data=1), started(1, "data"), *(events[1:] + events[:1] if jobs_are_first else events))
    assert display.shown == ["begin", "end", handler.INTERRUPT]
    assert not (jobs_are_first and summary.workflow.failures)


def test_errors_of_interrupted_jobs_may_come_before_their_names(summary: Summary, display: Display) -> None:
    jobs = [started(1, "data"), started(2, "data"), DIED, DIED, failed(1), failed(2)]
    take(summary, planned(data=2), *jobs, record(message=handler.INTERRUPT))
    assert display.shown == ["begin", "end", handler.INTERRUPT] and not summary.workflow.failures


@pytest.mark.parametrize("then", [started(2, "data"), record(message=handler.ENDS[0])])
def test_a_job_that_someone_interrupts_has_failed_where_snakemake_goes_on_or_ends_by_itself(
    summary: Summary, display: Display, then: logging.LogRecord
) -> None:
    take(summary, planned(data=2), started(1, "data"), DIED, failed(1), then)
    assert display.shown[:2] == ["begin", "fail results/demo/data1"]


def test_a_library_that_closes_all_handlers_does_not_end_the_display(summary: Summary, display: Display) -> None:
    """As `logging.config.dictConfig` does, which submitit calls."""
    take(summary, planned(data=1))
    summary.close()
    assert display.shown == ["begin"]


def test_the_display_ends_when_snakemake_closes_the_handler(summary: Summary, display: Display) -> None:
    listener = threading.Thread(target=take, args=(summary, planned(data=1)))
    listener.start()
    listener.join()
    summary.close()
    assert display.shown == ["begin", "end"]


def test_a_refresh_shows_what_runs(display: Display, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log = tmp_path / "run.log"
    log.write_text("step 10/100  loss 0.4  dev 50.00  3 s\n")
    summary = Summary(display, shows_progress=False)
    take(summary, planned(train=1), started(1, "train", log=str(log), local=True))
    summary.refresh()
    assert display.shown[-1] == "train 0/1" and [each.step for each in summary.workflow.trainings.values()] == [10]


def test_reading_the_ledger_takes_a_small_share_of_the_time(summary: Summary, monkeypatch: pytest.MonkeyPatch) -> None:
    times, read = [0.0], []

    def slow(*_: object) -> dict[str, Any]:
        read.append(times[0])
        times[0] += 2.0
        return {}

    monkeypatch.setattr(handler.ledger, "read", slow)
    summary.now = lambda: times[0]
    take(summary, planned(train=1), started(1, "train"))
    for _ in range(100):
        summary.refresh()
        times[0] += 0.5
    assert read == [0.0, 42.0]


def test_the_ledger_is_that_of_this_snakemake(summary: Summary, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setenv("SUBMITIT_LEDGER", "/scratch/ledger")
    monkeypatch.setattr(handler.ledger, "read", lambda folder, finished: read.append(str(folder)) or {})
    take(summary, planned(train=1), started(1, "train"))
    summary.refresh()
    assert read == ["/scratch/ledger"]


@pytest.mark.parametrize("option", ["dryrun", "verbose", "printshellcmds", "debug_dag"])
def test_options_that_ask_for_details_print_what_snakemake_prints(option: str) -> None:
    assert isinstance(follower(settings(**{option: True}), 60), InFull)


@pytest.mark.parametrize("quiet", [None, {Quietness.PROGRESS, Quietness.RULES}])
def test_quiet_is_quiet_and_without_a_terminal_there_are_lines(quiet: set[Quietness] | None) -> None:
    assert isinstance(follower(settings(quiet={Quietness.ALL}), 60), Silent)
    follows = follower(settings(quiet=quiet), 7)
    assert isinstance(follows, Summary) and follows.shows_progress == (quiet is None)
    assert isinstance(follows.display, Lines) and follows.display.seconds == 7


def settings(**changes: Any) -> Any:
    names = ("printshellcmds", "nocolor", "debug_dag", "verbose", "show_failed_logs", "stdout", "dryrun")
    return SimpleNamespace(**{**dict.fromkeys(names, False), "quiet": None, **changes})


def test_the_full_log_is_the_file_of_snakemake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    logger, file = logging.getLogger("snakemake.logging"), logging.FileHandler("a.log")
    logger.addHandler(file)
    try:
        assert full_log() == "a.log"
    finally:
        logger.removeHandler(file)
        file.close()
