"""Puts jobs that wait in a buffer into bundles, and submits the bundles as arrays of tasks."""

import contextlib
import math
import re
import secrets
import socket
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from snakemake_executor_plugin_submitit import failures
from snakemake_executor_plugin_submitit.breaker import full
from snakemake_executor_plugin_submitit.bundles import Bundle, name_of, read_statuses, remove, revoke, write_json
from snakemake_executor_plugin_submitit.clusters.cluster import GONE, Refused
from snakemake_executor_plugin_submitit.pool import Pool
from snakemake_executor_plugin_submitit.resources import MINUTES, Request
from snakemake_executor_plugin_submitit.tasks import JobState, Task, TaskState, Waiting, array_name
from snakemake_executor_plugin_submitit.verdicts import Judge

# Seconds that a small bundle waits for more jobs while other jobs run, whose ends may make more jobs ready.
GATHER = 5.0
# Seconds of work that are worth a task of this machine, whose worker imports for some seconds before it begins.
START = 10.0
# Attempts at a submission that fails for an unknown reason. The last attempt comes after a minute.
TRIES = 5
YEAR = 525_600
# Seconds by which a cluster may send its signal early, and in which a worker starts.
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
        prefix: begins the names of arrays.
    """

    folder: Path
    array_size: int
    bundle_seconds: float
    bundle: Bundle
    unreachable_minutes: float = 120
    prefix: str = ""

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
        request: of its jobs.
        folders: of its bundles.
        bundles: what is written in each bundle.
        waiting: the jobs in the buffer that each bundle is for.
    """

    folder: Path
    request: Request
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
        pool: workers that wait for another bundle.
        breaker: whether jobs may be submitted now.
        closing: whether the head is ending, so that nothing is submitted any more.
        remake: makes the ledger again if somebody has deleted it.
        has_learnt: whether the cluster has been asked for its limits.
    """

    def __init__(self, settings: Settings, judge: Judge, pool: Pool, remake: Callable[[], None]) -> None:
        self.settings, self.judge, self.pool, self.remake = settings, judge, pool, remake
        self.cluster, self.ledger, self.tasks, self.breaker = judge.cluster, judge.ledger, judge.tasks, judge.breaker
        self.submitted, self.report = judge.submitted, judge.breaker.report
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
        if self.is_held_up() or (self.buffer and self.is_full()):
            return
        self.breaker.forgive()
        if self.breaker.is_open and not self.breaker.may_try():
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
            # A worker may have got a job during an earlier submission.
            buffered = set(self.buffer)
            waiting = [entry for entry in waiting if entry in buffered]
            if not waiting:
                continue
            try:
                room = self.cluster.room(request)
            except Refused as error:
                self.refuse(waiting, str(error))
                continue
            times = self.times(request)
            if self.breaker.is_open:
                # A worker that waits may be on the host in question, and hold what the job needs.
                self.pool.dismiss()
                one = min(waiting, key=lambda entry: self.judge.host_failures[entry.job.key])
                if room is None or room[0]:
                    yield from self.submit(request, [[one]], times)
                return
            bundles = self.bundles(request, waiting, times.seconds, room, is_busy)
            if bundles if room is None else room[0] < 1:
                # Workers that wait hold what these jobs need.
                self.pool.dismiss()
            for start in range(0, len(bundles), self.settings.array_size):
                if not (yield from self.submit(request, bundles[start : start + self.settings.array_size], times)):
                    return

    def is_held_up(self) -> bool:
        """Whether a task that may make the outputs of any job is still being stopped."""
        return any(task.is_damaged and task.state is TaskState.STOPPING for task in self.tasks.all)

    def is_full(self) -> bool:
        """Whether a disk that the head or its jobs need has no room, so that submissions and jobs would fail."""
        place = full([self.ledger, Path(self.settings.bundle.directory), Path(tempfile.gettempdir())])
        self.report(
            "disk", f"no room is left on the disk of {place}: nothing is submitted until there is" if place else ""
        )
        return place is not None

    def hand_over(self) -> None:
        """Give jobs in the buffer to workers that wait for another bundle."""
        if not self.pool.offers or self.closing or self.is_held_up() or self.breaker.is_open:
            return
        # Their submission may have reached the cluster.
        submitting = {entry for jobs in (self.pending.waiting if self.pending else ()) for entry in jobs}
        for request, group in self.groups():
            waiting = [entry for entry in group if entry not in submitting]
            homes = self.pool.fitting(request, group[0].tmpdir, self.settings.bundle.grace, self.cluster.excluded)
            if not (waiting and homes):
                continue
            size, mean = self.size(request, waiting, self.settings.bundle_seconds)
            room = self.cluster.room(request)
            free = room[0] if room else 0
            share = math.ceil(len(waiting) / (len(homes) + free))
            size = min(size, max(share, math.ceil(START / (mean or START)) if free else 1))
            for home, start in zip(homes, range(0, len(waiting), size), strict=False):
                self.lend(home, request, waiting[start : start + size])

    def lend(self, home: Task, request: Request, waiting: Sequence[Waiting]) -> None:
        """Write a bundle for a worker that waits, and offer it. After a failure the jobs stay in the buffer."""
        seconds = self.pool.seconds(home, request, self.settings.bundle.grace)
        seconds = min(seconds, self.settings.bundle_seconds)
        bundle = self.bundle(request, waiting, seconds, home.bundle.limit)
        array = self.array_folder(waiting[0])
        try:
            array.mkdir(mode=0o700)
            bundle.write(array / "0")
            write_json(array / "array.json", self.about([home.name]) | {"home": name_of(home.folder)})
        except OSError as error:
            remove(array)
            self.report("bundle", f"cannot write a bundle ({error}): trying again")
            return
        self.report("bundle", "")
        guest = Task(array / "0", bundle, home.name, request=request)
        self.tasks.lend(home, guest)
        self.book_jobs(guest, waiting)
        self.leave(waiting)
        self.pool.take(guest)

    def groups(self) -> list[tuple[Request, list[Waiting]]]:
        """The jobs in the buffer that may be submitted, by what a task has in common; the most urgent first."""
        groups: dict[tuple[float, str, Request, str | None, str], list[Waiting]] = defaultdict(list)
        for waiting in self.buffer:
            if self.tasks.is_blocked(waiting.job):
                continue
            # A machine without a queue begins with the rules that take longest (or that nobody knows), each rule in tasks
            # of its own: a long job would keep short jobs of its task waiting while a core is free.
            job, seconds = waiting.job, self.mean_seconds([waiting]) or math.inf
            first = (-seconds, job.rule) if self.cluster.is_local and seconds >= START else (0.0, "")
            groups[*first, waiting.request, waiting.tmpdir, job.kind].append(waiting)
        return [(key[2], waiting) for key, waiting in sorted(groups.items(), key=lambda group: group[0][0])]

    def times(self, request: Request) -> Times:
        """The time that tasks need so that each job has its minutes, as far as the cluster allows that."""
        seconds = self.settings.bundle_seconds
        if self.cluster.is_local:
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
        size, mean = self.size(request, waiting, seconds)
        if room is None:
            if is_busy and len(waiting) < size and time.time() - waiting[0].since < GATHER:
                return []
        else:
            # Evenly among the tasks that this machine runs at a time, unless to start a task takes longer than its jobs.
            even, worth_a_start = math.ceil(len(waiting) / room[1]), math.ceil(START / (mean or START))
            size = min(size, max(even, worth_a_start))
        bundles = [waiting[start : start + size] for start in range(0, len(waiting), size)]
        return bundles if room is None else bundles[: room[0]]

    def size(self, request: Request, waiting: Sequence[Waiting], seconds: float) -> tuple[int, float | None]:
        """How many of these jobs fill so many seconds of a bundle, and the estimate of a job's seconds.

        Args:
            seconds: 0 if there is only time for one job.
        """
        size, mean = request.bundle if seconds else 1, self.mean_seconds(waiting)
        if mean is not None:
            size = max(1, min(size, int(seconds * self.settings.bundle.slots / mean)))
        return size, mean

    def mean_seconds(self, waiting: Sequence[Waiting]) -> float | None:
        """Estimate the mean seconds of jobs from earlier jobs of their rules; None if no job of these rules is done."""
        durations = self.judge.durations
        known = [durations[entry.job.rule] for entry in waiting if entry.job.rule in durations]
        return max(1e-3, sum(seconds / count for count, seconds in known) / len(known)) if known else None

    def submit(self, request: Request, waiting: Sequence[Sequence[Waiting]], times: Times) -> Calls:
        """Write and submit bundles as one array, and return whether to continue. After a failure the jobs stay in the buffer."""
        buffered = set(self.buffer)
        waiting = [left for jobs in waiting if (left := [entry for entry in jobs if entry in buffered])]
        if not waiting:
            return True
        longest = max(len(jobs) for jobs in waiting)
        mean = self.mean_seconds([entry for jobs in waiting for entry in jobs])
        # The task of a single job has the time for further jobs, too, if earlier ones were short: its worker may get them.
        is_short = request.bundle > 1 and mean is not None and mean < times.seconds / 2
        several = longest > 1 or is_short
        minutes = times.shared if several else times.alone
        seconds = times.seconds if several else None
        limit = minutes * 60 if minutes < YEAR else None
        folder = self.array_folder(waiting[0][0])
        bundles = [self.bundle(request, jobs, seconds, limit) for jobs in waiting]
        array = Array(folder, request, [folder / str(number) for number in range(len(bundles))], bundles, waiting)
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
            if isinstance(error, Refused) and self.breaker.is_alone():
                remove(folder)
                self.pending = None
                return False
            self.postpone(error)
            is_final = isinstance(error, Refused) or (not isinstance(error, OSError) and self.failures > TRIES)
            if not (yield from self.settle_pending()) or not is_final:
                return False
            self.failures = 0
            buffered = set(self.buffer)
            self.refuse([entry for jobs in waiting for entry in jobs if entry in buffered], str(error))
            return not self.closing
        self.pending, self.failures = None, 0
        self.report("submission", "")
        self.book(array, dict(enumerate(names)))
        # The head may have been interrupted during the submission.
        return not self.closing

    def bundle(
        self, request: Request, waiting: Sequence[Waiting], seconds: float | None, limit: float | None
    ) -> Bundle:
        """The bundle of jobs with the same request and the same folder for temporary files."""
        return replace(
            self.settings.bundle,
            jobs=tuple(entry.job for entry in waiting),
            threads=request.cpus,
            gpus=request.gpus,
            tmpdir=waiting[0].tmpdir,
            seconds=seconds,
            limit=limit,
        )

    def array_folder(self, first: Waiting) -> Path:
        """A new folder for an array with this job, whose name has that of the array. Names sort by time, since after a restart the last
        array of a job counts."""
        now = time.time()
        stamp = f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}-{int(now % 1 * 1e6):06}-{secrets.token_hex(3)}"
        return self.ledger / f"{stamp}-{re.sub(r'[^0-9A-Za-z_]', '_', self.settings.prefix + first.job.rule)}"

    def about(self, names: Sequence[str | None]) -> dict[str, Any]:
        """What `array.json` states about an array with these tasks."""
        return {
            "cluster": self.cluster.name,
            "host": socket.gethostname() if self.cluster.is_local else None,
            "tasks": names,
            "submitted": time.time(),
        }

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
        # If the disk is full, the next head has to find the tasks by the name of their array.
        with contextlib.suppress(OSError):
            write_json(array.folder / "array.json", self.about(listing))
        self.booked_at = time.time()
        submitted = {*names, *forgotten}
        self.leave(entry for number in submitted for entry in array.waiting[number])
        for number, (folder, bundle) in enumerate(zip(array.folders, array.bundles, strict=True)):
            if number not in submitted:
                remove(folder)
                continue
            task = Task(folder, bundle, names.get(number, array.folder.name), request=array.request)
            self.tasks.add(task)
            self.book_jobs(task, array.waiting[number])
            if self.breaker.is_open:
                self.breaker.trial = task
            if self.closing:
                task.state = TaskState.STOPPING
                revoke(folder)
            elif number in forgotten:
                task.state = TaskState.STOPPING
                with contextlib.suppress(OSError):
                    self.judge.read(task)
                    self.buffer += self.judge.settle(task, GONE)

    def book_jobs(self, task: Task, waiting: Sequence[Waiting]) -> None:
        """Note that the jobs of a task are those that Snakemake waits for, and tell Snakemake the name of the task."""
        for job, entry in zip(task.jobs, waiting, strict=True):
            job.state, job.waiting = JobState.CLAIMED, entry
        for entry in waiting:
            self.submitted(entry.job, task.name)

    def leave(self, waiting: Iterable[Waiting]) -> None:
        """Take jobs out of the buffer."""
        leaving = set(waiting)
        self.buffer = [entry for entry in self.buffer if entry not in leaving]

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
