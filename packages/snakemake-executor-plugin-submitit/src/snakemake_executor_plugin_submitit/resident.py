"""A process that runs commands of a console script one after another, and keeps what the next command needs, too.

Such a command needs no fork, and no memory or GPU has to be filled again. The process ends with the first command that fails, so
that a failure, a signal and a time limit do to a job what they do in a fork, and the next command gets a new process.
"""

import contextlib
import os
import resource
import signal
import sys
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple, NoReturn

from snakemake_executor_plugin_submitit import forked, process


class Usage(NamedTuple):
    """The seconds of CPU that a process has used, and the MB of its resident memory at most."""

    cpu_seconds: float
    memory_mb: float

    @classmethod
    def of(cls, used: "resource.struct_rusage") -> "Usage":
        """The usage that the kernel reports for a process."""
        return cls(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


class Task(NamedTuple):
    """A command that a resident process runs next, in a folder; `output` is the file for the output of the job."""

    command: forked.Plain
    directory: str
    output: Path


@dataclass
class Resident:
    """A resident process, as its worker sees it. It leads a process group.

    Attributes:
        script: the name of the console script.
        line: to the process.
        ended: the number of commands that it has run.
        used: the seconds of CPU until the end of the last one.
    """

    pid: int
    script: str
    line: Connection
    ended: int = 0
    used: float = 0.0

    def give(self, task: Task) -> bool:
        """Let the process run a command; False if the process has died."""
        with contextlib.suppress(OSError):
            self.line.send(task)
            return True
        return False

    def report(self) -> Usage | None:
        """What the command that ended with exit code 0 has used; None while the command runs, and if it has failed."""
        with contextlib.suppress(OSError, EOFError):
            if self.line.poll():
                usage: Usage = self.line.recv()
                self.ended += 1
                return self.since_last(usage)
        return None

    def since_last(self, usage: Usage) -> Usage:
        """The usage of the last command, from the usage of its process since the start."""
        before, self.used = self.used, usage.cpu_seconds
        return Usage(usage.cpu_seconds - before, usage.memory_mb)


def begin(script: str, pipes: Iterable[int]) -> Resident:
    """Start a resident process, in a fork of this one.

    Args:
        pipes: descriptors that the process must not inherit.
    """
    parent = os.getpid()
    here, there = Pipe()
    pid = os.fork()
    if pid == 0:
        _live(script, there, parent, [*pipes, here.fileno()])
    there.close()
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)
    return Resident(pid, script, here)


def _live(script: str, line: Connection, parent: int, pipes: list[int]) -> NoReturn:
    """In the fork: run the commands that arrive, until one fails or the worker ends."""
    try:
        process.separate(parent, pipes)
        process.forget_submitit()
        null = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)
        path, serve = forked.begin_serving(script)
        while True:
            try:
                task: Task = line.recv()
            except EOFError:
                os._exit(0)
            process.open_output(task.output)
            os.chdir(task.directory)
            process.redirect_or_exit(task.command)
            forked.draw_anew()
            sys.argv = [path, *task.command.words[1:]]
            code = forked.outcome(partial(serve, task.command.words[1:]))
            if code:
                forked.end(code)
            for number in process.ASKING:
                signal.signal(number, signal.SIG_DFL)
            # The files of the job are closed.
            for number in range(3):
                os.dup2(null, number)
            line.send(Usage.of(resource.getrusage(resource.RUSAGE_SELF)))
            # The worker sleeps until a signal arrives.
            os.kill(parent, signal.SIGCHLD)
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(1)
