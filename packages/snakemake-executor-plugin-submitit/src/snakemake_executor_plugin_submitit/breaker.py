"""Keeps jobs away from a place where they fail through no fault of their own: a host with a broken GPU, a disk that is full.

After a failure of this kind nothing is submitted but one job, which tries whether jobs go well again: at once on another host, or on
another GPU of this machine, if the cluster may have one, or after a pause. Jobs that the place has failed are submitted again, and
their failures are not told to Snakemake.
"""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from snakemake_executor_plugin_submitit import failures
from snakemake_executor_plugin_submitit.bundles import Status
from snakemake_executor_plugin_submitit.clusters.cluster import Cluster
from snakemake_executor_plugin_submitit.process import host_of
from snakemake_executor_plugin_submitit.tasks import Task, TaskState

# Seconds before the first job that tries whether jobs go well again, and before the next ones.
PAUSES = (15.0, 60.0, 240.0, 600.0)
# Failures in a row on one host, of rules whose jobs go well elsewhere meanwhile, after which the host counts as broken.
ROW = 5
# Seconds after which tasks are sent to a host again.
FORGIVE = 3600.0


@dataclass
class Record:
    """What has happened on a host since the last job that went well there.

    Attributes:
        rules: of the jobs that have failed in a row.
        since: monotonic time of the first of these failures.
    """

    rules: list[str] = field(default_factory=list)
    since: float = 0.0


class Breaker:
    """Decides whether jobs may be submitted, and where.

    Attributes:
        is_open: whether only one job at a time may be submitted, to try whether jobs go well again.
        trial: the task of this job, once it has been submitted.
    """

    def __init__(self, cluster: Cluster, report: Callable[[str, str], None], say: Callable[[str], None]) -> None:
        self.cluster, self.report, self.say = cluster, report, say
        self.is_open = False
        self.trial: Task | None = None
        # Whether what is broken is not one host or GPU.
        self._is_shared = False
        self._tripped_at = self._retry_at = 0.0
        self._pauses = 0
        self._records: dict[str, Record] = defaultdict(Record)
        # When a job of a rule went well last: rule -> host -> monotonic time.
        self._successes: dict[str, dict[str, float]] = defaultdict(dict)
        # Monotonic time at which each host was excluded.
        self._excluded: dict[str, float] = {}

    def note(self, rule: str, status: Status, task: Task) -> bool:
        """Take note of how a job ended; whether the place, and not the job, is to blame for its failure."""
        host = status.host
        if status.cause == failures.HOST and not failures.is_of_gpu(status.message):
            host = host_of(host)
        if not host:
            # The job's worker has died without a word, so that nothing tells about the place.
            return False
        is_fault = status.cause == failures.HOST
        if status.state == "done":
            self._records.pop(host, None)
            self._successes[rule][host] = time.monotonic()
        elif not is_fault and status.cause in (failures.EXCEPTION, failures.KILLED):
            record = self._records[host]
            record.since = record.since if record.rules else time.monotonic()
            record.rules.append(rule)
            is_fault = host in self._excluded or (len(record.rules) >= ROW and self._goes_well_elsewhere(host, record))
        if is_fault:
            self.trip(host, failures.reason(status.message), task)
        elif task is self.trial or (status.state == "done" and self._is_later(status)):
            # Jobs run, however this one has ended.
            self._close(host)
        return is_fault

    def trip(self, host: str, why: str, task: Task) -> None:
        """Submit nothing but one job from now on, and none to this host if the cluster may have another."""
        if task is self.trial:
            self.trial = None
        elif host in self._excluded or (self.is_open and self._is_shared):
            # Jobs that were on their way when the trouble began.
            return
        # If a second host has the same trouble, what is broken is what the hosts share.
        self._is_shared = self.is_open or not self.cluster.can_spare(host)
        if self._is_shared:
            self._pause()
        else:
            self._excluded[host] = time.monotonic()
            self._retry_at = 0.0
        self.is_open, self._tripped_at = True, time.time()
        self._tell()
        left = self._retry_at - time.monotonic()
        when = f"in {left:.0f} s" if self._is_shared else "elsewhere"
        self.report(
            "place",
            f"jobs fail on {host} through no fault of their own ({why}): one job tries {when} whether others may follow",
        )

    def may_try(self) -> bool:
        """Whether it is time to submit the job that tries."""
        if self.trial and self.trial.state is TaskState.OVER:
            # The task has ended without a word about the job.
            self.trial = None
        return self.trial is None and time.monotonic() >= self._retry_at

    def is_alone(self) -> bool:
        """Take back the exclusion of hosts, because the cluster has no other for a job; whether any was excluded."""
        if not self.cluster.excluded:
            return False
        self._is_shared = self.is_open
        self._pause()
        self._tell()
        return True

    def forgive(self) -> None:
        """Let tasks be sent again to hosts that have been excluded for long."""
        now = time.monotonic()
        self._excluded = {host: since for host, since in self._excluded.items() if now < since + FORGIVE}
        self._tell()

    def _pause(self) -> None:
        self._excluded.clear()
        self._retry_at = time.monotonic() + PAUSES[min(self._pauses, len(PAUSES) - 1)]
        self._pauses += 1

    def _close(self, host: str) -> None:
        self.is_open, self._is_shared, self.trial, self._pauses = False, False, None, 0
        self.report("place", "")
        without = f", and none to {', '.join(sorted(self._excluded))} for an hour" if self._excluded else ""
        self.say(f"submitit: a job ran on {host}: the others follow{without}")

    def _tell(self) -> None:
        self.cluster.excluded = sorted(self._excluded)

    def _is_later(self, status: Status) -> bool:
        """Whether a job that was in the queue when one host was excluded has begun since on another."""
        return (
            self.is_open
            and not self._is_shared
            and status.host not in self._excluded
            and status.started > self._tripped_at
        )

    def _goes_well_elsewhere(self, host: str, record: Record) -> bool:
        return all(
            any(other != host and at > record.since for other, at in self._successes[rule].items())
            for rule in set(record.rules)
        )


def full(folders: Iterable[Path]) -> Path | None:
    """The first of these folders whose disk has no room for another file."""
    for folder in folders:
        try:
            disk = os.statvfs(folder)
        except OSError:
            continue
        # Some file systems do not count files.
        if disk.f_bavail == 0 or (disk.f_files and disk.f_favail == 0):
            return folder
    return None
