"""The tasks that this head follows, the jobs in them, and the states through which both go.

A `Task` is a bundle that a worker has or had. The worker is a task of the cluster, whose first bundle is its home; this head
has submitted it, or has read it from the ledger. A worker whose jobs have all ended may get another bundle, its guest:

    ALIVE ──> STOPPING ──> OVER        (STOPPING only where a head has cancelled the task of the cluster)
     ↑↓
    LENT ──> OVER                      (a home, while the worker has a guest)

Of the bundles of one worker only one is ALIVE or STOPPING, so that the cluster is asked, and told, once about each worker. A
guest begins as ALIVE. It is OVER when all its jobs have ended, and its home goes on in the guest's state; or when the worker has
left without beginning it; or, together with its home, when the task of the cluster is over. In the last two cases its jobs that
have not ended go the same ways as the jobs of a home. The head decides so because of two facts: a worker begins a guest only on
the head's word, which names the guest and the process; and a process that has said that it leaves begins none.

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

from snakemake_executor_plugin_submitit.bundles import (
    Bundle,
    Job,
    Status,
    close_job,
    modification_times,
    name_of,
    remove,
)
from snakemake_executor_plugin_submitit.resources import Request


class TaskState(Enum):
    """The state of a task."""

    ALIVE = auto()  # queued or running
    LENT = auto()  # its worker runs the jobs of another task of this head
    STOPPING = auto()  # cancelled by a head; it may still be ending
    OVER = auto()  # neither queued nor running any more; or its worker has left it


class JobState(Enum):
    """The state of a job in a task."""

    UNCLAIMED = auto()  # it has not ended, and Snakemake has not asked this head for it
    CLAIMED = auto()  # it has not ended, and Snakemake waits for it
    ENDED = auto()  # it has ended, and Snakemake has not asked this head for it
    JUDGED = auto()  # its verdict is on the way to Snakemake
    CLOSED = auto()  # Snakemake has taken note of its end
    RETURNED = auto()  # the task ended without it, and it waits for another task


@dataclass(frozen=True, eq=False)
class Waiting:
    """A job that waits for a task. Only itself equals it, since Snakemake may ask for the same job again.

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
        request: what a home asked of the cluster; None if an earlier head submitted it, so that it gets no guest.
        home: of a guest.
        guest: of a home that is LENT.
        taker: of a guest, the process that it was offered to last.
        has_begun: whether a worker has sent a message from it.
        has_failed_guest: whether a job of a guest has failed, so that the log of the worker stays.
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
    request: Request | None = None
    home: "Task | None" = None
    guest: "Task | None" = None
    taker: str = ""
    has_begun: bool = False
    has_failed_guest: bool = False

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
    def has_failed(self) -> bool:
        """Whether a job of the task, or of a guest, has failed."""
        return self.has_failed_guest or any(job.status and job.status.state == "failed" for job in self.jobs)

    def end(self) -> None:
        """Note that the task of the cluster is over."""
        self.leave_home(TaskState.OVER)
        self.state = TaskState.OVER

    def leave_home(self, state: TaskState) -> None:
        """Give the worker back to the home, if this is a guest."""
        if self.home and self.home.guest is self:
            self.home.state, self.home.guest = state, None
            self.home.has_failed_guest |= self.has_failed

    @property
    def home_folder(self) -> Path:
        """The folder of the first bundle of the worker, where its heartbeat is."""
        return (self.home or self).folder

    @property
    def log_name(self) -> str:
        """The name of the file with the output of the task itself."""
        return f"{re.split('[.;]', self.name)[0]}_0_log.out"

    def log(self) -> Path | None:
        """Return the file with the output of the task itself, if the task has started."""
        path = self.home_folder.parent / "submitit" / self.log_name
        return path if path.exists() else None


def named(tasks: Iterable[Task]) -> dict[str, str]:
    """Tasks as the cluster is asked about them: name of the task -> name of its array."""
    return {task.name: array_name(task.home_folder.parent) for task in tasks if task.name}


def array_name(folder: Path) -> str:
    """The name of an array by its folder. The rule comes first, since a queue's listing shows the first letters only."""
    stamp, _, rule = folder.name.rpartition("-")
    return f"{rule}-{stamp}"


class Tasks:
    """All tasks that this head follows, also by the names of their bundles, and the jobs in them by key and by output."""

    def __init__(self) -> None:
        self.all: list[Task] = []
        self.by_name: dict[str, Task] = {}
        self.by_key: dict[str, TaskJob] = {}
        self.by_output: dict[str, TaskJob] = {}

    def alive(self) -> list[Task]:
        """The tasks that are queued or running, those that are being stopped included."""
        return [task for task in self.all if task.state not in (TaskState.LENT, TaskState.OVER)]

    def lend(self, home: Task, guest: Task) -> None:
        """Follow a bundle that the worker of another gets."""
        home.state, home.guest = TaskState.LENT, guest
        guest.home = home
        self.add(guest)

    def leave(self, guest: Task) -> None:
        """Note that the worker has left a guest, and has no other."""
        guest.leave_home(guest.state)
        guest.state = TaskState.OVER
        self.forget(guest)

    def add(self, task: Task) -> None:
        """Follow a task. Its jobs replace jobs of earlier tasks with the same key or output."""
        self.all.append(task)
        self.by_name[name_of(task.folder)] = task
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
        self.by_name.pop(name_of(task.folder), None)
        for job in task.jobs:
            self._drop(job)
        if task.home:
            self.forget(task.home)
        if task.has_failed:
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
