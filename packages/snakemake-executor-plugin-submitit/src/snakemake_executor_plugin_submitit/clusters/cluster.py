"""The interface of a cluster, and what clusters share."""

import logging
import os
import shlex
import shutil
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from snakemake_executor_plugin_submitit import failures
from snakemake_executor_plugin_submitit.clusters.commands import Commands
from snakemake_executor_plugin_submitit.resources import Request

LOGGER = logging.getLogger(__name__)
# The state of a task that neither the queue nor another source knows any more.
GONE = "GONE"
# The worker counts its requeues itself, so submitit's count must not end them.
TIMEOUTS = 1_000_000


class Refused(RuntimeError):
    """The cluster will never accept such a task."""


class Cluster:
    """A cluster, and all that the executor has to know about it. A string names a task, and the name holds across restarts of the head.

    `learn`, `submit`, `states`, `cancel` and `stray` may run commands: they are called without a lock, in any thread, and return
    after a minute at most. The output of a task goes into a file with the name of the task, up to the first `.` or `;`, and `_0_log.out`
    in the folder that `submit` is given.

    Attributes:
        name: `--submitit-cluster` takes this word, and the ledger records it.
        is_local: whether all tasks run on this machine, without time limits, and without a network file system between them and the head.
        idle: seconds for which a worker without jobs waits for more. On a cluster it holds its allocation meanwhile.
        needs: the commands of the cluster, which must be on PATH.
        settings: the cluster's own settings: `--submitit-{name}`, and the help. A setting states the option of the same name.
        resources: the cluster's own resources of a rule: the name of each, and the option that it states, before the setting.
        ends: the first word of what `states` returns for a task that did not end by itself -> one of the causes in `failures`.
        options: the values of the settings; the request of a job has them unless a resource says otherwise.
        stuck: tasks that may wait in the queue for ever: name of the task -> the reason.
        excluded: hosts, or GPUs of this machine, to which no task is sent, if the cluster has others.
        waiting: tasks that waited in the queue when the cluster was asked last, and those that have been submitted since.
    """

    name: ClassVar[str]
    is_local: ClassVar[bool] = False
    idle: ClassVar[float] = 5.0
    needs: ClassVar[Sequence[str]] = ()
    settings: ClassVar[Mapping[str, str]] = {}
    resources: ClassVar[Mapping[str, str]] = {}
    ends: ClassVar[Mapping[str, str]] = {}
    stuck: Mapping[str, str] = {}
    excluded: Sequence[str] = ()
    waiting: Collection[str] = ()

    def __init__(
        self,
        setup: Sequence[str] = (),
        parallelism: int = 1,
        slots: int = 1,
        grace: int = 90,
        settings: Mapping[str, str | None] = {},
        logger: Any = LOGGER,
    ) -> None:
        """Look for the commands.

        Args:
            setup: lines of shell that each task runs first.
            parallelism: tasks of an array that run at a time.
            slots: jobs that a task runs at a time.
            grace: seconds before its time limit at which a task is sent SIGUSR2.
            settings: values of the cluster's own settings; None where a person states none.
            logger: for messages to a person.

        Raises:
            RuntimeError: this machine has not all commands of the cluster.
            ValueError: a setting is wrong.
        """
        if missing := [name for name in self.needs if not shutil.which(name)]:
            raise RuntimeError(
                f"there is no {' and no '.join(missing)} on this machine: run it where the commands of {self.name} are, or with "
                "`--submitit-cluster local` to use this machine alone"
            )
        self.setup, self.parallelism, self.slots, self.grace = list(setup), parallelism, slots, grace
        self.options = {name: value for name, value in settings.items() if value is not None}
        self.commands, self.logger = Commands(), logger

    def about(self) -> str:
        """What the cluster answers about itself, such as its queues, in a few words.

        Raises:
            OSError: it does not answer (TimeoutError: not in time).
        """
        return ""

    def adapt(self, request: Request) -> Request:
        """The request of a job as this cluster understands it, with the number of its GPUs.

        Raises:
            ValueError: the cluster can never grant it.
        """
        return request

    def room(self, request: Request) -> tuple[int, int] | None:
        """How many tasks could start now, and how many run at a time at most; None if the cluster keeps a queue itself.

        Raises:
            Refused: the cluster will never have room for such a task.
        """
        return None

    def can_spare(self, place: str) -> bool:
        """Whether tasks may run elsewhere if none is sent to this host, or to these GPUs of it. `submit` then has to obey `excluded`."""
        return False

    def learn(self) -> None:
        """Ask for the limits of the cluster, once, before the first submission.

        Raises:
            OSError: the cluster does not answer (TimeoutError: not in time).
        """

    def longest(self, request: Request, minutes: int) -> int | None:
        """The most minutes that a task may request where so many are allowed; None if there is no limit, or none is known."""
        return None

    def submit(self, folder: Path, name: str, bundles: Sequence[Path], request: Request, minutes: int) -> list[str]:
        """Submit one task per bundle, together as one array; returns the names of the tasks in order.

        Args:
            folder: for files of the array, such as logs; it does not exist yet.
            name: of the array, by which `stray` finds it again.

        Raises:
            OSError: the cluster accepts no tasks just now (TimeoutError: it did not answer in time).
            Refused: the cluster will never accept this array.
            RuntimeError: the cluster refused for a reason that may or may not go away.
        """
        raise NotImplementedError

    def states(self, tasks: Mapping[str, str]) -> dict[str, str | None]:
        """For each task None while it is queued or running, else the cluster's word for its end.

        Args:
            tasks: name of the task -> name of its array. A job of another name is not the task, whatever its number.

        Raises:
            OSError: the cluster does not answer (TimeoutError: not in time).
        """
        raise NotImplementedError

    def cancel(self, tasks: Mapping[str, str]) -> None:
        """Remove tasks from the queue, and stop those that run; nothing that does not carry the name of the task's array.

        Args:
            tasks: name of the task -> name of its array.

        Raises:
            TimeoutError: the cluster does not answer in time.
        """
        raise NotImplementedError

    def stray(self, folder: Path, name: str) -> dict[int, str]:
        """The tasks of an array, by their place in it, whose submission was not answered; those that the cluster knows.

        Raises:
            OSError: the cluster does not answer (TimeoutError: not in time).
        """
        raise NotImplementedError

    def cause(self, word: str, log: str) -> str:
        """The cause of the end of a task by the cluster's word for it, and the end of the task's log."""
        cause = self.ends.get(word.split()[0] if word else "", failures.KILLED)
        # Without its ledger, a worker ends with the error of the file system.
        is_of_host = cause == failures.KILLED and failures.of_exit(1, [log]) == failures.HOST
        return failures.HOST if is_of_host else cause

    def argument(self, task: str) -> str:
        """The name of a task as a person gives it to the command that cancels tasks."""
        return task

    def showing(self, task: str) -> str:
        """The command that tells a person why a task is `stuck`."""
        raise NotImplementedError

    def hurry(self) -> None:
        """Stop the commands under way because the head is ending, and limit later commands to a few seconds."""
        self.commands.hurry()


def worker(bundle: str) -> str:
    """The command, for a script of bash, that runs the jobs of a bundle in a task. The script must `exec` it, so that it gets signals.

    SIGUSR2 asks it to save the state of its jobs; its exit status 75 then asks for the task to be queued again.

    Args:
        bundle: the folder, as bash reads it.
    """
    return f"exec {python()} -m snakemake_executor_plugin_submitit run {bundle}"


def plain(folder: Path) -> Path:
    """The folder by a path without %, because submitit replaces %j and others; it holds where the head's working directory is that of
    the process."""
    return Path("/proc/self/cwd", os.path.relpath(folder)) if "%" in str(folder) else folder


def python() -> str:
    """The command of this Python, without the current directory on its path, like in a console script."""
    return f"{shlex.quote(sys.executable)} -P"
