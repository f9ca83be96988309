"""What each job has requested and used: a line of JSON in `usage.jsonl` of the ledger when the job ends."""

from pathlib import Path
from typing import Any

from snakemake_executor_plugin_submitit.bundles import Job, Status, append
from snakemake_executor_plugin_submitit.resources import Request


class Usage:
    """Collects lines until they are written, because each file that is opened on a network file system takes time."""

    def __init__(self, ledger: Path) -> None:
        self.path = ledger / "usage.jsonl"
        self.lines: list[dict[str, Any]] = []

    def note(self, job: Job, request: Request, status: Status) -> None:
        """Take note of a job that has ended. Of a job whose worker has died, the use is not known."""
        line = {
            "rule": job.rule,
            "output": next(iter(job.outputs), ""),
            "state": status.state,
            "cause": status.cause,
            "seconds": None if status.ended is None else round(status.ended - status.started, 3),
            "runtime": request.minutes,
            "requeues": status.requeues,
            "memory_mb": status.memory_mb,
            "mem_mb": request.memory,
            "cpu_seconds": status.cpu_seconds,
            "cpus": request.cpus,
            "gpus": request.gpus,
            "time": status.ended or status.started,
        }
        self.lines.append(line)

    def write(self) -> None:
        """Append the lines to the file."""
        if self.lines:
            append(self.path, self.lines)
            self.lines = []
