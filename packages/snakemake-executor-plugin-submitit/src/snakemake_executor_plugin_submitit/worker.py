"""The worker of an array task: runs the jobs of a bundle, each in a process, and notes how each ended.

A worker may be killed at any time and started again, by Slurm or because submitit requeues the task. It reads which jobs
have ended, and goes on with the others. The head decides what to do about failures.

A worker whose jobs have all ended tells the head, and waits for some seconds. The head may name another bundle, which the
worker notes in the folder of its first bundle before it starts a job, so that it finds the bundle when it is started again.
"""

import contextlib
import gc
import io
import math
import os
import secrets
import shutil
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NoReturn

from snakemake_executor_plugin_submitit import failures, forked
from snakemake_executor_plugin_submitit.bundles import (
    HEARTBEAT,
    Job,
    Status,
    listed,
    modification_times,
    name_of,
    read_bundle,
    read_json,
    read_statuses,
    write_json,
)
from snakemake_executor_plugin_submitit.guard import Guard, kill
from snakemake_executor_plugin_submitit.messages import Line
from snakemake_executor_plugin_submitit.process import (
    ASKING,
    become,
    die_with_parent,
    environment,
    find_bash,
    lacks_gpu,
    make_ready,
    place,
    set_environment,
    spawn,
)
from snakemake_executor_plugin_submitit.resident import Resident, Task, Usage, begin

# The exit code of a job that has saved its state, so that the same command continues it.
RESUMABLE = os.EX_TEMPFAIL
# Exit codes of a job that was asked to end.
STOPPED = {-signal.SIGTERM, -signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGINT}
# All signals are blocked, and awaited with sigtimedwait, so that nothing interrupts the worker between a fork and its record of
# the child.
SIGNALS = {*ASKING, signal.SIGCHLD, signal.SIGCONT}
# Seconds from a signal that asks a job to end to SIGKILL. Slurm's own KillWait is 30.
PATIENCE = 20.0
# Seconds for which a worker tries to write a status into a ledger that cannot be written, and the same while it has to end.
LEDGER_PATIENCE, LAST_PATIENCE = 120.0, 8.0
# Seconds between two offers of a worker without jobs, and seconds without an answer after which the head is gone.
OFFER, SILENCE = 1.0, 3.0
# Bytes at the end of each log that the message of a failure cites.
TAIL = 2000


class Worker:
    """The object that submitit pickles, calls in the task, and asks for a checkpoint."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.runner: Runner | None = None

    def __call__(self) -> None:
        # A job's shell takes its working directory from this process.
        self.runner = Runner(Path(self.folder).absolute())
        self.runner.run()

    def checkpoint(self) -> Any:
        """Let the running jobs save their state, on submitit's signal; None if no job is left that the task is requeued for."""
        from submitit.helpers import DelayedSubmission

        # The signal may come before there is a runner.
        return DelayedSubmission(Worker(self.folder)) if self.runner is None or self.runner.pause() else None


@dataclass
class Running:
    """A job's process, which leads a process group.

    Attributes:
        number: of the job in its bundle.
        output: file with the output of the job.
        deadline: unix time at which the job reaches its limit.
        asked_at: unix time at which it was asked to save its state, because it has reached its limit.
        is_used: whether the process has run other jobs.
    """

    number: int
    status: Status
    output: Path
    deadline: float | None
    asked_at: float | None = None
    is_used: bool = False


class Runner:
    """Runs the jobs of a bundle in children of this process, and then those of further bundles.

    Attributes:
        home: the folder of the first bundle.
        life: a random name of this process, since the same task may be started again.
        folder: of the present bundle.
        began: unix time at which the process began.
        since: unix time at which it began with the present bundle.
        environment: of the jobs of the present bundle.
        todo: numbers of the jobs that have not been started, or have to be continued.
        running: by process id.
        residents: by process id, the processes that run one job after another. Running and resident processes together are not
            more than the slots of the bundle.
        guard: kills the jobs when this process is killed.
        is_broken: whether a job has failed because of this host.
    """

    def __init__(self, folder: Path) -> None:
        self.began = time.time()
        self.home, self.life = folder, secrets.token_hex(8)
        self.host = place()
        self.running: dict[int, Running] = {}
        self.residents: dict[int, Resident] = {}
        self.environment: dict[str, str] = {}
        self.guard: Guard | None = None
        self.is_broken = False
        self.line: Line | None = None
        self.memory_kills = failures.memory_kills()
        if isinstance(sys.stdout, io.TextIOWrapper):
            # A file name with letters that the encoding lacks must not end the worker.
            sys.stdout.reconfigure(errors="backslashreplace")
        if os.environ.get("SUBMITIT_EXECUTOR") == "local":
            # Without a cluster, the kernel has to end the worker when submitit's controller ends.
            die_with_parent()
        self.load(self.latest() or folder)
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)

    def latest(self) -> Path | None:
        """The bundle that an earlier life of this task took last, if the bundle is still there."""
        name = read_json(self.home / "next")
        folder = self.ledger / name if isinstance(name, str) else None
        return folder if folder and read_bundle(folder) else None

    @property
    def ledger(self) -> Path:
        """The folder of all arrays."""
        return self.home.parent.parent

    def load(self, folder: Path, patience: float = 0) -> None:
        """Begin with a bundle.

        Args:
            patience: seconds for which the bundle may be missing; a network file system may show late what the head has just made.

        Raises:
            FileNotFoundError: it is missing or damaged.
        """
        bundle = read_bundle(folder)
        deadline = time.time() + patience
        while bundle is None and time.time() < deadline and not must_end():
            time.sleep(0.1)
            bundle = read_bundle(folder)
        if bundle is None:
            raise FileNotFoundError(f"{folder}/bundle.json is missing or damaged: was the folder deleted?")
        self.since = time.time()
        self.folder, self.bundle = folder, bundle
        statuses = list(read_statuses(folder))
        self.known: dict[int, Status] = {number: status for number, status, _ in statuses}
        ended = {number for number, status, closed in statuses if closed or status.final}
        # A job whose status a crash has damaged may have ended, and Snakemake may know that. So the head decides about it.
        ended |= listed(folder)[0] - self.known.keys()
        self.todo = deque(number for number in range(len(bundle.jobs)) if number not in ended)
        self.patience = min(PATIENCE, bundle.grace)
        if bundle.head and self.line is None:
            with contextlib.suppress(OSError):
                self.line = Line(bundle.head)
        set_environment(bundle)
        if self.environment != environment():
            self.dismiss(0)
        self.environment = environment()
        # The forks inherit the answer.
        find_bash()

    def run(self) -> None:
        """Run the jobs that have not ended, as long as the bundle's seconds last, and those of further bundles."""
        with Guard(self.home / HEARTBEAT) as self.guard:
            self.tell("news")
            try:
                while True:
                    while self.todo and len(self.running) < self.bundle.slots and not (must_end() or self.is_closed()):
                        self.start(self.todo.popleft())
                    if self.running or must_end():
                        self.wait()
                    elif self.todo or not self.take_another():
                        return
            finally:
                for pid in self.running:
                    kill(pid, signal.SIGKILL)
                self.dismiss(0)
                self.tell("end")

    def tell(self, kind: Literal["news", "idle", "end"]) -> None:
        """Tell the head that a status may be new, that all jobs have ended, or that this process takes no further bundle."""
        if self.line:
            about = {
                "home": name_of(self.home),
                "at": name_of(self.folder),
                "life": self.life,
                "age": time.time() - self.began,
                "host": self.host,
            }
            self.line.send({"kind": kind, **about})

    def take_another(self) -> bool:
        """Wait until the head names another bundle, and begin with it; False if it is time to leave."""
        offered, answered, until = 0.0, time.time(), time.time() + self.bundle.idle
        while self.line and time.time() < min(until, answered + SILENCE) and not (must_end() or self.is_closed()):
            if time.time() >= offered + OFFER:
                self.tell("idle")
                offered = time.time()
            answer = self.line.receive(offered + OFFER - time.time(), must_end)
            # A late answer may be meant for an earlier offer.
            if not answer or (answer["life"], answer["at"]) != (self.life, name_of(self.folder)):
                continue
            answered = time.time()
            if answer["kind"] == "leave":
                return False
            if answer["kind"] == "take":
                # When this task is started again, it finds the bundle here.
                write_json(self.home / "next", answer["bundle"])
                self.load(self.ledger / answer["bundle"], self.bundle.latency_wait)
                self.tell("news")
                return True
        return False

    def is_closed(self) -> bool:
        """Whether the bundle's seconds are over, the host is broken, or the head has revoked the bundle."""
        late = self.bundle.seconds is not None and time.time() - self.since >= self.bundle.seconds
        return late or self.is_broken or (self.folder / "revoked").exists()

    def start(self, number: int) -> None:
        """Start a job in a fork, or note why it cannot run."""
        if (self.folder / "status" / f"{number}.closed").exists():
            # The head renamed the status while this worker was reading the folder.
            return
        job = self.bundle.jobs[number]
        before = self.known.get(number)
        status = Status("running", time.time(), self.host)
        if before:
            # The state is still "running" if the last worker died.
            lost = before.lost + (before.state == "running")
            status = replace(status, attempt=before.attempt + 1, requeues=before.requeues, lost=lost)
            if lost > self.bundle.max_requeues:
                message = f"its worker died {lost} times while it ran"
                self.note(number, replace(status, state="failed", cause=failures.NODE_FAILURE, message=message))
                return
        self.note(number, status)
        problem = lacks_gpu(self.bundle) or make_ready(job, self.bundle, must_end)
        command = forked.runnable(job.command, self.bundle.scripts) if job.kind == "shell" else None
        is_served = False
        if command and not problem:
            forked.prepare(command.words)
            command = command if forked.forkable() else None
            # A job with an earlier attempt runs in a process of its own, whatever the end of that attempt was.
            is_served = command is not None and not before and not job.benchmark and forked.is_served(command)
        if job.benchmark:
            import snakemake.benchmark
        if job.kind == "snakemake":
            import snakemake.cli  # noqa: F401
        if must_end():
            # The steps above may have taken long, and the job would have no time to run.
            self.note(number, replace(status, state="stopped"))
            self.todo.appendleft(number)
            return
        if problem:
            self.fail(number, replace(status, cause=failures.of_exit(1, [problem]), message=problem))
            return
        output = self.folder / f"output-{number}"
        # The task of a single job has the job's limit. A task in an array with larger bundles has a longer one.
        several = len(self.bundle.jobs) > 1 or self.bundle.seconds is not None
        limit = job.limit if several or self.bundle.limit is None else None
        start, is_used = None, False
        if command and is_served:
            resident = self.serve(Task(command, self.bundle.directory, output))
            pid, is_used = resident.pid, resident.ended > 0
        elif job.kind == "shell" and not command and not job.benchmark:
            self.dismiss(self.bundle.slots - len(self.running) - 1)
            try:
                pid, start = spawn(job, self.bundle, self.environment, self.folder, output)
            except OSError as error:
                message = f"cannot start the job: {error}"
                self.fail(number, replace(status, cause=failures.of_exit(1, [message]), message=message))
                return
        else:
            self.dismiss(self.bundle.slots - len(self.running) - 1)
            pid = self.fork(job, command, output)
        if self.guard:
            self.guard.add(pid)
        self.running[pid] = Running(number, status, output, limit and time.time() + limit, is_used=is_used)
        if start is not None:
            with contextlib.suppress(BrokenPipeError):
                os.write(start, b"\n")
            os.close(start)

    def fork(self, job: Job, command: forked.Plain | None, output: Path) -> int:
        """Start a job in a fork of this process; returns the process id."""
        parent = os.getpid()
        # Looking for garbage among what the worker has imported, a fork would copy its memory page by page.
        gc.freeze()
        pid = os.fork()
        if pid == 0:
            become(
                job,
                self.bundle,
                command,
                self.folder,
                output,
                parent,
                self.pipes(),
            )
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        return pid

    def serve(self, task: Task) -> Resident:
        """Start a job in a process that has run others, or in one that may run others after it."""
        for resident in self.idle():
            if resident.script == task.command.words[0] and resident.give(task):
                return resident
        self.dismiss(self.bundle.slots - len(self.running) - 1)
        gc.freeze()
        resident = begin(task.command.words[0], self.pipes())
        self.residents[resident.pid] = resident
        resident.give(task)
        return resident

    def idle(self) -> list[Resident]:
        """The resident processes without a job."""
        return [resident for pid, resident in self.residents.items() if pid not in self.running]

    def dismiss(self, most: int) -> None:
        """End resident processes without a job, except so many."""
        for resident in self.idle()[most:]:
            kill(resident.pid, signal.SIGKILL)
            os.waitpid(resident.pid, 0)
            self.forget(resident.pid)

    def forget(self, pid: int) -> None:
        """Note that a process has ended."""
        if self.guard:
            self.guard.discard(pid)
        if resident := self.residents.pop(pid, None):
            resident.line.close()

    def pipes(self) -> list[int]:
        """Descriptors of this process that its children must not inherit."""
        guard = [self.guard.pipe] if self.guard else []
        return [*guard, *(resident.line.fileno() for resident in self.residents.values())]

    def wait(self) -> None:
        """Sleep until a child ends, a signal arrives or a limit is due, and handle it."""
        now = time.time()
        due = [p.asked_at + self.patience if p.asked_at else p.deadline or math.inf for p in self.running.values()]
        received = signal.sigtimedwait(SIGNALS, max(0.0, min([60.0, *(at - now for at in due)])))
        if received and received.si_signo == signal.SIGUSR2:
            handler = signal.getsignal(signal.SIGUSR2)
            if callable(handler):
                # submitit's handler calls `Worker.checkpoint`, requeues the task, and exits.
                handler(signal.SIGUSR2, None)
            # Without submitit, the cluster queues a task with this exit status again.
            raise SystemExit(RESUMABLE if self.pause() else 0)
        if received and received.si_signo in (signal.SIGTERM, signal.SIGINT):
            self.terminate(received.si_signo)
        self.reap(self.handle_end)
        for pid, process in self.running.items():
            if process.asked_at and time.time() > process.asked_at + self.patience:
                kill(pid, signal.SIGKILL)
            elif process.deadline and not process.asked_at and time.time() >= process.deadline:
                process.asked_at = time.time()
                kill(pid, signal.SIGUSR2)

    def reap(self, handle: Callable[[Running, int], None]) -> None:
        """Collect the jobs that have ended, and call `handle` with each and its exit code."""
        for pid, resident in list(self.residents.items()):
            if pid in self.running and (usage := resident.report()):
                self.collect(pid, usage, 0, handle)
        while self.running:
            try:
                pid, ended, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            # Background processes of the job end with it.
            kill(pid, signal.SIGKILL)
            usage, code = Usage.of(used), os.waitstatus_to_exitcode(ended)
            if pid in self.residents:
                # The process may have ended after its job.
                report = self.residents[pid].report()
                usage, code = (report, 0) if report else (self.residents[pid].since_last(usage), code)
            self.forget(pid)
            if pid in self.running:
                self.collect(pid, usage, code, handle)

    def collect(self, pid: int, usage: Usage, code: int, handle: Callable[[Running, int], None]) -> None:
        """Note what a job has used that has ended, and handle its end."""
        process = self.running.pop(pid)
        process.status = replace(
            process.status, cpu_seconds=round(usage.cpu_seconds, 3), memory_mb=round(usage.memory_mb, 1)
        )
        handle(process, code)

    def drain(self, handle: Callable[[Running, int], None], seconds: float = math.inf) -> None:
        """Collect children until all have ended or the time is over."""
        deadline = time.time() + seconds
        while self.running and time.time() < deadline:
            signal.sigtimedwait({signal.SIGCHLD}, 0.5)
            self.reap(handle)

    def handle_end(self, process: Running, code: int) -> None:
        """Note how a job ended while the task goes on."""
        received = None
        if code != 0 and not process.asked_at:
            # A cluster that stops a task may signal the job before the worker.
            received = signal.sigtimedwait({signal.SIGTERM, signal.SIGINT}, 0.5 if code in STOPPED else 0.02)
        if received:
            self.note(process.number, replace(process.status, state="stopped"))
            self.terminate(received.si_signo)
        elif process.asked_at and code == RESUMABLE and process.status.requeues < self.bundle.max_requeues:
            self.note(process.number, replace(process.status, state="stopped", requeues=process.status.requeues + 1))
            self.todo.append(process.number)
        elif process.asked_at and code != 0:
            limit = self.bundle.jobs[process.number].limit or 0
            self.end(process, code, failures.TIMEOUT, f"it ran for longer than its limit of {limit / 60:g} minutes")
        elif process.is_used and code != 0:
            # The jobs before it may be to blame: a job fails only if it fails in a process of its own.
            self.memory_kills = failures.memory_kills()
            why = f"after {failures.ending(code)} in a process that has run other jobs"
            print(f"job {process.number} runs again in a process of its own, {why}", flush=True)
            self.note(process.number, replace(process.status, state="stopped"))
            self.todo.appendleft(process.number)
        else:
            self.end(process, code)

    def end(self, process: Running, code: int, cause: str | None = None, why: str = "") -> None:
        """Write the final status of a job."""
        job = self.bundle.jobs[process.number]
        output = tail(process.output)
        # A full disk has no room for the task's log either.
        with contextlib.suppress(OSError):
            if output:
                print(f"--- {', '.join(job.outputs) or job.rule}", flush=True)
                with process.output.open("rb") as file:
                    shutil.copyfileobj(file, sys.stdout.buffer)
                sys.stdout.flush()
        if code == 0:
            done = replace(process.status, state="done", stamps=modification_times(job.outputs, self.bundle.directory))
            self.note(process.number, done)
        else:
            logs = [(path, tail(Path(self.bundle.directory, path))) for path in job.logs]
            citations = "".join(f"\n{path}:\n{text}" for path, text in [*logs, ("output", output)] if text)
            # A nested Snakemake prints much after the exception of its job.
            paths = [process.output, *(Path(self.bundle.directory, path) for path in job.logs)]
            cause = cause or self.cause_of(code, [tail(path, 10 * TAIL) for path in paths])
            message = f"{why or failures.ending(code)}{citations}"
            self.fail(process.number, replace(process.status, cause=cause, message=message))
        process.output.unlink(missing_ok=True)

    def fail(self, number: int, status: Status) -> None:
        """Note that a job has failed. If the host is to blame, no further job is started."""
        self.is_broken |= status.cause == failures.HOST
        self.note(number, replace(status, state="failed"))

    def cause_of(self, code: int, logs: list[str]) -> str:
        """The cause of a failure with this exit code."""
        before, self.memory_kills = self.memory_kills, failures.memory_kills()
        killed = code in (-signal.SIGKILL, 128 + signal.SIGKILL)
        return failures.OUT_OF_MEMORY if killed and self.memory_kills > before else failures.of_exit(code, logs)

    def note(self, number: int, status: Status) -> None:
        """Write a status. On an error, such as a full disk, try again for two minutes.

        Raises:
            FileNotFoundError: the bundle's folder is gone.
            OSError: the ledger cannot be written.
        """
        if status.final:
            status = replace(status, ended=time.time())
        self.known[number] = status
        began = time.time()
        while True:
            try:
                status.write(self.folder, number)
                return self.tell("news") if status.final else None
            except FileNotFoundError:
                raise
            except OSError as error:
                waited = time.time() - began
                if waited >= (LAST_PATIENCE if must_end() else LEDGER_PATIENCE):
                    raise
                with contextlib.suppress(OSError):
                    print(f"cannot write the status of job {number} ({error}): trying again", flush=True)
                time.sleep(min(5.0, 0.1 + waited))

    def pause(self) -> bool:
        """Let the jobs save their state, because the cluster takes the node back; whether jobs are left to requeue for."""
        late = self.bundle.limit is not None
        # Slurm may send its signal up to a minute early.
        late = late and time.time() - self.began >= (self.bundle.limit or 0) - self.bundle.grace - 70
        for pid in self.running:
            kill(pid, signal.SIGUSR2)
        patience = max(5.0, self.bundle.grace - 20)
        slow: set[int] = set()

        def handle(process: Running, code: int) -> None:
            nested = self.bundle.jobs[process.number].kind == "snakemake"
            requeues = process.status.requeues + late
            # A shell reports a program that a signal ended as 128 + its number.
            failed = code > 0 and code not in (RESUMABLE, *(128 + number for number in ASKING))
            if code == 0 or (failed and not nested):
                self.end(process, code)
            elif late and not nested and code != RESUMABLE:
                why = f"it did not save its state within {patience:g} s (see --submitit-grace)"
                why = why if process.number in slow else "it saves no state"
                self.end(process, code, failures.TIMEOUT, f"the task reached its time limit, and {why}")
            elif requeues > self.bundle.max_requeues:
                self.end(process, code, failures.TIMEOUT, f"the task reached its time limit {requeues} times")
            else:
                self.note(process.number, replace(process.status, state="stopped", requeues=requeues))
                process.output.unlink(missing_ok=True)
                self.todo.append(process.number)

        self.drain(handle, patience)
        for pid, process in self.running.items():
            slow.add(process.number)
            kill(pid, signal.SIGKILL)
        self.drain(handle)
        return bool(self.todo) and not (self.folder / "revoked").exists()

    def terminate(self, number: int) -> NoReturn:
        """End on SIGTERM (scancel, or preemption without notice) or SIGINT, after the jobs have saved their state."""
        for pid in self.running:
            kill(pid, signal.SIGTERM)

        def handle(process: Running, code: int) -> None:
            if code == 0:
                self.end(process, code)
            else:
                self.note(process.number, replace(process.status, state="stopped"))

        self.drain(handle, self.patience)
        raise SystemExit(128 + number)


def must_end() -> bool:
    """Whether a signal that asks the worker to end is pending."""
    return bool(signal.sigpending() & ASKING)


def tail(path: Path, most: int = TAIL) -> str:
    """So many bytes at the end of a text file; empty if the file is empty or missing."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - most))
            text = file.read().decode(errors="replace").strip()
    except OSError:
        return ""
    return text if size <= most else f"… {text}"
