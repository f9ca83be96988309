"""Runs array tasks on Slurm or on this machine, in both cases through submitit."""

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Collection, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, Protocol

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
# The state of a task that Slurm does not know any more.
GONE = "GONE"
# Seconds that a command of the cluster may take: usually, and once the head is ending.
COMMAND_LIMIT, LAST_LIMIT = 60.0, 5.0
# The worker counts its requeues itself, so submitit's count must not end them.
TIMEOUTS = 1_000_000
# The variable of a task on this machine that states its cores and GPUs.
HOLDS = "SUBMITIT_HOLDS"
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


class Refused(RuntimeError):
    """The cluster will never accept such a task."""


class Cluster(Protocol):
    """The interface of a cluster. A string names a task, and the name holds across restarts of the head.

    `submit`, `states`, `cancel` and `stray` may run commands: they are called without a lock, in any thread, and return
    after a minute at most.
    """

    name: str
    # Tasks that may wait in the queue for ever: name of the task -> Slurm's reason.
    stuck: dict[str, str]

    def room(self, request: Request) -> tuple[int, int] | None:
        """How many tasks could start now, and how many run at a time at most; None if the cluster keeps a queue itself.

        Raises:
            Refused: the cluster will never have room for such a task.
        """

    def submit(self, folder: Path, name: str, bundles: Sequence[Path], request: Request, minutes: int) -> list[str]:
        """Submit one task per bundle, together as one array; returns the names of the tasks in order.

        Args:
            folder: for submitit's files.
            name: of the array, by which `stray` finds it again.

        Raises:
            OSError: the cluster accepts no tasks just now (TimeoutError: it did not answer in time).
            Refused: the cluster will never accept this array.
            RuntimeError: the cluster refused for a reason that may or may not go away.
        """

    def states(self, tasks: Collection[str]) -> dict[str, str | None]:
        """For each task None while it is queued or running, else the cluster's word for its end.

        Raises:
            OSError: the cluster does not answer (TimeoutError: not in time).
        """

    def cancel(self, tasks: Collection[str]) -> None:
        """Remove tasks from the queue, and stop those that run.

        Raises:
            TimeoutError: the cluster does not answer in time.
        """

    def stray(self, folder: Path, name: str) -> dict[int, str]:
        """The tasks of an array, by their place in it, whose submission was not answered; those that the cluster knows.

        Raises:
            OSError: the cluster does not answer (TimeoutError: not in time).
        """

    def hurry(self) -> None:
        """Stop the commands under way because the head is ending, and limit later commands to a few seconds."""


class Commands:
    """External commands, each with a time limit. `hurry` stops those under way."""

    def __init__(self) -> None:
        self.limit = COMMAND_LIMIT
        self.processes: set[subprocess.Popen[str]] = set()
        self.lock = threading.Lock()

    def run(self, *command: str) -> str:
        """Run a command and return its standard output.

        Raises:
            TimeoutError: it took longer than the limit, or was stopped by `hurry`.
            OSError: it is missing, or it failed: the message is its standard error.
        """
        # The command has a process group of its own: its children are killed with it, and Ctrl-C reaches the head alone.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            process_group=0,
        )
        with self.lock:
            self.processes.add(process)
        try:
            out, err = process.communicate(timeout=self.limit)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{command[0]} did not answer within {self.limit:g} s") from None
        finally:
            with self.lock:
                stopped = process not in self.processes
                self.processes.discard(process)
            _kill_group(process)
        if stopped:
            raise TimeoutError(f"{command[0]} was stopped, because the head is ending")
        if process.returncode:
            raise OSError(f"{command[0]}: {' '.join(err.split()) or f'exit code {process.returncode}'}")
        return out

    def hurry(self) -> None:
        """Stop the commands under way, and limit later commands to a few seconds."""
        self.limit = LAST_LIMIT
        with self.lock:
            while self.processes:
                _kill_group(self.processes.pop())


def _kill_group(process: "subprocess.Popen[str]") -> None:
    """Kill a process that leads its group, and all processes of the group, unless the process has been waited for."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Slurm:
    """Slurm through sbatch (with submitit's script), squeue, sacct and scancel."""

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
        self.commands = Commands()

    def hurry(self) -> None:
        self.commands.hurry()

    def room(self, request: Request) -> None:
        return None

    def submit(self, folder: Path, name: str, bundles: Sequence[Path], request: Request, minutes: int) -> list[str]:
        import submitit

        # Without srun a task needs one process and one message to the controller less, but Slurm must be told to
        # signal the batch shell, which `exec` makes the worker.
        settings = submitit.AutoExecutor(
            folder=folder, cluster="slurm", slurm_python=f"exec {python()}", slurm_max_num_timeout=TIMEOUTS
        )
        settings.update_parameters(
            **request.slurm(self.slots, minutes),
            name=name,
            stderr_to_stdout=True,
            slurm_array_parallelism=self.parallelism,
            slurm_use_srun=False,
            slurm_setup=[*self.setup, *(f"export {name}={value}" for name, value in threads(request.cpus).items())],
            # Some sites requeue only tasks that ask for it.
            slurm_additional_parameters={"signal": f"B:USR2@{self.grace}", "requeue": True, **request.options()},
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
        return names

    def states(self, tasks: Collection[str]) -> dict[str, str | None]:
        user = f"--user={os.getuid()}"
        listing = self.commands.run("squeue", "--noheader", "--array", "--states=all", user, "--format=%i|%T|%r")
        rows = [line.strip().split("|", 2) for line in listing.splitlines() if line.count("|") >= 2]
        known = {task: state for task, state, _ in rows}
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


def _refusal(message: str) -> Exception:
    """The exception for an error message of sbatch."""
    kind = Refused if HOPELESS.search(message) else OSError if BUSY.search(message) else RuntimeError
    size = "array" in message or "policy" in message
    return kind(message + (" (would a smaller --submitit-array-size, or a shorter runtime, do?)" if size else ""))


class Local:
    """This machine, through submitit's local executor; adds a queue, and shares out cores and GPUs."""

    name = "local"

    def __init__(self, setup: Sequence[str], parallelism: int, slots: int, grace: int) -> None:
        self.stuck: dict[str, str] = {}
        self.setup = list(setup)
        self.slots = slots
        self.grace = grace
        self.cores = min(parallelism, len(os.sched_getaffinity(0)))
        self.devices = devices()
        # The number of cores and the GPUs that a task holds, by the task's name.
        self.held: dict[str, tuple[int, list[str]]] = {}
        # The processes that this head has started, by the name of their task.
        self.children: dict[str, Any] = {}

    def hurry(self) -> None:
        pass

    def room(self, request: Request) -> tuple[int, int]:
        cores = max(1, request.cpus * self.slots)
        free = self.cores - sum(held for held, _ in self.held.values())
        now, at_most = free // cores, self.cores // cores
        if request.gpus:
            if request.gpus > len(self.devices):
                raise Refused(f"{request.gpus} GPUs are asked for, but this machine has {len(self.devices)}")
            now = min(now, len(self.free_devices()) // request.gpus)
            at_most = min(at_most, len(self.devices) // request.gpus)
        # A task that wants more cores than there are runs alone.
        return max(now, int(not self.held)), max(at_most, 1)

    def free_devices(self) -> list[str]:
        """GPUs that no task holds."""
        held = {device for _, devices in self.held.values() for device in devices}
        return [device for device in self.devices if device not in held]

    def submit(self, folder: Path, name: str, bundles: Sequence[Path], request: Request, minutes: int) -> list[str]:
        from submitit.local.local import LocalExecutor

        tasks = []
        for bundle in bundles:
            chosen = self.free_devices()[: request.gpus]
            # submitit hides all GPUs from a task that asks for none, but on a laptop a rule need not ask for the only one.
            visible = ",".join(chosen) if request.gpus else os.environ.get("CUDA_VISIBLE_DEVICES")
            # Libraries read these variables when they are imported, which is before the worker knows its bundle.
            variables = [f"{name}={value}" for name, value in threads(request.cpus).items()]
            variables += [] if visible is None else [f"CUDA_VISIBLE_DEVICES={visible}"]
            # If this head is killed, the next one reads here what the task holds.
            variables += [f"{HOLDS}={request.cpus * self.slots}:{','.join(chosen)}"]
            command = ["env", *(["-u", "CUDA_VISIBLE_DEVICES"] if visible is None else []), *variables]
            launch = f"{shlex.join(command)} {python()}"
            if self.setup:
                launch = shlex.join(
                    ["bash", "-c", "\n".join([*self.setup, 'exec "$@"']), "setup", *shlex.split(launch)]
                )
            executor = LocalExecutor(folder, max_num_timeout=TIMEOUTS, python=launch)
            executor.update_parameters(timeout_min=minutes, signal_delay_s=self.grace, stderr_to_stdout=True)
            # Ctrl-C is for the head, which then ends its tasks; the task's processes inherit the mask.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                submitted = executor.submit(Worker(str(bundle)))
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            task = f"{submitted.job_id}.{birth(int(submitted.job_id))}"
            self.children[task] = submitted
            self.held[task] = (request.cpus * self.slots, chosen)
            tasks.append(task)
        return tasks

    def states(self, tasks: Collection[str]) -> dict[str, str | None]:
        states: dict[str, str | None] = {}
        for task in tasks:
            number, began = task.split(".")
            child = self.children.get(task)
            # A child of this process is a zombie until it is waited for.
            ended = child._process.poll() is not None if child else birth(int(number)) != began
            states[task] = "ENDED" if ended else None
            if ended:
                self.held.pop(task, None)
                self.children.pop(task, None)
            elif task not in self.held:
                self.held[task] = holdings(int(number))
        return states

    def cancel(self, tasks: Collection[str]) -> None:
        for task, state in self.states(tasks).items():
            if state is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(task.split(".")[0]), signal.SIGTERM)

    def stray(self, folder: Path, name: str) -> dict[int, str]:
        from submitit.core.utils import DelayedSubmission

        tasks = {}
        # A task that still waits for its pickle ends by itself.
        for path in folder.glob("*_submitted.pkl"):
            number = path.name.partition("_")[0]
            with contextlib.suppress(OSError):
                if str(folder) in Path(f"/proc/{number}/cmdline").read_text():
                    worker: Any = DelayedSubmission.load(path).function
                    tasks[int(Path(worker.folder).name)] = f"{number}.{birth(int(number))}"
        return tasks


def holdings(process: int) -> tuple[int, list[str]]:
    """The number of cores and the GPUs that a task of an earlier head holds, which the environment of its controller states."""
    with contextlib.suppress(OSError):
        environment = Path(f"/proc/{process}/environ").read_text(encoding="utf-8", errors="replace")
        if stated := re.search(rf"\b{HOLDS}=(\d+):([\w,.:/-]*)", environment):
            return int(stated[1]), [name for name in stated[2].split(",") if name]
    return 1, []


def python() -> str:
    """The command of this Python, without the current directory on its path, like in a console script."""
    return f"{shlex.quote(sys.executable)} -P"


def devices() -> list[str]:
    """GPUs of this machine that this process may use."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        # As in CUDA, -1 ends the list.
        return [name for name in takewhile(lambda name: not name.startswith("-"), visible.split(",")) if name]
    try:
        return Commands().run("nvidia-smi", "--query-gpu=index", "--format=csv,noheader").split()
    except OSError:
        return []


def birth(number: int) -> str:
    """Return the kernel's tick at which a process began, since ids are reused; empty if the process has ended."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    # The third field of the manual page is the first after the name; a zombie has ended.
    return "" if fields[0] == "Z" else fields[19]


def clean_environment() -> None:
    """Forget the Slurm job that this process runs in, if any, because sbatch would pass its options on to the tasks."""
    for name in list(os.environ):
        if name.startswith("SLURM_") and name != "SLURM_CONF":
            del os.environ[name]
