"""The interface of a cluster, and what clusters share."""

import os
import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from snakemake_executor_plugin_submitit.resources import Request

# The state of a task that neither the queue of Slurm nor another source knows any more.
GONE = "GONE"
# The worker counts its requeues itself, so submitit's count must not end them.
TIMEOUTS = 1_000_000


class Refused(RuntimeError):
    """The cluster will never accept such a task."""


class Cluster(Protocol):
    """The interface of a cluster. A string names a task, and the name holds across restarts of the head.

    `learn`, `submit`, `states`, `cancel` and `stray` may run commands: they are called without a lock, in any thread, and return
    after a minute at most.
    """

    name: str
    # Tasks that may wait in the queue for ever: name of the task -> Slurm's reason.
    stuck: dict[str, str]
    # Hosts, or GPUs of this machine, to which no task is sent, if the cluster has others.
    excluded: Sequence[str]

    # Tasks that waited in the queue when the cluster was asked last, and those that have been submitted since.
    @property
    def waiting(self) -> Collection[str]: ...

    def room(self, request: Request) -> tuple[int, int] | None:
        """How many tasks could start now, and how many run at a time at most; None if the cluster keeps a queue itself.

        Raises:
            Refused: the cluster will never have room for such a task.
        """

    def can_spare(self, place: str) -> bool:
        """Whether tasks may run elsewhere if none is sent to this host, or to these GPUs of it."""

    def learn(self) -> None:
        """Ask for the limits of the cluster, once, before the first submission.

        Raises:
            OSError: the cluster does not answer (TimeoutError: not in time).
        """

    def longest(self, request: Request, minutes: int) -> int | None:
        """The most minutes that a task may request where so many are allowed; None if there is no limit, or none is known."""

    def submit(self, folder: Path, name: str, bundles: Sequence[Path], request: Request, minutes: int) -> list[str]:
        """Submit one task per bundle, together as one array; returns the names of the tasks in order.

        Args:
            folder: for submitit's files.
            name: of the array, by which `stray` finds it again.

        Raises:
            OSError: the cluster accepts no tasks just now (TimeoutError: it did not answer in time).
            Refused: the cluster will never accept this array.
            RuntimeError: the cluster refused for a reason that may or may not go away.
        """

    def states(self, tasks: Mapping[str, str]) -> dict[str, str | None]:
        """For each task None while it is queued or running, else the cluster's word for its end.

        Args:
            tasks: name of the task -> name of its array. A job of another name is not the task, whatever its number.

        Raises:
            OSError: the cluster does not answer (TimeoutError: not in time).
        """

    def cancel(self, tasks: Mapping[str, str]) -> None:
        """Remove tasks from the queue, and stop those that run; nothing that does not carry the name of the task's array.

        Args:
            tasks: name of the task -> name of its array.

        Raises:
            TimeoutError: the cluster does not answer in time.
        """

    def stray(self, folder: Path, name: str) -> dict[int, str]:
        """The tasks of an array, by their place in it, whose submission was not answered; those that the cluster knows.

        Raises:
            OSError: the cluster does not answer (TimeoutError: not in time).
        """

    def hurry(self) -> None:
        """Stop the commands under way because the head is ending, and limit later commands to a few seconds."""


def plain(folder: Path) -> Path:
    """The folder by a path without %, because submitit replaces %j and others; it holds where the head's working directory is that of
    the process."""
    return Path("/proc/self/cwd", os.path.relpath(folder)) if "%" in str(folder) else folder


def python() -> str:
    """The command of this Python, without the current directory on its path, like in a console script."""
    return f"{shlex.quote(sys.executable)} -P"
