"""A worker's runner without processes, which notes what it would do."""

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from snakemake_executor_plugin_submitit.bundles import Bundle, Job, Status
from snakemake_executor_plugin_submitit.worker import Runner, Running


class Alone:
    """Stands for a runner of a bundle, without a process.

    Attributes:
        notes: the statuses that were written, as the number of the job and the status.
        endings: the arguments with which jobs were ended.
        kills: the process groups that got a signal, with the number of the signal.
        codes: exit codes of the processes in `running`, in the order of `running`, that the next `drain` collects.
    """

    def __init__(self, folder: Path, *jobs: Job, **settings: Any) -> None:
        self.folder = self.home = folder / "bundle"
        self.host, self.guard = "host", None
        self.is_broken = False
        self.bundle = Bundle(jobs or (Job("key", "rule", "shell", "true"),), str(folder), **settings)
        self.bundle.write(self.folder)
        self.known: dict[int, Status] = {}
        self.environment: dict[str, str] = {}
        self.todo: deque[int] = deque()
        self.running: dict[int, Running] = {}
        self.residents: dict[int, Any] = {}
        self.began = self.since = time.time()
        self.line, self.memory_kills, self.patience = None, 0, 20.0
        self.notes: list[tuple[int, Status]] = []
        self.endings: list[tuple[Any, ...]] = []
        self.kills: list[tuple[int, int]] = []
        self.codes: list[int] = []

    def __getattr__(self, name: str) -> Any:
        """The methods of the real runner."""
        return getattr(Runner, name).__get__(self)

    def note(self, number: int, status: Status) -> None:
        self.notes.append((number, status))

    def drain(self, handle: Callable[[Running, int], None], seconds: float = 0) -> None:
        codes, self.codes = self.codes, []
        for (pid, process), code in zip(list(self.running.items()), codes, strict=False):
            del self.running[pid]
            handle(process, code)

    def states(self) -> list[str]:
        return [status.state for _, status in self.notes]

    def run(self, number: int = 0, **status: Any) -> Running:
        """Let a job run."""
        values = {"started": 1.0, "host": "host", **status}
        process = Running(number, Status("running", **values), self.folder / f"output-{number}", None)
        process.output.write_text("the output of the job\n")
        self.running[1000 + number] = process
        return process
