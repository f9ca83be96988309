"""Read the ledger of the submitit executor: the jobs that are queued or running, and the results of other jobs.

The ledger is a folder, by default `.snakemake/submitit` (`--submitit-folder` names another). Its files appear whole and
may disappear at any time:

    {chunk}/array.json                {"submitted": unix seconds, "cluster": ..., "host": ..., "tasks": [...]}, after
                                      the cluster has accepted it; with a host, all tasks are on this host, and a task
                                      is "{process}.{its start}"
    {chunk}/{bundle}/bundle.json      {"jobs": [{"rule": "train", "outputs": ["results/...", ...], ...}, ...], ...}
    {chunk}/{bundle}/status/{i}.json  job i of the bundle, after its start: {"state": "running", "started": unix
                                      seconds, ...}, after its end {"state": "done" or "failed", "ended": ..., "cause":
                                      ..., "message": ...}; {i}.closed, after Snakemake knows the result
    {chunk}/{bundle}/revoked          the jobs of the bundle that have not ended will never end
    failures.jsonl                    a line for each failure: {"outputs": [...], "rule": ..., "cluster": ..., "cause":
                                      ..., "message": ..., "logs": [...], "time": unix seconds}
    usage.jsonl                       a line for each job that has ended, see `xlgrid.report.efficiency`

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
# The environment variable with which the executor passes another folder to its process and to Snakemake's commands.
STATED = "SUBMITIT_LEDGER"
# A network file system reports a stale handle where a local file system reports a missing file.
_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ESTALE}


class Job(NamedTuple):
    """A job in the ledger. `cause`, `message` and `log` describe its failure; ends of logs may follow the first line of
    the message."""

    rule: str
    outputs: tuple[str, ...]
    state: Literal["queued", "running", "done", "failed", "revoked"]
    cause: str = ""
    message: str = ""
    log: str = ""
    cluster: str = ""


def stated() -> Path:
    """The ledger of the Snakemake to which this process belongs, or the default folder."""
    return Path(os.environ.get(STATED, FOLDER))


def read(folder: str | Path, existing: Container[str] = ()) -> dict[str, Job]:
    """Output -> the last job that was submitted to make it; empty without a ledger.

    The newest bundle of an output counts, because bundles of a killed Snakemake may remain. It counts only if no
    failure was recorded after its submission and start, because a killed job writes no status.

    Args:
        existing: outputs that exist; their jobs are left out.
    """
    # Bundles are compared by their times. A failure counts if it is later than the last sign of the job.
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
    for failure in lines(f"{folder}/failures.jsonl"):
        time = _number(failure.get("time"))
        logs = _names(failure.get("logs"))
        outputs = _names(failure.get("outputs"))
        rule, cause, message, cluster = (str(failure.get(key) or "") for key in ("rule", "cause", "message", "cluster"))
        failed = Job(rule, outputs, "failed", cause, message, "".join(logs[:1]), cluster)
        for output in outputs:
            if output not in newest or time > newest[output][1]:
                jobs[output] = failed
    return jobs


def lines(path: str) -> Iterator[dict[str, Any]]:
    """The objects in the lines of a file of JSON; none if the file does not exist."""
    yield from map(_parse, _text(path).splitlines())


def _ended_here(about: dict[str, Any]) -> set[str]:
    """The bundles of a chunk whose tasks ran on this machine and no longer exist, for instance after a reboot."""
    tasks = about.get("tasks")
    if about.get("host") != socket.gethostname() or not isinstance(tasks, list):
        return set()
    return {str(number) for number, task in enumerate(tasks) if task and not _is_there(str(task))}


def _is_there(task: str) -> bool:
    """Whether a process with the id and the start of a task exists. The executor decides in the same way.

    The start is compared because ids of processes are used again.
    """
    process, _, began = task.partition(".")
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    # The first field after the name (the third of all) is the state; a zombie has ended. The 22nd field is the start.
    return fields[0] != "Z" and fields[19] == began


def _bundle(folder: str, existing: Container[str], has_ended: bool) -> list[tuple[Job, float]]:
    """The jobs of a bundle, each with the time of its last sign; 0 without a sign.

    Args:
        has_ended: whether the task of the bundle no longer exists, so that none of its jobs is in progress.
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
    """Ignore errors about a file or folder that no longer exists."""
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
    """The text of a file; empty if the file no longer exists."""
    with _perhaps_gone(), open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
    return ""


def _mapping(path: str) -> dict[str, Any]:
    return _parse(_text(path))


def _parse(text: str) -> dict[str, Any]:
    """The JSON object in a text; empty for any other text, such as a line that is only half written."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _names(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
