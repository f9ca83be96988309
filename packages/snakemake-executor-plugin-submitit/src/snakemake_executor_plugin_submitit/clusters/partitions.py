"""Chooses the partition of a job on Slurm by a table of the limits of partitions.

The table is a file of YAML in the format of `--slurm-partition-config`, a setting of snakemake-executor-plugin-slurm.
"""

import difflib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import yaml

from snakemake_executor_plugin_submitit.resources import MINUTES, Request

# Keys of the format that limit what no job of this executor requests.
OTHERS = {
    *("max_nodes", "max_tasks", "max_tasks_per_node", "max_mpi_tasks", "supports_mpi"),
    *("available_gpu_models", "max_cpus_per_gpu"),
}
CLUSTER = ("cluster", "slurm_cluster", "clusters")
# Minutes of a unit of time.
UNITS = {"m": 1, "h": 60, "d": 24 * 60}


@dataclass(frozen=True)
class Partition:
    """What a partition allows for a task.

    Attributes:
        max_runtime: minutes.
        available_constraints: features that its nodes have; None for any.
        cluster: where it is; None for the cluster of this machine.
    """

    name: str
    max_runtime: float = math.inf
    max_mem_mb: float = math.inf
    max_mem_mb_per_cpu: float = math.inf
    max_cpus_per_task: float = math.inf
    max_threads: float = math.inf
    max_gpu: float = 0
    available_constraints: tuple[str, ...] | None = None
    cluster: str | None = None

    def shares(self, request: Request, slots: int) -> Iterator[tuple[str, float, float]]:
        """What a task with so many jobs at a time requests of each kind, and what is allowed."""
        yield "runtime", request.minutes or MINUTES, self.max_runtime
        yield "mem_mb", (request.mem_mb or 0) * slots, self.max_mem_mb
        yield "mem_mb_per_cpu", request.mem_mb_per_cpu or 0, self.max_mem_mb_per_cpu
        yield "cores", request.cpus * slots, min(self.max_cpus_per_task, self.max_threads)
        yield "gpus", request.gpus, self.max_gpu

    def problem(self, request: Request, slots: int) -> str | None:
        """Why the partition does not allow a task, or None."""
        if request.option("clusters") != self.cluster:
            return f"it is on {self.cluster or 'the cluster of this machine'}"
        wanted = {feature for feature in re.split(r"[&,|]", request.option("constraint") or "") if feature}
        if self.available_constraints is not None and not wanted <= set(self.available_constraints):
            return f"its nodes have {', '.join(self.available_constraints) or 'no features'}"
        over = [f"{kind} {most:g}" for kind, asked, most in self.shares(request, slots) if asked > most]
        return f"at most {', '.join(over)}" if over else None

    def closeness(self, request: Request, slots: int) -> tuple[bool, float]:
        """How well a task fits: better without GPUs that it does not want, and the more of each limit it uses."""
        wastes = self.max_gpu > 0 and not request.gpus
        return not wastes, sum(asked / most for _, asked, most in self.shares(request, slots) if 0 < most < math.inf)


def choose(request: Request, partitions: Sequence[Partition], slots: int, source: object) -> str:
    """The name of the partition that fits a request best; of two that fit equally, of the first.

    Args:
        slots: how many jobs a task runs at a time.
        source: the file of the table, for messages.

    Raises:
        ValueError: no partition allows it.
    """
    problems = {partition: partition.problem(request, slots) for partition in partitions}
    allowed = [partition for partition, problem in problems.items() if problem is None]
    if not allowed:
        asked = ", ".join(f"{kind} {amount:g}" for kind, amount, _ in partitions[0].shares(request, slots) if amount)
        places = "; ".join(f"{partition.name}: {problem}" for partition, problem in problems.items())
        raise ValueError(
            f"no partition of {source} allows a task with {asked} ({places}): request less, or name a partition"
        )
    return max(allowed, key=lambda partition: partition.closeness(request, slots)).name


def read_partitions(path: Path) -> list[Partition]:
    """Read a table.

    Raises:
        ValueError: there is no such file, or it has mistakes.
    """
    try:
        # All scalars stay text, because YAML reads 12:30:00 as the number 45000.
        content = yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)
    except (OSError, UnicodeError, yaml.YAMLError) as error:
        raise ValueError(f"cannot read the partitions in {path}: {error}") from None
    table = content.get("partitions") if isinstance(content, dict) else None
    if not isinstance(table, dict) or not table:
        raise ValueError(f"{path} must have a key `partitions` with a partition for each name, such as\n{EXAMPLE}")
    return [_partition(str(name), limits or {}, f"{path}: partition {name}") for name, limits in table.items()]


EXAMPLE = "partitions:\n  short: {max_runtime: 120, max_mem_mb: 64000}\n  gpu: {max_runtime: 1-00:00:00, max_gpu: 4}"


def _partition(name: str, limits: Any, where: str) -> Partition:
    if not isinstance(limits, Mapping):
        raise ValueError(f"{where} must have limits, such as {{max_runtime: 120}}, got {limits!r}")
    known = {field.name for field in fields(Partition)} - {"name"}
    values: dict[str, Any] = {}
    for key, value in limits.items():
        if key in CLUSTER:
            values["cluster"] = str(value)
        elif key == "available_constraints":
            values[key] = tuple(map(str, value if isinstance(value, list) else str(value).split(",")))
        elif key in known:
            values[key] = _limit(key, value, where)
        elif key not in OTHERS:
            near = difflib.get_close_matches(str(key), known | OTHERS, 1)
            raise ValueError(f"{where}: unknown limit {key!r}" + (f", did you mean {near[0]!r}?" if near else ""))
    return Partition(name, **values)


def _limit(key: str, text: Any, where: str) -> float:
    number = None
    if isinstance(text, str):
        number = read_minutes(text) if key == "max_runtime" else float(text) if text.isdecimal() else None
    if number is None:
        allowed = "minutes, or a time such as 1-12:00:00, 36h and 2d" if key == "max_runtime" else "a whole number"
        raise ValueError(f"{where}: {key} must be {allowed}, got {text!r}")
    return number


def read_minutes(text: str) -> float | None:
    """The minutes of a time; None for what is none."""
    if text.lower() in ("unlimited", "infinite", "inf", ".inf"):
        return math.inf
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)([mhd]?)", text):
        return float(match[1]) * UNITS[match[2] or "m"]
    if match := re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::\d+)?", text):
        days, hours, minutes = (int(number or 0) for number in match.groups())
        # Slurm reads 90:00 as minutes and seconds, unless days stand before it.
        return (days * 24 + hours) * 60 + minutes if match[1] or text.count(":") == 2 else hours
    return None
