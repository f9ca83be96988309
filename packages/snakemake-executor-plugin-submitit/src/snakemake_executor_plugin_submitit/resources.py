"""Translates the resources of a job into the request that its task makes of the cluster."""

import difflib
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

# A resource in Snakemake that every cluster knows -> the field of `Request` that it fills. Clusters have further resources of their own.
TABLE = {
    "cpus_per_task": "cpus",
    "mem_mb": "mem_mb",
    "mem_mb_per_cpu": "mem_mb_per_cpu",
    "runtime": "minutes",
    "gpus": "gpus",
    "gpu": "gpus",
    "bundle": "bundle",
}
# The least values of these fields. A cluster may take a memory of 0 for all of a node, and a time of 0 for no limit.
LEAST = {"cpus": 1, "mem_mb": 0, "mem_mb_per_cpu": 0, "minutes": 1, "gpus": 0, "bundle": 1}
# Snakemake's own resources, which ask nothing of a cluster.
IGNORED = {"_cores", "_nodes", "_job_count", "tmpdir", "shell_exec", "mem", "mem_mib", "disk", "disk_mb", "disk_mib"}
# Resources of Snakemake's own executor for Slurm, which this executor does not know: none of them is a misspelt name.
ELSEWHERE = {
    *("mpi", "nodes", "tasks", "tasks_per_node", "tasks_per_gpu", "cpus_per_gpu", "gpu_model", "gpu_manufacturer"),
    *("slurm_cluster", "slurm_clusters", "slurm_reservation", "reservation"),
}
# The time limit of a job without runtime, because submitit cannot leave the limit to the cluster.
MINUTES = 60


@dataclass(frozen=True)
class Request:
    """The request of a job to the cluster. All jobs of a bundle have the same request.

    Attributes:
        minutes: None only on a cluster without time limits.
        bundle: jobs in one array task at most.
        options: names and values of the options of the cluster's own, sorted by name.
    """

    cpus: int = 1
    mem_mb: int | None = None
    mem_mb_per_cpu: int | None = None
    minutes: int | None = None
    gpus: int = 0
    bundle: int = 1
    options: tuple[tuple[str, str], ...] = ()

    @property
    def memory(self) -> int | None:
        """Memory of a job in MB; None if the request states none."""
        return self.mem_mb_per_cpu * self.cpus if self.mem_mb_per_cpu is not None else self.mem_mb

    def option(self, name: str) -> str | None:
        """The value of an option of the cluster's own; None if the request does not state it."""
        return dict(self.options).get(name)

    def having(self, **options: str | None) -> "Request":
        """The request with other options of the cluster's own. None takes an option away."""
        merged = {**dict(self.options), **options}
        return replace(self, options=tuple(sorted((key, value) for key, value in merged.items() if value is not None)))


def check_names(
    rules: Mapping[str, Iterable[str]], constraints: Collection[str], own: Collection[str], others: Collection[str]
) -> list[str]:
    """Check the names of resources before any job runs; returns warnings for a person.

    A resource that is unknown here may serve the workflow itself (`attempt`), or another executor (`mpi`, `nodes`), so it is
    ignored with a warning; but a name that resembles a known name is taken for a misspelt one.

    Args:
        rules: the names of the resources of each rule.
        constraints: names that `snakemake --resources` limits for the whole workflow; they ask nothing of the cluster.
        own: the cluster's own resources.
        others: the own resources of other clusters, on which the workflow may run, too.

    Raises:
        ValueError: a name is misspelt.
    """
    known = [*TABLE, *own]
    unknown: dict[str, list[str]] = {}
    for rule, names in rules.items():
        for name in names:
            if name in known or name in IGNORED or name in constraints or name in others:
                continue
            near = difflib.get_close_matches(name, [*known, *others], 1, 0.8)
            if near and name not in ELSEWHERE:
                raise ValueError(
                    f"unknown resource {name!r} of rule {rule}, did you mean {near[0]!r}? Known to the submitit "
                    f"executor are {', '.join(known)}; limit any other with `snakemake --resources {name}=N`"
                )
            unknown.setdefault(name, []).append(rule)
    return [
        f"the resource {name!r} ({', '.join(rules)}) is not passed on to the cluster. Known are {', '.join(known)}"
        for name, rules in unknown.items()
    ]


def request(resources: Mapping[str, Any], threads: int, defaults: Request, own: Mapping[str, str]) -> Request:
    """The request of a job. Resources that neither the table nor the cluster has ask for nothing.

    Args:
        resources: of the job, evaluated.
        defaults: from the settings.
        own: the cluster's own resources: the name of each, and the option that it states.

    Raises:
        ValueError: a value is not of the resource's type, or out of range.
    """
    values: dict[str, int] = {"cpus": threads}
    options: dict[str, str] = {}
    for name, value in resources.items():
        if value is None:
            continue
        if name in own:
            options[own[name]] = _text(name, value)
        elif name in TABLE:
            number, field = _whole(name, value), TABLE[name]
            values[field] = max(values.get(field, 0), number) if field == "gpus" else number
    job_request = replace(defaults, **values).having(**options)  # type: ignore[arg-type]
    # Snakemake's default resources always include mem_mb.
    return job_request if job_request.mem_mb_per_cpu is None else replace(job_request, mem_mb=None)


def _whole(name: str, value: Any) -> int:
    """The number that a resource states.

    Raises:
        ValueError: it is no whole number, or too small.
    """
    least = LEAST[TABLE[name]]
    with suppress(ValueError):
        if not isinstance(value, bool) and isinstance(value, int | str) and int(value) >= least:
            return int(value)
    raise ValueError(f"the resource {name} must be a whole number of at least {least}, got {value!r}")


def _text(name: str, value: Any) -> str:
    """The text that a resource states.

    Raises:
        ValueError: it is no text. Python and YAML take words such as 0123, yes and all for something else.
    """
    if isinstance(value, str):
        return value
    raise ValueError(
        f'the resource {name} must be text, got {value!r}. Write it in quotes, as in {name}="0123" in a Snakefile, '
        f"{name}: \"'0123'\" in a profile, or \"{name}='0123'\" on a command line"
    )
