"""A process beside a worker, which shows that the worker lives, and kills its jobs when it dies."""

import contextlib
import mmap
import os
import select
import signal
from pathlib import Path
from typing import Self

# Seconds between two signs of life in a bundle's folder.
BEAT = 20.0


class Guard:
    """A process that kills the process groups of jobs when this process is killed.

    On a cluster that ends a task with all its processes, the guard has nothing to do.

    As long as this process lives, whatever keeps it busy, the guard touches the file `heartbeat`. The guard deletes the file when
    this process has ended, unless both are killed together.

    Attributes:
        pipe: tells the guard that this process, the only one that has the pipe, has ended.
    """

    def __init__(self, heartbeat: Path) -> None:
        self.heartbeat = heartbeat
        # The guard reads the process groups, 0 for none, only when it has to act, so it is not woken for each job.
        self._groups = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("i")

    def __enter__(self) -> Self:
        """Start the guard, in a fork."""
        receiving, self.pipe = os.pipe()
        self._pid = os.fork()
        if self._pid != 0:
            os.close(receiving)
            return self
        try:
            os.setpgid(0, 0)
            os.close(self.pipe)
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in range(3):
                os.dup2(null, descriptor)
            while True:
                with contextlib.suppress(OSError):
                    self.heartbeat.touch()
                if select.select([receiving], [], [], BEAT)[0]:
                    break
            for group in self._groups:
                if group:
                    kill(group, signal.SIGKILL)
            self.heartbeat.unlink(missing_ok=True)
        finally:
            os._exit(0)

    def __exit__(self, *_: object) -> None:
        os.close(self.pipe)
        # The cluster kills the guard when this process ends, maybe before the guard has deleted the file.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)

    def add(self, group: int) -> None:
        """Note a process group that has started, or that goes on with another job. Of more than a thousand at a time, the guard leaves out some."""
        if group in self._groups:
            return
        free = next((place for place, other in enumerate(self._groups) if other == 0), None)
        if free is not None:
            self._groups[free] = group

    def discard(self, group: int) -> None:
        """Note that a process group has ended."""
        for index, other in enumerate(self._groups):
            if other == group:
                self._groups[index] = 0
                return


def kill(group: int, number: int) -> None:
    """Send a signal to a process group, if it still exists."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
