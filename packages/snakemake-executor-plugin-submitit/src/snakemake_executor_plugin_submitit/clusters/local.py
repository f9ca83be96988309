"""This machine, through the local executor of submitit."""

import contextlib
import os
import re
import shlex
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from snakemake_executor_plugin_submitit.clusters.cluster import TIMEOUTS, Cluster, Refused, plain, python
from snakemake_executor_plugin_submitit.clusters.commands import Commands
from snakemake_executor_plugin_submitit.clusters.slurm import Slurm, clean_environment, gpus
from snakemake_executor_plugin_submitit.process import HOLDS, devices_of, threads, visible_devices
from snakemake_executor_plugin_submitit.resources import Request
from snakemake_executor_plugin_submitit.worker import Worker


class Local(Cluster):
    """This machine, through submitit's local executor; adds a queue, and shares out cores and GPUs."""

    name: ClassVar = "local"
    is_local: ClassVar = True
    idle: ClassVar = 30.0
    # A rule that is for Slurm, too, may ask for GPUs in this way.
    settings: ClassVar = {"gres": Slurm.settings["gres"]}
    resources: ClassVar = {"gres": "gres"}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # submitit would take a task of this machine for one of Slurm.
        clean_environment()
        self.cores = min(self.parallelism, len(os.sched_getaffinity(0)))
        self.devices = devices()
        # The number of cores and the GPUs that a task holds, by the task's name.
        self.held: dict[str, tuple[int, list[str]]] = {}
        # The processes that this head has started, by the name of their task.
        self.children: dict[str, Any] = {}

    def adapt(self, request: Request) -> Request:
        # Memory and minutes are not granted, so jobs that differ in them alone share a task.
        return replace(request, mem_mb=None, mem_mb_per_cpu=None, minutes=None, gpus=gpus(request), options=())

    def room(self, request: Request) -> tuple[int, int]:
        cores = max(1, request.cpus * self.slots)
        free = self.cores - sum(held for held, _ in list(self.held.values()))
        now, at_most = free // cores, self.cores // cores
        if request.gpus:
            if request.gpus > len(self.devices):
                visible = os.environ.get("CUDA_VISIBLE_DEVICES")
                why = "" if visible is None else f", since CUDA_VISIBLE_DEVICES is {visible!r}"
                raise Refused(f"{request.gpus} GPUs are requested, but {len(self.devices)} can be used here{why}")
            now = min(now, len(self.free_devices(request.gpus)) // request.gpus)
            at_most = min(at_most, len(self.usable_devices(request.gpus)) // request.gpus)
        # A task that wants more cores than there are runs alone.
        return max(now, int(not self.held)), max(at_most, 1)

    def free_devices(self, number: int) -> list[str]:
        """GPUs that no task holds, for a task that needs this number."""
        held = {device for _, devices in list(self.held.values()) for device in devices}
        return [device for device in self.usable_devices(number) if device not in held]

    def usable_devices(self, number: int) -> list[str]:
        """GPUs that are not excluded; all of them for a task that needs more."""
        left = self.without(self.excluded)
        return left if len(left) >= number else self.devices

    def can_spare(self, place: str) -> bool:
        return bool(devices_of(place) and self.without((*self.excluded, place)))

    def without(self, places: Sequence[str]) -> list[str]:
        """GPUs that are at none of these places."""
        excluded = {device for place in places for device in devices_of(place)}
        return [device for device in self.devices if device not in excluded]

    def submit(self, folder: Path, name: str, bundles: Sequence[Path], request: Request, minutes: int) -> list[str]:
        from submitit.local.local import LocalExecutor

        tasks = []
        for bundle in bundles:
            chosen = self.free_devices(request.gpus)[: request.gpus]
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
            executor = LocalExecutor(plain(folder), max_num_timeout=TIMEOUTS, python=launch)
            executor.update_parameters(timeout_min=minutes, signal_delay_s=self.grace, stderr_to_stdout=True)
            # Ctrl-C, and the end of the terminal, are for the head, which then ends its tasks; the task's processes inherit the mask.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
            try:
                submitted = executor.submit(Worker(str(bundle)))
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            task = f"{submitted.job_id}.{birth(int(submitted.job_id))}"
            self.children[task] = submitted
            self.held[task] = (request.cpus * self.slots, chosen)
            tasks.append(task)
        return tasks

    def states(self, tasks: Mapping[str, str]) -> dict[str, str | None]:
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

    def cancel(self, tasks: Mapping[str, str]) -> None:
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
                if str(plain(folder)) in Path(f"/proc/{number}/cmdline").read_text():
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


def devices() -> list[str]:
    """GPUs of this machine that this process may use; in place of a GPU that is divided, its instances (MIG)."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and visible.strip() != "all":
        return visible_devices(visible)
    try:
        # A GPU with its instances (MIG), if it is divided. Without a GPU, some versions print a sentence.
        text = Commands().run("nvidia-smi", "--list-gpus")
    except OSError:
        return []
    found: list[str] = []
    for index, instances in re.findall(r"^GPU (\d+):.*\n?((?:^\s+MIG .*\n?)*)", text, re.MULTILINE):
        found += re.findall(r"UUID: (MIG-[\w/-]+)", instances) or [index]
    return found


def birth(number: int) -> str:
    """Return the kernel's tick at which a process began, since ids are reused; empty if the process has ended."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    # The third field of the manual page is the first after the name; a zombie has ended.
    return "" if fields[0] == "Z" else fields[19]
