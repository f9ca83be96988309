"""Translates the resources of a job into the request that its task makes of the cluster."""

import difflib
import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

# A resource in Snakemake: the field of `Request` that it fills, and its meaning.
TABLE = {
    "cpus_per_task": ("cpus", "CPU cores of a job; the rule's threads where not given"),
    "mem_mb": ("mem_mb", "memory of a job in MB"),
    "mem_mb_per_cpu": ("mem_mb_per_cpu", "memory per CPU core in MB, instead of mem_mb"),
    "runtime": ("minutes", "minutes that a job may take"),
    "gpus": ("gpus", "GPUs that the jobs of a task share"),
    "gpu": ("gpus", "the same; of both, the larger number"),
    "slurm_partition": ("partition", "partition; --submitit-partition where not given"),
    "slurm_account": ("account", "account; --submitit-account where not given"),
    "qos": ("qos", "quality of service; --submitit-qos where not given"),
    "slurm_qos": ("qos", "the same"),
    "constraint": ("constraint", "node features; --submitit-constraint where not given"),
    "slurm_constraint": ("constraint", "the same"),
    "clusters": ("clusters", "clusters, of which Slurm chooses one; --submitit-clusters where not given"),
    "gres": ("gres", "generic resources, as for sbatch --gres, instead of gpus; --submitit-gres where not given"),
    "slurm_extra": ("extra", "further options of sbatch, as on its command line"),
    "bundle": ("bundle", "jobs in one array task at most; --submitit-bundle-size where not given"),
}
# The least values of the fields of `Request` that are numbers. Slurm takes a memory of 0 for all of a node, and a time of 0 for no limit.
LEAST = {"cpus": 1, "mem_mb": 0, "mem_mb_per_cpu": 0, "minutes": 1, "gpus": 0, "bundle": 1}
# Snakemake's own resources, which ask nothing of a cluster.
IGNORED = {"_cores", "_nodes", "_job_count", "tmpdir", "shell_exec", "mem", "mem_mib", "disk", "disk_mb", "disk_mib"}
# Resources of Snakemake's own executor for Slurm, which this executor does not know: none of them is a misspelt name.
ELSEWHERE = {
    *("mpi", "nodes", "tasks", "tasks_per_node", "tasks_per_gpu", "cpus_per_gpu", "gpu_model", "gpu_manufacturer"),
    *("slurm_cluster", "slurm_clusters", "slurm_reservation", "reservation"),
}
# GPUs among generic resources.
GPUS = re.compile(r"(?:gres/)?gpu(?::(?!\d+$)[^:]+)?(?::(\d+))?")
# The time limit of a job without runtime, because submitit cannot leave the limit to the cluster.
MINUTES = 60


@dataclass(frozen=True)
class Request:
    """The request of a job to the cluster. All jobs of a bundle have the same request.

    Attributes:
        minutes: None only on the local cluster, where it means no limit.
        clusters: names with commas between them.
        bundle: jobs in one array task at most.
    """

    cpus: int = 1
    mem_mb: int | None = None
    mem_mb_per_cpu: int | None = None
    minutes: int | None = None
    gpus: int = 0
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    clusters: str | None = None
    gres: str | None = None
    extra: str | None = None
    bundle: int = 1

    def slurm(self, slots: int, minutes: int) -> dict[str, Any]:
        """Parameters of submitit for a task that runs `slots` jobs at a time, and takes so many minutes in all."""
        parameters: dict[str, Any] = {"timeout_min": minutes, "cpus_per_task": self.cpus * slots}
        if self.mem_mb is not None:
            parameters["mem_gb"] = self.mem_mb * slots / 1024
        if self.mem_mb_per_cpu is not None:
            parameters["slurm_mem_per_cpu"] = f"{self.mem_mb_per_cpu}M"
        if self.gres is not None:
            parameters["slurm_gres"] = self.gres
        elif self.gpus:
            parameters["gpus_per_node"] = self.gpus
        for name in ("partition", "account", "qos", "constraint"):
            if getattr(self, name) is not None:
                parameters[f"slurm_{name}"] = getattr(self, name)
        return parameters

    def here(self) -> "Request":
        """The request on this machine, where memory and minutes are not granted, so jobs that differ in them alone share a task."""
        return replace(self, mem_mb=None, mem_mb_per_cpu=None, minutes=None, gpus=self.devices(), gres=None)

    def devices(self) -> int:
        """The number of GPUs, which may be among the generic resources, such as gpu:2 or gpu:a100:1."""
        named = (GPUS.fullmatch(name) for name in (self.gres or "").split(","))
        return sum(int(found[1] or 1) for found in named if found) or self.gpus

    def options(self) -> dict[str, Any]:
        """`slurm_extra` as sbatch options by name.

        Raises:
            ValueError: it is not a list of long options.
        """
        options: dict[str, Any] = {}
        for word in shlex.split(self.extra or ""):
            name, equals, value = word.removeprefix("--").partition("=")
            if not word.startswith("--") or not name:
                raise ValueError(f"slurm_extra={self.extra!r}: {word!r} is not of the form --option or --option=value")
            options[name] = value if equals else True
        return options


def check_names(rules: Mapping[str, Iterable[str]], constraints: Collection[str]) -> list[str]:
    """Check the names of resources before any job runs; returns warnings for a person.

    A resource that is unknown here may serve the workflow itself (`attempt`), or another executor (`mpi`, `nodes`), so it is
    ignored with a warning; but a name that resembles a known name is taken for a misspelt one.

    Args:
        rules: the names of the resources of each rule.
        constraints: names that `snakemake --resources` limits for the whole workflow; they ask nothing of Slurm.

    Raises:
        ValueError: a name is misspelt.
    """
    unknown: dict[str, list[str]] = {}
    for rule, names in rules.items():
        for name in names:
            if name in TABLE or name in IGNORED or name in constraints:
                continue
            near = difflib.get_close_matches(name, TABLE, 1, 0.8)
            if near and name not in ELSEWHERE:
                raise ValueError(
                    f"unknown resource {name!r} of rule {rule}, did you mean {near[0]!r}? Known to the submitit "
                    f"executor are {', '.join(TABLE)}; limit any other with `snakemake --resources {name}=N`"
                )
            unknown.setdefault(name, []).append(rule)
    return [
        f"the resource {name!r} ({', '.join(rules)}) is not passed on to the cluster. Known are {', '.join(TABLE)}; "
        "slurm_extra takes any option of sbatch"
        for name, rules in unknown.items()
    ]


def request(resources: Mapping[str, Any], threads: int, defaults: Request) -> Request:
    """The request of a job. Resources that are not in the table ask for nothing.

    Args:
        resources: of the job, evaluated.
        defaults: from the settings.

    Raises:
        ValueError: a value is not of the resource's type, or out of range.
    """
    values: dict[str, Any] = asdict(defaults) | {"cpus": threads}
    for name, value in resources.items():
        if name in TABLE and value is not None:
            where = TABLE[name][0]
            number = _whole(name, value) if where in LEAST else _text(name, value)
            values[where] = max(values[where], number) if where == "gpus" else number
    if values["mem_mb_per_cpu"] is not None:
        # Snakemake's default resources always include mem_mb.
        values["mem_mb"] = None
    job_request = Request(**values)
    clusters = job_request.options().get("clusters", job_request.clusters)
    # The queue of each is asked by its name, so `all` will not do.
    if clusters is not None and not re.fullmatch(r"(?!all$)[\w.-]+(,[\w.-]+)*", str(clusters)):
        raise ValueError(
            f"clusters must be names of clusters with commas between them, such as one,two, got {clusters!r}"
        )
    return job_request


def _whole(name: str, value: Any) -> int:
    """The number that a resource states.

    Raises:
        ValueError: it is no whole number, or too small.
    """
    least = LEAST[TABLE[name][0]]
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
