"""What a job has requested and used, for a line of `usage.jsonl` in the ledger."""

from typing import Any

from snakemake_executor_plugin_submitit.bundles import Job, Status
from snakemake_executor_plugin_submitit.resources import Request


def usage(job: Job, request: Request, status: Status) -> dict[str, Any]:
    """The entries for a job that has ended. If the worker of a job has died, nobody knows what the job used."""
    return {
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
