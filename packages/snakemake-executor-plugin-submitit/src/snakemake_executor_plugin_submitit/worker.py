"""The array task: runs the jobs of a bundle, each in a process of its own, and notes how each ended.

A worker may be killed anywhere and started again, by Slurm or by submitit's requeueing: it reads which jobs have
ended and goes on with the others. It decides nothing else; what to do about failures is the head's business.
"""

import contextlib
import io
import math
import os
import shutil
import signal
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from snakemake_executor_plugin_submitit import failures, forked
from snakemake_executor_plugin_submitit.bundles import Bundle, Status, read_bundle, read_statuses, stamps
from snakemake_executor_plugin_submitit.process import become, die_with_parent, make_ready, set_environment

# What a job exits with when it has saved its state and the same command goes on from there.
RESUMABLE = os.EX_TEMPFAIL
# Exit codes of a job that was told to end.
STOPPED = {-signal.SIGTERM, -signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGINT}
# Blocked, and waited for with sigtimedwait: nothing interrupts the worker between a fork and the note of it.
ASKING = {signal.SIGTERM, signal.SIGINT, signal.SIGUSR2}
SIGNALS = {*ASKING, signal.SIGCHLD, signal.SIGCONT}
# Seconds from a polite signal to SIGKILL; Slurm's own KillWait is 30.
PATIENCE = 20.0
# What a failed job's message has of each log.
TAIL = 2000


class Worker:
    """What submitit pickles, calls in the task, and asks for a checkpoint."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.runner: Runner | None = None

    def __call__(self) -> None:
        self.runner = Runner(Path(self.folder))
        self.runner.run()

    def checkpoint(self) -> Any:
        """On submitit's signal: let the running jobs save what they have; None if nothing is left to requeue for."""
        from submitit.helpers import DelayedSubmission

        # The signal may come before there is a runner.
        return DelayedSubmission(Worker(self.folder)) if self.runner is None or self.runner.pause() else None


@dataclass
class Running:
    """A job's process; its process group has the same number."""

    number: int
    status: Status
    output: Path
    deadline: float | None
    asked: float | None = None


class Runner:
    """The jobs of a bundle in this process's children."""

    def __init__(self, folder: Path) -> None:
        self.began = time.time()
        self.folder = folder
        bundle = read_bundle(folder)
        if bundle is None:
            raise FileNotFoundError(f"{folder}/bundle.json is missing or damaged: was the folder deleted?")
        self.bundle: Bundle = bundle
        self.host = socket.gethostname()
        statuses = list(read_statuses(folder))
        self.known: dict[int, Status] = {number: status for number, status, _ in statuses}
        ended = {number for number, status, told in statuses if told or status.final}
        self.todo = deque(number for number in range(len(bundle.jobs)) if number not in ended)
        self.running: dict[int, Running] = {}
        self.guard: int | None = None
        self.patience = min(PATIENCE, bundle.grace)
        self.memory_kills = failures.memory_kills()
        if isinstance(sys.stdout, io.TextIOWrapper):
            # The name of a file must not end a worker whose terminal does not know its letters.
            sys.stdout.reconfigure(errors="backslashreplace")
        if os.environ.get("SUBMITIT_EXECUTOR") == "local":
            # Where no cluster ends what is left of a task, its end with submitit's controller has to be asked for.
            die_with_parent()
        set_environment(bundle)
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)

    def run(self) -> None:
        """Run every job that has not ended, unless it is getting late."""
        self.guard = guard()
        try:
            while True:
                while self.todo and len(self.running) < self.bundle.slots and not (asked() or self.closed()):
                    self.start(self.todo.popleft())
                if not (self.running or asked()):
                    return
                self.wait()
        finally:
            for pid in self.running:
                kill(pid, signal.SIGKILL)

    def closed(self) -> bool:
        """Whether no further job is to be started here."""
        late = self.bundle.seconds is not None and time.time() - self.began >= self.bundle.seconds
        return late or (self.folder / "revoked").exists()

    def start(self, number: int) -> None:
        """Fork a process for a job, or note at once why it cannot run."""
        if (self.folder / "status" / f"{number}.told").exists():
            # Its file was being renamed while this worker looked what is left to do.
            return
        job = self.bundle.jobs[number]
        before = self.known.get(number)
        status = Status("running", time.time(), self.host)
        if before:
            # Still "running" means that the last worker had no time to say goodbye.
            lost = before.lost + (before.state == "running")
            status = replace(status, attempt=before.attempt + 1, requeues=before.requeues, lost=lost)
            if lost > self.bundle.max_requeues:
                message = f"its worker died {lost} times while it ran"
                self.note(number, replace(status, state="failed", cause=failures.NODE_FAILURE, message=message))
                return
        self.note(number, status)
        problem = make_ready(job, self.bundle, asked)
        command = forked.runnable(job.command, self.bundle.scripts) if job.kind == "shell" else None
        if command and not problem:
            forked.prepare(command.words)
        if job.benchmark:
            import snakemake.benchmark
        if job.kind == "snakemake":
            import snakemake.cli  # noqa: F401
        if asked():
            # All this may have taken longer than whoever asks is ready to wait.
            self.note(number, replace(status, state="stopped"))
            self.todo.appendleft(number)
            return
        if problem:
            self.note(number, replace(status, state="failed", cause=failures.EXCEPTION, message=problem))
            return
        output = self.folder / f"output-{number}"
        # A task of one job has the job's limit; one of several, or beside such in its array, has more.
        several = len(self.bundle.jobs) > 1 or self.bundle.seconds is not None
        limit = job.limit if several or self.bundle.limit is None else None
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            become(job, self.bundle, command if forked.forkable() else None, self.folder, output, parent, self.guard)
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        self.tell_guard(pid)
        self.running[pid] = Running(number, status, output, limit and time.time() + limit)

    def wait(self) -> None:
        """Sleep until a child ends, a signal comes or a limit is due, and see to it."""
        now = time.time()
        due = [p.asked + self.patience if p.asked else p.deadline or math.inf for p in self.running.values()]
        came = signal.sigtimedwait(SIGNALS, max(0.0, min([60.0, *(at - now for at in due)])))
        if came and came.si_signo == signal.SIGUSR2:
            handler = signal.getsignal(signal.SIGUSR2)
            if callable(handler):
                # submitit's: asks `Worker.checkpoint`, requeues, and leaves.
                handler(signal.SIGUSR2, None)
            self.pause()
            raise SystemExit(RESUMABLE)
        if came and came.si_signo in (signal.SIGTERM, signal.SIGINT):
            self.terminate(came.si_signo)
        self.reap(self.over)
        for pid, process in self.running.items():
            if process.asked and time.time() > process.asked + self.patience:
                kill(pid, signal.SIGKILL)
            elif process.deadline and not process.asked and time.time() >= process.deadline:
                process.asked = time.time()
                kill(pid, signal.SIGUSR2)

    def reap(self, see: Callable[[Running, int], None]) -> None:
        """Collect the children that have ended; `see` is told of each and its exit code."""
        while self.running:
            try:
                pid, ended = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self.running:
                # What it left running in the background ends with it, as at the end of a job.
                kill(pid, signal.SIGKILL)
                self.tell_guard(-pid)
                process = self.running.pop(pid)
                see(process, os.waitstatus_to_exitcode(ended))

    def drain(self, see: Callable[[Running, int], None], seconds: float = math.inf) -> None:
        """Collect children until all have ended or the time is over."""
        deadline = time.time() + seconds
        while self.running and time.time() < deadline:
            signal.sigtimedwait({signal.SIGCHLD}, 0.5)
            self.reap(see)

    def tell_guard(self, group: int) -> None:
        """Tell the guard of a process group, or of the end of one (negative); without a guard, go on."""
        if self.guard is not None:
            with contextlib.suppress(OSError):
                os.write(self.guard, struct.pack("i", group))

    def over(self, process: Running, code: int) -> None:
        """Note how a job ended, in the ordinary course of things."""
        came = None
        if code != 0 and not process.asked:
            # A cluster that stops a task may signal all its processes, this one not the first.
            came = signal.sigtimedwait({signal.SIGTERM, signal.SIGINT}, 0.5 if code in STOPPED else 0.02)
        if came:
            self.note(process.number, replace(process.status, state="stopped"))
            self.terminate(came.si_signo)
        elif process.asked and code == RESUMABLE and process.status.requeues < self.bundle.max_requeues:
            self.note(process.number, replace(process.status, state="stopped", requeues=process.status.requeues + 1))
            self.todo.append(process.number)
        elif process.asked and code != 0:
            limit = self.bundle.jobs[process.number].limit or 0
            self.end(process, code, failures.TIMEOUT, f"it ran for longer than its limit of {limit / 60:g} minutes")
        else:
            self.end(process, code)

    def end(self, process: Running, code: int, cause: str | None = None, why: str = "") -> None:
        """Write the final status of a job."""
        job = self.bundle.jobs[process.number]
        said = tail(process.output)
        # A full disk has no room for the log either.
        with contextlib.suppress(OSError):
            if said:
                print(f"--- {', '.join(job.outputs) or job.rule}", flush=True)
                with process.output.open("rb") as file:
                    shutil.copyfileobj(file, sys.stdout.buffer)
                sys.stdout.flush()
        if code == 0:
            done = replace(process.status, state="done", stamps=stamps(job.outputs, self.bundle.directory))
            self.note(process.number, done)
        else:
            logs = [(path, tail(Path(self.bundle.directory, path))) for path in job.logs]
            told = "".join(f"\n{path}:\n{text}" for path, text in [*logs, ("output", said)] if text)
            cause = cause or self.cause_of(code, [said, *(text for _, text in logs)])
            message = f"{why or failures.ending(code)}{told}"
            self.note(process.number, replace(process.status, state="failed", cause=cause, message=message))
        process.output.unlink(missing_ok=True)

    def cause_of(self, code: int, logs: list[str]) -> str:
        """The cause of a job's exit code."""
        before, self.memory_kills = self.memory_kills, failures.memory_kills()
        killed = code in (-signal.SIGKILL, 128 + signal.SIGKILL)
        return failures.OUT_OF_MEMORY if killed and self.memory_kills > before else failures.of_exit(code, logs)

    def note(self, number: int, status: Status) -> None:
        """Write a status; a full disk may have room again in a moment."""
        if status.final:
            status = replace(status, ended=time.time())
        self.known[number] = status
        for pause in (0.1, 0.5, 1, 2, 5):
            try:
                return status.write(self.folder, number)
            except FileNotFoundError:
                raise
            except OSError as error:
                with contextlib.suppress(OSError):
                    print(f"cannot write the status of job {number} ({error}): trying again", flush=True)
                time.sleep(pause)
        status.write(self.folder, number)

    def pause(self) -> bool:
        """Before the cluster takes the node back: have the jobs save their state; whether to come back for the rest."""
        late = self.bundle.limit is not None
        # Slurm's signals come up to a minute early.
        late = late and time.time() - self.began >= (self.bundle.limit or 0) - self.bundle.grace - 70
        for pid in self.running:
            kill(pid, signal.SIGUSR2)
        patience = max(5.0, self.bundle.grace - 20)
        slow: set[int] = set()

        def see(process: Running, code: int) -> None:
            nested = self.bundle.jobs[process.number].kind == "snakemake"
            requeues = process.status.requeues + late
            # To a shell, a program that a signal ended has exited with 128 + its number; SIGTERM may come on top.
            own = code > 0 and code not in (RESUMABLE, *(128 + number for number in ASKING))
            if code == 0 or (own and not nested):
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

        self.drain(see, patience)
        for pid, process in self.running.items():
            slow.add(process.number)
            kill(pid, signal.SIGKILL)
        self.drain(see)
        return bool(self.todo) and not (self.folder / "revoked").exists()

    def terminate(self, number: int) -> NoReturn:
        """On SIGTERM (scancel, preemption without notice) or SIGINT: let the jobs save their state, and end."""
        for pid in self.running:
            kill(pid, signal.SIGTERM)

        def see(process: Running, code: int) -> None:
            if code == 0:
                self.end(process, code)
            else:
                self.note(process.number, replace(process.status, state="stopped"))

        self.drain(see, self.patience)
        raise SystemExit(128 + number)


def asked() -> bool:
    """Whether a signal waits that asks the worker to end."""
    return bool(signal.sigpending() & ASKING)


def guard() -> int:
    """Fork a process that kills what is left of the jobs when this one is killed, and return the pipe to it.

    The kernel would kill a job's first process (PR_SET_PDEATHSIG), but not what that has started. Where a cluster
    clears away a task as a whole, there is nothing left to do.
    """
    heard, told = os.pipe()
    if os.fork() != 0:
        os.close(heard)
        return told
    try:
        os.setpgid(0, 0)
        os.close(told)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor)
        groups: set[int] = set()
        while message := os.read(heard, 4):
            (group,) = struct.unpack("i", message)
            groups = groups | {group} if group > 0 else groups - {-group}
        for group in groups:
            kill(group, signal.SIGKILL)
    finally:
        os._exit(0)


def kill(group: int, number: int) -> None:
    """Send a signal to a process group, if there is anyone left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def tail(path: Path) -> str:
    """The end of a text file; nothing if it is empty or missing."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL))
            text = file.read().decode(errors="replace").strip()
    except OSError:
        return ""
    return text if size <= TAIL else f"… {text}"


if __name__ == "__main__":
    # Without submitit, to look into a bundle by hand: python -m snakemake_executor_plugin_submitit.worker FOLDER
    Worker(sys.argv[1])()
