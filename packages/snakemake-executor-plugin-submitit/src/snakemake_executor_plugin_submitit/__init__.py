"""Snakemake executor that runs many short jobs cheaply on Slurm, and long jobs safely, through submitit.

Jobs that are ready are submitted in bundles. A bundle is one task of an array, and its worker starts each job's command in
a fork. If `--submitit-scripts` names the console script of a command, the fork runs the script without a new Python, whose
libraries the worker has imported; a script that can `serve` runs one command after another in the same process. Jobs that need more than a shell (conda, containers, scripts, notebooks, shadow, ...)
run in a nested Snakemake, as with other executors, in the same bundles. `--submitit-cluster local` runs the same way on
one machine, and packages may add other clusters (`snakemake_executor_plugin_submitit.clusters`).
"""

import itertools
import os
import shlex
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import Any

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.real import RealExecutor
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface
from snakemake_interface_executor_plugins.settings import CommonSettings, ExecutorSettingsBase
from snakemake_interface_executor_plugins.utils import format_cli_arg

from snakemake_executor_plugin_submitit import forked
from snakemake_executor_plugin_submitit.bundles import Bundle, Job
from snakemake_executor_plugin_submitit.clusters import CLUSTERS, RESOURCES
from snakemake_executor_plugin_submitit.clusters.cluster import Cluster
from snakemake_executor_plugin_submitit.dispatch import Dispatcher, Unreachable
from snakemake_executor_plugin_submitit.ending import Requests, RunningJob, waiting_for, wake_on_signals
from snakemake_executor_plugin_submitit.failures import REJECTED
from snakemake_executor_plugin_submitit.jobs import describe, identify, members_of, protected, updated
from snakemake_executor_plugin_submitit.messages import Mail
from snakemake_executor_plugin_submitit.profiles import check_profiles, profiles
from snakemake_executor_plugin_submitit.resources import Request, check_names, request
from snakemake_executor_plugin_submitit.submission import Settings
from snakemake_executor_plugin_submitit.verdicts import Verdict

# Seconds for which the thread that checks rests for each second of processor time that a check took.
REST = 3.0

common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    # The worker sets the variables, because Snakemake does not quote their declaration for the shell.
    pass_envvar_declarations_to_cmd=False,
    auto_deploy_default_storage_provider=False,
)


def _setting(default: Any, help: str, least: int = 1, **metadata: Any) -> Any:
    """A setting; `least` is the smallest number that it may be."""
    help = f"{help[:-1]} (default: {default})." if default else help
    return field(
        default=default, metadata={"help": help, "env_var": False, "required": False, "least": least, **metadata}
    )


@dataclass
class OnEveryCluster(ExecutorSettingsBase):
    """`snakemake --submitit-...`, on every cluster."""

    cluster: str = _setting("slurm", "Where tasks run: a cluster, or local for this machine.", choices=list(CLUSTERS))
    folder: str = _setting(
        ".snakemake/submitit", "Where bundles, their status files and submitit's files go; all nodes must see it."
    )
    scripts: str = _setting(
        "",
        "Console scripts of Snakemake's own environment, comma-separated, whose commands run in a fork of a process "
        "that has imported them already, or in a process that runs one after another, instead of in a new Python each.",
    )
    bundle_size: int = _setting(200, "Jobs in one array task at most; the resource bundle overrides it for a rule.")
    bundle_seconds: int = _setting(
        600, "Seconds after which a task starts no further job; the next bundles of a rule are made to fit them."
    )
    workers: int = _setting(
        1, "Jobs that a task runs at a time, sharing its GPUs; it asks for as many times the cores and the memory."
    )
    array_parallelism: int = _setting(
        256, "Tasks of an array that the cluster runs at a time; on this machine, cores used."
    )
    array_size: int = _setting(1000, "Tasks in one array at most; stay below the site's limit (MaxArraySize of Slurm).")
    jobname_prefix: str = _setting("", "Begins the name of each array in the cluster's queue; the rule follows.")
    setup: str = _setting("", "Lines of shell to run in each task before Python starts, such as `module load gcc`.")
    max_requeues: int = _setting(
        3, "How often a job that saves its state may be cut short by its time limit, or lose its node, and go on.", 0
    )
    unreachable_minutes: int = _setting(
        120,
        "Minutes after which the run ends if the cluster does not answer; its tasks go on, and the next run finds them.",
    )
    grace: int = _setting(90, "Seconds before the time limit at which jobs are asked (SIGUSR2) to save their state.")


# Snakemake reads the fields of this class. Clusters may share the name of a setting.
ExecutorSettings = make_dataclass(
    "ExecutorSettings",
    {
        name: (name, str | None, _setting(None, help, type=str))
        for cluster in CLUSTERS.values()
        for name, help in cluster.settings.items()
    }.values(),
    bases=(OnEveryCluster,),
)


class Executor(RemoteExecutor):
    """Describes Snakemake's jobs for the dispatcher, and reports the dispatcher's verdicts to Snakemake."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Snakemake's constructor starts the thread that checks, before it calls `__post_init__`.
        self.mail = Mail()
        # Seconds of processor time that the last check took.
        self.spent = 0.0
        self.dispatcher: Dispatcher | None = None
        # Snakemake's records by the key of a description, and descriptions by the identity of Snakemake's job.
        self.infos: dict[str, SubmittedJobInfo] = {}
        self.descriptions: dict[int, Job] = {}
        # Outputs that were there before a job that updates them, by the key of the job.
        self.updated: dict[str, list[Path]] = {}
        # Keys of jobs whose command has succeeded, and whose outputs Snakemake checks.
        self.succeeded: set[str] = set()
        # Keys of jobs with a verdict that Snakemake has not taken note of.
        self.judged: set[str] = set()
        self.progress = time.monotonic()
        self.requests: Requests | None = None
        # Since SIGTERM: whether Snakemake knows, whether no job ran at the last look, and whether the run is over.
        self.is_winding_down = self.is_quiet = self.has_ended = False
        super().__init__(*args, **kwargs)

    def __post_init__(self) -> None:
        from snakemake.scheduling.job_scheduler import JobScheduler

        settings, cluster = self.executor_settings, CLUSTERS[self.executor_settings.cluster]
        self.check_settings()
        self.check_resources(cluster)
        self.mail.listen(cluster.is_local)
        shared = Bundle(
            jobs=(),
            directory=os.getcwd(),
            slots=settings.workers,
            scripts=self.scripts(),
            environment=dict(self.envvars()),
            grace=settings.grace,
            latency_wait=self.workflow.execution_settings.latency_wait,
            max_requeues=settings.max_requeues,
            origin=self.workflow.workdir_init,
            head=self.mail.address,
            idle=cluster.idle,
        )
        try:
            self.dispatcher = Dispatcher(
                cluster(
                    settings.setup.splitlines(),
                    settings.array_parallelism,
                    settings.workers,
                    settings.grace,
                    {name: getattr(settings, name) for name in cluster.settings},
                    self.logger,
                ),
                Settings(
                    Path(settings.folder),
                    settings.array_size,
                    settings.bundle_seconds,
                    shared,
                    settings.unreachable_minutes,
                    settings.jobname_prefix,
                ),
                submitted=self.note_submission,
                say=self.logger.info,
                recorded=self.recorded,
                mail=self.mail,
            )
        except (OSError, RuntimeError, ValueError) as error:
            raise WorkflowError(f"submitit executor: {error}") from error
        self.defaults = Request(bundle=settings.bundle_size).having(**self.dispatcher.cluster.options)
        # Loggers, and commands that the workflow calls when it ends, read the ledger.
        os.environ["SUBMITIT_LEDGER"] = os.path.abspath(settings.folder)
        self.requests = Requests(JobScheduler)
        wake_on_signals()
        if cluster.is_local:
            # The tasks of a cluster go on without the head, and the next one finds them.
            self.requests.hear_hangup()

    def check_settings(self) -> None:
        """Check the settings before anything is submitted.

        Raises:
            WorkflowError: a number is too small, or the folder cannot be used.
        """
        settings = self.executor_settings
        for setting in fields(settings):
            value, least = getattr(settings, setting.name), setting.metadata["least"]
            if isinstance(value, int) and value < least:
                raise WorkflowError(
                    f"--submitit-{setting.name.replace('_', '-')} must be at least {least}, got {value}"
                )
        if "%" in os.path.relpath(settings.folder) or "\\" in os.path.abspath(settings.folder):
            raise WorkflowError(
                f"--submitit-folder {settings.folder!r} is {os.path.abspath(settings.folder)}: clusters and submitit replace % and \\ "
                "in paths, so name a folder in the working directory without them"
            )

    def check_resources(self, cluster: type[Cluster]) -> None:
        """Warn about resources of rules that ask nothing of the cluster.

        Raises:
            WorkflowError: the name of a resource is misspelt, or a profile states another value than it seems to.
        """
        rules = {rule.name: rule.resources for rule in self.workflow.rules if not self.workflow.is_local(rule)}
        try:
            check_profiles(profiles(sys.argv[1:]))
            for warning in check_names(rules, self.workflow.global_resources.keys(), cluster.resources, RESOURCES):
                self.logger.warning(f"submitit executor: {warning}")
        except ValueError as error:
            raise WorkflowError(f"submitit executor: {error}") from None

    def scripts(self) -> tuple[str, ...]:
        """The console scripts that the setting names. Warns about those that cannot run in a fork."""
        names = tuple(name.strip() for name in self.executor_settings.scripts.split(",") if name.strip())
        for name in names:
            if forked.script(name) is None:
                self.logger.warning(
                    f"--submitit-scripts: {Path(sys.executable).parent} has no console script {name!r}, or another comes before it "
                    "on PATH: its commands will start a Python each"
                )
        return names

    def run_jobs(self, jobs: list[JobExecutorInterface]) -> None:
        from snakemake.exceptions import ProtectedOutputException

        for member in (member for job in jobs for member in members_of(job)):
            # As with Snakemake's own executor, no job starts. A failed job's outputs would be deleted.
            if files := protected(member):
                raise ProtectedOutputException(member, files)
        assert self.dispatcher
        cluster, described = self.dispatcher.cluster, []
        for job in jobs:
            self.run_job_pre(job)
            info = SubmittedJobInfo(job)
            try:
                job_request = cluster.adapt(request(job.resources, job.threads, self.defaults, cluster.resources))
                description, tmpdir = describe(job, self.format_job_exec, job_request.minutes)
            except (ValueError, WorkflowError) as error:
                self.dispatcher.fail(identify(job), REJECTED, str(error))
                self.report_job_error(info, msg=f"{error}\n")
                continue
            self.infos[description.key] = info
            self.descriptions[id(job)] = description
            if description.kind == "snakemake" and (before := updated(job)):
                self.updated[description.key] = before
            described.append((description, job_request, tmpdir))
        # The dispatcher gets all jobs at once, so that no bundle is submitted half empty.
        self.dispatcher.add(described)
        self.mail.ring()

    def run_job(self, job: JobExecutorInterface) -> None:
        self.run_jobs([job])

    def note_submission(self, job: Job, task: str) -> None:
        """Tell Snakemake that a job has a task. A job that is submitted again gets another task."""
        info = self.infos[job.key]
        is_first = info.external_jobid is None
        info.external_jobid = task
        if is_first:
            self.report_job_submission(info)

    def recorded(self, job: Job) -> bool:
        """Whether Snakemake has recorded the end of a job, and so has removed its mark of a job under way.

        A nested Snakemake removes that mark as well, so it proves nothing for its jobs.
        """
        return job.kind == "shell" and not self.workflow.persistence.external_jobids(self.infos[job.key].job)

    async def check_active_jobs(self, active_jobs: list[SubmittedJobInfo]) -> AsyncIterator[SubmittedJobInfo]:
        began = time.thread_time()
        verdicts: list[Verdict] = []
        if self.dispatcher:
            try:
                verdicts = self.dispatcher.poll()
            except Unreachable as error:
                raise WorkflowError(f"submitit executor: {error}") from None
            except Exception as error:
                # An exception would end Snakemake, and nobody would follow the jobs.
                self.logger.error(f"submitit executor: {type(error).__name__}: {error}")
                verdicts = self.dispatcher.fetch()
        over = {id(self.infos[verdict.job.key]) for verdict in verdicts}
        for verdict in verdicts:
            self.report(verdict)
        if verdicts:
            self.progress = time.monotonic()
        if self.requests and self.requests.first and self.workflow.scheduler and not self.has_ended:
            self.wind_down()
        self.spent = time.thread_time() - began
        for info in active_jobs:
            if id(info) not in over:
                yield info

    def report(self, verdict: Verdict) -> None:
        """Pass a verdict on to Snakemake."""
        info = self.infos[verdict.job.key]
        self.judged.add(verdict.job.key)
        info.external_jobid = verdict.task
        for path in self.updated.pop(verdict.job.key, []):
            # The nested Snakemake has restored the old file. This Snakemake deletes the file unless it has a backup.
            if verdict.cause and path.exists() and not self.workflow.persistence._get_backup_path(path).exists():
                self.workflow.persistence.backup_output(path)
        if verdict.cause is None:
            self.succeeded.add(verdict.job.key)
            self.report_job_success(info)
        else:
            lines = [f"{verdict.cause}: {verdict.message}", f"again: {self.again(verdict.job)}", ""]
            # Indented more than Snakemake's own lines, which other programs parse.
            message = textwrap.indent("\n".join(lines), " " * 8).lstrip()
            if info.job.is_group():
                # Snakemake prints only the names of a group's jobs, without this message.
                self.logger.error(f"{verdict.job.rule}: {message}")
            self.report_job_error(info, msg=message + " " * 4)

    def wind_down(self) -> None:
        """Have no further job started after SIGTERM, say which jobs still run, and end the run when they have ended."""
        assert self.requests and self.dispatcher
        scheduler = self.workflow.scheduler
        if not self.is_winding_down:
            self.is_winding_down = True
            # It takes Snakemake's lock, so this thread may wait for the main thread, but the main thread never for itself.
            self.requests.snakemake(scheduler)
        running = self.dispatcher.wind_down()
        # Jobs that Snakemake runs itself. It has begun those that wait for a free core of this machine, too.
        for job in list(scheduler.running):
            if id(job) not in self.descriptions:
                running.append(RunningJob(str(next(iter(job.output), job.name)), None))
        if running:
            self.dispatcher.remind_of("ending", waiting_for(self.requests.first, running))
        elif self.is_quiet and self.infos and not self.judged:
            # Snakemake waits for these jobs, which never will start; it ends by itself if there are none.
            self.has_ended = True
            count = f"{len(self.infos)} {'job was' if len(self.infos) == 1 else 'jobs were'}"
            scheduler.executor_error_callback(
                WorkflowError(
                    f"submitit executor: {self.requests.first}: {count} not started or not finished. The same command continues"
                )
            )
        # A job may have ended since the statuses were read, so one look is not enough.
        self.is_quiet = not running

    def again(self, job: Job) -> str:
        """The command that runs a job again: the present one, with an output of the job as its only target."""
        words = without_targets(sys.argv[1:], {*map(str, self.workflow.dag_settings.targets)})
        return shlex.join(["snakemake", *words, "--", job.outputs[0] if job.outputs else job.rule])

    def handle_job_success(self, job: JobExecutorInterface) -> None:
        self.close(job)

    def handle_job_error(self, job: JobExecutorInterface) -> None:
        description = self.descriptions.get(id(job))
        if description and self.dispatcher and description.key in self.succeeded:
            # Its command has succeeded, but Snakemake has not accepted the outputs, and is handling the exception now.
            error = sys.exception()
            self.dispatcher.fail(description, REJECTED, str(error) if error else "see the log of Snakemake")
        self.close(job)

    def close(self, job: JobExecutorInterface) -> None:
        """Note that Snakemake knows how a job ended."""
        description = self.descriptions.pop(id(job), None)
        if description and self.dispatcher:
            self.succeeded.discard(description.key)
            self.judged.discard(description.key)
            self.dispatcher.close(description)
            del self.infos[description.key]

    def cancel_jobs(self, active_jobs: list[SubmittedJobInfo]) -> None:
        if self.requests:
            self.requests.is_final = True
        if self.dispatcher:
            self.dispatcher.cancel()

    def get_job_args(self, job: JobExecutorInterface, **kwargs: Any) -> str:
        # RemoteExecutor adds the head's temporary folder, which a job may outlive.
        wait_for_files = format_cli_arg("--wait-for-files", job.get_wait_for_files())
        return f"{RealExecutor.get_job_args(self, job, **kwargs)} {wait_for_files}"

    def additional_general_args(self) -> str:
        # Without this option each nested Snakemake waits for a second at its end. The interface documents a list, but
        # expects a string.
        arguments = "--max-jobs-per-timespan 100000/0s"
        if self.workflow.overwrite_workdir is not None:
            # It is there already, but with this option it does not follow the workflow's `workdir:`.
            arguments += f" --directory {shlex.quote(self.workflow.workdir_init)}"
        return arguments

    async def sleep(self) -> None:
        longest = float(self.workflow.remote_execution_settings.seconds_between_status_checks)
        if CLUSTERS[self.executor_settings.cluster].is_local:
            longest = min(longest, 0.3)
        # Messages may come faster than they are worth reading: this thread rests for longer than it worked.
        time.sleep(min(longest, REST * self.spent))
        self.mail.wait(min(longest, max(0.1, 0.2 * (time.monotonic() - self.progress))))

    def shutdown(self) -> None:
        self.mail.ring()
        super().shutdown()
        if self.dispatcher:
            self.dispatcher.rest()


def without_targets(arguments: Sequence[str], targets: Collection[str]) -> list[str]:
    """The arguments of a call of Snakemake without its targets and without options that run jobs again."""
    words: list[str] = []
    is_forced = False
    for word in itertools.dropwhile(lambda word: word in targets, arguments):
        # The words after this option are files and rules, up to the next option.
        is_forced = word in ("--forcerun", "-R") or (is_forced and not word.startswith("-"))
        if not is_forced and word not in ("--forceall", "-F", "--force", "-f"):
            words.append(word)
    while words and words[-1] in {*targets, "--"}:
        words.pop()
    return words
