"""Excludes a second head, and finds the tasks that earlier heads left."""

import fcntl
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from snakemake_executor_plugin_submitit.bundles import Bundle, name_of, read_bundle, read_json, remove
from snakemake_executor_plugin_submitit.clusters.cluster import GONE, Cluster
from snakemake_executor_plugin_submitit.submission import array_name
from snakemake_executor_plugin_submitit.tasks import Task, TaskState


def hold(path: Path) -> IO[str]:
    """Lock a file for this process alone. The kernel releases the lock when the process ends, however it ends.

    Raises:
        RuntimeError: another process holds the lock.
    """
    file = path.open("a+")
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        file.seek(0)
        holder = file.read().strip() or "somewhere"
        file.close()
        raise RuntimeError(
            f"another Snakemake ({holder}) uses {path.parent}: wait for its end, or give this one a folder of its own "
            "with --submitit-folder"
        ) from None
    except OSError:
        # The file system has no locks, so Snakemake's own lock has to do.
        return file
    file.truncate(0)
    file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
    file.flush()
    return file


def find_tasks(ledger: Path, cluster: Cluster, say: Callable[[str], None]) -> tuple[list[Task], list[Path]]:
    """The tasks of earlier heads, with their state in the queue, and the folders of the arrays that were searched.

    Raises:
        RuntimeError: the cluster does not tell which tasks are left, so submitting could run jobs twice.
    """
    tasks: list[Task] = []
    arrays: list[Path] = []
    homes: dict[Path, str] = {}
    try:
        for array in sorted(path for path in ledger.iterdir() if path.is_dir()):
            about = None
            with suppress(OSError):
                about = read_json(array / "array.json")
            elsewhere = cluster.name == "local" and about and about["host"] != socket.gethostname()
            if about and (about["cluster"] != cluster.name or elsewhere):
                where = about["host"] if elsewhere else f"the cluster {about['cluster']!r}"
                say(f"submitit: {array} belongs to {where} and is left alone")
                continue
            arrays.append(array)
            # Without the file, the head died while it was submitting, or the node on which it wrote the file crashed.
            names = dict(enumerate(about["tasks"])) if about else cluster.stray(array / "submitit", array_name(array))
            tasks += _tasks_of(array, names)
            homes[array] = (about or {}).get("home", "")
        find_homes(tasks, homes)
        states = cluster.states([task.name for task in tasks if task.name]) if tasks else {}
    except OSError as error:
        raise RuntimeError(
            f"the cluster does not answer ({error}). An earlier run left tasks in {ledger}, so nothing is submitted until "
            "the cluster answers: try again later"
        ) from error
    for task in tasks:
        if states.get(task.name, GONE) is not None:
            task.state = TaskState.OVER
        elif (task.folder / "revoked").exists():
            # An interrupted head has cancelled the task, which may still be ending.
            task.state = TaskState.STOPPING
    return tasks, arrays


def _tasks_of(array: Path, names: Mapping[int, str | None]) -> Iterator[Task]:
    """The tasks of an array whose bundles are still there. A task without a name was never submitted, or is forgotten."""
    for folder in sorted(path for path in array.iterdir() if path.name.isdigit()):
        bundle = None
        # An unreadable bundle counts as a damaged one.
        with suppress(OSError):
            bundle = read_bundle(folder)
        yield Task(folder, bundle or Bundle(jobs=(), directory=""), names.get(int(folder.name)) or "")


def find_homes(tasks: Sequence[Task], homes: Mapping[Path, str]) -> None:
    """Find the home of each guest: an earlier head has noted it for the guest's array, or the worker has noted the guest in its home.

    Args:
        homes: names of homes by the folders of arrays.
    """
    by_name = {name_of(task.folder): task for task in tasks}
    for task in tasks:
        task.home = by_name.get(homes[task.folder.parent])
    for home in tasks:
        with suppress(OSError):
            guest = by_name.get(str(read_json(home.folder / "next")))
            if guest:
                guest.home, guest.name = home, home.name


def settle_homes(tasks: Sequence[Task]) -> None:
    """Decide which bundle the worker of each home has, once the statuses have been read."""
    for guest in tasks:
        if guest.home and guest.state is not TaskState.OVER:
            if guest.is_finished and not guest.is_damaged:
                guest.state = TaskState.OVER
            else:
                guest.home.state, guest.home.guest = TaskState.LENT, guest


def remove_empty(arrays: list[Path], tasks: list[Task]) -> None:
    """Delete the folders of arrays of which no task is followed."""
    for array in arrays:
        if not any(task.folder.parent == array for task in tasks):
            remove(array)
