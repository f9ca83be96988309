"""Puts jobs that wait in a buffer into bundles, and submits the bundles as arrays of tasks."""

import contextlib
import math
import re
import secrets
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from snakemake_executor_plugin_submitit import failures
from snakemake_executor_plugin_submitit.bundles import Bundle, Job, read_statuses, remove, revoke, write_json
from snakemake_executor_plugin_submitit.clusters.cluster import GONE, Cluster, Refused
from snakemake_executor_plugin_submitit.resources import MINUTES, Request
from snakemake_executor_plugin_submitit.tasks import JobState, Task, Tasks, TaskState, Waiting, array_name
from snakemake_executor_plugin_submitit.verdicts import Judge

# Seconds that a small bundle waits for more jobs while other jobs run, whose ends may make more jobs ready.
GATHER = 5.0
# Seconds of work that are worth a task of this machine, whose worker imports for some seconds before it begins.
START = 10.0
# Attempts at a submission that fails for an unknown reason. The last attempt comes after a minute.
TRIES = 5
YEAR = 525_600
# Seconds by which Slurm may send its signal early, and in which a worker starts.
EARLY = 90.0
# Seconds that are worth a bundle of several jobs.
WORTH = 60.0

# Calls of the cluster that a generator makes. Each call runs without the lock, and the answer is sent to the generator,
# so the generator must expect that jobs have been added, or the head has been interrupted, when it goes on.
Calls = Generator[Callable[[], Any], Any, Any]


@dataclass(frozen=True)
class Settings:
    """How jobs are bundled.

    Attributes:
        folder: the ledger.
        array_size: bundles in one array at most.
        bundle_seconds: after so many a bundle of several jobs starts no further job.
        bundle: the settings that all bundles share; it has no jobs.
        unreachable_minutes: after so many minutes without an answer of the cluster, the run ends.
    """

    folder: Path
    array_size: int
    bundle_seconds: float
    bundle: Bundle
    unreachable_minutes: float = 120

    def asking_again(self, trouble: str, error: Exception) -> str:
        """What a person is told while the cluster does not answer."""
        return f"{trouble} ({error}): asking again, for {self.unreachable_minutes:g} minutes at most (--submitit-unreachable-minutes)"


class Times(NamedTuple):
    """The time that tasks with a request have.

    Attributes:
        alone: minutes of a task with one job.
        shared: minutes of a task with several jobs.
        seconds: after so many a task with several jobs starts no further job; 0 if there is only time for one job.
    """

    alone: int
    shared: int
    seconds: float


@dataclass(frozen=True)
class Array:
    """An array that may or may not have been submitted.

    Attributes:
        folder: of the array in the ledger.
        folders: of its bundles.
        bundles: what is written in each bundle.
        waiting: the jobs in the buffer that each bundle is for.
    """

    folder: Path
    folders: Sequence[Path]
    bundles: Sequence[Bundle]
    waiting: Sequence[Sequence[Waiting]]

    @property
    def name(self) -> str:
        return array_name(self.folder)


class Submitter:
    """Puts jobs into bundles and submits these.

    Attributes:
        buffer: jobs that have no task.
        pending: the array whose submission is under way, or was not answered: its tasks may exist.
        retry_at: unix time before which nothing is submitted, because a submission has failed.
        booked_at: unix time of the last successful submission.
        closing: whether the head is ending, so that nothing is submitted any more.
        remake: makes the ledger again if somebody has deleted it.
        has_learnt: whether the cluster has been asked for its limits.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: Settings,
        ledger: Path,
        tasks: Tasks,
        judge: Judge,
        submitted: Callable[[Job, str], None],
        report: Callable[[str, str], None],
        remake: Callable[[], None],
    ) -> None:
        self.cluster, self.settings, self.ledger, self.tasks, self.judge = cluster, settings, ledger, tasks, judge
        self.submitted, self.report, self.remake = submitted, report, remake
        self.buffer: list[Waiting] = []
        self.pending: Array | None = None
        self.retry_at = 0.0
        self.failures = 0
        self.booked_at = 0.0
        self.closing = False
        self.has_learnt = False

    def flush(self) -> Calls:
        """Submit the jobs in the buffer for which it is time."""
        if self.closing or time.time() < self.retry_at or not (yield from self.settle_pending()):
            return
        if any(task.is_damaged and task.state is TaskState.STOPPING for task in self.tasks.all):
            # The task may make the outputs of any job.
            return
        if self.buffer and not self.has_learnt:
            try:
                yield self.cluster.learn
            except OSError as error:
                self.delay()
                self.report("queue", self.settings.asking_again("the cluster does not answer", error))
                return
            if self.failures:
                self.report("queue", "")
            self.has_learnt, self.failures = True, 0
            if self.closing:
                return
        is_busy = any(job.state is JobState.CLAIMED for task in self.tasks.all for job in task.jobs)
        for request, waiting in self.groups():
            try:
                room = self.cluster.room(request)
            except Refused as error:
                self.refuse(waiting, str(error))
                continue
            times = self.times(request)
            bundles = self.bundles(request, waiting, times.seconds, room, is_busy)
            for start in range(0, len(bundles), self.settings.array_size):
                if not (yield from self.submit(request, bundles[start : start + self.settings.array_size], times)):
                    return

    def groups(self) -> list[tuple[Request, list[Waiting]]]:
        """The jobs in the buffer that may be submitted, by what a task has in common; the most urgent first."""
        groups: dict[tuple[float, str, Request, str | None, str], list[Waiting]] = defaultdict(list)
        for waiting in self.buffer:
            if self.tasks.is_blocked(waiting.job):
                continue
            # A machine without a queue begins with the rules that take longest (or that nobody knows), each rule in tasks
            # of its own: a long job would keep short jobs of its task waiting while a core is free.
            job, seconds = waiting.job, self.mean_seconds([waiting]) or math.inf
            first = (-seconds, job.rule) if self.cluster.name == "local" and seconds >= START else (0.0, "")
            groups[*first, waiting.request, waiting.tmpdir, job.kind].append(waiting)
        return [(key[2], waiting) for key, waiting in sorted(groups.items(), key=lambda group: group[0][0])]

    def times(self, request: Request) -> Times:
        """The time that tasks need so that each job has its minutes, as far as the cluster allows that."""
        seconds = self.settings.bundle_seconds
        if self.cluster.name == "local":
            return Times(YEAR, YEAR, seconds)
        minutes = request.minutes or MINUTES
        longest = self.cluster.longest(request, minutes)
        # Jobs are asked to end `grace` seconds before the time limit, and the last job of several may start when the bundle's seconds
        # are nearly over.
        spare = self.settings.bundle.grace + EARLY
        alone, shared = (minutes + math.ceil(more / 60) for more in (spare, spare + seconds))
        if longest is not None:
            seconds = min(seconds, 60 * (longest - minutes) - spare)
            alone, shared = min(alone, longest), min(shared, longest)
        return Times(alone, shared, seconds if seconds >= min(WORTH, self.settings.bundle_seconds) else 0)

    def bundles(
        self,
        request: Request,
        waiting: Sequence[Waiting],
        seconds: float,
        room: tuple[int, int] | None,
        is_busy: bool,
    ) -> list[Sequence[Waiting]]:
        """Share out jobs among the bundles that are worth submitting now.

        Args:
            seconds: of a bundle with several jobs; 0 if there is only time for one job.
            room: how many tasks could start now, and how many run at a time at most; None if the cluster keeps a queue.
            is_busy: whether other jobs run, so that a small bundle waits for more jobs.
        """
        size, mean = request.bundle if seconds else 1, self.mean_seconds(waiting)
        if mean is not None:
            # As many jobs as fill the bundle's seconds.
            size = max(1, min(size, int(seconds * self.settings.bundle.slots / mean)))
        if room is None:
            if is_busy and len(waiting) < size and time.time() - waiting[0].since < GATHER:
                return []
        else:
            # Evenly among the tasks that this machine runs at a time, unless to start a task takes longer than its jobs.
            even, worth_a_start = math.ceil(len(waiting) / room[1]), math.ceil(START / (mean or START))
            size = min(size, max(even, worth_a_start))
        bundles = [waiting[start : start + size] for start in range(0, len(waiting), size)]
        return bundles if room is None else bundles[: room[0]]

    def mean_seconds(self, waiting: Sequence[Waiting]) -> float | None:
        """Estimate the mean seconds of jobs from earlier jobs of their rules; None if no job of these rules is done."""
        durations = self.judge.durations
        known = [durations[entry.job.rule] for entry in waiting if entry.job.rule in durations]
        return max(1e-3, sum(seconds / count for count, seconds in known) / len(known)) if known else None

    def submit(self, request: Request, waiting: Sequence[Sequence[Waiting]], times: Times) -> Calls:
        """Write and submit bundles as one array, and return whether to continue. After a failure the jobs stay in the buffer."""
        longest = max(len(jobs) for jobs in waiting)
        minutes = times.alone if longest == 1 else times.shared
        folder = self.ledger / _array_folder(waiting[0][0].job.rule)
        bundles = [
            replace(
                self.settings.bundle,
                jobs=tuple(entry.job for entry in jobs),
                threads=request.cpus,
                gpus=request.devices(),
                tmpdir=jobs[0].tmpdir,
                seconds=times.seconds if longest > 1 else None,
                limit=minutes * 60 if minutes < YEAR else None,
            )
            for jobs in waiting
        ]
        array = Array(folder, [folder / str(number) for number in range(len(bundles))], bundles, waiting)
        try:
            self.remake()
            # Only the owner may write here, because anyone who may could replace the programs that the tasks run.
            folder.mkdir(mode=0o700)
            for path, bundle in zip(array.folders, bundles, strict=True):
                bundle.write(path)
        except (OSError, RuntimeError) as error:
            self.postpone(error)
            remove(folder)
            return False
        self.pending = array
        try:
            names = yield lambda: self.cluster.submit(folder / "submitit", array.name, array.folders, request, minutes)
        except Exception as error:
            if self.closing:
                return False
            self.postpone(error)
            is_final = isinstance(error, Refused) or (not isinstance(error, OSError) and self.failures > TRIES)
            if not (yield from self.settle_pending()) or not is_final:
                return False
            self.failures = 0
            still_waiting = {id(entry) for entry in self.buffer}
            self.refuse([entry for jobs in waiting for entry in jobs if id(entry) in still_waiting], str(error))
            return not self.closing
        self.pending, self.failures = None, 0
        self.report("submission", "")
        self.book(array, dict(enumerate(names)))
        # The head may have been interrupted during the submission.
        return not self.closing

    def delay(self) -> None:
        """Delay the next submission, by longer the more often this has happened."""
        self.failures += 1
        self.retry_at = time.time() + min(2**self.failures, 300)

    def postpone(self, error: Exception) -> None:
        """Delay the next submission, because one has failed."""
        self.delay()
        if not isinstance(error, Refused):
            self.report("submission", f"cannot submit ({error}): trying again")

    def settle_pending(self) -> Calls:
        """Ask for the tasks of an array whose submission was not answered, and return whether the answer is known."""
        array = self.pending
        if array:
            try:
                names = yield lambda: self.cluster.stray(array.folder / "submitit", array.name)
            except OSError as error:
                trouble = f"the cluster does not tell whether it has a job named {array.name}"
                self.report("queue", self.settings.asking_again(trouble, error))
                return False
            self.report("queue", "")
            self.pending = None
            self.book(array, names)
        return True

    def book(self, array: Array, names: Mapping[int, str]) -> None:
        """Follow the tasks of an array, given by their place in it. The jobs of other bundles stay in the buffer."""
        # After a long silence the queue may have forgotten a task that is over.
        forgotten = [n for n, folder in enumerate(array.folders) if n not in names and _has_run(folder)]
        if not names and not forgotten:
            remove(array.folder)
            return
        listing = [names.get(number) for number in range(len(array.folders))]
        about = {"cluster": self.cluster.name, "host": socket.gethostname(), "tasks": listing, "submitted": time.time()}
        # If the disk is full, the next head has to find the tasks by the name of their array.
        with contextlib.suppress(OSError):
            write_json(array.folder / "array.json", about)
        self.booked_at = time.time()
        submitted = {*names, *forgotten}
        self.leave(entry for number in submitted for entry in array.waiting[number])
        for number, (folder, bundle) in enumerate(zip(array.folders, array.bundles, strict=True)):
            if number not in submitted:
                remove(folder)
                continue
            task = Task(folder, bundle, names.get(number, array.folder.name))
            for job, entry in zip(task.jobs, array.waiting[number], strict=True):
                job.state, job.waiting = JobState.CLAIMED, entry
            self.tasks.add(task)
            for entry in array.waiting[number]:
                self.submitted(entry.job, task.name)
            if self.closing:
                task.state = TaskState.STOPPING
                revoke(folder)
            elif number in forgotten:
                task.state = TaskState.STOPPING
                with contextlib.suppress(OSError):
                    self.judge.read(task)
                    self.buffer += self.judge.settle(task, GONE)

    def leave(self, waiting: Iterable[Waiting]) -> None:
        """Take jobs out of the buffer."""
        leaving = {id(entry) for entry in waiting}
        self.buffer = [entry for entry in self.buffer if id(entry) not in leaving]

    def refuse(self, waiting: Sequence[Waiting], message: str) -> None:
        """Fail jobs for which the cluster has no task."""
        self.leave(waiting)
        for entry in waiting:
            self.judge.judge(entry.job, failures.REFUSED, message, None)


def _has_run(folder: Path) -> bool:
    """Whether a worker has written a status into a bundle."""
    statuses: Iterator[object] = read_statuses(folder)
    with contextlib.suppress(OSError):
        return next(statuses, None) is not None
    return False


def _array_folder(rule: str) -> str:
    """A new name for the folder of an array. Names sort by time, since after a restart the last array of a job counts."""
    now = time.time()
    stamp = f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}-{int(now % 1 * 1e6):06}-{secrets.token_hex(3)}"
    return f"{stamp}-{re.sub(r'[^0-9A-Za-z_]', '_', rule)}"
