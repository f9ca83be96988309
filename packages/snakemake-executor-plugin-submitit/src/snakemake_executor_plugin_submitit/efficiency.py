"""How much of what the jobs of a rule requested they have used, as a table of CSV."""

import csv
import io
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from snakemake_executor_plugin_submitit.bundles import Status, write_whole
from snakemake_executor_plugin_submitit.resources import MINUTES, Request

COLUMNS = (
    *("rule", "jobs", "failed", "mean_seconds", "longest_seconds", "runtime_minutes"),
    *("cores", "used_share_of_cores", "largest_memory_mb", "mem_mb"),
)


@dataclass
class Use:
    """What the jobs of a rule have requested, and used together.

    Attributes:
        core_seconds: that were granted to the jobs whose use is known.
        cpu_seconds: that these jobs used, with those of their processes that they waited for.
        memory: resident memory in MB of the largest process.
    """

    jobs: int = 0
    failed: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    minutes: int = 0
    cores: int = 0
    core_seconds: float = 0.0
    cpu_seconds: float = 0.0
    memory: float = 0.0
    mem_mb: int = 0


class Efficiency:
    """Collects what jobs have used, by rule."""

    def __init__(self) -> None:
        self.rules: dict[str, Use] = defaultdict(Use)

    def note(self, rule: str, request: Request, status: Status) -> None:
        """Take note of a job that has ended by itself."""
        if status.ended is None:
            return
        use, seconds = self.rules[rule], status.ended - status.started
        use.jobs += 1
        use.failed += status.state == "failed"
        use.seconds += seconds
        use.longest = max(use.longest, seconds)
        use.minutes = max(use.minutes, request.minutes or MINUTES)
        use.cores = max(use.cores, request.cpus)
        use.mem_mb = max(use.mem_mb, request.memory or 0)
        if status.cpu_seconds is not None and status.memory_mb is not None:
            use.core_seconds += seconds * request.cpus
            use.cpu_seconds += status.cpu_seconds
            use.memory = max(use.memory, status.memory_mb)

    def write(self, path: Path) -> None:
        """Write the table, a row for each rule, whole or not at all.

        Raises:
            OSError: it cannot be written.
        """
        table = io.StringIO()
        writer = csv.writer(table)
        writer.writerow(COLUMNS)
        for rule, use in sorted(self.rules.items()):
            share = f"{use.cpu_seconds / use.core_seconds:.2f}" if use.core_seconds else ""
            memory = f"{use.memory:.0f}" if use.core_seconds else ""
            times = (f"{use.seconds / use.jobs:.1f}", f"{use.longest:.1f}", use.minutes)
            writer.writerow((rule, use.jobs, use.failed, *times, use.cores, share, memory, use.mem_mb or ""))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, table.getvalue())
