"""From a job of Snakemake to a cell: whether its shell command says everything, or a nested Snakemake has to run it."""

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

from snakemake_interface_executor_plugins.settings import DeploymentMethod

from snakemake_executor_plugin_submitit.bundles import Cell

# Flags of outputs that need more than a command and its files.
_FLAGS = ("pipe", "service", "update", "nodelocal")


def obstacles(job: Any) -> Iterator[str]:
    """What a job has that only Snakemake itself can do; nothing for a plain shell command."""
    from snakemake.io import is_flagged

    if job.is_group():
        yield "group"
        return
    rule, workflow = job.rule, job.dag.workflow
    if not job.is_shell:
        yield "no shell command"
    if job.is_shadow:
        yield "shadow"
    methods = workflow.deployment_settings.deployment_method
    if DeploymentMethod.CONDA in methods and job.conda_env_spec:
        yield "conda"
    if DeploymentMethod.APPTAINER in methods and job.container_img_url:
        yield "container"
    if DeploymentMethod.ENV_MODULES in methods and job.env_modules:
        yield "environment modules"
    if rule.cache and workflow.workflow_settings.cache is not None:
        yield "between-workflow cache"
    if any(path.is_storage for path in (*job.input, *job.output, *job.log)):
        yield "storage"
    if any(is_flagged(path, flag) for path in (*job.input, *job.output) for flag in _FLAGS):
        yield "flags"
    if job.benchmark and (
        job.benchmark_repeats != 1 or workflow.output_settings.benchmark_extended or job.benchmark.is_storage
    ):
        yield "repeated or extended benchmark"
    if {"mpi", "shell_exec"} & job.resources.keys():
        yield "resources"
    if _shell_is_customised():
        yield "shell.prefix"


def _shell_is_customised() -> bool:
    from snakemake.shell import shell

    executable = (shell.get_executable() or "").rpartition("/")[2]
    return shell._process_prefix is not None or bool(shell._process_suffix) or executable != "bash"


def describe(job: Any, nested: Callable[[Any], str], minutes: int | None) -> tuple[Cell, str | None]:
    """The cell of a job, and the folder for its temporary files if not the node's own.

    Args:
        nested: gives the command line of the nested Snakemake for a job.
        minutes: after which it is stopped, if any.
    """
    limit = minutes * 60.0 if minutes else None
    if not any(True for _ in obstacles(job)):
        tmpdir = _tmpdir(job)
        command = job.shellcmd
        if tmpdir is not False and "<TBD>" not in command:
            directories = tuple(str(path) for path in job.output if path.is_directory)
            cell = Cell(
                key=_key(job.rule.name, command, job.output),
                rule=job.rule.name,
                kind="shell",
                command=command,
                inputs=tuple(map(str, job.input)),
                outputs=tuple(map(str, job.output)),
                directories=directories,
                logs=tuple(map(str, job.log)),
                benchmark=str(job.benchmark) if job.benchmark else None,
                limit=limit,
            )
            return cell, tmpdir
    members = list(job.jobs) if job.is_group() else [job]
    outputs = tuple(str(path) for member in members for path in member.output)
    names = sorted(member.rule.name for member in members)
    # What changes with the head (its temporary folder, say) is no part of the key.
    identity = [str(member.shellcmd or "") + str(member.wildcards_dict) for member in members]
    cell = Cell(
        key=_key("+".join(names), "\n".join(identity), outputs),
        rule="+".join(dict.fromkeys(names)),
        kind="snakemake",
        command=nested(job),
        inputs=tuple(str(path) for member in members for path in member.input if str(path) not in outputs),
        outputs=outputs,
        logs=tuple(str(path) for member in members for path in member.log),
        limit=limit,
    )
    return cell, None


def _tmpdir(job: Any) -> str | None | bool:
    """The resource tmpdir: None for the node's own, False if only a nested Snakemake can tell."""
    resource = job.rule.resources.get("tmpdir")
    if resource is None:
        return None
    raw = resource.raw
    if raw == "system_tmpdir":
        return None
    return False if resource.is_evaluable() else str(resource.value)


def _key(*parts: Any) -> str:
    return hashlib.sha256(repr([str(part) for part in parts]).encode()).hexdigest()[:24]
