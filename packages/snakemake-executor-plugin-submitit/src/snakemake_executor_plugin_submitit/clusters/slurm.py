"""Slurm, through its commands and the script of submitit."""

import contextlib
import math
import os
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from snakemake_executor_plugin_submitit import failures
from snakemake_executor_plugin_submitit.clusters.cluster import GONE, TIMEOUTS, Cluster, Refused, plain, python
from snakemake_executor_plugin_submitit.clusters.partitions import choose, read_minutes, read_partitions
from snakemake_executor_plugin_submitit.process import NODE, threads
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
# Slurm's message in the log of a task whose memory it limits.
OOM = re.compile(r"^slurmstepd: error: .*(oom[_-]kill|memory limit)", re.M)
# GPUs among generic resources.
GPUS = re.compile(r"(?:gres/)?gpu(?::(?!\d+$)[^:]+)?(?::(\d+))?")
# The whole answer of `sbatch --parsable`: the number of the job, and the cluster if one was named. Some wrappers of sites drop the option.
ID = re.compile(r"(?:Submitted batch job )?(\d+)(?:(?:;| on cluster )([\w.-]+))?")
# Variables of Slurm that neither describe the job that this process runs in, nor change what is asked or submitted: where its controller
# is, and options of sbatch that no rule states.
KEPT = {
    *("SLURM_CONF", "SLURM_JWT", "SBATCH_ACCTG_FREQ", "SBATCH_DEBUG", "SBATCH_DELAY_BOOT", "SBATCH_EXPORT"),
    *("SBATCH_GET_USER_ENV", "SBATCH_IGNORE_PBS", "SBATCH_PROFILE", "SBATCH_RESERVATION", "SBATCH_WCKEY"),
}


class Row(NamedTuple):
    """A task in the listing of squeue: its name, the name of its array, Slurm's word for its state, and the reason for which it waits."""

    task: str
    array: str
    state: str
    reason: str


class Slurm(Cluster):
    """Slurm through sbatch (with submitit's script), squeue, sacct, scontrol and scancel.

    A task is named by its number, and by its cluster if the submission named one: `77_3`, or `77_3;wice`.

    Attributes:
        own: tasks that Slurm has shown under the name of their array.
        prints_ids: whether what sbatch prints has proved to be the number of the array and nothing else.
    """

    name: ClassVar = "slurm"
    needs: ClassVar = ("sbatch", "squeue", "scontrol", "scancel")
    settings: ClassVar = {
        "partition": "Slurm partition, unless a rule has the resource slurm_partition.",
        "partition_config": "File of YAML with the limits of partitions, by which jobs that name no partition get one.",
        "account": "Slurm account, unless a rule has the resource slurm_account.",
        "qos": "Slurm quality of service, unless a rule has the resource qos.",
        "constraint": "Node features, unless a rule has the resource constraint.",
        "clusters": "Slurm clusters, comma-separated, of which Slurm chooses one, unless a rule has the resource clusters.",
        "gres": "As sbatch --gres, unless a rule has the resource gres.",
    }
    resources: ClassVar = {
        "slurm_partition": "partition",
        "slurm_account": "account",
        "qos": "qos",
        "slurm_qos": "qos",
        "constraint": "constraint",
        "slurm_constraint": "constraint",
        "clusters": "clusters",
        "gres": "gres",
        "slurm_extra": "extra",
    }
    ends: ClassVar = {
        "OUT_OF_MEMORY": failures.OUT_OF_MEMORY,
        "TIMEOUT": failures.TIMEOUT,
        "DEADLINE": failures.TIMEOUT,
        "PREEMPTED": failures.PREEMPTED,
        "NODE_FAIL": failures.NODE_FAILURE,
        "BOOT_FAIL": failures.NODE_FAILURE,
        "REVOKED": failures.NODE_FAILURE,
        "CANCELLED": failures.CANCELLED,
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.waiting: set[str] = set()
        self.own: set[str] = set()
        self.prints_ids = False
        # Minutes by partition; "" is the default one. One without a limit is missing.
        self.limits: dict[str, int] = {}
        # The same by quality of service.
        self.services: dict[str, int] = {}
        self.table = self.options.pop("partition_config", None)
        self.partitions = read_partitions(Path(self.table)) if self.table else []
        self.heed_environment()

    def heed_environment(self) -> None:
        """Take options from variables that sites set for their users, and forget the others. To sbatch they would overrule the rules."""
        dropped = clean_environment()
        stated = {
            variable: name
            for name in ("partition", "account", "qos", "constraint", "clusters")
            for variable in (f"SLURM_{name.upper()}", f"SBATCH_{name.upper()}")
            if name not in self.options and dropped.get(variable, "all") != "all"
        }
        self.options |= {name: dropped.pop(variable) for variable, name in stated.items()}
        if stated:
            self.logger.info(f"submitit: {', '.join(stated)} hold where neither a setting nor a rule says otherwise")
        if dropped:
            self.logger.warning(
                f"submitit executor: {', '.join(sorted(dropped))} of the environment are ignored, because they would overrule the "
                "rules: use settings, resources, or slurm_extra"
            )

    def about(self) -> str:
        rows = [line.split() for line in self.commands.run("sinfo", "--noheader", "--format=%R %D").splitlines()]
        return f"its partitions are {', '.join(f'{row[0]} with {row[1]} nodes' for row in rows if row) or 'none'}"

    def adapt(self, request: Request) -> Request:
        clusters = extra(request).get("clusters", request.option("clusters"))
        # The queue of each is asked by its name, so `all` will not do.
        if clusters is not None and not re.fullmatch(r"(?!all$)[\w.-]+(,[\w.-]+)*", str(clusters)):
            raise ValueError(
                f"clusters must be names of clusters with commas between them, such as one,two, got {clusters!r}"
            )
        request = replace(request, gpus=gpus(request))
        if self.partitions and request.option("partition") is None and "partition" not in extra(request):
            return request.having(partition=choose(request, self.partitions, self.slots, self.table))
        return request

    def can_spare(self, place: str) -> bool:
        return True

    def cause(self, word: str, log: str) -> str:
        cause = super().cause(word, log)
        return failures.OUT_OF_MEMORY if cause in (failures.KILLED, failures.HOST) and OOM.search(log) else cause

    def argument(self, task: str) -> str:
        return task.replace(";", " --clusters=")

    def showing(self, task: str) -> str:
        return f"scontrol show job {self.argument(task)}"

    def learn(self) -> None:
        try:
            listing = self.commands.run("scontrol", "--all", "--oneliner", "show", "partition")
        except OSError as error:
            if isinstance(error, TimeoutError) or BUSY.search(str(error)):
                raise
            # Some sites forbid it.
            return
        for line in listing.splitlines():
            entries = dict(re.findall(r"(\S+?)=(\S*)", line))
            limit = _limit(entries.get("MaxTime", ""))
            if limit is not None:
                names = [entries.get("PartitionName", ""), *([""] if entries.get("Default") == "YES" else [])]
                self.limits |= dict.fromkeys(names, limit)
        # There may be no accounting.
        with contextlib.suppress(OSError):
            listing = self.commands.run("sacctmgr", "--noheader", "--parsable2", "show", "qos", "format=Name,MaxWall")
            rows = (line.partition("|") for line in listing.splitlines())
            self.services = {name: limit for name, _, text in rows if (limit := _limit(text)) is not None}

    def longest(self, request: Request, minutes: int) -> int | None:
        options = dict(request.options) | extra(request)
        if "clusters" in options:
            # The limits of another cluster are not known.
            return None
        # Slurm chooses one of several partitions.
        names = str(options.get("partition", "")).split(",")
        limits = [self.limits[name] for name in names if name in self.limits]
        # Without a name, the quality of service is that of the account or the partition, which may be any.
        service = options.get("qos")
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
        # Some sites requeue only tasks that ask for it.
        options: dict[str, Any] = {"output": log, "signal": f"B:USR2@{self.grace}", "requeue": True}
        if clusters := request.option("clusters"):
            options["clusters"] = clusters
        options |= extra(request)
        if self.excluded:
            options["exclude"] = ",".join(map(str, filter(None, [options.get("exclude"), *self.excluded])))
        settings.update_parameters(
            **parameters(request, self.slots, minutes),
            name=name,
            stderr_to_stdout=True,
            slurm_array_parallelism=self.parallelism,
            slurm_use_srun=False,
            slurm_setup=[
                *self.setup,
                # Slurm's name of a host may be another than the host's own.
                f"export {NODE}=$SLURMD_NODENAME",
                *(f"export {name}={value}" for name, value in threads(request.cpus).items()),
            ],
            slurm_additional_parameters=options,
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
            answer = self.commands.run("sbatch", "--parsable", str(script))
        except TimeoutError:
            raise
        except OSError as error:
            raise _refusal(str(error)) from None
        array = self.accepted(answer, folder, name)
        names = [_task(array, number) for number in range(len(bundles))] if len(bundles) > 1 else [array]
        for number, task in enumerate(names):
            # A task waits for a minute for its pickle of this name.
            (folder / f"{number}.pkl").rename(_pickle(folder, task))
        self.waiting = self.waiting | set(names)
        return names

    def accepted(self, answer: str, folder: Path, name: str) -> str:
        """The array that sbatch has accepted, by what sbatch printed.

        A site's wrapper may print more, and a number in it may be another job of the user. So the queue is asked which job has the
        array's name, until a bare number has proved to be right once.

        Raises:
            OSError: the queue does not answer, and what sbatch printed does not tell.
            RuntimeError: neither tells.
        """
        printed = ";".join(filter(None, match.groups())) if (match := ID.fullmatch(answer.strip())) else ""
        if printed and self.prints_ids:
            return printed
        try:
            listed = {_array(row.task) for row in self.listed(folder, name)}
        except OSError:
            if printed:
                return printed
            raise
        if not listed and not printed:
            raise RuntimeError(f"sbatch printed {' '.join(answer.split())!r}, and squeue lists no job named {name}")
        self.prints_ids = listed == {printed}
        return listed.pop() if listed else printed

    def listed(self, folder: Path, name: str) -> list[Row]:
        """The tasks of an array that are queued or running, on each cluster to which its script may have been submitted.

        Raises:
            OSError: the queue of one does not answer.
        """
        rows = [
            row for cluster in _clusters(folder) for row in self.rows(cluster, f"--name={name}") if row.array == name
        ]
        self.own.update(row.task for row in rows)
        return rows

    def rows(self, cluster: str, *options: str) -> Iterator[Row]:
        """The rows that squeue prints for the tasks of this user on a cluster. An empty name stands for the cluster of this machine.

        Raises:
            OSError: the queue does not answer.
        """
        # Without --all, jobs in hidden partitions are left out.
        query = ("--noheader", "--all", "--array", f"--user={os.getuid()}", "--format=%i|%T|%r|%j", *options)
        for line in self.commands.run("squeue", *_on(cluster), *query).splitlines():
            if line.count("|") >= 3:
                number, state, reason, array = line.strip().split("|", 3)
                yield Row(_named(number, cluster), array, state, reason)

    def states(self, tasks: Mapping[str, str]) -> dict[str, str | None]:
        states: dict[str, str | None] = {}
        stuck: dict[str, str] = {}
        waiting: set[str] = set()
        for cluster, here in _by_cluster(tasks).items():
            rows = [row for row in self.rows(cluster, "--states=all") if here.get(row.task) == row.array]
            self.own.update(row.task for row in rows)
            states |= {row.task: None if row.state in ALIVE else row.state for row in rows}
            pending = [row for row in rows if row.state == "PENDING"]
            waiting |= {row.task for row in pending}
            stuck |= {row.task: row.reason for row in pending if STUCK.search(row.reason)}
            states |= self.unlisted(cluster, {task: array for task, array in here.items() if task not in states})
        self.stuck, self.waiting = stuck, waiting
        return states

    def unlisted(self, cluster: str, tasks: Mapping[str, str]) -> dict[str, str | None]:
        """The states of tasks that squeue does not list. Its listing alone proves nothing: a second source decides.

        Raises:
            OSError: no second source answers.
        """
        states: dict[str, str | None] = {}
        if not tasks:
            return states
        # The queue forgets a task some minutes after its end; the accounting, where there is one, does not. It may never have recorded
        # the end, so only its word for an end counts.
        with contextlib.suppress(OSError):
            numbers = ",".join(sorted({_number(_array(task)) for task in tasks}))
            query = ("-X", "-n", "-P", "-o", "JobID,State,JobName", "-j", numbers)
            for line in self.commands.run("sacct", *_on(cluster), *query).splitlines():
                if line.count("|") >= 2:
                    number, state, array = line.strip().split("|", 2)
                    task = _named(number, cluster)
                    if tasks.get(task) == array and state not in ALIVE:
                        states[task] = state
        arrays: dict[str, list[str]] = defaultdict(list)
        for task in tasks:
            if task not in states:
                arrays[_number(_array(task))].append(task)
        for number, members in arrays.items():
            records = self.records(cluster, number)
            for task in members:
                # One record stands for all tasks of an array that have not started.
                together = records.get((tasks[task], ""), GONE)
                state = records.get((tasks[task], _place(task)), together)
                states[task] = None if state in ALIVE else state
        self.own.update(task for task, state in states.items() if state != GONE)
        return states

    def records(self, cluster: str, number: str) -> dict[tuple[str, str], str]:
        """The states that the controller reports for an array: (name of the array, place of the task) -> state.

        The place is empty in a record that several tasks share.

        Raises:
            OSError: the controller does not answer.
        """
        query = ("--all", "--oneliner", "show", "job", number)
        try:
            lines = self.commands.run("scontrol", *_on(cluster), *query).splitlines()
        except OSError as error:
            if "Invalid job id" not in str(error):
                raise
            return {}
        records = [dict(re.findall(r"(\w+)=(\S*)", line)) for line in lines]
        return {
            (record["JobName"], place if (place := record.get("ArrayTaskId", "")).isdigit() else ""): record["JobState"]
            for record in records
            if {"JobName", "JobState"} <= record.keys()
        }

    def cancel(self, tasks: Mapping[str, str]) -> None:
        silence = None
        for cluster, here in _by_cluster(tasks).items():
            if not self.own.issuperset(here):
                # `scancel --name` would not do: with one task of an array that waits, it cancels the whole array.
                try:
                    self.states(here)
                except OSError as error:
                    silence = error
            own = [_number(task) for task in here if task in self.own]
            for start in range(0, len(own), 500):
                try:
                    self.commands.run("scancel", *_on(cluster), *own[start : start + 500])
                except OSError as error:
                    # scancel also fails if one of the tasks has ended meanwhile.
                    if isinstance(error, TimeoutError) or BUSY.search(str(error)):
                        silence = error
        if silence:
            raise silence

    def stray(self, folder: Path, name: str) -> dict[int, str]:
        # The status files record how jobs ended. Slurm also keeps a record of tasks that it refused.
        tasks = {int(_place(row.task) or 0): row.task for row in self.listed(folder, name)}
        for number, task in tasks.items():
            if not _pickle(folder, task).exists():
                temporary = folder / f".{number}.{os.getpid()}"
                _write_pickle(temporary, folder.parent / str(number), 0)
                temporary.replace(_pickle(folder, task))
        # A task that the queue does not list may still run if it has got its pickle.
        cluster = _clusters(folder)[0]
        for path in folder.glob("*_submitted.pkl"):
            task = path.name.removesuffix("_submitted.pkl")
            tasks.setdefault(int(_place(task) or 0), _named(task, cluster))
        return tasks


def extra(request: Request) -> dict[str, Any]:
    """`slurm_extra` as sbatch options by name.

    Raises:
        ValueError: it is not a list of long options.
    """
    options: dict[str, Any] = {}
    text = request.option("extra") or ""
    for word in shlex.split(text):
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not name:
            raise ValueError(f"slurm_extra={text!r}: {word!r} is not of the form --option or --option=value")
        options[name] = value if equals else True
    return options


def gpus(request: Request) -> int:
    """The number of GPUs, which may be among the generic resources, such as gpu:2 or gpu:a100:1."""
    named = (GPUS.fullmatch(name) for name in (request.option("gres") or "").split(","))
    return sum(int(found[1] or 1) for found in named if found) or request.gpus


def parameters(request: Request, slots: int, minutes: int) -> dict[str, Any]:
    """Parameters of submitit for a task that runs `slots` jobs at a time, and takes so many minutes in all."""
    named: dict[str, Any] = {"timeout_min": minutes, "cpus_per_task": request.cpus * slots}
    if request.mem_mb is not None:
        named["mem_gb"] = request.mem_mb * slots / 1024
    if request.mem_mb_per_cpu is not None:
        named["slurm_mem_per_cpu"] = f"{request.mem_mb_per_cpu}M"
    if request.gpus and request.option("gres") is None:
        named["gpus_per_node"] = request.gpus
    for name in ("partition", "account", "qos", "constraint", "gres"):
        if (value := request.option(name)) is not None:
            named[f"slurm_{name}"] = value
    return named


def _on(cluster: str) -> list[str]:
    """The option by which a command of Slurm speaks to a cluster; an empty name is the cluster of this machine."""
    return [f"--clusters={cluster}"] if cluster else []


def _clusters(folder: Path) -> list[str]:
    """The clusters to one of which the script in the folder may have been submitted; an empty name is the one of this machine."""
    try:
        script = (folder / "submission.sh").read_text(encoding="utf-8")
    except FileNotFoundError:
        return [""]
    named = re.search(r"^#SBATCH --clusters=(\S+)", script, re.M)
    return named[1].split(",") if named else [""]


def _by_cluster(tasks: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Tasks, and the names of their arrays, by cluster."""
    clusters: dict[str, dict[str, str]] = defaultdict(dict)
    for task, array in tasks.items():
        clusters[task.partition(";")[2]][task] = array
    return clusters


def _named(number: str, cluster: str) -> str:
    """The name of a task or an array by its number and its cluster."""
    return f"{number};{cluster}" if cluster else number


def _number(task: str) -> str:
    """The name of a task without its cluster."""
    return task.partition(";")[0]


def _place(task: str) -> str:
    """The place of a task in its array, empty for an array of one."""
    return _number(task).partition("_")[2]


def _array(task: str) -> str:
    """The array of a task, with its cluster."""
    number, _, cluster = task.partition(";")
    return _named(number.partition("_")[0], cluster)


def _task(array: str, place: int) -> str:
    """The name of a task by its array, with its cluster, and its place."""
    number, _, cluster = array.partition(";")
    return _named(f"{number}_{place}", cluster)


def _pickle(folder: Path, task: str) -> Path:
    """The file by which submitit's process in a task finds its worker."""
    return folder / f"{_number(task)}_submitted.pkl"


def _write_pickle(path: Path, bundle: Path, minutes: int) -> None:
    """Write the file by which submitit's process in the task finds its worker."""
    from submitit.core.utils import DelayedSubmission

    delayed = DelayedSubmission(Worker(str(bundle)))
    delayed.set_timeout(minutes, TIMEOUTS)
    delayed.dump(path)


def _limit(text: str) -> int | None:
    """The minutes of a limit that Slurm prints, such as 1-12:00:00; None for UNLIMITED."""
    minutes = read_minutes(text)
    return None if minutes is None or minutes == math.inf else int(minutes)


def _refusal(message: str) -> Exception:
    """The exception for an error message of sbatch."""
    kind = Refused if HOPELESS.search(message) else OSError if BUSY.search(message) else RuntimeError
    size = "array" in message or "policy" in message
    return kind(message + (" (would a smaller --submitit-array-size, or a shorter runtime, do?)" if size else ""))


def clean_environment() -> dict[str, str]:
    """Forget variables that change what Slurm's commands do; returns those that say something about a submission.

    They describe the Slurm job that this process runs in, whose options sbatch would pass on to the tasks; they are filters and formats
    of squeue, sacct, scontrol and scancel; or they overrule a rule's request (SBATCH_TIMELIMIT) or break arrays (SBATCH_ARRAY_INX).
    """
    foreign = re.compile(r"(SLURM|SBATCH|SQUEUE|SACCT|SCANCEL|SCONTROL|SINFO)_")
    dropped = {name: os.environ.pop(name) for name in list(os.environ) if foreign.match(name) and name not in KEPT}
    return {name: value for name, value in dropped.items() if name.startswith("SBATCH_") or name == "SLURM_CLUSTERS"}
