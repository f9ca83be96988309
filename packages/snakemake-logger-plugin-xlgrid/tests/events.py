"""Records as Snakemake's log has them."""

import logging
from typing import Any

from snakemake_interface_logger_plugins.common import LogEvent

LOG = "results/demo/logs/{}.log"


def record(
    event: LogEvent | None = None, message: str = "", level: int = logging.INFO, **fields: Any
) -> logging.LogRecord:
    return logging.makeLogRecord({"msg": message, "levelno": level, "event": event, **fields})


def planned(**jobs: int) -> logging.LogRecord:
    return record(LogEvent.RUN_INFO, stats={**jobs, "all": 1, "total": sum(jobs.values()) + 1})


def started(number: int, rule: str, output: str = "", log: str = "", local: bool = False) -> logging.LogRecord:
    output = output or f"results/demo/{rule}{number}"
    return record(
        LogEvent.JOB_INFO, jobid=number, rule_name=rule, output=[output], log=[log or LOG.format(number)], local=local
    )


def finished(number: int) -> logging.LogRecord:
    return record(LogEvent.JOB_FINISHED, job_id=number)


def failed(number: int, message: str | None = None, log: str = "") -> logging.LogRecord:
    return record(
        LogEvent.JOB_ERROR, level=logging.ERROR, jobid=number, rule_msg=message, log=[log or LOG.format(number)]
    )


def progress(done: int, total: int) -> logging.LogRecord:
    return record(LogEvent.PROGRESS, done=done, total=total)
