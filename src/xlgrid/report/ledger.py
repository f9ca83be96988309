"""The ledger of the submitit executor: which jobs are queued or running, and how others ended.

It is a folder, `.snakemake/submitit` unless `--submitit-folder` names another, of files that appear whole and may vanish at any time:

    {chunk}/array.json                {"submitted": unix seconds, "cluster": ..., "host": ..., "tasks": [...]}, once the cluster has taken
                                      it; where a host is stated, all tasks are on it, and a task is "{process}.{its start}"
    {chunk}/{bundle}/bundle.json      {"jobs": [{"rule": "train", "outputs": ["results/...", ...], ...}, ...], ...}
    {chunk}/{bundle}/status/{i}.json  of job i of the bundle, once it runs: {"state": "running", "started": unix seconds,
                                      ...}, at last {"state": "done" or "failed", "ended": ..., "cause": ..., "message":
                                      ...}, and then {i}.closed, once Snakemake knows
    {chunk}/{bundle}/revoked          its jobs that have not ended never will
    failures.jsonl                    a line each: {"outputs": [...], "rule": ..., "cluster": ..., "cause": ..., "message": ...,
                                      "logs": [...], "time": unix seconds}

A chunk is an array of tasks of the cluster; a bundle is one task, which runs the jobs of the bundle.
"""

import errno
import json
import os
import socket
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

FOLDER = Path(".snakemake/submitit")
# The variable in which the executor states another folder, for its own process and the commands that Snakemake calls.
STATED = "SUBMITIT_LEDGER"
# A network file system says that a handle is stale where a local one says that there is no such file.
_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ESTALE}


class Job(NamedTuple):
    """One job as the ledger knows it. Cause, message and log say why it failed; ends of logs may follow the message's
    first line."""

    rule: str
    outputs: tuple[str, ...]
    state: Literal["queued", "running", "done", "failed", "revoked"]
    cause: str = ""
    message: str = ""
    log: str = ""
    cluster: str = ""


def stated() -> Path:
    """The folder of the Snakemake that this process is part of, or else the default."""
    return Path(os.environ.get(STATED, FOLDER))


def read(folder: str | Path, existing: Container[str] = ()) -> dict[str, Job]:
    """Output -> the last job that was to make it. Nothing, where there is no ledger.

    The newest bundle of an output counts, because one of a killed Snakemake may be left over, and it counts only if no
    failure was recorded since it was submitted and started: a job that is killed cannot say so itself.

    Args:
        existing: outputs that exist; the ledger is not asked how their jobs fare.
    """
    # What counts is the bundle's time; what a failure must be later than is the time of the last sign of the job.
    newest: dict[str, tuple[tuple[float, str], float, Job]] = {}
    for chunk in _folders(folder):
        about = _mapping(f"{chunk}/array.json")
        submitted, ended = _number(about.get("submitted")), _ended_here(about)
        for bundle in _folders(chunk):
            age = 0.0
            with _perhaps_gone():
                age = os.stat(f"{bundle}/bundle.json").st_mtime
            order = (age, bundle)
            for job, seen in _bundle(bundle, existing, os.path.basename(bundle) in ended):
                for output in job.outputs:
                    if output not in newest or order > newest[output][0]:
                        newest[output] = (order, max(submitted or age, seen), job)
    jobs = {output: job for output, (_, _, job) in newest.items()}
    for line in _text(f"{folder}/failures.jsonl").splitlines():
        failure = _parse(line)
        time = _number(failure.get("time"))
        logs = _names(failure.get("logs"))
        outputs = _names(failure.get("outputs"))
        rule, cause, message, cluster = (str(failure.get(key) or "") for key in ("rule", "cause", "message", "cluster"))
        failed = Job(rule, outputs, "failed", cause, message, "".join(logs[:1]), cluster)
        for output in outputs:
            if output not in newest or time > newest[output][1]:
                jobs[output] = failed
    return jobs


def _ended_here(about: dict[str, Any]) -> set[str]:
    """The bundles of a chunk whose tasks ran on this machine and are there no longer, as after a reboot."""
    tasks = about.get("tasks")
    if about.get("host") != socket.gethostname() or not isinstance(tasks, list):
        return set()
    return {str(number) for number, task in enumerate(tasks) if task and not _is_there(str(task))}


def _is_there(task: str) -> bool:
    """Whether a process runs that began when it says, since the ids of processes are used again. The executor decides in the same way."""
    process, _, began = task.partition(".")
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    # The first field after the name, the third of all, is the state, in which a zombie has ended; the 22nd is the start.
    return fields[0] != "Z" and fields[19] == began


def _bundle(folder: str, existing: Container[str], has_ended: bool) -> list[tuple[Job, float]]:
    """The jobs of a bundle, each with the time of its last sign, 0 without any.

    Args:
        has_ended: the task of the bundle is there no longer, so that no job of it is under way.
    """
    jobs = _mapping(f"{folder}/bundle.json").get("jobs")
    files = {}
    with _perhaps_gone():
        files = {entry.name.partition(".")[0]: entry.path for entry in os.scandir(f"{folder}/status")}
    revoked = has_ended or os.path.exists(f"{folder}/revoked")
    listed = []
    for number, job in enumerate(jobs if isinstance(jobs, list) else []):
        if not isinstance(job, dict):
            continue
        rule, outputs = str(job.get("rule", "")), _names(job.get("outputs"))
        if outputs and all(output in existing for output in outputs):
            listed.append((Job(rule, outputs, "done"), 0.0))
            continue
        status = _mapping(files[str(number)]) if str(number) in files else {}
        state = status.get("state")
        when = max(_number(status.get("started")), _number(status.get("ended")))
        if state == "failed":
            cause, message = (str(status.get(key) or "") for key in ("cause", "message"))
            known = Job(rule, outputs, "failed", cause, message)
        elif state == "done":
            known = Job(rule, outputs, "done")
        else:
            known = Job(rule, outputs, "revoked" if revoked else "running" if state == "running" else "queued")
        listed.append((known, when))
    return listed


@contextmanager
def _perhaps_gone() -> Iterator[None]:
    """Passes over an error that says that a file or folder is gone."""
    try:
        yield
    except OSError as error:
        if error.errno not in _GONE:
            raise


def _folders(folder: str | Path) -> list[str]:
    with _perhaps_gone():
        return sorted(entry.path for entry in os.scandir(folder) if entry.is_dir())
    return []


def _text(path: str) -> str:
    """A file's text; none if the file is gone."""
    with _perhaps_gone(), open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
    return ""


def _mapping(path: str) -> dict[str, Any]:
    return _parse(_text(path))


def _parse(text: str) -> dict[str, Any]:
    """A JSON object; an empty one for anything else, such as a line of which only half is written yet."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _names(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
