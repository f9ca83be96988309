"""Snakemake executor that makes many short jobs cheap on Slurm, and treats long ones well, by way of submitit.

Jobs that are ready go out in bundles, each one task of an array, run by a worker that starts each job's command in a
fork: a console script that is named by `--submitit-scripts` without starting Python and importing its libraries anew.
What a fork cannot run faithfully (conda, containers, scripts, notebooks, shadow, ...) runs in a nested Snakemake, as
with other executors, in the same bundles. `--submitit-cluster local` runs the same way on one machine.
"""

import os
import shlex
import sys
import textwrap
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.real import RealExecutor
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface
from snakemake_interface_executor_plugins.settings import CommonSettings, ExecutorSettingsBase
from snakemake_interface_executor_plugins.utils import format_cli_arg

if TYPE_CHECKING:
    from snakemake_executor_plugin_submitit.bundles import Job
    from snakemake_executor_plugin_submitit.dispatch import Dispatcher, Verdict

common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    # The worker sets them; Snakemake's own declaration is not quoted for the shell.
    pass_envvar_declarations_to_cmd=False,
    auto_deploy_default_storage_provider=False,
)


def _setting(default: Any, help: str, **metadata: Any) -> Any:
    help = f"{help[:-1]} (default: {default})." if default else help
    return field(default=default, metadata={"help": help, "env_var": False, "required": False, **metadata})


@dataclass
class ExecutorSettings(ExecutorSettingsBase):
    """`snakemake --submitit-...`."""

    cluster: str = _setting("slurm", "Where tasks run: slurm, or local for this machine.", choices=["slurm", "local"])
    folder: str = _setting(
        ".snakemake/submitit", "Where bundles, their status files and submitit's files go; all nodes must see it."
    )
    scripts: str = _setting(
        "",
        "Console scripts of Snakemake's own environment, comma-separated, whose commands run in a fork of a process "
        "that has imported them already, instead of in a new Python each.",
    )
    bundle_size: int = _setting(200, "Jobs in one array task at most; the resource bundle overrides it for a rule.")
    bundle_seconds: int = _setting(
        600, "Seconds after which a task starts no further job; the next bundles of a rule are made to fit them."
    )
    workers: int = _setting(
        1, "Jobs that a task runs at a time, sharing its GPUs; it asks for as many times the cores and the memory."
    )
    array_parallelism: int = _setting(256, "Tasks of an array that Slurm runs at a time; on this machine, cores used.")
    array_size: int = _setting(1000, "Tasks in one array at most; stay below the site's MaxArraySize.")
    partition: str | None = _setting(None, "Slurm partition, unless a rule has the resource slurm_partition.", type=str)
    account: str | None = _setting(None, "Slurm account, unless a rule has the resource slurm_account.", type=str)
    qos: str | None = _setting(None, "Slurm quality of service, unless a rule has the resource qos.", type=str)
    constraint: str | None = _setting(None, "Node features, unless a rule has the resource constraint.", type=str)
    gres: str | None = _setting(None, "As sbatch --gres, unless a rule has the resource gres.", type=str)
    setup: str = _setting("", "Lines of shell to run in each task before Python starts, such as `module load cuda`.")
    max_requeues: int = _setting(
        3, "How often a job that saves its state may be cut short by its time limit, or lose its node, and go on."
    )
    grace: int = _setting(90, "Seconds before the time limit at which jobs are asked (SIGUSR2) to save their state.")


class Executor(RemoteExecutor):
    """Snakemake's side: describes jobs for the dispatcher, and reports its verdicts to Snakemake."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Snakemake's constructor starts the thread that checks, before it calls `__post_init__`.
        self.wake = threading.Event()
        self.dispatcher: Dispatcher | None = None
        # Snakemake's records by the key of a description, and descriptions by the identity of Snakemake's job.
        self.infos: dict[str, SubmittedJobInfo] = {}
        self.descriptions: dict[int, Job] = {}
        # Outputs that were there before a job that updates them, by the key of the job.
        self.updated: dict[str, list[Path]] = {}
        self.progress = time.monotonic()
        super().__init__(*args, **kwargs)

    def __post_init__(self) -> None:
        from snakemake_executor_plugin_submitit import clusters
        from snakemake_executor_plugin_submitit.bundles import Bundle
        from snakemake_executor_plugin_submitit.dispatch import Dispatcher, Settings
        from snakemake_executor_plugin_submitit.forked import script
        from snakemake_executor_plugin_submitit.resources import Request

        given = self.executor_settings
        for name in ("bundle_size", "bundle_seconds", "workers", "array_parallelism", "array_size"):
            if getattr(given, name) < 1:
                raise WorkflowError(
                    f"--submitit-{name.replace('_', '-')} must be at least 1, got {getattr(given, name)}"
                )
        clusters.clean_environment()
        scripts = tuple(name.strip() for name in given.scripts.split(",") if name.strip())
        for name in scripts:
            if script(name) is None:
                folder = Path(sys.executable).parent
                self.logger.warning(
                    f"--submitit-scripts: {folder} has no console script {name!r}, or another comes before it on PATH: "
                    "its commands will start a Python each"
                )
        self.defaults = Request(
            partition=given.partition,
            account=given.account,
            qos=given.qos,
            constraint=given.constraint,
            gres=given.gres,
            bundle=given.bundle_size,
        )
        kind = clusters.Slurm if given.cluster == "slurm" else clusters.Local
        try:
            self.dispatcher = Dispatcher(
                kind(given.setup.splitlines(), given.array_parallelism, given.workers, given.grace),
                Settings(
                    Path(given.folder),
                    given.array_size,
                    given.bundle_seconds,
                    Bundle(
                        jobs=(),
                        directory=os.getcwd(),
                        slots=given.workers,
                        scripts=scripts,
                        environment=dict(self.envvars()),
                        grace=given.grace,
                        latency_wait=self.workflow.execution_settings.latency_wait,
                        max_requeues=given.max_requeues,
                        origin=self.workflow.workdir_init,
                    ),
                ),
                submitted=self.note_submission,
                say=self.logger.info,
                recorded=self.recorded,
            )
        except (OSError, RuntimeError) as error:
            raise WorkflowError(f"submitit executor: {error}") from error

    def run_jobs(self, jobs: list[JobExecutorInterface]) -> None:
        from snakemake.exceptions import ProtectedOutputException

        from snakemake_executor_plugin_submitit.jobs import describe, members_of, protected, updated
        from snakemake_executor_plugin_submitit.resources import request

        for member in (member for job in jobs for member in members_of(job)):
            # As with Snakemake's own executor, nothing starts. After a failed job Snakemake would delete these.
            if files := protected(member):
                raise ProtectedOutputException(member, files)
        constraints = self.workflow.global_resources.keys()
        described = []
        for job in jobs:
            self.run_job_pre(job)
            info = SubmittedJobInfo(job)
            try:
                asked = request(job.resources, job.threads, self.defaults, constraints)
                description, tmpdir = describe(job, self.format_job_exec, asked.minutes)
            except (ValueError, WorkflowError) as error:
                self.report_job_error(info, msg=f"{error}\n")
                continue
            self.infos[description.key] = info
            self.descriptions[id(job)] = description
            if description.kind == "snakemake" and (before := updated(job)):
                self.updated[description.key] = before
            described.append((description, asked, tmpdir))
        # All at once, so that no bundle leaves half empty.
        assert self.dispatcher
        self.dispatcher.add(described)
        self.wake.set()

    def run_job(self, job: JobExecutorInterface) -> None:
        self.run_jobs([job])

    def note_submission(self, job: "Job", task: str) -> None:
        """Tell Snakemake that a job is on its way; again, when it got another place."""
        info = self.infos[job.key]
        again = info.external_jobid is not None
        info.external_jobid = task
        if not again:
            self.report_job_submission(info)

    def recorded(self, job: "Job") -> bool:
        """Whether Snakemake has taken away its mark of a job under way; a nested one's is no proof."""
        return job.kind == "shell" and not self.workflow.persistence.external_jobids(self.infos[job.key].job)

    async def check_active_jobs(self, active_jobs: list[SubmittedJobInfo]) -> AsyncIterator[SubmittedJobInfo]:
        try:
            verdicts = self.dispatcher.poll() if self.dispatcher else []
        except Exception as error:
            # Snakemake would go home and leave the jobs alone.
            self.logger.error(f"submitit executor: {type(error).__name__}: {error}")
            verdicts = []
        over = {id(self.infos[verdict.job.key]) for verdict in verdicts}
        for verdict in verdicts:
            self.report(verdict)
        if verdicts:
            self.progress = time.monotonic()
        for info in active_jobs:
            if id(info) not in over:
                yield info

    def report(self, verdict: "Verdict") -> None:
        """Pass a verdict on to Snakemake."""
        info = self.infos[verdict.job.key]
        info.external_jobid = verdict.task
        for path in self.updated.pop(verdict.job.key, []):
            # The nested Snakemake has put the old file back already. Without a copy, this one would delete it.
            if verdict.cause and path.exists() and not self.workflow.persistence._get_backup_path(path).exists():
                self.workflow.persistence.backup_output(path)
        if verdict.cause is None:
            self.report_job_success(info)
        else:
            lines = [f"{verdict.cause}: {verdict.message}", f"again: {self.again(verdict.job)}", ""]
            # Further in than Snakemake's own lines, which other programs read.
            message = textwrap.indent("\n".join(lines), " " * 8).lstrip()
            if info.job.is_group():
                # Of a group Snakemake tells but the names of its jobs.
                self.logger.error(f"{verdict.job.rule}: {message}")
            self.report_job_error(info, msg=message + " " * 4)

    def again(self, job: "Job") -> str:
        """The command that makes a job again: this one, for its output alone."""
        targets = {*map(str, self.workflow.dag_settings.targets), "--"}
        words = [word for word in sys.argv[1:] if word not in ("--forceall", "-F", "--force", "-f")]
        while words and words[-1] in targets:
            words.pop()
        return shlex.join(["snakemake", *words, "--", job.outputs[0] if job.outputs else job.rule])

    def handle_job_success(self, job: JobExecutorInterface) -> None:
        self.told(job)

    def handle_job_error(self, job: JobExecutorInterface) -> None:
        self.told(job)

    def told(self, job: JobExecutorInterface) -> None:
        """Snakemake has dealt with the end of a job."""
        description = self.descriptions.pop(id(job), None)
        if description and self.dispatcher:
            self.dispatcher.told(description)
            del self.infos[description.key]

    def cancel_jobs(self, active_jobs: list[SubmittedJobInfo]) -> None:
        if self.dispatcher:
            self.dispatcher.cancel()

    def get_job_args(self, job: JobExecutorInterface, **kwargs: Any) -> str:
        # Not the head's temporary folder, as RemoteExecutor has it: a job may outlive its head.
        waited = format_cli_arg("--wait-for-files", job.get_wait_for_files())
        return f"{RealExecutor.get_job_args(self, job, **kwargs)} {waited}"

    def additional_general_args(self) -> str:
        # By default each nested Snakemake lingers for a second at its end. The interface documents a list, but joins
        # this with strings.
        return "--max-jobs-per-timespan 100000/0s"

    async def sleep(self) -> None:
        most = float(self.workflow.remote_execution_settings.seconds_between_status_checks)
        if self.executor_settings.cluster == "local":
            most = min(most, 0.3)
        self.wake.wait(min(most, max(0.1, 0.2 * (time.monotonic() - self.progress))))
        self.wake.clear()

    def shutdown(self) -> None:
        self.wake.set()
        super().shutdown()
        if self.dispatcher:
            self.dispatcher.rest()
