"""Reads how jobs ended, and decides whether the unfinished jobs of a task fail or run in another task."""

import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from operator import ne
from pathlib import Path
from typing import Any, NamedTuple

from snakemake_executor_plugin_submitit import failures
from snakemake_executor_plugin_submitit.breaker import Breaker
from snakemake_executor_plugin_submitit.bundles import Job, Status, append, note_failure, read_statuses, revoke, silence
from snakemake_executor_plugin_submitit.clusters.cluster import GONE
from snakemake_executor_plugin_submitit.tasks import JobState, Task, TaskJob, Tasks, TaskState, Waiting
from snakemake_executor_plugin_submitit.usage import usage
from snakemake_executor_plugin_submitit.worker import tail


class Verdict(NamedTuple):
    """How a job ended.

    Attributes:
        cause: why it failed, one of `snakemake_executor_plugin_submitit.failures`; None for a success.
        message: for a person; its first line stands alone.
        task: the cluster's name of the task, None if the job never had one.
    """

    job: Job
    cause: str | None
    message: str
    task: str | None


class Judge:
    """Collects verdicts.

    Attributes:
        verdicts: those that Snakemake has not fetched yet.
        used: what jobs have requested and used, as lines that are to be written.
        returned: jobs that failed through no fault of their own, and wait for another task.
        host_failures: by key of a job, how often its host was to blame.
        interruptions: by key of a job, how often a task ended without the job through the job's or nobody's fault.
        durations: by rule, how many jobs were done and how many seconds they took together.
    """

    def __init__(
        self,
        ledger: Path,
        max_requeues: int,
        tasks: Tasks,
        breaker: Breaker,
        submitted: Callable[[Job, str], None] = lambda job, task: None,
        recorded: Callable[[Job], bool] = lambda job: False,
    ) -> None:
        """The last two arguments are those of `Dispatcher`."""
        self.ledger, self.max_requeues = ledger, max_requeues
        self.tasks, self.breaker, self.cluster = tasks, breaker, breaker.cluster
        self.submitted, self.recorded = submitted, recorded
        self.used: list[dict[str, Any]] = []
        self.returned: list[Waiting] = []
        self.host_failures: dict[str, int] = defaultdict(int)
        self.verdicts: list[Verdict] = []
        self.interruptions: dict[str, int] = defaultdict(int)
        self.durations: dict[str, tuple[int, float]] = {}

    def fetch(self) -> list[Verdict]:
        """Return the verdicts that have not been fetched yet, and write down what jobs have used."""
        append(self.ledger / "usage.jsonl", self.used)
        verdicts, self.verdicts, self.used = self.verdicts, [], []
        return verdicts

    def claim(self, task_job: TaskJob, waiting: Waiting) -> bool:
        """Whether a job that an earlier head submitted serves for the one that Snakemake asks for now."""
        if task_job.state is JobState.UNCLAIMED and task_job.task.state is TaskState.ALIVE:
            task_job.state, task_job.waiting = JobState.CLAIMED, waiting
            self.submitted(waiting.job, task_job.task.name)
            return True
        if task_job.state is not JobState.ENDED or not task_job.is_intact():
            return False
        if self.recorded(waiting.job):
            # The earlier head died after Snakemake's record and before its own.
            self.tasks.close(task_job.job)
            return False
        task_job.state, task_job.waiting = JobState.JUDGED, waiting
        # Snakemake learns the task before the verdict.
        self.submitted(waiting.job, task_job.task.name)
        self.verdicts.append(Verdict(waiting.job, None, "", task_job.task.name))
        return True

    def read(self, task: Task) -> None:
        """Read the final statuses that are new, and pass verdicts on the jobs that Snakemake waits for.

        Raises:
            OSError: a file cannot be read; the others have been.
        """
        if task.is_damaged:
            return
        for number, status, is_closed in read_statuses(task.folder, lambda number: task.jobs[number].has_ended):
            if status.final:
                self.end(task.jobs[number], status, is_closed)

    def end(self, task_job: TaskJob, status: Status, is_closed: bool = False) -> None:
        """Note the end of a job."""
        task_job.status = status
        if status.state == "done" and status.ended:
            count, seconds = self.durations.get(task_job.job.rule, (0, 0.0))
            self.durations[task_job.job.rule] = (count + 1, seconds + status.ended - status.started)
        if is_closed:
            task_job.state = JobState.CLOSED
        elif task_job.state is JobState.UNCLAIMED:
            task_job.state = JobState.ENDED
        elif task_job.state is JobState.CLAIMED:
            if task_job.waiting:
                self.used.append(usage(task_job.job, task_job.waiting.request, status))
            if self.is_spared(task_job, status):
                self.returned.append(self.tasks.return_job(task_job))
                return
            task_job.state = JobState.JUDGED
            self.judge(task_job.job, status.cause, status.message, task_job.task.name)

    def is_spared(self, task_job: TaskJob, status: Status) -> bool:
        """Whether a job is submitted again because it failed through no fault of its own, and not too often yet."""
        key = task_job.job.key
        if (
            not self.breaker.note(task_job.job.rule, status, task_job.task)
            or self.host_failures[key] >= self.max_requeues
        ):
            return False
        self.host_failures[key] += 1
        return True

    def judge(self, job: Job, cause: str | None, message: str, task: str | None) -> None:
        """Pass a verdict; a failure is also noted for later."""
        self.verdicts.append(Verdict(job, cause, message, task))
        self.interruptions.pop(job.key, None)
        if cause:
            note_failure(self.ledger, self.cluster.name, job, cause, message)

    def fail(self, task_job: TaskJob, cause: str, message: str) -> None:
        """Pass a verdict on a job whose worker cannot write a status any more."""
        self.end(task_job, Status("failed", time.time(), "", cause=cause, message=message))

    def settle(self, task: Task, word: str) -> list[Waiting]:
        """Decide on the jobs that a task which is over has not finished: each fails, or is returned for another task.

        Args:
            word: what the cluster calls the end of the task.

        Raises:
            OSError: a status cannot be read; nothing has been decided.
        """
        unfinished = read_statuses(task.folder, lambda number: not task.is_damaged and task.jobs[number].has_ended)
        statuses = {number: status for number, status, _ in unfinished}
        was_stopped = task.state is TaskState.STOPPING
        task.end()
        # If the task is queued after all, it starts no job beside the task that gets the job next.
        revoke(task.folder)
        # The folder of a failure stays, and the next head need not wait for this worker.
        silence(task.home_folder)
        cause = self.cluster.cause(word, _log_end(task))
        if word == GONE and task.log() is None:
            # A cluster may keep no record of a task that is cancelled before it starts; a task that has started has a log.
            cause, word = failures.CANCELLED, "before it started"
        if cause == failures.HOST:
            for host in {status.host for status in statuses.values()}:
                self.breaker.trip(host, word, task)
        spared = cause in failures.OTHERS_FAULT
        progress = any(job.has_ended for job in task.jobs)
        returned = []
        for task_job in [job for job in task.jobs if job.state is JobState.CLAIMED]:
            status = statuses.get(task_job.number)
            was_running = status is not None and status.state == "running"
            key = task_job.job.key
            # A job that only waited in a bundle whose other jobs made progress was not interrupted.
            was_interrupted = was_running or not progress
            # A job that saves its state and loses its node through no fault of its own is resubmitted without limit.
            self.interruptions[key] += was_interrupted and not (status and status.state == "stopped" and spared)
            if cause == failures.CANCELLED and not was_stopped:
                self.fail(task_job, cause, f"its array task was cancelled ({word})")
            elif was_running and not spared and not was_stopped:
                self.fail(task_job, cause, f"its worker died ({word})\n{_log_end(task)}")
            elif self.interruptions[key] > self.max_requeues and was_interrupted:
                why = f"its array task ended {self.interruptions[key]} times without it (last: {word})"
                self.fail(task_job, cause, f"{why}\n{_log_end(task)}")
            else:
                returned.append(self.tasks.return_job(task_job))
        self.tasks.forget(task)
        return returned

    def give_up(self, task: Task, word: str) -> list[Waiting]:
        """Fail those jobs of a task which is over whose statuses cannot be read, and settle the others."""
        for task_job in [job for job in task.jobs if not job.has_ended]:
            try:
                for _, status, is_closed in read_statuses(task.folder, partial(ne, task_job.number)):
                    if status.final:
                        self.end(task_job, status, is_closed)
            except OSError as error:
                self.fail(task_job, failures.UNREADABLE, f"its task is over, and its status cannot be read: {error}")
        try:
            return self.settle(task, word)
        except OSError:
            # No status can be read, so all jobs have failed.
            task.end()
            self.tasks.forget(task)
            return []


def _log_end(task: Task) -> str:
    """Return the name of the task's own log, and the end of the log."""
    path = task.log()
    return f"{path}:\n{tail(path)}" if path else ""
