"""The head's side: jobs wait in a buffer, go out in bundles, and come back as verdicts.

Nothing here knows Snakemake; `snakemake_executor_plugin_submitit.Executor` does. All state that matters lies in the
ledger (`snakemake_executor_plugin_submitit.bundles`), so that a head that was killed finds its jobs again.
"""

import contextlib
import fcntl
import math
import os
import re
import secrets
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import IO, NamedTuple

from snakemake_executor_plugin_submitit import failures
from snakemake_executor_plugin_submitit.bundles import (
    Bundle,
    Job,
    Status,
    note_failure,
    read_bundle,
    read_json,
    read_statuses,
    refresh,
    remove,
    revoke,
    stamps,
    tell,
    write_json,
)
from snakemake_executor_plugin_submitit.clusters import GONE, Cluster, Refused
from snakemake_executor_plugin_submitit.resources import MINUTES, Request
from snakemake_executor_plugin_submitit.worker import tail

# Seconds between questions to the cluster: the first after a submission or a change, and the longest.
ASK, ASK_MOST = 5.0, 60.0
# Seconds that a small bundle waits for company while other jobs run, which may make more jobs ready.
GATHER = 5.0
# Seconds of work that are worth a task of this machine, which imports for some seconds before it begins.
START = 10.0
# Attempts at a submission that fails for a reason of which nothing is known; the last comes after a minute.
TRIES = 5
YEAR = 525_600


class Verdict(NamedTuple):
    """How a job ended.

    Attributes:
        cause: None if all is well.
        task: the cluster's name of its task, if it came that far.
    """

    job: Job
    cause: str | None
    message: str
    task: str | None


@dataclass(frozen=True)
class Settings:
    """How jobs are bundled.

    Attributes:
        folder: the ledger.
        array_size: bundles in one array at most.
        bundle_seconds: after so many a bundle of several jobs starts no further one.
        bundle: what all bundles share; one without jobs.
    """

    folder: Path
    array_size: int
    bundle_seconds: float
    bundle: Bundle


@dataclass
class Waiting:
    """A job in the buffer."""

    job: Job
    request: Request
    tmpdir: str | None
    since: float


@dataclass
class Open:
    """A bundle that was submitted.

    Attributes:
        claimed: numbers of the jobs that this head was asked for.
        seen: final statuses by number.
        told: numbers of the jobs whose end Snakemake knows.
        ended: how often in a row the cluster said that the task is over.
    """

    folder: Path
    bundle: Bundle
    task: str
    claimed: dict[int, Waiting] = field(default_factory=dict)
    seen: dict[int, Status] = field(default_factory=dict)
    told: set[int] = field(default_factory=set)
    over: bool = False
    ended: int = 0
    cancelled: bool = False

    @property
    def unreadable(self) -> bool:
        """Whether its file is damaged, so that nobody knows its jobs."""
        return not self.bundle.jobs


class Submission(NamedTuple):
    """An array: its folder in the ledger, the folder and contents of each bundle, and the jobs that these are for."""

    chunk: Path
    made: Sequence[tuple[Path, Bundle]]
    bundles: Sequence[Sequence[Waiting]]


class Dispatcher:
    """Bundles jobs, submits them, and finds out how they ended.

    `add` and `told` may be called from one thread while another calls `poll`.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: Settings,
        submitted: Callable[[Job, str], None] = lambda job, task: None,
        say: Callable[[str], None] = print,
        recorded: Callable[[Job], bool] = lambda job: False,
    ) -> None:
        """Find what earlier heads left.

        Args:
            submitted: is told of each job and its task.
            say: is told what a person should know.
            recorded: whether Snakemake has noted the end of a job, so that it asks for another run of it.

        Raises:
            RuntimeError: another head uses the folder, or the cluster does not tell what became of earlier tasks.
            OSError: the folder cannot be made.
        """
        self.cluster, self.settings = cluster, settings
        self.submitted, self.say, self.recorded = submitted, say, recorded
        self.lock = Lock()
        self.buffer: list[Waiting] = []
        self.open: list[Open] = []
        # Where a job of a living or finished bundle is to be found again, by key and by output.
        self.places: dict[str, tuple[Open, int]] = {}
        self.outputs: dict[str, tuple[Open, int]] = {}
        self.ready: list[Verdict] = []
        self.resubmitted: dict[str, int] = defaultdict(int)
        # Seconds that jobs of a rule took: how many, how long in all.
        self.durations: dict[str, tuple[int, float]] = {}
        self.asked = 0.0
        self.pause = ASK
        self.trouble = ""
        # Why tasks wait in the queue, as far as it has been said.
        self.reasons: set[str] = set()
        self.refused = 0
        self.retry_at = 0.0
        self.doubtful: Submission | None = None
        self.closing = False
        self.folder = settings.folder.resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        # Released by the kernel with the end of this process, however it ends.
        self.hold = hold(self.folder / "lock")
        self.reattach()

    # What Snakemake hands over and asks.

    def add(self, jobs: Iterable[tuple[Job, Request, str | None]]) -> None:
        """Take jobs, each with its request and its folder for temporary files (None for the node's own).

        One that an earlier head submitted is found again; the others go into the buffer.
        """
        with self.lock:
            for job, request, tmpdir in jobs:
                waiting = Waiting(job, request, tmpdir, time.time())
                place = self.places.get(job.key)
                if place and self.claim(*place, waiting):
                    continue
                for path in job.outputs:
                    # An old bundle that makes the same file in another way has to give up.
                    other = self.outputs.get(path)
                    # One in which it has ended already has not: its other jobs go on.
                    if other and not other[0].over and not other[0].cancelled and other[1] not in other[0].seen:
                        self.stop(other[0])
                self.buffer.append(waiting)

    def claim(self, bundle: Open, number: int, waiting: Waiting) -> bool:
        """Whether a job that an earlier head submitted serves for the one that is asked for now."""
        if number in bundle.claimed or number in bundle.told:
            return False
        status = bundle.seen.get(number)
        if status is None:
            if bundle.over or bundle.cancelled:
                return False
        elif status.state != "done" or not self.intact(bundle, number, status):
            return False
        elif self.recorded(waiting.job):
            # The head died before it could say so here.
            bundle.told.add(number)
            tell(bundle.folder, number)
            self.close(bundle)
            return False
        bundle.claimed[number] = waiting
        self.submitted(waiting.job, bundle.task)
        if status:
            self.ready.append(Verdict(waiting.job, None, "", bundle.task))
        return True

    def intact(self, bundle: Open, number: int, status: Status) -> bool:
        """Whether the outputs are those that the job left, and no input is newer."""
        job, here = bundle.bundle.jobs[number], bundle.bundle.directory
        now = stamps(job.outputs, here)
        return (
            now == status.stamps and -1 not in now and max(stamps(job.inputs, here), default=0) <= min(now, default=0)
        )

    def told(self, job: Job) -> None:
        """Snakemake has taken note of a job's end."""
        with self.lock:
            place = self.places.pop(job.key, None)
            for path in job.outputs:
                self.outputs.pop(path, None)
            if place:
                bundle, number = place
                bundle.told.add(number)
                tell(bundle.folder, number)
                self.close(bundle)

    def poll(self) -> list[Verdict]:
        """Look after everything once: verdicts that are new, jobs that need another place, bundles to submit."""
        with self.lock:
            for bundle in self.open:
                if not bundle.over:
                    self.look(bundle)
            self.ask()
            self.flush()
            verdicts, self.ready = self.ready, []
        return verdicts

    def cancel(self) -> None:
        """Take everything out of the queue; what has ended stays in the ledger for the next head."""
        with self.lock:
            self.closing = True
            self.buffer.clear()
            alive = [bundle for bundle in self.open if not bundle.over]
            for bundle in alive:
                bundle.cancelled = True
                revoke(bundle.folder)
            self.cluster.cancel([bundle.task for bundle in alive])
            if self.doubtful:
                with contextlib.suppress(OSError):
                    stray = self.cluster.stray(self.doubtful.chunk / "submitit", array_name(self.doubtful.chunk))
                    self.cluster.cancel(list(stray.values()))

    def rest(self, seconds: float = 30) -> None:
        """Wait for tasks that are ending anyway, so that nothing is left in the queue, nor files that nobody needs."""
        deadline = time.time() + seconds
        again = time.time() + ASK
        while time.time() < deadline:
            with self.lock:
                ending = [b for b in self.open if not b.over and (b.cancelled or len(b.seen) == len(b.bundle.jobs))]
                if not ending:
                    return
                with contextlib.suppress(OSError):
                    for bundle, state in zip(
                        ending, self.cluster.states([b.task for b in ending]).values(), strict=True
                    ):
                        if state is not None:
                            bundle.over = True
                            self.close(bundle)
                if time.time() > again:
                    again += ASK
                    self.cluster.cancel([bundle.task for bundle in ending if bundle.cancelled and not bundle.over])
            time.sleep(0.2 if self.cluster.name == "local" else 1)
        left = [bundle.task for bundle in self.open if bundle.cancelled and not bundle.over]
        if left:
            self.say(f"submitit: still in the queue of {self.cluster.name}, please cancel: {' '.join(left)}")

    # Bundles that were submitted.

    def look(self, bundle: Open) -> None:
        """Read the statuses that are new."""
        for number, status, told in list(read_statuses(bundle.folder, bundle.seen.__contains__)):
            if not status.final or bundle.unreadable:
                continue
            bundle.seen[number] = status
            if told:
                bundle.told.add(number)
            self.learn(bundle.bundle.jobs[number], status)
            if number in bundle.claimed and not told:
                self.judge(bundle, number, status)

    def judge(self, bundle: Open, number: int, status: Status) -> None:
        """Pass a verdict on a job that has ended."""
        job = bundle.bundle.jobs[number]
        self.ready.append(Verdict(job, status.cause, status.message, bundle.task))
        if status.cause:
            note_failure(self.folder, self.cluster.name, job, status.cause, status.message)

    def learn(self, job: Job, status: Status) -> None:
        """Remember how long jobs of a rule take."""
        if status.state == "done" and status.ended:
            count, seconds = self.durations.get(job.rule, (0, 0.0))
            self.durations[job.rule] = (count + 1, seconds + status.ended - status.started)

    def ask(self) -> None:
        """Ask the cluster about its tasks, when it is time, and settle the bundles whose task is over."""
        alive = [bundle for bundle in self.open if not bundle.over]
        finished = [bundle for bundle in alive if len(bundle.seen) == len(bundle.bundle.jobs)]
        # Verdicts come from files: the more tasks, the less does the end of one matter to the queue.
        least = min(ASK + len(alive) / 20, ASK_MOST)
        self.pause = max(least, min(self.pause, least) if finished else self.pause)
        # A question to this machine costs nothing.
        if not alive or (self.cluster.name != "local" and time.time() < self.asked + self.pause):
            return
        self.asked = time.time()
        try:
            states = self.cluster.states([bundle.task for bundle in alive])
        except OSError as error:
            self.pause = min(self.pause * 2, ASK_MOST)
            self.complain(f"the cluster does not answer ({error}): asking again in {self.pause:.0f} s")
            return
        self.trouble = ""
        self.pause = min(self.pause * 1.3, ASK_MOST)
        for task, why in self.cluster.stuck.items():
            if why not in self.reasons:
                self.reasons.add(why)
                self.say(f"submitit: job {task} waits in the queue: {why} (see `scontrol show job {task}`)")
        for bundle in alive:
            state = states[bundle.task]
            bundle.ended = 0 if state is None else bundle.ended + 1
            if state is None:
                continue
            refresh(bundle.folder)
            self.look(bundle)
            # Told twice, since a file system may show what the task wrote last only after the end of the task.
            if bundle.ended < 2 and self.cluster.name != "local" and len(bundle.seen) < len(bundle.bundle.jobs):
                self.pause = ASK
                continue
            self.settle(bundle, state)
            self.pause = ASK

    def settle(self, bundle: Open, state: str) -> None:
        """A task is over: what it did not finish has failed, or gets another place."""
        bundle.over = True
        left = {n: w for n, w in bundle.claimed.items() if n not in bundle.seen}
        statuses = {number: status for number, status, _ in read_statuses(bundle.folder)}
        cause = failures.of_state(state)
        if state == GONE and log_path(bundle.folder.parent, bundle.task) is None:
            # Slurm keeps no record of a task that is cancelled before it starts; one that started has a log.
            cause, state = failures.CANCELLED, "before it started"
        progress = any(status.final for status in statuses.values())
        for number, waiting in left.items():
            status = statuses.get(number)
            started = status is not None and status.state == "running"
            key = waiting.job.key
            # A job that saved its state, and lost its place through no fault of its own, may do so for ever.
            self.resubmitted[key] += not (status and status.state == "stopped" and cause in failures.OTHERS_FAULT)
            if cause == failures.CANCELLED and not bundle.cancelled:
                self.fail(bundle, waiting.job, cause, f"its array task was cancelled ({state})")
            elif started and cause not in failures.OTHERS_FAULT and not bundle.cancelled:
                self.fail(bundle, waiting.job, cause, f"its worker died ({state})\n{self.log_of(bundle)}")
            elif self.resubmitted[key] > self.settings.bundle.max_requeues and (started or not progress):
                why = f"its array task ended {self.resubmitted[key]} times without it (last: {state})"
                self.fail(bundle, waiting.job, cause, f"{why}\n{self.log_of(bundle)}")
            else:
                del bundle.claimed[number]
                self.places.pop(key, None)
                self.buffer.append(waiting)
        if bundle.cancelled:
            # What it finished all the same, while the same job waited for its end, need not run again.
            self.buffer = [waiting for waiting in self.buffer if not self.found_in(bundle, waiting)]
        self.close(bundle)

    def found_in(self, bundle: Open, waiting: Waiting) -> bool:
        """Whether a job is to be found in a bundle of an earlier head, and was claimed."""
        place = self.places.get(waiting.job.key)
        return place is not None and place[0] is bundle and self.claim(*place, waiting)

    def fail(self, bundle: Open, job: Job, cause: str, message: str) -> None:
        """A verdict on a job whose worker cannot give one."""
        number = self.places[job.key][1]
        bundle.seen[number] = Status("failed", time.time(), "", cause=cause, message=message)
        self.judge(bundle, number, bundle.seen[number])

    def log_of(self, bundle: Open) -> str:
        """The end of what the task itself printed, its name first."""
        path = log_path(bundle.folder.parent, bundle.task)
        return f"{path}:\n{tail(path)}" if path else ""

    def stop(self, bundle: Open) -> None:
        """Stop a bundle of an earlier head."""
        bundle.cancelled = True
        revoke(bundle.folder)
        self.cluster.cancel([bundle.task])

    def close(self, bundle: Open) -> None:
        """Forget a bundle whose task is over and which has no news left to tell; keep the logs of failures."""
        if not bundle.over or bundle.claimed.keys() - bundle.told or bundle not in self.open:
            return
        if any(status.state == "done" and number not in bundle.told for number, status in bundle.seen.items()):
            return
        self.open.remove(bundle)
        for job in bundle.bundle.jobs:
            if self.places.get(job.key, (None,))[0] is bundle:
                del self.places[job.key]
        chunk = bundle.folder.parent
        if any(status.state == "failed" for status in bundle.seen.values()):
            return
        remove(bundle.folder)
        if not any(other.folder.parent == chunk for other in self.open) and not list(chunk.glob("*/bundle.json")):
            remove(chunk)

    # Bundles to submit.

    def flush(self) -> None:
        """Submit what is in the buffer, if it is worth it or nothing else goes on."""
        if self.closing or time.time() < self.retry_at or not self.clear_doubt():
            return
        if any(bundle.unreadable and bundle.cancelled and not bundle.over for bundle in self.open):
            # Still being stopped, and nobody knows what it makes.
            return
        busy = any(bundle.claimed.keys() - bundle.seen.keys() for bundle in self.open)
        groups: dict[tuple[float, str, Request, str | None, str], list[Waiting]] = defaultdict(list)
        for waiting in self.buffer:
            if not self.blocked(waiting.job):
                # A machine without a queue runs first what takes longest, or may, since nobody knows, a rule at a time: in
                # one task with others it would keep them waiting while a core is free. What is short gathers for one task.
                job, seconds = waiting.job, self.mean([waiting]) or math.inf
                first = (-seconds, job.rule) if self.cluster.name == "local" and seconds >= START else (0.0, "")
                groups[*first, waiting.request, waiting.tmpdir, job.kind].append(waiting)
        for (_, _, request, _, _), jobs in sorted(groups.items(), key=lambda group: group[0][0]):
            try:
                room = self.cluster.room(request)
            except Refused as error:
                self.refuse(jobs, str(error))
                continue
            size = self.size(request, jobs)
            if room is None:
                if busy and len(jobs) < size and time.time() - jobs[0].since < GATHER:
                    continue
                bundles = [jobs[start : start + size] for start in range(0, len(jobs), size)]
                for start in range(0, len(bundles), self.settings.array_size):
                    if not self.submit(request, bundles[start : start + self.settings.array_size]):
                        return
            elif room[0]:
                # Shared out evenly among the tasks that this machine runs at a time, unless starting one takes longer.
                size = min(size, max(math.ceil(len(jobs) / room[1]), math.ceil(START / (self.mean(jobs) or START))))
                bundles = [jobs[start : start + size] for start in range(0, len(jobs), size)][: room[0]]
                if not self.submit(request, bundles):
                    return

    def blocked(self, job: Job) -> bool:
        """Whether an old bundle that makes the same file is still being stopped."""
        others = [self.outputs[path][0] for path in job.outputs if path in self.outputs]
        return any(other.cancelled and not other.over for other in others)

    def size(self, request: Request, jobs: Sequence[Waiting]) -> int:
        """Jobs in a bundle: as many as were asked for, and fill the bundle's seconds by what is known of the rules."""
        mean = self.mean(jobs)
        if mean is None:
            return request.bundle
        return max(1, min(request.bundle, int(self.settings.bundle_seconds * self.settings.bundle.slots / mean)))

    def mean(self, jobs: Sequence[Waiting]) -> float | None:
        """Seconds that one of the jobs takes, by what is known of their rules; None if nothing is."""
        known = [self.durations[w.job.rule] for w in jobs if w.job.rule in self.durations]
        return max(1e-3, sum(seconds / count for count, seconds in known) / len(known)) if known else None

    def submit(self, request: Request, bundles: Sequence[Sequence[Waiting]]) -> bool:
        """Write and submit bundles as one array; on failure everything stays in the buffer, for later."""
        # In the order of submission, as what is found last prevails after a restart.
        now = time.time()
        stamp = f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}-{int(now % 1 * 1e6):06}-{secrets.token_hex(3)}"
        chunk = self.folder / f"{stamp}-{re.sub(r'[^0-9A-Za-z_]', '_', bundles[0][0].job.rule)}"
        made: list[tuple[Path, Bundle]] = []
        most = max(len(jobs) for jobs in bundles)
        minutes = request.minutes or (YEAR if self.cluster.name == "local" else MINUTES)
        # In a bundle each job has its minutes, and the task those of its last one on top of its own.
        whole = minutes if most == 1 else minutes + math.ceil(self.settings.bundle_seconds / 60) + 1
        try:
            for number, jobs in enumerate(bundles):
                folder = chunk / str(number)
                bundle = replace(
                    self.settings.bundle,
                    jobs=tuple(waiting.job for waiting in jobs),
                    threads=request.cpus,
                    tmpdir=jobs[0].tmpdir,
                    seconds=self.settings.bundle_seconds if most > 1 else None,
                    limit=whole * 60 if whole < YEAR else None,
                )
                bundle.write(folder)
                made.append((folder, bundle))
            tasks = self.cluster.submit(
                chunk / "submitit", array_name(chunk), [folder for folder, _ in made], request, whole
            )
        except (OSError, RuntimeError) as error:
            self.refused += 1
            wait = min(2**self.refused, 300)
            self.retry_at = time.time() + wait
            if not isinstance(error, Refused):
                self.complain(f"cannot submit ({error}): trying again in {wait} s")
            if len(made) < len(bundles):
                # It did not come so far.
                remove(chunk)
                return False
            self.doubtful = Submission(chunk, made, bundles)
            if not self.clear_doubt() or not (
                isinstance(error, Refused) or (isinstance(error, RuntimeError) and self.refused > TRIES)
            ):
                return False
            self.refused = 0
            waiting_still = {id(waiting) for waiting in self.buffer}
            jobs = [waiting for jobs in bundles for waiting in jobs if id(waiting) in waiting_still]
            self.refuse(jobs, str(error))
            return True
        self.refused, self.trouble = 0, ""
        self.book(Submission(chunk, made, bundles), dict(enumerate(tasks)))
        return True

    def clear_doubt(self) -> bool:
        """Whether it is known what came of a failed submission: it may have been accepted before the answer was lost."""
        failed = self.doubtful
        if failed:
            try:
                tasks = self.cluster.stray(failed.chunk / "submitit", array_name(failed.chunk))
            except OSError as error:
                self.complain(
                    f"the cluster does not tell whether it has a task named {array_name(failed.chunk)} ({error})"
                )
                return False
            self.doubtful = None
            self.book(failed, tasks)
        return True

    def book(self, submission: Submission, tasks: Mapping[int, str]) -> None:
        """Note the bundles of an array that have a task; the jobs of the others stay in the buffer."""
        chunk, made, bundles = submission
        # After a long silence the queue may have forgotten a task that has ended already.
        ran = [n for n, (folder, _) in enumerate(made) if n not in tasks and any(True for _ in read_statuses(folder))]
        if not tasks and not ran:
            remove(chunk)
            return
        listed = [tasks.get(number) for number in range(len(made))]
        # If the disk is full, the next head has to find the tasks by the name of their array.
        with contextlib.suppress(OSError):
            write_json(
                chunk / "array.json",
                {"cluster": self.cluster.name, "host": socket.gethostname(), "tasks": listed, "submitted": time.time()},
            )
        self.asked, self.pause = time.time(), ASK
        self.leave(waiting for number in (*tasks, *ran) for waiting in bundles[number])
        for number, (folder, contents) in enumerate(made):
            if number not in tasks and number not in ran:
                remove(folder)
                continue
            bundle = Open(folder, contents, tasks.get(number, chunk.name), dict(enumerate(bundles[number])))
            self.enter(bundle)
            for waiting in bundles[number]:
                self.submitted(waiting.job, bundle.task)
            if number in ran:
                bundle.cancelled = True
                self.look(bundle)
                self.settle(bundle, GONE)

    def leave(self, jobs: Iterable[Waiting]) -> None:
        """Take jobs out of the buffer."""
        gone = {id(waiting) for waiting in jobs}
        self.buffer = [waiting for waiting in self.buffer if id(waiting) not in gone]

    def refuse(self, jobs: Sequence[Waiting], message: str) -> None:
        """Fail jobs for which the cluster has no task."""
        self.leave(jobs)
        for waiting in jobs:
            self.ready.append(Verdict(waiting.job, failures.REFUSED, message, None))
            note_failure(self.folder, self.cluster.name, waiting.job, failures.REFUSED, message)

    def complain(self, trouble: str) -> None:
        """Say what is wrong, once."""
        if trouble != self.trouble:
            self.say(f"submitit: {trouble}")
        self.trouble = trouble

    # Across restarts.

    def enter(self, bundle: Open) -> None:
        """Take a bundle into the books."""
        self.open.append(bundle)
        for number, job in enumerate(bundle.bundle.jobs):
            status = bundle.seen.get(number)
            if number in bundle.told or (bundle.over if status is None else status.state == "failed"):
                # It is to be found elsewhere, or to be run again.
                continue
            self.places[job.key] = (bundle, number)
            for path in job.outputs:
                self.outputs[path] = (bundle, number)

    def reattach(self) -> None:
        """Find the bundles of earlier heads; drop those that have nothing to tell."""
        found: list[Open] = []
        chunks: list[Path] = []
        try:
            for chunk in sorted(path for path in self.folder.iterdir() if path.is_dir()):
                about = read_json(chunk / "array.json")
                elsewhere = self.cluster.name == "local" and about and about["host"] != socket.gethostname()
                if about and (about["cluster"] != self.cluster.name or elsewhere):
                    where = about["host"] if elsewhere else f"the cluster {about['cluster']!r}"
                    self.say(f"submitit: {chunk} belongs to {where} and is left alone")
                    continue
                chunks.append(chunk)
                if about:
                    found += self.bundles_of(chunk, dict(enumerate(about["tasks"])))
                else:
                    # The head died while submitting, or the node on which it wrote this.
                    found += self.bundles_of(chunk, self.cluster.stray(chunk / "submitit", array_name(chunk)))
            states = self.cluster.states([bundle.task for bundle in found if bundle.task]) if found else {}
        except OSError as error:
            raise RuntimeError(
                f"the cluster does not answer ({error}). An earlier run left tasks in {self.folder}, so nothing is "
                "submitted until it does: try again later"
            ) from error
        for bundle in found:
            self.look(bundle)
            bundle.over = states.get(bundle.task, GONE) is not None
            # By a head that was interrupted, perhaps; its tasks may still be ending.
            bundle.cancelled = (bundle.folder / "revoked").exists()
            self.enter(bundle)
            if bundle.unreadable and not bundle.over:
                self.stop(bundle)
        for bundle in found:
            self.close(bundle)
        for chunk in chunks:
            if not any(bundle.folder.parent == chunk for bundle in self.open):
                remove(chunk)
        alive = sum(not bundle.over for bundle in self.open)
        done = sum(len(bundle.seen) for bundle in self.open)
        if self.open:
            self.say(f"submitit: an earlier run left {alive} tasks in the queue and {done} jobs that nobody has seen")

    def bundles_of(self, chunk: Path, tasks: Mapping[int, str | None]) -> Iterator[Open]:
        """The bundles of a chunk that are still there; one without a task never had any, or it is over and forgotten."""
        for folder in sorted(path for path in chunk.iterdir() if path.name.isdigit()):
            bundle = read_bundle(folder) or Bundle(jobs=(), directory="")
            yield Open(folder, bundle, tasks.get(int(folder.name)) or "")


def hold(path: Path) -> IO[str]:
    """Hold a file for this process alone.

    Raises:
        RuntimeError: another process holds it.
    """
    file = path.open("a+")
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        file.seek(0)
        holder = file.read().strip() or "somewhere"
        file.close()
        raise RuntimeError(
            f"another Snakemake ({holder}) uses {path.parent}: wait for its end, or give this one a folder of its own "
            "with --submitit-folder"
        ) from None
    except OSError:
        # A file system without locks; Snakemake's own have to do.
        return file
    file.truncate(0)
    file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
    file.flush()
    return file


def array_name(chunk: Path) -> str:
    """The name of an array: the rule first, since a queue's listing shows but the first letters."""
    stamp, _, rule = chunk.name.rpartition("-")
    return f"{rule}-{stamp}"


def log_path(chunk: Path, task: str) -> Path | None:
    """What a task printed, if it came so far."""
    found = sorted((chunk / "submitit").glob(f"**/{task.partition('.')[0]}_*log.out"))
    return found[0] if found else None
