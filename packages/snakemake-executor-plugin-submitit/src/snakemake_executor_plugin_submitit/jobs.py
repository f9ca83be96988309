"""Describes a job of Snakemake for a worker: as its shell command alone, or as the command of a nested Snakemake."""

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from snakemake_interface_executor_plugins.settings import DeploymentMethod

from snakemake_executor_plugin_submitit.bundles import Job

# Flags of files that only Snakemake itself can honour.
_FLAGS = ("pipe", "service", "update", "nodelocal")


def obstacles(job: Any) -> Iterator[str]:
    """The features of a job that only Snakemake itself can run; none for a plain shell command."""
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
    # Earlier versions of Snakemake have a flag here, the present one an object that is always true.
    if getattr(rule.cache, "output", rule.cache) and workflow.workflow_settings.cache is not None:
        yield "between-workflow cache"
    if any(path.is_storage for path in (*job.input, *job.output, *job.log)):
        yield "storage"
    if any(is_flagged(path, flag) for path in (*job.input, *job.output) for flag in _FLAGS):
        yield "flags"
    if job.benchmark and (
        job.benchmark_repeats != 1 or workflow.output_settings.benchmark_extended or job.benchmark.is_storage
    ):
        yield "repeated or extended benchmark"
    if job.benchmark and job.is_shell and "bench_iteration" in rule.shellcmd:
        yield "number of the benchmark's iteration"
    if job.resources.get("shell_exec"):
        yield "shell_exec"
    temporary = rule.resources.get("tmpdir")
    if temporary is not None and temporary.raw != "system_tmpdir" and temporary.is_evaluable():
        yield "tmpdir to be computed on the node"
    if job.is_shell and "<TBD>" in job.shellcmd:
        yield "resources to be computed on the node"
    if _shell_is_customised():
        yield "shell.prefix"


def _shell_is_customised() -> bool:
    from snakemake.shell import shell

    executable = (shell.get_executable() or "").rpartition("/")[2]
    return shell._process_prefix is not None or bool(shell._process_suffix) or executable != "bash"


def identify(job: Any) -> Job:
    """The rule, outputs and logs of a job that cannot be described, by which its failure can be noted."""
    members = members_of(job)
    return Job(
        key="",
        rule=_names(members),
        kind="shell",
        command="",
        outputs=tuple(str(path) for member in members for path in member.output),
        logs=tuple(str(path) for member in members for path in member.log),
    )


def _names(members: list[Any]) -> str:
    return "+".join(sorted({member.rule.name for member in members}))


def describe(job: Any, nested: Callable[[Any], str], minutes: int | None) -> tuple[Job, str | None]:
    """Describe a job of Snakemake; also returns the folder for its temporary files, None for the node's own.

    Args:
        nested: returns the command line of the nested Snakemake for a job.
        minutes: after which the job is stopped; None for no limit.
    """
    limit = minutes * 60.0 if minutes else None
    plain = next(obstacles(job), None) is None
    members = members_of(job)
    outputs = tuple(str(path) for member in members for path in member.output)
    names = _names(members)
    commands = [member.shellcmd or "" for member in members]
    # The command line of a nested Snakemake differs between heads, so it is no part of the identity.
    identity = [names, *outputs, *commands]
    for member in members:
        identity += [str(member.wildcards_dict), *map(str, member.input)]
        if not plain:
            identity += _program(member)
    description = Job(
        key=hashlib.sha256("\n".join(identity).encode()).hexdigest()[:24],
        rule=names,
        kind="shell" if plain else "snakemake",
        command=commands[0] if plain else nested(job),
        inputs=tuple(str(path) for member in members for path in member.input if str(path) not in outputs),
        outputs=outputs,
        directories=tuple(str(path) for member in members for path in member.output if path.is_directory),
        logs=tuple(str(path) for member in members for path in member.log),
        benchmark=str(job.benchmark) if plain and job.benchmark else None,
        limit=limit,
    )
    return description, _tmpdir(job) if plain else None


def _program(job: Any) -> list[str]:
    """Return the program of a job without a plain shell command: code, software, parameters, and the age of its script."""
    rule = job.rule
    program = [str(rule.run_func_src), str(rule.wrapper), str(job.conda_env_spec), str(job.container_img_url)]
    program += [f"{name}={value!r}" for name, value in job.params.items()]
    if source := rule.script or rule.notebook:
        path = job._path_to_source_file(source).get_path_or_uri(secret_free=True)
        program += [path, str(os.stat(path).st_mtime_ns) if os.path.exists(path) else ""]
    return program


def members_of(job: Any) -> list[Any]:
    """The jobs of a group, or the job itself."""
    return list(job.jobs) if job.is_group() else [job]


def protected(job: Any) -> list[str]:
    """Existing outputs that are write-protected, so that the job must not start."""
    return [
        path
        for path in map(str, job.output)
        if not os.access(path, os.W_OK) and os.path.exists(path) and not os.path.islink(path)
    ]


def updated(job: Any) -> list[Path]:
    """Existing outputs that the job updates."""
    from snakemake.io import is_flagged

    return [
        Path(path)
        for member in members_of(job)
        for path in member.output
        if is_flagged(path, "update") and os.path.exists(path)
    ]


def _tmpdir(job: Any) -> str | None:
    """The resource tmpdir as it was given; None for the node's own folder."""
    resource = job.rule.resources.get("tmpdir")
    return None if resource is None or resource.raw == "system_tmpdir" else str(resource.value)
