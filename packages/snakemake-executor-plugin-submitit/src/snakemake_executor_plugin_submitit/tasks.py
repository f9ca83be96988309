"""The tasks that this head follows, the jobs in them, and the states through which both go.

A task runs the jobs of one bundle. This head has submitted the task, or has read it from the ledger:

    ALIVE ──> STOPPING ──> OVER        (STOPPING only where a head has cancelled the task)

A job of a task that this head submitted begins as CLAIMED; a job that an earlier head submitted begins as UNCLAIMED:

    UNCLAIMED ──> CLAIMED ──> JUDGED ──> CLOSED
        │             └─────> RETURNED           (the task ended without the job, which waits for another task)
        └───────> ENDED ────> JUDGED             (the job ended before Snakemake asked for it)
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import NamedTuple

from snakemake_executor_plugin_submitit.bundles import Bundle, Job, Status, close_job, modification_times, remove
from snakemake_executor_plugin_submitit.resources import Request


class TaskState(Enum):
    """The state of a task."""

    ALIVE = auto()  # queued or running
    STOPPING = auto()  # cancelled by a head; it may still be ending
    OVER = auto()  # neither queued nor running any more


class JobState(Enum):
    """The state of a job in a task."""

    UNCLAIMED = auto()  # it has not ended, and Snakemake has not asked this head for it
    CLAIMED = auto()  # it has not ended, and Snakemake waits for it
    ENDED = auto()  # it has ended, and Snakemake has not asked this head for it
    JUDGED = auto()  # its verdict is on the way to Snakemake
    CLOSED = auto()  # Snakemake has taken note of its end
    RETURNED = auto()  # the task ended without it, and it waits for another task


class Waiting(NamedTuple):
    """A job that waits for a task.

    Attributes:
        tmpdir: folder for temporary files, None for the node's own.
        since: unix time at which it became ready.
    """

    job: Job
    request: Request
    tmpdir: str | None
    since: float


@dataclass(eq=False)
class TaskJob:
    """A job in a task.

    Attributes:
        number: its place in the bundle.
        waiting: Snakemake's request for the job, once there is one.
        status: the final status, once it has been read.
    """

    task: "Task"
    number: int
    job: Job
    state: JobState = JobState.UNCLAIMED
    waiting: Waiting | None = None
    status: Status | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the end of the job is known."""
        return self.status is not None

    def is_intact(self) -> bool:
        """Whether the outputs are those that the job left when it was done, and no input is newer."""
        if self.status is None or self.status.state != "done":
            return False
        directory = self.task.bundle.directory
        outputs = modification_times(self.job.outputs, directory)
        newest_input = max(modification_times(self.job.inputs, directory), default=0)
        return outputs == self.status.stamps and -1 not in outputs and newest_input <= min(outputs, default=0)


@dataclass(eq=False)
class Task:
    """An array task that was submitted.

    Attributes:
        folder: of its bundle in the ledger; the parent is the folder of the array.
        bundle: without jobs if `bundle.json` is damaged, so that the jobs are unknown.
        name: the cluster's name for the task; empty if there is none any more.
        reported_over: how often in a row the cluster said that the task is over.
        unreadable_since: monotonic time since which the status files cannot be read.
        array: path of the folder of the array.
        heartbeat: what the worker's heartbeat was when it was looked at.
        heartbeat_since: monotonic time since which the heartbeat is that.
    """

    folder: Path
    bundle: Bundle
    name: str
    state: TaskState = TaskState.ALIVE
    jobs: list[TaskJob] = field(default_factory=list)
    reported_over: int = 0
    unreadable_since: float | None = None
    array: str = field(init=False)
    heartbeat: int | None = None
    heartbeat_since: float = 0.0

    def __post_init__(self) -> None:
        self.array = str(self.folder.parent)
        self.jobs = [TaskJob(self, number, job) for number, job in enumerate(self.bundle.jobs)]

    @property
    def is_damaged(self) -> bool:
        """Whether the jobs of the task are unknown."""
        return not self.jobs

    @property
    def is_finished(self) -> bool:
        """Whether the end of every job is known."""
        return all(job.has_ended for job in self.jobs)

    @property
    def may_be_forgotten(self) -> bool:
        """Whether the task is over and no job of it is of interest to Snakemake any more."""
        return self.state is TaskState.OVER and not any(
            job.state in (JobState.CLAIMED, JobState.JUDGED)
            or (job.state is JobState.ENDED and job.status and job.status.state == "done")
            for job in self.jobs
        )

    @property
    def log_name(self) -> str:
        """The name of the file with the output of the task itself."""
        return f"{re.split('[.;]', self.name)[0]}_0_log.out"

    def log(self) -> Path | None:
        """Return the file with the output of the task itself, if the task has started."""
        path = self.folder.parent / "submitit" / self.log_name
        return path if path.exists() else None


def named(tasks: Iterable[Task]) -> dict[str, str]:
    """Tasks as the cluster is asked about them: name of the task -> name of its array."""
    return {task.name: array_name(task.folder.parent) for task in tasks if task.name}


def as_arguments(name: str) -> str:
    """The name of a task as a person gives it to a command of Slurm."""
    return name.replace(";", " --clusters=")


def array_name(folder: Path) -> str:
    """The name of an array by its folder. The rule comes first, since a queue's listing shows the first letters only."""
    stamp, _, rule = folder.name.rpartition("-")
    return f"{rule}-{stamp}"


class Tasks:
    """All tasks that this head follows, and the jobs in them by key and by output."""

    def __init__(self) -> None:
        self.all: list[Task] = []
        self.by_key: dict[str, TaskJob] = {}
        self.by_output: dict[str, TaskJob] = {}

    def alive(self) -> list[Task]:
        """The tasks that are queued or running, those that are being stopped included."""
        return [task for task in self.all if task.state is not TaskState.OVER]

    def add(self, task: Task) -> None:
        """Follow a task. Its jobs replace jobs of earlier tasks with the same key or output."""
        self.all.append(task)
        for job in task.jobs:
            failed = task.state is TaskState.OVER if job.status is None else job.status.state == "failed"
            if job.state is not JobState.CLOSED and not failed:
                self.by_key[job.job.key] = job
                for path in job.job.outputs:
                    self.by_output[path] = job

    def close(self, job: Job) -> None:
        """Note that Snakemake knows how a job ended."""
        task_job = self.by_key.get(job.key)
        self._drop(task_job)
        for path in job.outputs:
            self.by_output.pop(path, None)
        if task_job:
            task_job.state = JobState.CLOSED
            close_job(task_job.task.folder, task_job.number)
            self.forget(task_job.task)

    def return_job(self, task_job: TaskJob) -> Waiting:
        """Take a job out of a task that ended without it."""
        assert task_job.waiting
        task_job.state = JobState.RETURNED
        self.by_key.pop(task_job.job.key, None)
        return task_job.waiting

    def forget(self, task: Task) -> None:
        """Stop following a task that is over and that Snakemake needs no more. The files of a failure stay."""
        if not task.may_be_forgotten or task not in self.all:
            return
        self.all.remove(task)
        for job in task.jobs:
            self._drop(job)
        if any(job.status and job.status.state == "failed" for job in task.jobs):
            return
        remove(task.folder)
        array = task.folder.parent
        if not any(other.folder.parent == array for other in self.all) and not list(array.glob("*/bundle.json")):
            remove(array)

    def _drop(self, task_job: TaskJob | None) -> None:
        if task_job and self.by_key.get(task_job.job.key) is task_job:
            del self.by_key[task_job.job.key]

    def rivals(self, job: Job) -> Iterator[Task]:
        """Tasks that are alive, are not being stopped, and still have to make an output of the job."""
        for path in job.outputs:
            other = self.by_output.get(path)
            if other and other.task.state is TaskState.ALIVE and not other.has_ended:
                yield other.task

    def is_blocked(self, job: Job) -> bool:
        """Whether a task that has the job, or makes an output of it, is still being stopped."""
        others = [self.by_output.get(path) for path in job.outputs] + [self.by_key.get(job.key)]
        return any(other and other.task.state is TaskState.STOPPING for other in others)
