"""Followers of a run: each takes the records of Snakemake's log, and lets a display show what they mean."""

import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from typing import Protocol

from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.settings import OutputSettingsLoggerInterface
from xlgrid.report import ledger

from snakemake_logger_plugin_xlgrid.displays import Display, Lines, Terminal
from snakemake_logger_plugin_xlgrid.workflow import Workflow, reason, running_jobs, trainings

# Seconds between two refreshes of the display.
REFRESH = 0.5
# Least seconds between two readings of the executor's ledger, and the largest share of the time that reading may take.
PAUSE, SHARE = 1.0, 0.05
# Messages before the first job that say nothing about the study.
CHATTER = (
    "Assuming unrestricted shared filesystem usage",
    "Conda environments: ignored",
    "Group jobs: inactive",
    "Singularity containers: ignored",
    "Using shell:",
)
# Messages after which no job is started. Snakemake runs the commands of `onerror` next, which print to the terminal.
INTERRUPT = "Terminating processes on user request"
# After SIGTERM, Snakemake says so again and again, and waits for the jobs that run.
WAITS = "Will exit after finishing currently running jobs"
# The workflow says where the page about the run is.
PAGE = "page: "
ENDS = ("Exiting because a job execution failed", "Shutting down, this might take some time", INTERRUPT)
# A part of the exception of a job that Ctrl-C has ended, which may come before Snakemake has noticed Ctrl-C itself.
INTERRUPTED = "<Signals.SIGINT"
# The exception of a job whose command has failed, and that of a job whose outputs are missing, with the job's number.
FAILED = re.compile(r"returned non-zero exit status|died with <Signals")
MISSING = re.compile(r"Job (\d+) completed successfully, but some output files are missing")
# The message that a failed job is tried again, with the job's number.
RETRIED = re.compile(r"Trying to restart job (\d+)")
# The error with which Snakemake ends after failures that were shown one by one.
SOME_FAILED = "At least one job did not complete successfully"


class Follower(Protocol):
    """Takes the records of Snakemake's log, one after the other, until it is closed."""

    def take(self, record: logging.LogRecord) -> None: ...

    def close(self) -> None: ...


def follower(settings: OutputSettingsLoggerInterface, seconds: float) -> Follower:
    """The follower for these settings. A dry run, and options that ask for details, print what Snakemake prints.

    Args:
        seconds: the time between two lines where there is no terminal.
    """
    quiet = {str(getattr(each, "name", each)).lower() for each in settings.quiet or ()}
    if settings.dryrun or settings.verbose or settings.printshellcmds or settings.debug_dag:
        return InFull(settings)
    if "all" in quiet:
        return Silent()
    is_terminal = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    display: Display = Terminal(not settings.nocolor) if is_terminal and "progress" not in quiet else Lines(seconds)
    return Summary(display, shows_progress="progress" not in quiet)


class Silent:
    """Shows nothing."""

    def take(self, record: logging.LogRecord) -> None:
        pass

    def close(self) -> None:
        pass


class InFull:
    """Prints what Snakemake prints without a logger plugin."""

    def __init__(self, settings: OutputSettingsLoggerInterface) -> None:
        from snakemake.logging import ColorizingTextHandler, DefaultFilter, DefaultFormatter

        stream = sys.stdout if settings.stdout else sys.stderr
        self.handler = ColorizingTextHandler(nocolor=settings.nocolor, stream=stream)
        self.handler.addFilter(
            DefaultFilter(
                settings.quiet, settings.debug_dag, settings.verbose, settings.dryrun, settings.printshellcmds
            )
        )
        self.handler.setFormatter(DefaultFormatter(settings.quiet, settings.show_failed_logs))

    def take(self, record: logging.LogRecord) -> None:
        self.handler.handle(record)

    def close(self) -> None:
        self.handler.close()


class Summary:
    """Keeps the state of a run, and has it shown. A thread refreshes the display while jobs run."""

    def __init__(
        self, display: Display, shows_progress: bool = True, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.display, self.shows_progress, self.now = display, shows_progress, now
        self.workflow = Workflow(now())
        self.is_running = self.is_interrupted = False
        # Each job that Ctrl-C may have ended, and why it has failed otherwise; and how many such jobs will be named.
        self.doubtful: dict[int, str] = {}
        self.unnamed = 0
        self.said: set[str] = set()
        # Snakemake passes records on in one thread, and another one refreshes the display.
        self.lock = threading.Lock()
        self.listening: threading.Thread | None = None
        self.ended = threading.Event()
        self.refreshing: threading.Thread | None = None
        self.next_look = 0.0

    def take(self, record: logging.LogRecord) -> None:
        self.listening = threading.current_thread()
        with self.lock:
            self.note(record)

    def note(self, record: logging.LogRecord) -> None:
        """Note an event, or show a message."""
        match getattr(record, "event", None):
            case LogEvent.RUN_INFO:
                self.begin(record.__dict__["stats"])
            case LogEvent.RESOURCES_INFO if hasattr(record, "cores"):
                self.workflow.runs_jobs = True
            case LogEvent.JOB_INFO:
                # Snakemake goes on, so nobody has pressed Ctrl-C.
                self.fail_doubtful()
                self.workflow.submit(record)
            case LogEvent.JOB_FINISHED:
                self.workflow.finish(record.__dict__["job_id"])
            case LogEvent.JOB_ERROR if self.unnamed:
                self.unnamed -= 1
                self.doubtful[record.__dict__["jobid"]] = reason(record)
            case LogEvent.JOB_ERROR:
                self.fail(record.__dict__["jobid"], reason(record))
            case LogEvent.PROGRESS if record.__dict__["done"] >= record.__dict__["total"]:
                self.end()
            case LogEvent.ERROR:
                self.hear(record)
            case None:
                self.say(record)

    def begin(self, stats: dict[str, int]) -> None:
        self.workflow.plan(stats)
        if self.workflow.planned and not self.is_running:
            self.is_running = True
            self.display.begin(self.workflow, self.now(), full_log())
            if self.shows_progress:
                self.refreshing = threading.Thread(target=self.refresh_again_and_again, daemon=True)
                self.refreshing.start()

    def fail(self, number: int, why: str) -> None:
        failure = self.workflow.fail(number, why)
        # After an interrupt, jobs fail because they are interrupted.
        if failure and not self.is_interrupted:
            self.display.fail(failure)

    def fail_doubtful(self) -> None:
        for number, why in self.doubtful.items():
            self.fail(number, why)
        self.doubtful.clear()

    def hear(self, record: logging.LogRecord) -> None:
        """Show an exception of Snakemake. That of a job that has failed is no news: another event names its log."""
        message = record.getMessage()
        self.unnamed += INTERRUPTED in message and not self.is_interrupted
        if missing := MISSING.search(message):
            self.fail(int(missing[1]), " ".join(message[missing.start() :].split()))
        elif not (FAILED.search(message) and (self.is_running or self.is_interrupted)):
            self.say(record)

    def end(self) -> None:
        """The display shows the last state; messages are printed as they come."""
        if self.is_running:
            if not self.is_interrupted:
                self.fail_doubtful()
            self.is_running = False
            self.ended.set()
            self.display.end(self.workflow, self.now())

    def say(self, record: logging.LogRecord) -> None:
        """Show a message, unless it is of no use to a person while jobs run: the full log has all messages."""
        message = record.getMessage().strip()
        if (retried := RETRIED.match(message)) and (failure := self.workflow.retry(int(retried[1]))):
            self.display.retry(failure)
        if message.startswith(ENDS):
            self.is_interrupted = self.is_interrupted or message.startswith(INTERRUPT)
            self.end()
        if SOME_FAILED in message and self.workflow.failures:
            return
        is_warning = record.levelno >= logging.WARNING
        has_begun = bool(self.workflow.planned)
        # The executor says what delays it, such as why Slurm lets a job wait, and repeats what lasts.
        is_of_executor = message.startswith("submitit")
        is_of_use = is_warning or is_of_executor or message.startswith((INTERRUPT, WAITS, PAGE)) or not has_begun
        if (
            message in ("", "None")
            or (message in self.said and not is_of_executor)
            or message.startswith((*CHATTER, *ENDS[:-1]))
            or not is_of_use
        ):
            return
        self.said.add(message)
        self.display.say(message, record.levelno >= logging.ERROR)

    def refresh_again_and_again(self) -> None:
        while not self.ended.wait(REFRESH):
            try:
                self.refresh()
            except OSError:
                # The terminal is gone, or the ledger cannot be read for now.
                time.sleep(PAUSE)

    def refresh(self) -> None:
        """Look at the jobs, if it is time to, and refresh the display."""
        began = self.now()
        if began >= self.next_look:
            with self.lock:
                jobs, finished = dict(self.workflow.jobs), frozenset(self.workflow.finished)
            is_remote = any(not job.is_local for job in jobs.values())
            running = running_jobs(jobs, ledger.read(ledger.stated(), finished) if is_remote else {})
            known = trainings(jobs, running)
            with self.lock:
                self.workflow.look(self.now(), running, known)
            # Reading holds up Snakemake, so it may take a small share of the time only.
            self.next_look = self.now() + max(PAUSE, (self.now() - began) / SHARE)
        with self.lock:
            if self.is_running:
                self.display.show(self.workflow, self.now())

    def close(self) -> None:
        """Snakemake ends. Its thread has ended before; otherwise a library, such as submitit, has set up logging of its own, for
        which Python closes all handlers."""
        if self.listening and self.listening.is_alive():
            return
        with self.lock:
            self.end()
        if self.refreshing:
            self.refreshing.join()


def full_log() -> str:
    """The path of the file to which Snakemake writes its full log; empty if there is none."""
    for handler in logging.getLogger("snakemake.logging").handlers:
        if isinstance(handler, logging.FileHandler):
            return os.path.relpath(handler.baseFilename)
    return ""
