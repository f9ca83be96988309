"""Snakemake's resources and what Slurm is asked for: the one table, and the request that comes of it."""

import difflib
import shlex
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

# Snakemake's resource: the field of `Request` that it fills, and what it says.
TABLE = {
    "cpus_per_task": ("cpus", "CPU cores of a job; the rule's threads where not given"),
    "mem_mb": ("mem_mb", "memory of a job in MB"),
    "mem_mb_per_cpu": ("mem_mb_per_cpu", "memory per CPU core in MB, instead of mem_mb"),
    "runtime": ("minutes", "minutes that a job may take"),
    "gpus": ("gpus", "GPUs that the jobs of a task share"),
    "gpu": ("gpus", "the same"),
    "slurm_partition": ("partition", "partition; --submitit-partition where not given"),
    "slurm_account": ("account", "account; --submitit-account where not given"),
    "qos": ("qos", "quality of service; --submitit-qos where not given"),
    "slurm_qos": ("qos", "the same"),
    "constraint": ("constraint", "node features; --submitit-constraint where not given"),
    "slurm_constraint": ("constraint", "the same"),
    "gres": ("gres", "generic resources, as for sbatch --gres, instead of gpus; --submitit-gres where not given"),
    "slurm_extra": ("extra", "further options of sbatch, as on its command line"),
    "bundle": ("bundle", "jobs in one array task at most; --submitit-bundle-size where not given"),
}
# Snakemake's own, which ask nothing of a cluster.
IGNORED = {"_cores", "_nodes", "_job_count", "tmpdir", "shell_exec", "mem", "mem_mib", "disk", "disk_mb", "disk_mib"}
# Submitit cannot leave the limit to the cluster, so there is one for those who did not set any.
MINUTES = 60


@dataclass(frozen=True)
class Request:
    """What one job asks for; jobs of one bundle ask for the same.

    Attributes:
        minutes: None only on the local cluster, where it means no limit.
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
    gres: str | None = None
    extra: str | None = None
    bundle: int = 1

    def slurm(self, slots: int, minutes: int) -> dict[str, Any]:
        """Parameters of submitit's AutoExecutor for a task of `slots` jobs at a time and so many minutes in all."""
        found: dict[str, Any] = {"timeout_min": minutes, "cpus_per_task": self.cpus * slots}
        if self.mem_mb is not None:
            found["mem_gb"] = self.mem_mb * slots / 1024
        if self.mem_mb_per_cpu is not None:
            found["slurm_mem_per_cpu"] = f"{self.mem_mb_per_cpu}M"
        if self.gres is not None:
            found["slurm_gres"] = self.gres
        elif self.gpus:
            found["gpus_per_node"] = self.gpus
        for name in ("partition", "account", "qos", "constraint"):
            if getattr(self, name) is not None:
                found[f"slurm_{name}"] = getattr(self, name)
        return found

    def options(self) -> dict[str, Any]:
        """`slurm_extra` as sbatch options by name.

        Raises:
            ValueError: it is not a list of long options.
        """
        found: dict[str, Any] = {}
        for word in shlex.split(self.extra or ""):
            name, equals, value = word.removeprefix("--").partition("=")
            if not word.startswith("--") or not name:
                raise ValueError(f"slurm_extra={self.extra!r}: {word!r} is not of the form --option or --option=value")
            found[name] = value if equals else True
        return found


def request(resources: Mapping[str, Any], threads: int, defaults: Request, constraints: Collection[str]) -> Request:
    """The request of a job.

    Args:
        resources: of the job, evaluated.
        defaults: from the settings.
        constraints: names that `snakemake --resources` limits for the whole workflow; they ask nothing of Slurm.

    Raises:
        ValueError: a resource is unknown, or its value is not of its kind.
    """
    kinds = {field.name: int if "int" in str(field.type) else str for field in fields(Request)}
    asked: dict[str, Any] = asdict(defaults) | {"cpus": threads}
    for name, value in resources.items():
        if name in TABLE:
            where = TABLE[name][0]
            try:
                asked[where] = kinds[where](value)
            except (TypeError, ValueError):
                raise ValueError(
                    f"the resource {name} must be of type {kinds[where].__name__}, got {value!r}"
                ) from None
        elif name not in IGNORED and name not in constraints:
            near = difflib.get_close_matches(name, TABLE, 1)
            raise ValueError(
                f"unknown resource {name!r}{f', did you mean {near[0]!r}?' if near else ''} Known to the submitit "
                f"executor are {', '.join(TABLE)}; any other has to be limited with `snakemake --resources {name}=N`"
            )
    if asked["bundle"] < 1:
        raise ValueError(f"the resource bundle must be at least 1, got {asked['bundle']}")
    if asked["mem_mb_per_cpu"] is not None:
        # Snakemake's default resources always include mem_mb.
        asked["mem_mb"] = None
    found = Request(**asked)
    found.options()
    return found
