"""Slurm, through its commands and the script of submitit."""

import contextlib
import os
import re
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from snakemake_executor_plugin_submitit.clusters.cluster import GONE, TIMEOUTS, Refused, plain, python
from snakemake_executor_plugin_submitit.clusters.commands import Commands
from snakemake_executor_plugin_submitit.process import threads
from snakemake_executor_plugin_submitit.resources import Request
from snakemake_executor_plugin_submitit.worker import Worker

# The states in squeue of a task that is queued or running.
ALIVE = {
    "PENDING",
    "CONFIGURING",
    "RUNNING",
    "COMPLETING",
    "REQUEUED",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "RESIZING",
    "RESV_DEL_HOLD",
    "SIGNALING",
    "SPECIAL_EXIT",
    "STAGE_OUT",
    "STOPPED",
    "SUSPENDED",
}
# Messages of sbatch when the cluster will never accept such a task, and when it may accept it later.
HOPELESS = re.compile(
    r"invalid (?!.*credential)|unrecognized|not permitted|denied|not supported|specification|no partition|node configuration|"
    r"more processors|more tasks|not in this partition|required, but not provided",
    re.I,
)
BUSY = re.compile(
    r"timed out|try again|unable to contact|temporar|connect|communicat|transport|zero bytes|not available now|"
    r"standby|authenticat|credential|internal error|I/O error|accounting/QOS policy|in use",
    re.I,
)
# Reasons of squeue for which a person has to do something.
STUCK = re.compile(
    r"Held|Config|BadConstraints|NodeLimit|TimeLimit|PerJob|Minutes|Invalid|NotAllowed|NotAvail|NeverSatisfied|launch",
    re.I,
)


class Slurm:
    """Slurm through sbatch (with submitit's script), squeue, sacct and scancel."""

    name = "slurm"

    def __init__(self, setup: Sequence[str], parallelism: int, slots: int, grace: int) -> None:
        self.stuck: dict[str, str] = {}
        self.waiting: set[str] = set()
        missing = [name for name in ("sbatch", "squeue", "scancel") if not shutil.which(name)]
        if missing:
            raise RuntimeError(
                f"there is no {' and no '.join(missing)} on this machine: run it where Slurm's commands are, or with "
                "`--submitit-cluster local` to use this machine alone"
            )
        self.setup = list(setup)
        self.parallelism = parallelism
        self.slots = slots
        self.grace = grace
        self.commands = Commands()
        # Minutes by partition; "" is the default one. One without a limit is missing.
        self.limits: dict[str, int] = {}
        # The same by quality of service.
        self.services: dict[str, int] = {}

    def hurry(self) -> None:
        self.commands.hurry()

    def room(self, request: Request) -> None:
        return None

    def learn(self) -> None:
        if not shutil.which("scontrol"):
            return
        try:
            listing = self.commands.run("scontrol", "--all", "--oneliner", "show", "partition")
        except OSError as error:
            if isinstance(error, TimeoutError) or BUSY.search(str(error)):
                raise
            # Some sites forbid it.
            return
        for line in listing.splitlines():
            entries = dict(re.findall(r"(\S+?)=(\S*)", line))
            limit = _minutes(entries.get("MaxTime", ""))
            if limit is not None:
                names = [entries.get("PartitionName", ""), *([""] if entries.get("Default") == "YES" else [])]
                self.limits |= dict.fromkeys(names, limit)
        # There may be no accounting.
        with contextlib.suppress(OSError):
            listing = self.commands.run("sacctmgr", "--noheader", "--parsable2", "show", "qos", "format=Name,MaxWall")
            found = (line.partition("|") for line in listing.splitlines())
            self.services = {name: limit for name, _, text in found if (limit := _minutes(text)) is not None}

    def longest(self, request: Request, minutes: int) -> int | None:
        options = request.options()
        # Slurm chooses one of several partitions.
        names = str(options.get("partition", request.partition or "")).split(",")
        limits = [self.limits[name] for name in names if name in self.limits]
        # Without a name, the quality of service is that of the account or the partition, which may be any.
        service = options.get("qos", request.qos)
        limits += [limit for name, limit in self.services.items() if service is None or name == service]
        return min((limit for limit in limits if limit >= minutes), default=None)

    def submit(self, folder: Path, name: str, bundles: Sequence[Path], request: Request, minutes: int) -> list[str]:
        import submitit

        # Without srun a task needs one process and one message to the controller less, but Slurm must be told to
        # signal the batch shell, which `exec` makes the worker.
        settings = submitit.AutoExecutor(
            folder=plain(folder), cluster="slurm", slurm_python=f"exec {python()}", slurm_max_num_timeout=TIMEOUTS
        )
        # In Slurm's patterns, %% stands for %.
        log = f"{str(folder).replace('%', '%%')}/{'%A_%a' if len(bundles) > 1 else '%j'}_0_log.out"
        settings.update_parameters(
            **request.slurm(self.slots, minutes),
            name=name,
            stderr_to_stdout=True,
            slurm_array_parallelism=self.parallelism,
            slurm_use_srun=False,
            slurm_setup=[*self.setup, *(f"export {name}={value}" for name, value in threads(request.cpus).items())],
            # Some sites requeue only tasks that ask for it.
            slurm_additional_parameters={
                "output": log,
                "signal": f"B:USR2@{self.grace}",
                "requeue": True,
                **request.options(),
            },
        )
        # submitit writes the script; its own submission would wait for sbatch without limit.
        executor: Any = settings._executor
        if len(bundles) > 1:
            executor.parameters["map_count"] = len(bundles)
        folder.mkdir(parents=True)
        for number, bundle in enumerate(bundles):
            _write_pickle(folder / f"{number}.pkl", bundle, minutes)
        script = folder / "submission.sh"
        script.write_text(executor._make_submission_file_text(executor._submitit_command_str, ""), encoding="utf-8")
        try:
            answer = self.commands.run("sbatch", str(script))
        except TimeoutError:
            raise
        except OSError as error:
            raise _refusal(str(error)) from None
        array = executor._get_job_id_from_submission_command(answer)
        names = [f"{array}_{number}" for number in range(len(bundles))] if len(bundles) > 1 else [array]
        for number, task in enumerate(names):
            # A task waits for a minute for its pickle of this name.
            (folder / f"{number}.pkl").rename(folder / f"{task}_submitted.pkl")
        self.waiting = self.waiting | set(names)
        return names

    def states(self, tasks: Collection[str]) -> dict[str, str | None]:
        user = f"--user={os.getuid()}"
        listing = self.commands.run("squeue", "--noheader", "--array", "--states=all", user, "--format=%i|%T|%r")
        rows = [line.strip().split("|", 2) for line in listing.splitlines() if line.count("|") >= 2]
        known = {task: state for task, state, _ in rows}
        self.waiting = {task for task, state, _ in rows if state == "PENDING"}
        self.stuck = {
            task: reason
            for task, state, reason in rows
            if task in tasks and state == "PENDING" and STUCK.search(reason)
        }
        states = {task: None if known.get(task, GONE) in ALIVE else known.get(task, GONE) for task in tasks}
        gone = [task for task, state in states.items() if state == GONE]
        # The queue forgets a task some minutes after its end; the accounting, where there is one, does not.
        with contextlib.suppress(OSError):
            arrays = sorted({task.split("_")[0] for task in gone})
            if arrays:
                listing = self.commands.run("sacct", "-X", "-n", "-P", "-o", "JobID,State", "-j", ",".join(arrays))
                known = dict(line.strip().split("|", 1) for line in listing.splitlines() if "|" in line)
                # The queue decides whether a task is alive, because the accounting may never have recorded the end of the task.
                states |= {task: known[task] for task in gone if known.get(task, GONE) not in ALIVE and task in known}
        return states

    def cancel(self, tasks: Collection[str]) -> None:
        silence = None
        for start in range(0, len(tasks), 500):
            try:
                self.commands.run("scancel", *list(tasks)[start : start + 500])
            except OSError as error:
                # scancel also fails if one of the tasks has ended meanwhile.
                if isinstance(error, TimeoutError) or BUSY.search(str(error)):
                    silence = error
        if silence:
            raise silence

    def stray(self, folder: Path, name: str) -> dict[int, str]:
        # The status files record how jobs ended. Slurm also keeps a record of tasks that it refused.
        listing = self.commands.run("squeue", "--noheader", "--array", f"--name={name}", "--format=%i").split()
        tasks = {int(task.partition("_")[2] or 0): task for task in listing}
        for number, task in tasks.items():
            pickled = folder / f"{task}_submitted.pkl"
            if not pickled.exists():
                temporary = pickled.with_name(f".{pickled.name}.{os.getpid()}")
                _write_pickle(temporary, folder.parent / str(number), 0)
                temporary.replace(pickled)
        return tasks


def _write_pickle(path: Path, bundle: Path, minutes: int) -> None:
    """Write the file by which submitit's process in the task finds its worker."""
    from submitit.core.utils import DelayedSubmission

    delayed = DelayedSubmission(Worker(str(bundle)))
    delayed.set_timeout(minutes, TIMEOUTS)
    delayed.dump(path)


def _minutes(text: str) -> int | None:
    """The minutes of a time of Slurm, such as 1-12:00:00; None for UNLIMITED."""
    found = re.fullmatch(r"(?:(\d+)-)?(\d+):(\d+):\d+", text)
    if not found:
        return None
    days, hours, minutes = (int(number or 0) for number in found.groups())
    return (days * 24 + hours) * 60 + minutes


def _refusal(message: str) -> Exception:
    """The exception for an error message of sbatch."""
    kind = Refused if HOPELESS.search(message) else OSError if BUSY.search(message) else RuntimeError
    size = "array" in message or "policy" in message
    return kind(message + (" (would a smaller --submitit-array-size, or a shorter runtime, do?)" if size else ""))


def clean_environment() -> None:
    """Forget the Slurm job that this process runs in, if any, because sbatch would pass its options on to the tasks."""
    for name in list(os.environ):
        if name.startswith("SLURM_") and name != "SLURM_CONF":
            del os.environ[name]
