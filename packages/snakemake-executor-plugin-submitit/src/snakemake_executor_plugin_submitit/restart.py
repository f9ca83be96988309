"""Makes the ledger, keeps other users and a second head away from it, and finds the tasks that earlier heads left."""

import fcntl
import os
import pwd
import socket
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, TypeVar

from snakemake_executor_plugin_submitit.bundles import Bundle, name_of, read_bundle, read_json, remove
from snakemake_executor_plugin_submitit.clusters.cluster import GONE, Cluster
from snakemake_executor_plugin_submitit.tasks import Task, TaskState, array_name, named

T = TypeVar("T")


def make_ledger(ledger: Path) -> None:
    """Make the folder of the ledger if it is missing. What is in it may be run or unpickled, so nobody else may be able to put anything there.

    Whoever may write to a folder above it could exchange it. Groups may do so, because they could change the workflow as well.

    Raises:
        RuntimeError: others own the folder or may write to it, or everybody may write to a folder above it.
        OSError: the folder cannot be made.
    """
    ledger.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_private(ledger)
    for parent in ledger.parents:
        mode = parent.stat().st_mode
        # In a folder with the sticky bit, such as /tmp, nobody can rename what belongs to another.
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise RuntimeError(
                f"everybody may write to {parent}, and so put other programs in the place of those in {ledger}: `chmod o-w {parent}`, "
                "or name a ledger elsewhere with --submitit-folder"
            )


def check_private(folder: Path) -> None:
    """Check that only this user owns a folder of the ledger and may write to it.

    Raises:
        RuntimeError: that is not so.
    """
    about = folder.lstat()
    if (
        stat.S_ISDIR(about.st_mode)
        and about.st_uid == os.geteuid()
        and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    ):
        return
    try:
        owner = pwd.getpwuid(about.st_uid).pw_name
    except KeyError:
        owner = str(about.st_uid)
    raise RuntimeError(
        f"others may have put programs into {folder} ({stat.filemode(about.st_mode)}, of {owner}), which would run as "
        f"{pwd.getpwuid(os.geteuid()).pw_name}: delete it, or name another ledger with --submitit-folder"
    )


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
        RuntimeError: the cluster does not tell which tasks are left, or the ledger cannot be read, so submitting could run jobs twice; or
            others may have written an array.
    """
    tasks: list[Task] = []
    arrays: list[Path] = []
    homes: dict[Path, str] = {}
    try:
        for array in sorted(path for path in ledger.iterdir() if path.is_dir()):
            check_private(array)
            about = None
            with suppress(OSError):
                about = read_json(array / "array.json")
            is_ours = about is None or about["cluster"] == cluster.name
            if about and not (is_ours and about["host"] in (None, socket.gethostname())):
                where = about["host"] if is_ours else f"the cluster {about['cluster']!r}"
                say(f"submitit: {array} belongs to {where} and is left alone")
                continue
            arrays.append(array)
            # Without the file, the head died while it was submitting, or the node on which it wrote the file crashed.
            stray = partial(cluster.stray, array / "submitit", array_name(array))
            tasks += _tasks_of(array, dict(enumerate(about["tasks"])) if about else _ask(ledger, stray))
            homes[array] = (about or {}).get("home", "")
        find_homes(tasks, homes)
    except OSError as error:
        raise RuntimeError(
            f"cannot read {ledger} ({error}), where an earlier run may have left tasks, so nothing is submitted: try again when it can be read"
        ) from error
    names = named(tasks)
    states = _ask(ledger, lambda: cluster.states(names)) if tasks else {}
    for task in tasks:
        if states.get(task.name, GONE) is not None:
            task.state = TaskState.OVER
        elif (task.folder / "revoked").exists():
            # An interrupted head has cancelled the task, which may still be ending.
            task.state = TaskState.STOPPING
    return tasks, arrays


def _ask(ledger: Path, question: Callable[[], T]) -> T:
    """The answer of the cluster to a question about the tasks in a ledger.

    Raises:
        RuntimeError: it does not answer.
    """
    try:
        return question()
    except OSError as error:
        raise RuntimeError(
            f"the cluster does not answer ({error}). An earlier run left tasks in {ledger}, so nothing is submitted until "
            "the cluster answers: try again later"
        ) from error


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
