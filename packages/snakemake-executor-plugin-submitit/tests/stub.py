"""A cluster for tests of the dispatcher: nothing runs, and the test says what becomes of the tasks."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from snakemake_executor_plugin_submitit.bundles import Bundle, Job, Status, read_bundle
from snakemake_executor_plugin_submitit.clusters.cluster import Cluster
from snakemake_executor_plugin_submitit.clusters.slurm import Slurm
from snakemake_executor_plugin_submitit.dispatch import Dispatcher
from snakemake_executor_plugin_submitit.resources import Request
from snakemake_executor_plugin_submitit.submission import Settings
from snakemake_executor_plugin_submitit.tasks import JobState, Task, Waiting


class Stub(Cluster):
    """A cluster that accepts tasks and never runs anything.

    Attributes:
        submitted: the folders of the bundles.
        state: of all tasks.
    """

    name = "stub"
    is_local = True
    ends = Slurm.ends

    def __init__(self) -> None:
        super().__init__()
        self.submitted: list[Path] = []
        self.state: str | None = None

    def can_spare(self, place: str) -> bool:
        return not self.is_local

    def room(self, request: Request) -> tuple[int, int] | None:
        return 1, 2

    def submit(self, folder: Path, name: str, bundles: Sequence[Path], request: Request, minutes: int) -> list[str]:
        self.submitted += bundles
        return [str(len(self.submitted))]

    def jobs(self) -> list[list[str]]:
        """Keys of the jobs of each bundle, in the order of submission."""
        bundles = (read_bundle(folder) for folder in self.submitted)
        return [[job.key for job in bundle.jobs] for bundle in bundles if bundle]

    def states(self, tasks: Mapping[str, str]) -> dict[str, str | None]:
        return {task: self.state for task in tasks}

    def cancel(self, tasks: Mapping[str, str]) -> None:
        self.state = "CANCELLED"

    def stray(self, folder: Path, name: str) -> dict[int, str]:
        return {}


def asks(**values: Any) -> Request:
    """A request with these fields, and with all other values as options of the cluster's own."""
    known = {field.name for field in fields(Request)}
    own = {name: value for name, value in values.items() if name not in known}
    return Request(**{name: value for name, value in values.items() if name in known}).having(**own)


def dispatcher(cluster: Stub, folder: Path, unreachable_minutes: float = 120) -> tuple[Dispatcher, list[str]]:
    """A dispatcher, and the list to which it adds what it says."""
    messages: list[str] = []
    settings = Settings(folder, 1000, 600, Bundle((), str(folder.parent)), unreachable_minutes)
    return Dispatcher(cluster, settings, say=messages.append), messages


def add(head: Dispatcher, *keys: str) -> None:
    """Add jobs, each with a request of its own, so that each gets a task of its own."""
    head.add(
        [(Job(key, "rule", "shell", "true"), Request(minutes=5 + len(keys) - n), None) for n, key in enumerate(keys)]
    )


def finish(folder: Path, number: int = 0) -> None:
    """Write the status of a job that is done."""
    Status("done", time.time(), "host", ended=time.time()).write(folder, number)


def task_of(array: Path, number: int, *keys: str, inputs: tuple[str, ...] = ()) -> Task:
    """A task of an array with a job per key, whose output has the name of the key, and whose bundle is on disk."""
    jobs = tuple(Job(key, "rule", "shell", "true", inputs=inputs, outputs=(f"{key}.txt",)) for key in keys)
    bundle = Bundle(jobs, str(array.parent))
    bundle.write(array / str(number))
    return Task(array / str(number), bundle, f"7_{number}")


def claim(task: Task) -> None:
    """Have Snakemake wait for all jobs of a task."""
    for task_job in task.jobs:
        task_job.state, task_job.waiting = JobState.CLAIMED, Waiting(task_job.job, Request(), None, 0.0)
