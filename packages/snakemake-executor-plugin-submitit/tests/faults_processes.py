"""The processes of a trial of `faults`: how a head or worker begins, and which processes are left of a task."""

import ctypes
import io
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults_trial import Trial

from snakemake_executor_plugin_submitit import bundles, messages, submission, worker

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LIBC = ctypes.CDLL(None)


@dataclass
class Task:
    """An array task.

    Attributes:
        ending: the word for its end and whether it is requeued then, once a fault or a request has decided it.
        kill_at: when Slurm's patience ends.
        denied: whether the head was told that the task is gone while it was not.
    """

    name: str
    array: str
    folder: Path
    jobs: list[str]
    limit: float | None
    state: str = "PENDING"
    ready_at: float = 0.0
    pid: int = 0
    started: float = 0.0
    ended: float = 0.0
    ending: tuple[str, bool] | None = None
    kill_at: float | None = None
    denied: bool = False

    @property
    def alive(self) -> bool:
        return self.state in ("PENDING", "RUNNING")


class Log(io.FileIO):
    """Standard output, on the disk that may be full."""

    def __init__(self, flag: Path) -> None:
        super().__init__(1, "w", closefd=False)
        self.flag = flag

    def write(self, data: Any) -> int:
        if self.flag.exists():
            raise OSError(28, "No space left on device")
        return super().write(data)


def begin(folder: Path, trial: Trial) -> None:
    """In a head or a worker: let the disk be full and slow when the trial says so."""
    ledger, flag = str(folder / "ledger"), str(folder / "full")
    for name in ("write_text", "touch", "mkdir"):
        real = getattr(Path, name)

        def guarded(self: Path, *args: Any, name: str = name, real: Any = real, **kwargs: Any) -> Any:
            new = name != "mkdir" or not self.exists()
            if new and str(self).startswith(ledger) and os.path.exists(flag):
                raise OSError(28, "No space left on device", str(self))
            return real(self, *args, **kwargs)

        setattr(Path, name, guarded)
    write = bundles.write_json

    def write_json(path: Path, data: Any) -> None:
        if os.path.exists(flag):
            raise OSError(28, "No space left on device", str(path))
        write(path, data)

    bundles.write_json = submission.write_json = worker.write_json = write_json
    worker.OFFER, worker.SILENCE = 0.05, 0.3
    loss = random.Random(os.getpid())
    for end in (messages.Line, messages.Mail):
        send = end.send

        def send_perhaps(*arguments: Any, send: Any = send) -> None:
            if loss.random() >= trial.deaf:
                send(*arguments)

        end.send = send_perhaps
    if trial.slow:
        read, slowness = bundles.read_json, random.Random(os.getpid())

        def read_slowly(path: Path) -> Any:
            time.sleep(slowness.uniform(0, trial.slow))
            return read(path)

        bundles.read_json = read_slowly


def stat(pid: int) -> tuple[str, int, int] | None:
    """State, parent and session of a process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], int(fields[1]), int(fields[3])


def processes() -> Iterator[tuple[int, tuple[str, int, int]]]:
    for entry in os.listdir("/proc"):
        state = stat(int(entry)) if entry.isdigit() else None
        if state and state[0] != "Z":
            yield int(entry), state


def session(leader: int) -> list[int]:
    """Living processes of a task."""
    return [pid for pid, (_, _, group) in processes() if group == leader]


def kill_session(leader: int) -> int:
    """Kill all of a task; how many were left."""
    left = session(leader)
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(left)


def descendants(root: int) -> Iterator[tuple[int, str]]:
    """Living processes below one, with their command lines."""
    parents = {pid: parent for pid, (_, parent, _) in processes()}
    for pid in parents:
        above = pid
        while above in parents and above != root:
            above = parents[above]
        if above == root and pid != root:
            try:
                yield pid, Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
