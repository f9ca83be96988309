"""Bundles on disk: what a worker runs, what became of it, and all that a restarted head needs to know.

The folder (`--submitit-folder`) is the ledger; every file in it appears by renaming:

    lock                              held by the head that uses the folder
    {chunk}/array.json                {"cluster", "host", "tasks", "submitted"}, once the chunk has been submitted as one array
    {chunk}/{bundle}/bundle.json      a `Bundle`: the jobs of one array task
    {chunk}/{bundle}/status/{i}.json  a `Status` of job i; {i}.told once Snakemake has taken note of the end
    {chunk}/{bundle}/revoked          the worker starts no job any more
    failures.jsonl                    one line per failed job, for whoever wants to know later
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

State = Literal["running", "stopped", "done", "failed"]


@dataclass(frozen=True)
class Job:
    """One job of Snakemake, as a worker needs it.

    Attributes:
        key: digest of rule, command and files; the same job after a restart of the head has the same.
        kind: `shell` is a rule's shell command; `snakemake` is the command line of a nested Snakemake.
        directories: outputs that are directories.
        benchmark: where Snakemake's benchmark table goes, if anywhere.
        limit: seconds after which it is stopped, or None.
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
    """The jobs of one array task and what they share.

    Attributes:
        directory: where the commands run.
        threads: of each job.
        slots: jobs at a time.
        scripts: console scripts that run without a new Python.
        environment: variables to set for the jobs, beside those of threads and TMPDIR.
        tmpdir: None for the node's own.
        seconds: after so many, no further job is started, and the head finds another place for what is left.
        limit: seconds that the cluster gives the task, or None.
        grace: seconds between the cluster's warning and the end.
        latency_wait: seconds to wait for inputs that another node wrote.
        max_requeues: how often a job may be cut short by its limit and go on, or lose its node.
        origin: where a nested Snakemake starts, if elsewhere: before the workflow's `workdir:`.
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

    def write(self, folder: Path) -> None:
        """Make the folder of this bundle."""
        (folder / "status").mkdir(parents=True)
        write_json(folder / "bundle.json", asdict(self))


@dataclass(frozen=True)
class Status:
    """What is known of a job.

    Attributes:
        state: `stopped` jobs have been asked to make room, and go on in the task's next life.
        attempt: how often it was started in its bundle.
        requeues: how often a time limit cut it short.
        lost: how often its worker died without a word.
        cause: why it failed, one of `snakemake_executor_plugin_submitit.failures`.
        message: what to tell a person: exit code or signal, and the end of the log.
        stamps: modification times (ns) of the outputs at the end, by which a restarted head knows them again.
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

    @property
    def final(self) -> bool:
        """Whether the job has ended."""
        return self.state in ("done", "failed")

    def write(self, folder: Path, number: int) -> None:
        """Write the status of job `number` of the bundle in `folder`."""
        write_json(folder / "status" / f"{number}.json", asdict(self))


def write_json(path: Path, data: Any) -> None:
    """Write a file whole or not at all.

    Raises:
        OSError: the disk is full, or the folder is gone.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # For the owner alone: a bundle has the values of a workflow's `envvars`.
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(data, file, ensure_ascii=False)
        aside.replace(path)
    except OSError:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        raise


def read_json(path: Path) -> Any:
    """The contents of a file, or None if it is missing or damaged (a node that dies may leave an empty one)."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def read_bundle(folder: Path) -> Bundle | None:
    """The bundle in `folder`, or None if there is none, or none of this version."""
    data = read_json(folder / "bundle.json")
    try:
        jobs = tuple(Job(**{name: _frozen(value) for name, value in job.items()}) for job in data["jobs"])
        return Bundle(**{**data, "jobs": jobs, "scripts": tuple(data["scripts"])})
    except (TypeError, KeyError, AttributeError):
        return None


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def read_statuses(folder: Path, known: Callable[[int], bool] = lambda _: False) -> Iterator[tuple[int, Status, bool]]:
    """Number, status and whether it was told, of each job that has one and is not `known`; damaged ones have none.

    What was told has ended, whatever became of the file.
    """
    status = folder / "status"
    try:
        names = [name.partition(".") for name in os.listdir(status)]
    except FileNotFoundError:
        return
    # While one is renamed, a listing may have both names.
    told = {int(name) for name, _, ending in names if ending == "told" and name.isdigit()}
    listed = told | {int(name) for name, _, ending in names if ending == "json" and name.isdigit()}
    for number in listed:
        if known(number):
            continue
        data: Any = None if number in told else read_json(status / f"{number}.json")
        if data is None and (status / f"{number}.told").exists():
            # At the latest since the listing.
            told.add(number)
            data = read_json(status / f"{number}.told") or asdict(Status("done", 0.0, ""))
        with suppress(TypeError):
            yield number, Status(**{**data, "stamps": tuple(data.get("stamps", ()))}), number in told


def refresh(folder: Path) -> None:
    """Have a network file system list the statuses anew: it asks the server once this side has changed the folder."""
    probe = folder / "status" / f".probe.{os.getpid()}"
    with suppress(OSError):
        probe.touch()
        probe.unlink()


def tell(folder: Path, number: int) -> None:
    """Note that Snakemake knows how a job ended, so that no later head takes it for news."""
    status = folder / "status"
    with suppress(OSError):
        (status / f"{number}.json").rename(status / f"{number}.told")


def revoke(folder: Path) -> None:
    """Have the worker of a bundle start no further job; on a full disk the cluster has to stop it."""
    with suppress(OSError):
        (folder / "revoked").touch()


def stamps(paths: tuple[str, ...], directory: str = ".") -> tuple[int, ...]:
    """Modification times (ns) of files, -1 for what is missing."""
    found = []
    for path in paths:
        try:
            found.append(os.stat(os.path.join(directory, path)).st_mtime_ns)
        except OSError:
            found.append(-1)
    return tuple(found)


def note_failure(folder: Path, cluster: str, job: Job, cause: str, message: str) -> None:
    """Append a line to `failures.jsonl`; a full disk keeps nobody from going on."""
    line = {
        "outputs": job.outputs,
        "rule": job.rule,
        "cluster": cluster,
        "cause": cause,
        "message": message,
        "logs": job.logs,
        "time": time.time(),
    }
    with suppress(OSError), (folder / "failures.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def remove(folder: Path) -> None:
    """Delete a folder; what cannot be deleted now is left for the next head."""
    shutil.rmtree(folder, ignore_errors=True)
