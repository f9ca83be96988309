"""A head with a clock of its own, and a cluster whose tasks the test ends."""

import time
from collections.abc import Collection
from itertools import pairwise
from pathlib import Path
from typing import Any

from submitter import Queue

from snakemake_executor_plugin_submitit.bundles import Bundle, Job
from snakemake_executor_plugin_submitit.dispatch import Dispatcher, Settings
from snakemake_executor_plugin_submitit.resources import Request


class Clock:
    """The module `time`, with a time that passes only when the test says so."""

    def __init__(self) -> None:
        self.now = time.time()
        self.sleeps: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds


class Cluster(Queue):
    """A queue whose tasks the test ends.

    Attributes:
        asked: when it was asked about tasks.
        ended: words for tasks that are over.
        silent: whether it refuses to tell about tasks.
        cancelled: names of tasks, in the order in which they were to be cancelled.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock
        self.asked: list[float] = []
        self.ended: dict[str, str] = {}
        self.silent: Exception | None = None
        self.cancelled: list[str] = []

    def states(self, tasks: Collection[str]) -> dict[str, str | None]:
        self.asked.append(self.clock.now)
        if self.silent:
            raise self.silent
        return {task: self.ended.get(task) for task in tasks}

    def cancel(self, tasks: Collection[str]) -> None:
        self.cancelled += tasks

    def showing(self, task: str) -> str:
        return f"show {task}"

    def gaps(self) -> list[float]:
        """The seconds between questions."""
        return [later - earlier for earlier, later in pairwise(self.asked)]


def begin(cluster: Cluster, folder: Path, messages: list[str]) -> Dispatcher:
    settings = Settings(folder / "ledger", 1000, 600, Bundle((), str(folder)), 120)
    return Dispatcher(cluster, settings, say=messages.append)


def poll(head: Dispatcher, clock: Clock, seconds: float, step: float = 0.5) -> list[str | None]:
    """Poll for so many seconds; returns the causes of all verdicts."""
    causes = []
    end = clock.now + seconds
    while clock.now < end:
        causes += [verdict.cause for verdict in head.poll()]
        clock.now += step
    return causes


def submitted(head: Dispatcher, clock: Clock, count: int = 1) -> None:
    head.add([(Job(str(number), "rule", "shell", "true"), Request(), None) for number in range(count)])
    head.poll()
