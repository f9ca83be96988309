"""The head takes jobs from Snakemake, has them submitted, watches their tasks, and returns verdicts.

Nothing here knows Snakemake; `snakemake_executor_plugin_submitit.Executor` does. All state that matters lies in the
ledger (`snakemake_executor_plugin_submitit.bundles`), so that a head that was killed finds its jobs again.
"""

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from snakemake_executor_plugin_submitit.breaker import Breaker
from snakemake_executor_plugin_submitit.bundles import Job, heartbeat, note_failure, read_statuses, refresh, revoke
from snakemake_executor_plugin_submitit.clusters.cluster import Cluster
from snakemake_executor_plugin_submitit.ending import RunningJob
from snakemake_executor_plugin_submitit.messages import Mail
from snakemake_executor_plugin_submitit.pool import Pool
from snakemake_executor_plugin_submitit.resources import Request
from snakemake_executor_plugin_submitit.restart import find_tasks, hold, make_ledger, remove_empty, settle_homes
from snakemake_executor_plugin_submitit.submission import Calls, Settings, Submitter
from snakemake_executor_plugin_submitit.tasks import Task, Tasks, TaskState, Waiting, named
from snakemake_executor_plugin_submitit.verdicts import Judge, Verdict
from snakemake_executor_plugin_submitit.watch import Watch

__all__ = ["Dispatcher", "Settings", "Unreachable", "Verdict"]

# Seconds between questions to the cluster: the first after a submission or a change, and the longest.
ASK, ASK_MOST = 5.0, 60.0
# Seconds that `poll` waits for an answer of the cluster, and that `cancel` waits for one that is under way.
PATIENCE = 1.0
# Seconds for which a worker whose heartbeat has been left there counts as alive after the last beat: several beats.
QUIET = 90.0
# Seconds after which `drive` looks for messages while it waits for an answer.
SLICE = 0.05
# Seconds after which `poll` looks at all tasks, even if messages tell which ones have changed.
LOOK = 1.0
# Seconds after which a trouble that lasts is reported again.
REMIND = 60.0
# Seconds for which a status that cannot be read is waited for after the end of its task, while the rest of the ledger can be read.
DAMAGED = 300.0


class Unreachable(RuntimeError):
    """The cluster has not answered for so long that the run has to end."""


class Dispatcher:
    """Bundles jobs, submits them, and finds out how they ended.

    `add`, `close`, `fail` and `cancel` may be called from one thread while another calls `poll`. No method holds the lock
    while the cluster is asked.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: Settings,
        submitted: Callable[[Job, str], None] = lambda job, task: None,
        say: Callable[[str], None] = print,
        recorded: Callable[[Job], bool] = lambda job: False,
        mail: Mail | None = None,
    ) -> None:
        """Find the tasks that earlier heads left.

        Args:
            submitted: called with each job that has got a task, and the name of the task.
            say: called with messages for a person.
            recorded: whether Snakemake has recorded the end of a job, so that it asks for another run of it.
            mail: where messages of the workers come.

        Raises:
            RuntimeError: another head uses the folder, others may write to it, or the cluster does not tell what became of earlier tasks.
            OSError: the folder cannot be made.
        """
        self.cluster, self.settings = cluster, settings
        self.say = say
        self.lock = Lock()
        self.folder = settings.folder.resolve()
        make_ledger(self.folder)
        self.hold = hold(self.folder / "lock")
        self.tasks = Tasks()
        self.watch = Watch()
        breaker = Breaker(cluster, self.report, say)
        self.judge = Judge(self.folder, settings.bundle.max_requeues, self.tasks, breaker, submitted, recorded)
        self.mail = mail or Mail()
        self.pool = Pool(self.mail, self.tasks)
        self.submitter = Submitter(settings, self.judge, self.pool, self.remake)
        # Monotonic time at which all tasks were looked at last.
        self.looked_at = -math.inf
        # The round of questions to the cluster that is under way, the question, and when the last round was.
        self.round: Calls | None = None
        self.answer: Future[Any] | None = None
        self.driver = Lock()
        self.asked = 0.0
        self.pause = ASK
        # Tasks of earlier heads that have to be cancelled, and when the cluster may be told.
        self.unwanted: list[Task] = []
        self.cancel_at = 0.0
        # Troubles that last: by kind, the message and when it was reported.
        self.troubles: dict[str, tuple[str, float]] = {}
        self.silent_since: float | None = None
        # Whether no question is asked any more.
        self.is_ending = False
        # Names of tasks that are cancelled since the head was asked to end.
        self.stopped: set[str] = set()
        # Whether the cluster did not answer in time when the head was ending.
        self.is_deaf = False
        # Reasons to wait in the queue that have been reported.
        self.reasons: set[str] = set()
        self.reattach()

    def remake(self) -> None:
        """Make the ledger again if somebody has deleted it.

        Raises:
            RuntimeError: others may write to it, or another head uses it by now.
            OSError: it cannot be made.
        """
        make_ledger(self.folder)
        if not (self.folder / "lock").exists():
            self.hold = hold(self.folder / "lock")

    def reattach(self) -> None:
        """Follow the tasks of earlier heads, and forget those that are of no interest."""
        tasks, arrays = find_tasks(self.folder, self.cluster, self.say)
        for task in tasks:
            # An unreadable status is read again when the task is polled.
            with contextlib.suppress(OSError):
                self.judge.read(task)
            if task.state is TaskState.OVER and task.name and self.may_live(task):
                if heartbeat(task.home_folder) is None:
                    # The task may be queued although the cluster does not list it. A worker gives its sign of life before it looks for
                    # this, so that it starts no job, or is seen below.
                    revoke(task.folder)
                if heartbeat(task.home_folder) is not None:
                    # The worker was killed, or it lives although the cluster does not list the task. Later heartbeats decide which.
                    task.state = TaskState.STOPPING
        settle_homes(tasks)
        for task in tasks:
            self.tasks.add(task)
            if task.is_damaged and task.state is TaskState.ALIVE:
                self.stop(task)
            elif task.state is TaskState.STOPPING and (task.folder / "revoked").exists():
                # The cancellation of an earlier head may not have reached the cluster.
                self.unwanted.append(task)
        for task in tasks:
            self.tasks.forget(task)
        remove_empty(arrays, self.tasks.all)
        if self.tasks.all:
            done = sum(job.has_ended for task in self.tasks.all for job in task.jobs)
            self.say(
                f"submitit: an earlier run left {len(self.tasks.alive())} tasks in the queue and {done} jobs that nobody "
                "has seen"
            )

    # The calls of the executor, which hands over jobs and fetches verdicts.

    def add(self, jobs: Iterable[tuple[Job, Request, str | None]]) -> None:
        """Take jobs, each with its request and its folder for temporary files (None for the node's own).

        A job that an earlier head submitted is found again; the others go into the buffer.
        """
        with self.lock:
            for job, request, tmpdir in jobs:
                waiting = Waiting(job, request, tmpdir, time.time())
                if self.claim(waiting):
                    continue
                # A task of an earlier head that makes the same file in another way has to give up.
                for task in list(self.tasks.rivals(job)):
                    self.stop(task)
                self.submitter.buffer.append(waiting)

    def claim(self, waiting: Waiting, task: Task | None = None) -> bool:
        """Return whether a job that an earlier head submitted serves for this one.

        Args:
            task: where to look; None for all tasks.
        """
        task_job = self.tasks.by_key.get(waiting.job.key)
        if task_job is None or (task and task_job.task is not task):
            return False
        return self.judge.claim(task_job, waiting)

    def close(self, job: Job) -> None:
        """Note that Snakemake knows how a job ended."""
        with self.lock:
            self.tasks.close(job)

    def fail(self, job: Job, cause: str, message: str) -> None:
        """Note that Snakemake itself has failed a job: before its submission, or after its command's success."""
        note_failure(self.folder, self.cluster.name, job, cause, message)

    def poll(self) -> list[Verdict]:
        """Read new statuses, go on asking the cluster, and submit what is due. Returns the verdicts that are new.

        Raises:
            Unreachable: the cluster has not answered for too long.
        """
        with self.lock:
            news = self.pool.hear()
            if not self.cluster.is_local:
                for task in news:
                    refresh(task.folder)
            # Messages tell which tasks have news. The others are looked at as often as without messages.
            if not news or time.monotonic() >= self.looked_at + LOOK:
                self.looked_at = time.monotonic()
                news = list(dict.fromkeys([*news, *self.watch.changed(self.tasks.alive(), self.cluster.waiting)]))
            for task in news:
                self.read(task)
            returned, self.judge.returned = self.judge.returned, []
            self.submitter.buffer += returned + self.pool.settle(not self.cluster.is_local)
            self.submitter.hand_over()
        self.drive(PATIENCE)
        self.remind()
        if self.silent_since is not None:
            minutes = (time.monotonic() - self.silent_since) / 60
            if minutes > self.settings.unreachable_minutes:
                raise Unreachable(
                    f"the cluster has not answered for {minutes:.0f} minutes (--submitit-unreachable-minutes). Tasks that "
                    "are in its queue go on: run the same command again when it answers, and they are found"
                )
        return self.fetch()

    def fetch(self) -> list[Verdict]:
        """Return the verdicts that have not been fetched yet."""
        with self.lock:
            return self.judge.fetch()

    # Questions to the cluster: a round is a generator, which yields calls and is sent their answers.

    def drive(self, seconds: float) -> None:
        """Go on with the round until it is over, or an answer takes longer than so many seconds."""
        deadline = time.monotonic() + seconds
        with self.driver:
            while True:
                while self.answer and wait([self.answer], max(0.0, min(SLICE, deadline - time.monotonic()))).not_done:
                    # Messages of the workers, and new jobs, do not wait for the cluster.
                    if time.monotonic() >= deadline or self.mail.is_waiting():
                        return
                with self.lock:
                    if not self.advance():
                        return

    def advance(self) -> bool:
        """Take the answer to the last call, and make the next one; False if the round is over."""
        answer, self.answer = self.answer, None
        try:
            if self.round is None:
                if self.is_ending:
                    return False
                self.round = self.questions()
            if answer is None:
                call = next(self.round)
            elif (error := answer.exception()) is not None:
                call = self.round.throw(error)
            else:
                call = self.round.send(answer.result())
        except BaseException as error:
            self.round = None
            if isinstance(error, StopIteration):
                return False
            raise
        self.answer = in_thread(call)
        return True

    def questions(self) -> Calls:
        """Make one round of questions: cancel unwanted tasks, ask about the others, submit jobs."""
        if self.unwanted and time.monotonic() >= self.cancel_at:
            unwanted, self.unwanted = self.unwanted, []
            try:
                yield lambda: self.cluster.cancel(named(unwanted))
            except OSError:
                self.unwanted += unwanted
                self.cancel_at = time.monotonic() + ASK
        yield from self.ask()
        yield from self.submitter.flush()

    def ask(self) -> Calls:
        """Ask the cluster about its tasks, when it is time, and settle the tasks that are over."""
        alive = self.tasks.alive()
        if self.submitter.booked_at > self.asked:
            self.asked, self.pause = self.submitter.booked_at, ASK
        # Verdicts come from files. The more tasks there are, the less the end of a single task matters.
        least = min(ASK + len(alive) / 20, ASK_MOST)
        self.pause = max(least, min(self.pause, least) if any(task.is_finished for task in alive) else self.pause)
        # A question to this machine costs nothing.
        if not alive or (not self.cluster.is_local and time.time() < self.asked + self.pause):
            return
        self.asked = time.time()
        try:
            states = yield lambda: self.cluster.states(named(alive))
        except OSError as error:
            self.pause = min(self.pause * 2, ASK_MOST)
            self.report("queue", self.settings.asking_again("the cluster does not answer", error))
            return
        self.report("queue", "")
        self.pause = min(self.pause * 1.3, ASK_MOST)
        for name, reason in self.cluster.stuck.items():
            if reason not in self.reasons:
                self.reasons.add(reason)
                self.say(f"submitit: job {name} waits in the queue: {reason} (see `{self.cluster.showing(name)}`)")
        for task in alive:
            state = states[task.name]
            task.reported_over = 0 if state is None else task.reported_over + 1
            if state is not None:
                self.end(task, state)
                self.pause = ASK

    def end(self, task: Task, state: str) -> None:
        """Settle a task that is over according to the cluster, after reading the task's last statuses."""
        refresh(task.folder)
        if not self.read(task):
            patience = 60 * self.settings.unreachable_minutes
            if is_readable(self.folder) and not self.read(task):
                # The file system works, so the trouble is with these files.
                patience = min(patience, DAMAGED)
            if task.unreadable_since is not None and time.monotonic() - task.unreadable_since > patience:
                self.submitter.buffer += self.judge.give_up(task, state)
                self.report(str(task.folder), "")
            return
        # The cluster may be wrong, and a file system may show what the task wrote last only after the end of the task. So the cluster is
        # asked twice, and the worker must be silent.
        if self.may_live(task) and (self.beats(task, state) or task.reported_over < 2):
            return
        was_stopped = task.state is TaskState.STOPPING
        try:
            self.submitter.buffer += self.judge.settle(task, state)
        except OSError:
            return
        if was_stopped:
            # A job that ended all the same, while the same job waited in the buffer for the end of the task, need not run
            # again.
            self.submitter.buffer = [entry for entry in self.submitter.buffer if not self.claim(entry, task)]

    def may_live(self, task: Task) -> bool:
        """Whether a job of a task that is over according to the cluster could still run, as far as the statuses tell."""
        return not self.cluster.is_local and (task.is_damaged or not task.is_finished)

    def beats(self, task: Task, state: str) -> bool:
        """Whether the worker of a task may live although the cluster says that the task is over."""
        kind, now, seen = f"{task.folder} beats", time.monotonic(), heartbeat(task.home_folder)
        if seen != task.heartbeat:
            if seen is not None and task.heartbeat is not None:
                self.report(
                    kind,
                    f"the cluster says that task {task.name} is over ({state}), but its worker lives: waiting for its end",
                )
            task.heartbeat, task.heartbeat_since = seen, now
        if seen is not None and now < task.heartbeat_since + QUIET:
            return True
        self.report(kind, "")
        return False

    def read(self, task: Task) -> bool:
        """Read the new statuses of a task; False if they cannot be read, which holds up no other task."""
        try:
            self.judge.read(task)
        except OSError as error:
            task.unreadable_since = task.unreadable_since or time.monotonic()
            self.report(str(task.folder), f"cannot read the status files of {task.folder} ({error}): trying again")
            return False
        if task.unreadable_since is not None:
            task.unreadable_since = None
            self.report(str(task.folder), "")
        if task.home and task.is_finished:
            self.tasks.leave(task)
        return True

    def report(self, kind: str, trouble: str) -> None:
        """Print a message about a trouble that is new or has changed. An empty message ends the trouble."""
        if kind == "queue":
            self.silent_since = (self.silent_since or time.monotonic()) if trouble else None
        if not trouble:
            self.troubles.pop(kind, None)
        elif self.troubles.get(kind, ("", 0.0))[0] != trouble:
            self.say(f"submitit: {trouble}")
            self.troubles[kind] = (trouble, time.monotonic())

    def remind_of(self, kind: str, news: str) -> None:
        """Print a message now and once a minute. Later messages of the kind take its place without being printed at once."""
        with self.lock:
            if kind in self.troubles:
                self.troubles[kind] = (news, self.troubles[kind][1])
            else:
                self.report(kind, news)

    def remind(self) -> None:
        """Print the message of each trouble that lasts again, once a minute."""
        with self.lock:
            for kind, (trouble, reported) in self.troubles.items():
                if time.monotonic() > reported + REMIND:
                    self.say(f"submitit: {trouble}")
                    self.troubles[kind] = (trouble, time.monotonic())

    # The end of the head.

    def stop(self, task: Task) -> None:
        """Stop a task of an earlier head; the cluster is told in the next round."""
        task.state = TaskState.STOPPING
        revoke(task.folder)
        self.unwanted.append(task)

    def wind_down(self) -> list[RunningJob]:
        """Have no further job started, and cancel tasks in which none runs. Returns the jobs that run; call it again until none does."""
        running = []
        with self.lock:
            self.submit_no_more()
            for task in self.tasks.alive():
                task.state = TaskState.STOPPING
                revoke(task.folder)
                in_task = running_jobs(task)
                running += in_task
                if not in_task and task.name not in self.stopped:
                    self.stopped.add(task.name)
                    self.unwanted.append(task)
        return running

    def submit_no_more(self) -> None:
        """Submit nothing any more. A submission that is under way may still be answered, but its tasks start no job."""
        self.submitter.closing = True
        self.submitter.buffer.clear()
        if self.submitter.pending:
            for folder in self.submitter.pending.folders:
                revoke(folder)

    def cancel(self) -> None:
        """Cancel all tasks, within a few seconds even if the cluster does not answer. Ended jobs stay in the ledger."""
        with self.lock:
            self.is_ending = True
            self.submit_no_more()
        # The answer to a submission may be on its way. If it does not come, the command is stopped.
        self.drive(PATIENCE)
        self.cluster.hurry()
        self.drive(PATIENCE)
        with self.lock:
            alive, pending = self.tasks.alive(), self.submitter.pending
            for task in alive:
                task.state = TaskState.STOPPING
                revoke(task.folder)
        try:
            self.cluster.cancel(named(alive))
            if pending:
                strays = self.cluster.stray(pending.folder / "submitit", pending.name).values()
                self.cluster.cancel(dict.fromkeys(strays, pending.name))
        except OSError as error:
            self.is_deaf = isinstance(error, TimeoutError)
            names = [self.cluster.argument(task.name) for task in alive] + (
                [f"and what has the name {pending.name}"] if pending else []
            )
            self.say(f"submitit: cannot cancel tasks ({error}), please cancel: {' '.join(names)}")

    def rest(self, seconds: float = 30) -> None:
        """Wait for tasks that are about to end, so that neither they nor their files are left behind."""
        deadline = time.time() + seconds
        self.cluster.hurry()
        with self.lock:
            self.pool.dismiss()
        again = time.time() + ASK
        while time.time() < deadline and not self.is_deaf:
            with self.lock:
                ending = [t for t in self.tasks.alive() if t.state is TaskState.STOPPING or t.is_finished]
                unwanted, self.unwanted = self.unwanted, []
            if not ending:
                return
            try:
                if time.time() > again:
                    again += ASK
                    unwanted = [task for task in ending if task.state is TaskState.STOPPING]
                if unwanted:
                    self.cluster.cancel(named(unwanted))
                states = self.cluster.states(named(ending))
            except TimeoutError:
                self.is_deaf = True
                break
            except OSError:
                states = {}
            with self.lock:
                for task in ending:
                    if states.get(task.name) is not None:
                        task.end()
                        if not self.may_live(task) or heartbeat(task.home_folder) is None:
                            self.tasks.forget(task)
            time.sleep(0.2 if self.cluster.is_local else 1)
        left = [self.cluster.argument(task.name) for task in self.tasks.alive() if task.state is TaskState.STOPPING]
        if left:
            self.say(f"submitit: still in the queue of {self.cluster.name}, please cancel: {' '.join(left)}")


def is_readable(folder: Path) -> bool:
    """Whether a folder can be listed."""
    try:
        os.listdir(folder)
    except OSError:
        return False
    return True


def running_jobs(task: Task) -> list[RunningJob]:
    """The jobs of a task that run. If that cannot be read, they are those that have not ended, as far as is known."""
    left = {job.number: job.job for job in task.jobs if not job.has_ended}
    try:
        statuses = {n: status for n, status, _ in read_statuses(task.folder, lambda n: n not in left)}
    except OSError:
        return [RunningJob(next(iter(job.outputs), job.rule), None) for job in left.values()]
    return [
        RunningJob(
            next(iter(left[n].outputs), left[n].rule), status.started + limit if (limit := left[n].limit) else None
        )
        for n, status in statuses.items()
        if status.state == "running"
    ]


def in_thread(call: Callable[[], Any]) -> Future[Any]:
    """Call a function in a thread that does not keep this process from ending."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future
