"""The executor without Snakemake, and what it talks to: a dispatcher and Snakemake's scheduler, which note its calls."""

from types import SimpleNamespace
from typing import Any

from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo

from snakemake_executor_plugin_submitit import Executor
from snakemake_executor_plugin_submitit.bundles import Job
from snakemake_executor_plugin_submitit.clusters.cluster import Cluster
from snakemake_executor_plugin_submitit.ending import RunningJob
from snakemake_executor_plugin_submitit.resources import Request
from snakemake_executor_plugin_submitit.verdicts import Verdict


class Dispatcher:
    """Notes the calls of the executor; `verdicts` come with the next poll, or `error` is raised in their place."""

    cluster = Cluster()

    def __init__(self) -> None:
        self.added: list[str] = []
        self.closed: list[str] = []
        self.failed: list[tuple[str, str, str]] = []
        self.verdicts: list[Verdict] = []
        self.error: Exception | None = None
        self.running: list[RunningJob] = []
        self.news: list[str] = []

    def add(self, described: list[tuple[Job, Request, str | None]]) -> None:
        self.added += [job.key for job, _, _ in described]

    def close(self, job: Job) -> None:
        self.closed.append(job.key)

    def fail(self, job: Job, cause: str, message: str) -> None:
        self.failed.append((job.key, cause, message))

    def fetch(self) -> list[Verdict]:
        verdicts, self.verdicts = self.verdicts, []
        return verdicts

    def poll(self) -> list[Verdict]:
        if self.error:
            raise self.error
        return self.fetch()

    def wind_down(self) -> list[RunningJob]:
        return self.running

    def remind_of(self, kind: str, news: str) -> None:
        self.news.append(news)


class Alone(Executor):
    """The executor without Snakemake.

    Attributes:
        events: what Snakemake would learn: a word, and the output of a job.
        messages: of failures.
        marks: outputs of jobs that Snakemake takes for under way.
    """

    def __post_init__(self) -> None:
        pass

    def run_job_pre(self, job: Any) -> None:
        self.events.append(("begin", job.name))

    def report_job_submission(self, job_info: SubmittedJobInfo) -> None:
        self.events.append(("submitted", job_info.job.name))

    def report_job_success(self, job_info: SubmittedJobInfo) -> None:
        self.events.append(("success", job_info.job.name))

    def report_job_error(self, job_info: SubmittedJobInfo, msg: str | None = None, **more: Any) -> None:
        self.events.append(("failure", job_info.job.name))
        self.messages.append(msg or "")


def job(name: str, is_group: bool = False) -> Any:
    """A job of Snakemake. The name `bad` stands for a job with a resource that the executor rejects."""
    return SimpleNamespace(
        name=name,
        resources={"runtime": "soon"} if name == "bad" else {},
        threads=1,
        is_group=lambda: is_group,
        rule=SimpleNamespace(name="rule", lineno=1, snakefile="Snakefile"),
        output=[],
        wildcards={},
    )


class Scheduler:
    """Notes the calls of the executor; `running` are jobs that Snakemake has begun."""

    def __init__(self) -> None:
        self.running: list[Any] = []
        self.errors: list[str] = []
        self.graceful = 0

    def executor_error_callback(self, error: Exception) -> None:
        self.errors.append(str(error))
