"""Where array tasks run: Slurm, or this machine; both through submitit."""

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Protocol

from snakemake_executor_plugin_submitit.process import threads
from snakemake_executor_plugin_submitit.resources import Request
from snakemake_executor_plugin_submitit.worker import Worker

# Slurm's words for a task that is still to run or running, in squeue.
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
GONE = "GONE"
# The worker counts its requeues itself, so submitit's count must not end them.
TIMEOUTS = 1_000_000
# What sbatch says when the cluster will never take such a task, and when it may later.
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


class Refused(RuntimeError):
    """A cluster will never take such a task."""


class Cluster(Protocol):
    """What the dispatcher needs of a cluster. Tasks are named by strings, which hold across restarts of the head."""

    name: str
    # Why tasks wait in the queue that may wait for ever: task -> the cluster's word.
    stuck: dict[str, str]

    def room(self, request: Request) -> tuple[int, int] | None:
        """Tasks that could start now, and that run at a time at most; None if the cluster keeps a queue of its own.

        Raises:
            Refused: it will never have room for one.
        """

    def submit(self, folder: Path, name: str, bundles: Sequence[Path], request: Request, minutes: int) -> list[str]:
        """Submit one task per bundle as one array; their tasks, in order.

        Args:
            folder: for submitit's files.
            name: of the array, by which `stray` finds it again.

        Raises:
            OSError: the cluster takes no tasks just now.
            Refused: it will never take this one.
            RuntimeError: it refused for a reason that may or may not go away.
        """

    def states(self, tasks: Collection[str]) -> dict[str, str | None]:
        """For each task None while it is queued or running, else the cluster's word for how it ended.

        Raises:
            OSError: the cluster does not answer just now.
        """

    def cancel(self, tasks: Collection[str]) -> None:
        """Take tasks out of the queue, and stop those that run."""

    def stray(self, folder: Path, name: str) -> dict[int, str]:
        """The tasks, by their place in it, of an array whose submission was not answered, as far as they are known.

        Raises:
            OSError: the cluster does not answer just now.
        """


class Slurm:
    """Slurm by way of sbatch (submitit's), squeue, sacct and scancel."""

    name = "slurm"

    def __init__(self, setup: Sequence[str], parallelism: int, slots: int, grace: int) -> None:
        self.stuck: dict[str, str] = {}
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

    def room(self, request: Request) -> None:
        return None

    def submit(self, folder: Path, name: str, bundles: Sequence[Path], request: Request, minutes: int) -> list[str]:
        import submitit

        # Without srun a task is one process and one message to the controller less, but then Slurm must be told to
        # signal the batch shell, which `exec` makes the worker.
        executor = submitit.AutoExecutor(
            folder=folder, cluster="slurm", slurm_python=f"exec {python()}", slurm_max_num_timeout=TIMEOUTS
        )
        executor.update_parameters(
            **request.slurm(self.slots, minutes),
            name=name,
            stderr_to_stdout=True,
            slurm_array_parallelism=self.parallelism,
            slurm_use_srun=False,
            slurm_setup=[*self.setup, *(f"export {name}={value}" for name, value in threads(request.cpus).items())],
            # Some sites requeue only what asks for it.
            slurm_additional_parameters={"signal": f"B:USR2@{self.grace}", "requeue": True, **request.options()},
        )
        try:
            return [task.job_id for task in executor.submit_array([Worker(str(bundle)) for bundle in bundles])]
        except OSError:
            # The disk, not the cluster.
            raise
        except Exception as error:
            words = " ".join(str(error).split()) or "failed without a word"
            kind = Refused if HOPELESS.search(words) else OSError if BUSY.search(words) else RuntimeError
            size = "array" in words or "policy" in words
            advice = " (would a smaller --submitit-array-size, or a shorter runtime, do?)" if size else ""
            raise kind(f"sbatch: {words}{advice}") from error

    def states(self, tasks: Collection[str]) -> dict[str, str | None]:
        listed = run("squeue", "--noheader", "--array", "--states=all", f"--user={os.getuid()}", "--format=%i|%T|%r")
        rows = [line.strip().split("|", 2) for line in listed.splitlines() if line.count("|") >= 2]
        known = {task: state for task, state, _ in rows}
        self.stuck = {
            task: why for task, state, why in rows if task in tasks and state == "PENDING" and STUCK.search(why)
        }
        found = {task: None if (known.get(task, GONE)) in ALIVE else known.get(task, GONE) for task in tasks}
        gone = [task for task, state in found.items() if state == GONE]
        # The queue forgets a task some minutes after its end; the accounting, where there is one, does not.
        with contextlib.suppress(OSError):
            parents = sorted({task.split("_")[0] for task in gone})
            if parents:
                listed = run("sacct", "-X", "-n", "-P", "-o", "JobID,State", "-j", ",".join(parents))
                known = dict(line.strip().split("|", 1) for line in listed.splitlines() if "|" in line)
                # The queue decides about life: the accounting may never have heard of an end.
                found |= {task: known[task] for task in gone if known.get(task, GONE) not in ALIVE and task in known}
        return found

    def cancel(self, tasks: Collection[str]) -> None:
        for start in range(0, len(tasks), 500):
            with contextlib.suppress(OSError):
                run("scancel", *list(tasks)[start : start + 500])

    def stray(self, folder: Path, name: str) -> dict[int, str]:
        from submitit.core.utils import DelayedSubmission

        # What those that are over did stands in their statuses; Slurm also keeps a record of what it refused.
        listed = run("squeue", "--noheader", "--array", f"--name={name}", "--format=%i").split()
        found = {int(task.partition("_")[2] or 0): task for task in listed}
        for number, task in found.items():
            # A task waits for a minute for what submitit has put there only after sbatch's answer.
            pickled = folder / f"{task}_submitted.pkl"
            if not pickled.exists():
                delayed = DelayedSubmission(Worker(str(folder.parent / str(number))))
                delayed.set_timeout(0, TIMEOUTS)
                aside = pickled.with_name(f".{pickled.name}.{os.getpid()}")
                delayed.dump(aside)
                aside.replace(pickled)
        return found


class Local:
    """This machine: submitit's local executor, with the queue and the sharing of cores and GPUs that it lacks."""

    name = "local"

    def __init__(self, setup: Sequence[str], parallelism: int, slots: int, grace: int) -> None:
        self.stuck: dict[str, str] = {}
        self.setup = list(setup)
        self.slots = slots
        self.grace = grace
        self.cores = min(parallelism, len(os.sched_getaffinity(0)))
        self.devices = devices()
        # What the tasks hold: cores, GPUs.
        self.held: dict[str, tuple[int, list[str]]] = {}
        self.tasks: dict[str, Any] = {}

    def room(self, request: Request) -> tuple[int, int]:
        cores = max(1, request.cpus * self.slots)
        free = self.cores - sum(held for held, _ in self.held.values())
        now, most = free // cores, self.cores // cores
        if request.gpus:
            if request.gpus > len(self.devices):
                raise Refused(f"{request.gpus} GPUs are asked for, but this machine has {len(self.devices)}")
            now, most = (
                min(now, len(self.free()) // request.gpus),
                min(most, len(self.devices) // request.gpus),
            )
        # A task that wants more cores than there are runs alone.
        return max(now, int(not self.held)), max(most, 1)

    def free(self) -> list[str]:
        """GPUs that no task holds."""
        held = {device for _, theirs in self.held.values() for device in theirs}
        return [device for device in self.devices if device not in held]

    def submit(self, folder: Path, name: str, bundles: Sequence[Path], request: Request, minutes: int) -> list[str]:
        from submitit.local.local import LocalExecutor

        tasks = []
        for bundle in bundles:
            chosen = self.free()[: request.gpus]
            # submitit hides all GPUs from a task that asked for none; a laptop's rules need not ask for its one.
            visible = ",".join(chosen) if request.gpus else os.environ.get("CUDA_VISIBLE_DEVICES")
            # The libraries read them when they are imported, which is before the worker knows its bundle.
            variables = [f"{name}={value}" for name, value in threads(request.cpus).items()]
            variables += [] if visible is None else [f"CUDA_VISIBLE_DEVICES={visible}"]
            command = ["env", *(["-u", "CUDA_VISIBLE_DEVICES"] if visible is None else []), *variables]
            launch = f"{shlex.join(command)} {python()}"
            if self.setup:
                launch = shlex.join(
                    ["bash", "-c", "\n".join([*self.setup, 'exec "$@"']), "setup", *shlex.split(launch)]
                )
            executor = LocalExecutor(folder, max_num_timeout=TIMEOUTS, python=launch)
            executor._throttling = 0
            executor.update_parameters(timeout_min=minutes, signal_delay_s=self.grace, stderr_to_stdout=True)
            # Ctrl-C is for the head, which then ends its tasks; whoever it starts here inherits the mask.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                submitted = executor.submit(Worker(str(bundle)))
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            task = f"{submitted.job_id}.{birth(int(submitted.job_id))}"
            self.tasks[task] = submitted
            self.held[task] = (request.cpus * self.slots, chosen)
            tasks.append(task)
        return tasks

    def states(self, tasks: Collection[str]) -> dict[str, str | None]:
        found: dict[str, str | None] = {}
        for task in tasks:
            number, began = task.split(".")
            # A child of this process has to be waited for.
            known = self.tasks.get(task)
            ended = known._process.poll() is not None if known else birth(int(number)) != began
            found[task] = "ENDED" if ended else None
            if ended:
                self.held.pop(task, None)
                self.tasks.pop(task, None)
        return found

    def cancel(self, tasks: Collection[str]) -> None:
        alive = [task for task, state in self.states(tasks).items() if state is None]
        for task in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(task.split(".")[0]), signal.SIGTERM)

    def stray(self, folder: Path, name: str) -> dict[int, str]:
        from submitit.core.utils import DelayedSubmission

        found = {}
        # A task that still waits for its pickle ends by itself.
        for path in folder.glob("*_submitted.pkl"):
            number = path.name.partition("_")[0]
            with contextlib.suppress(OSError):
                if str(folder) in Path(f"/proc/{number}/cmdline").read_text():
                    worker: Any = DelayedSubmission.load(path).function
                    found[int(Path(worker.folder).name)] = f"{number}.{birth(int(number))}"
        return found


def python() -> str:
    """This Python, without the current directory on its path, as a console script has it."""
    return f"{shlex.quote(sys.executable)} -P"


def devices() -> list[str]:
    """GPUs of this machine that this process may use."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name for name in visible.split(",") if name]
    try:
        return run("nvidia-smi", "--query-gpu=index", "--format=csv,noheader").split()
    except OSError:
        return []


def birth(number: int) -> str:
    """When a process began, in the kernel's ticks: with its number, its name for all times. Empty if there is none."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    # The third field of the manual page is the first after the name; a zombie has ended.
    return "" if fields[0] == "Z" else fields[19]


def run(*command: str) -> str:
    """What a command prints.

    Raises:
        OSError: it is not there, takes over a minute, or fails.
    """
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    except subprocess.CalledProcessError as error:
        raise OSError(f"{command[0]}: {error.stderr.strip() or f'exit code {error.returncode}'}") from None
    except subprocess.TimeoutExpired:
        raise OSError(f"{command[0]} did not answer within a minute") from None


def clean_environment() -> None:
    """Forget the Slurm job that this process runs in, if any: sbatch would give its options to the tasks."""
    for name in list(os.environ):
        if name.startswith("SLURM_") and name != "SLURM_CONF":
            del os.environ[name]
