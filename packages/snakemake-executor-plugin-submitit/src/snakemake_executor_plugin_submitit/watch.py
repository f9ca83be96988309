"""Tells which tasks may have new statuses, at little cost to the file system."""

import os
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

from snakemake_executor_plugin_submitit.tasks import Task

# Seconds for which a folder that has changed counts as changing, because its time of modification may be as coarse as two seconds.
SETTLE = 5.0
# Seconds after which a folder is read whether it has changed or not.
AGAIN = 60.0


class Folder:
    """Whether a folder may have changed since it was read, by its time of modification. The clock of its server does not matter."""

    def __init__(self) -> None:
        self.modified = -1
        self.seen = self.read = -AGAIN

    def has_changed(self, path: str) -> bool:
        """Whether the folder is to be read now. True if it is missing, because reading it tells why."""
        now = time.monotonic()
        try:
            # NFS asks its server when a folder is opened; for a status it may answer from a cache of half a minute.
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                modified = os.fstat(descriptor).st_mtime_ns
            finally:
                os.close(descriptor)
        except OSError:
            return True
        if modified != self.modified:
            self.modified, self.seen = modified, now
        if now - self.seen > SETTLE and now - self.read < AGAIN:
            return False
        self.read = now
        return True


class Watch:
    """The folders of the tasks that a head follows. A head with thousands of tasks in the queue looks at one folder per array."""

    def __init__(self) -> None:
        self.statuses: dict[Task, Folder] = {}
        self.arrays: dict[str, tuple[Folder, set[str]]] = {}

    def changed(self, tasks: Iterable[Task], waiting: Collection[str]) -> Iterator[Task]:
        """The tasks among these that may have new statuses.

        Args:
            waiting: names of tasks that were in the queue, and did not run, when the cluster was asked last.
        """
        statuses, self.statuses = self.statuses, {}
        arrays, self.arrays = self.arrays, {}
        asleep: dict[str, list[Task]] = defaultdict(list)
        awake = []
        for task in tasks:
            if task.name in waiting:
                asleep[task.array].append(task)
            else:
                awake.append(task)
        for array, members in asleep.items():
            folder, begun = arrays.get(array, (Folder(), set()))
            logs = f"{array}/submitit"
            if folder.has_changed(logs):
                begun = _begun(logs)
            self.arrays[array] = folder, begun
            if begun:
                awake += [task for task in members if task.log_name in begun]
        for task in awake:
            folder = self.statuses[task] = statuses.get(task) or Folder()
            # A task whose statuses could not be read is read again.
            if folder.has_changed(f"{task.folder}/status") or task.unreadable_since is not None:
                yield task


def _begun(folder: str) -> set[str]:
    """The names of the logs of an array's tasks; a task has a log once it runs."""
    try:
        return {name for name in os.listdir(folder) if name.endswith(".out")}
    except OSError:
        return set()
