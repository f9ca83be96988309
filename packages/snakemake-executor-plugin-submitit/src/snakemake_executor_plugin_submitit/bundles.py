"""The ledger: the jobs of each worker, the end of each job, and the state that a restarted head needs.

The ledger is a folder (`--submitit-folder`). README.md lists its files ("The ledger"): a `Bundle` and the `Status` of each job are among
them. Every file but `failures.jsonl`, `usage.jsonl` and `lock`, which the head holds, appears whole, by renaming.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from snakemake_executor_plugin_submitit.messages import Address

State = Literal["running", "stopped", "done", "failed"]
# The file in a bundle's folder by which a worker shows that it lives.
HEARTBEAT = "heartbeat"


@dataclass(frozen=True)
class Job:
    """A job of Snakemake, as a worker needs it.

    Attributes:
        key: digest of rule, command and files. After a restart of the head the same job has the same key.
        kind: `shell` for a rule's shell command, `snakemake` for the command line of a nested Snakemake.
        directories: those outputs that are directories.
        benchmark: file for Snakemake's benchmark table, or None.
        limit: seconds after which the job is stopped, or None.
    """

    key: str
    rule: str
    kind: Literal["shell", "snakemake"]
    command: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    benchmark: str | None = None
    limit: float | None = None


@dataclass(frozen=True)
class Bundle:
    """The jobs of one array task, and the settings that they share.

    Attributes:
        directory: working directory of the commands.
        threads: CPU cores of each job.
        slots: how many jobs run at a time.
        scripts: console scripts that run in a fork instead of a new Python.
        environment: variables to set for the jobs, beside those for threads and TMPDIR.
        tmpdir: folder for temporary files, None for the node's own.
        seconds: after so many the worker starts no further job, and the head submits the remaining jobs again.
        limit: seconds that the cluster gives the task, or None.
        grace: seconds between the cluster's warning and the end of the task.
        latency_wait: seconds to wait for inputs that another node wrote.
        max_requeues: how often a job may reach its limit and go on, or lose its node.
        origin: working directory of a nested Snakemake if it differs: the one before the workflow's `workdir:`.
        gpus: that the task has requested.
        head: where the head takes messages, or None.
        idle: seconds for which the worker waits for another bundle when all jobs of this one have ended.
    """

    jobs: tuple[Job, ...]
    directory: str
    threads: int = 1
    slots: int = 1
    scripts: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    tmpdir: str | None = None
    seconds: float | None = None
    limit: float | None = None
    grace: float = 60
    latency_wait: float = 5
    max_requeues: int = 3
    origin: str | None = None
    gpus: int = 0
    head: Address | None = None
    idle: float = 0

    def write(self, folder: Path) -> None:
        """Create the bundle's folder.

        Raises:
            OSError: the disk is full, or the folder exists.
        """
        (folder / "status").mkdir(parents=True)
        write_json(folder / "bundle.json", asdict(self))


@dataclass(frozen=True)
class Status:
    """The state of a job.

    Attributes:
        state: a `stopped` job was asked to make room; it goes on when the task is requeued.
        attempt: how often the job was started in its bundle.
        requeues: how often a time limit cut the job short.
        lost: how often the worker died while the job ran.
        cause: why the job failed, one of `snakemake_executor_plugin_submitit.failures`.
        message: for a person: exit code or signal, and the end of the log.
        stamps: modification times (ns) of the outputs at the end, by which a restarted head recognises them.
        cpu_seconds: of the job's processes, as far as they were waited for; None if unknown.
        memory_mb: resident memory of the largest of them, or None.
    """

    state: State
    started: float
    host: str
    attempt: int = 1
    requeues: int = 0
    lost: int = 0
    ended: float | None = None
    cause: str | None = None
    message: str = ""
    stamps: tuple[int, ...] = ()
    cpu_seconds: float | None = None
    memory_mb: float | None = None

    @property
    def final(self) -> bool:
        """Whether the job has ended."""
        return self.state in ("done", "failed")

    def write(self, folder: Path, number: int) -> None:
        """Write the status of job `number` of the bundle in `folder`."""
        write_json(folder / "status" / f"{number}.json", vars(self))


def write_json(path: Path, data: Any) -> None:
    """Write a file whole or not at all. Only the owner may read it, because a bundle holds the values of a workflow's `envvars`.

    Raises:
        OSError: the disk is full, or the folder is gone.
    """
    write_whole(path, json.dumps(data, ensure_ascii=False), 0o600)


def write_whole(path: Path, text: str, mode: int = 0o666) -> None:
    """Write a file whole or not at all.

    Args:
        mode: who may read and write it, as far as the umask allows.

    Raises:
        OSError: the disk is full, or the folder is gone.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as file:
            file.write(text)
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def read_json(path: Path) -> Any:
    """Read a file; None if it is missing or damaged (a node that crashes may leave an empty file).

    Raises:
        OSError: the file is there, but cannot be read.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None


def read_bundle(folder: Path) -> Bundle | None:
    """Read the bundle in `folder`; None if it is missing, damaged or of another version.

    Raises:
        OSError: the file is there, but cannot be read.
    """
    data = read_json(folder / "bundle.json")
    try:
        jobs = tuple(Job(**_frozen(job)) for job in data["jobs"])
        head = Address(**_frozen(data["head"])) if data.get("head") else None
        return Bundle(**{**data, "jobs": jobs, "scripts": tuple(data["scripts"]), "head": head})
    except (TypeError, KeyError, AttributeError):
        return None


def _frozen(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


def listed(folder: Path) -> tuple[set[int], set[int]]:
    """The numbers of the jobs of a bundle that have a status, damaged or not, and of those among them that are closed.

    Raises:
        OSError: the folder is there, but cannot be read.
    """
    try:
        names = [name.partition(".") for name in os.listdir(folder / "status")]
    except FileNotFoundError:
        return set(), set()
    # While a file is being renamed, a listing may have both names.
    closed = {int(name) for name, _, ending in names if ending == "closed" and name.isdigit()}
    return closed | {int(name) for name, _, ending in names if ending == "json" and name.isdigit()}, closed


def read_statuses(folder: Path, known: Callable[[int], bool] = lambda _: False) -> Iterator[tuple[int, Status, bool]]:
    """Yield number, status and whether it is closed, for each job of a bundle that has a status and is not `known`.

    A damaged status is skipped, but a closed job has ended even if its file is damaged.

    Raises:
        OSError: the folder is there, but cannot be read; or a file, after all others have been yielded.
    """
    status = folder / "status"
    numbers, closed = listed(folder)
    unreadable: OSError | None = None
    for number in numbers:
        if known(number):
            continue
        try:
            data: Any = None if number in closed else read_json(status / f"{number}.json")
            if data is None and (status / f"{number}.closed").exists():
                # It may have been renamed since the listing.
                closed.add(number)
                data = read_json(status / f"{number}.closed") or asdict(Status("done", 0.0, ""))
        except OSError as error:
            unreadable = error
            continue
        with suppress(TypeError):
            yield number, Status(**{**data, "stamps": tuple(data.get("stamps", ()))}), number in closed
    if unreadable:
        raise unreadable


def name_of(folder: Path) -> str:
    """The name of a bundle in the ledger, by its folder."""
    return f"{folder.parent.name}/{folder.name}"


def refresh(folder: Path) -> None:
    """Make a network file system list the statuses anew: it asks its server after a change of the folder by this host."""
    probe = folder / "status" / f".probe.{os.getpid()}"
    with suppress(OSError):
        probe.touch()
        probe.unlink()


def heartbeat(folder: Path) -> int | None:
    """Modification time (ns) of a bundle's sign of life; None if no worker has begun, or the last one has ended in order.

    Only a change of it tells something, because the clocks of hosts differ.
    """
    # A network file system asks its server when a file is opened, but may answer from its cache when a name is looked up.
    with suppress(OSError), (folder / HEARTBEAT).open("rb") as file:
        return os.fstat(file.fileno()).st_mtime_ns
    return None


def silence(folder: Path) -> None:
    """Delete the sign of life of a task that is over, which a worker leaves if all its processes are killed at once."""
    with suppress(OSError):
        (folder / HEARTBEAT).unlink(missing_ok=True)


def close_job(folder: Path, number: int) -> None:
    """Note that Snakemake knows how a job ended, so that a later head does not report the end again."""
    status = folder / "status"
    with suppress(OSError):
        (status / f"{number}.json").rename(status / f"{number}.closed")


def revoke(folder: Path) -> None:
    """Tell the worker of a bundle to start no further job. On a full disk only the cluster can stop the worker."""
    with suppress(OSError):
        (folder / "revoked").touch()


def modification_times(paths: tuple[str, ...], directory: str = ".") -> tuple[int, ...]:
    """Modification times (ns) of files, -1 for a missing file."""
    times = []
    for path in paths:
        try:
            times.append(os.stat(os.path.join(directory, path)).st_mtime_ns)
        except OSError:
            times.append(-1)
    return tuple(times)


def note_failure(folder: Path, cluster: str, job: Job, cause: str, message: str) -> None:
    """Append a line to `failures.jsonl`."""
    line = {
        "outputs": job.outputs,
        "rule": job.rule,
        "cluster": cluster,
        "cause": cause,
        "message": message,
        "logs": job.logs,
        "time": time.time(),
    }
    append(folder / "failures.jsonl", [line])


def append(path: Path, entries: list[dict[str, Any]]) -> None:
    """Append a line of JSON for each entry. An error, such as a full disk, is ignored: the lines are for people only."""
    if not entries:
        return
    with suppress(OSError):
        # Logs may be cited in it, so a group may read it where the umask allows, but never write.
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        with open(file, "a", encoding="utf-8") as stream:
            stream.write("".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries))


def remove(folder: Path) -> None:
    """Delete a folder. What cannot be deleted now is left for the next head."""
    shutil.rmtree(folder, ignore_errors=True)
