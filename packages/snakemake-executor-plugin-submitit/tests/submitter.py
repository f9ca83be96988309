"""A submitter for tests: its cluster keeps a queue, and accepts arrays unless the test gives it an error."""

import time
from collections.abc import Sequence
from pathlib import Path

from stub import Stub

from snakemake_executor_plugin_submitit.breaker import Breaker
from snakemake_executor_plugin_submitit.bundles import Bundle, Job
from snakemake_executor_plugin_submitit.clusters.cluster import Refused
from snakemake_executor_plugin_submitit.messages import Mail
from snakemake_executor_plugin_submitit.pool import Pool
from snakemake_executor_plugin_submitit.resources import Request
from snakemake_executor_plugin_submitit.submission import Calls, Settings, Submitter
from snakemake_executor_plugin_submitit.tasks import Tasks, Waiting
from snakemake_executor_plugin_submitit.verdicts import Judge


class Queue(Stub):
    """A cluster with a queue, which accepts arrays unless the test gives it an error.

    Attributes:
        minutes: of each array.
        sizes: how many tasks each array has.
        names: of the arrays, also of those that were refused.
        errors: raised by the next submissions.
        limit: minutes that a task may request; None for any number.
        known: what the queue tells about an array whose submission was not answered; an error is raised.
    """

    name = "queue"
    is_local = False

    def __init__(self) -> None:
        super().__init__()
        self.minutes: list[int] = []
        self.sizes: list[int] = []
        self.names: list[str] = []
        self.errors: list[Exception] = []
        self.limit: int | None = None
        self.known: dict[int, str] | OSError = {}

    def longest(self, request: Request, minutes: int) -> int | None:
        return self.limit if self.limit and self.limit >= minutes else None

    def room(self, request: Request) -> tuple[int, int] | None:
        if request.gpus:
            raise Refused("there is no GPU")
        return None

    def submit(self, folder: Path, name: str, bundles: Sequence[Path], request: Request, minutes: int) -> list[str]:
        self.names.append(name)
        if self.errors:
            raise self.errors.pop(0)
        self.submitted += bundles
        self.minutes.append(minutes)
        self.sizes.append(len(bundles))
        return [f"{len(self.sizes)}_{number}" for number in range(len(bundles))]

    def stray(self, folder: Path, name: str) -> dict[int, str]:
        if isinstance(self.known, OSError):
            raise self.known
        return self.known


class Head:
    """A submitter, and what it reports.

    Attributes:
        reports: troubles by kind; an empty text ends a trouble.
        tasks: names of tasks by the key of a job, as Snakemake learns them.
    """

    def __init__(self, folder: Path, cluster: Stub, array_size: int = 1000, slots: int = 1) -> None:
        self.cluster, self.ledger = cluster, folder / "ledger"
        self.ledger.mkdir()
        settings = Settings(self.ledger, array_size, 600, Bundle((), str(folder), slots=slots))
        self.followed = Tasks()
        self.reports: list[tuple[str, str]] = []
        self.judge = Judge(self.ledger, 3, self.followed, Breaker(cluster, self.report, print), self.submitted)
        self.tasks: dict[str, str] = {}
        self.submitter = Submitter(settings, self.judge, Pool(Mail(), self.followed), lambda: None)

    def submitted(self, job: Job, task: str) -> None:
        self.tasks[job.key] = task

    def report(self, kind: str, trouble: str) -> None:
        # The end of a trouble that was never there tells nothing.
        if trouble or kind in dict(self.reports):
            self.reports.append((kind, trouble))

    def add(self, count: int, request: Request, rule: str = "rule", since: float | None = None) -> list[Waiting]:
        """Put jobs into the buffer."""
        first = len(self.submitter.buffer)
        jobs = [Job(f"{rule}{first + number}", rule, "shell", "true") for number in range(count)]
        added = [Waiting(job, request, None, time.time() if since is None else since) for job in jobs]
        self.submitter.buffer += added
        return added

    def flush(self) -> None:
        drive(self.submitter.flush())

    def buffered(self) -> list[str]:
        return [entry.job.key for entry in self.submitter.buffer]

    def retry(self) -> float:
        """Let the time pass until the next submission, flush, and return how many seconds passed."""
        seconds = self.submitter.retry_at - time.time()
        self.submitter.retry_at = 0.0
        self.flush()
        return seconds


def drive(calls: Calls) -> None:
    """Make the calls of a generator, and send it their answers."""
    try:
        call = next(calls)
        while True:
            try:
                answer = call()
            except Exception as error:
                call = calls.throw(error)
            else:
                call = calls.send(answer)
    except StopIteration:
        pass
