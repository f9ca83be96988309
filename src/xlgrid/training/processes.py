"""The processes of one training: one, or one for each GPU of a node. `launch` or `torchrun` starts them."""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.training.signals import SIGNALS, signals

if TYPE_CHECKING:
    import torch

# Environment variables: `launch` sets the first to the file through which its processes find each other, and `torchrun`
# sets the second.
MEETING_FILE, TORCHRUN = "XLGRID_MEETING", "TORCHELASTIC_RUN_ID"
# Seconds between two checks whether processes have ended.
POLL_SECONDS = 0.1
# The longest time in seconds before `launch` ends a process after another process has ended.
PATIENCE = 10.0


@dataclass(frozen=True)
class Processes:
    """This process among those of a training. All of them hold the whole model and take every step.

    Attributes:
        count: the number of processes.
        rank: the number of this one, from 0. Only process 0 writes files and log lines.
        device: the device of the tensors that the processes exchange.
    """

    count: int
    rank: int
    device: "torch.device"

    @property
    def writes(self) -> bool:
        """Whether this process writes the results."""
        return self.rank == 0

    def own(self, parts: Sequence[int]) -> Sequence[int]:
        """The share of this process: every `count`th number, from index `rank` on."""
        return parts[self.rank :: self.count]

    def sums(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """The sum of each number over all processes. All processes have to call this together, with the same names."""
        if self.count == 1:
            return dict(numbers)
        import torch

        vector = torch.tensor([*numbers.values()], dtype=torch.float64, device=self.device)
        self.add_up(vector)
        return dict(zip(numbers, vector.tolist(), strict=True))

    def from_first(self, compute: Callable[[], str]) -> str:
        """Compute a text in process 0, and return it in all processes. All processes have to call this together."""
        if self.count == 1:
            return compute()
        import torch

        pool = ThreadPoolExecutor(1)
        text = pool.submit(compute) if self.writes else None
        # An exchange fails after ten minutes of waiting for a process, so the processes wait in many short exchanges.
        while self.sums({"computes": text is not None and not text.done()})["computes"]:
            time.sleep(POLL_SECONDS)
        pool.shutdown(wait=False)
        texts = [text.result() if text else ""]
        self._exchange(torch.distributed.broadcast_object_list, texts)
        return texts[0]

    def add_gradients(self, weights: Sequence["torch.nn.Parameter"]) -> None:
        """Set the gradient of each weight to the sum over all processes, or to None if no process has a gradient."""
        if self.count == 1:
            return
        import torch

        gradients = [torch.zeros_like(each) if each.grad is None else each.grad for each in weights]
        has_gradient = torch.tensor([float(each.grad is not None) for each in weights], device=self.device)
        flat = torch.cat([*(gradient.flatten() for gradient in gradients), has_gradient])
        self.add_up(flat)
        *summed, counted = flat.split([*(each.numel() for each in weights), len(weights)])
        for weight, gradient, number in zip(weights, summed, counted.tolist(), strict=True):
            weight.grad = gradient.view_as(weight) if number else None

    def leave(self) -> None:
        """Leave the group, at the end of the training. All processes do so; one that ends with an error does not."""
        if self.count > 1:
            import torch

            torch.distributed.destroy_process_group()

    def add_up(self, tensor: "torch.Tensor") -> None:
        """Replace a tensor by its sum over all processes. All processes have to call this together."""
        if self.count == 1:
            return
        import torch

        self._exchange(torch.distributed.all_reduce, tensor)

    def _exchange(self, collective: Callable[[Any], Any], value: Any) -> None:
        """Call a collective operation of torch, which changes `value` in place."""
        try:
            collective(value)
        except RuntimeError as error:
            from xlgrid.models.prediction import is_out_of_memory

            if is_out_of_memory(error):
                # The error is from this process.
                raise
            # The process that has ended prints the reason. This process waits, so that the reason comes first.
            time.sleep(PATIENCE)
            raise ChildProcessError(
                f"another of the {self.count} processes has ended, or cannot be reached: {error}"
            ) from error


def join(device: "torch.device") -> Processes:
    """Join the other processes of a training. There are no others unless `launch` or `torchrun` started this process.

    Args:
        device: the kind of device that the training uses; each process takes a GPU of its own.

    Raises:
        ValueError: there are more processes than GPUs.
    """
    # Some clusters set WORLD_SIZE for every job, so this variable is not enough.
    count, rank = (int(os.environ[name]) for name in ("WORLD_SIZE", "RANK")) if is_shared() else (1, 0)
    if count > 1:
        import torch

        if device.type == "cuda":
            local, gpus = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
            if local >= gpus:
                raise ValueError(f"{count} processes need a GPU each, but torch sees {gpus}: ask for fewer processes")
            torch.cuda.set_device(local)
        else:
            torch.set_num_threads(max(1, torch.get_num_threads() // count))
        meeting = os.environ.get(MEETING_FILE)
        if meeting and sys.platform == "linux":
            # PR_SET_PDEATHSIG: this process ends when the command that started it is killed.
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        if not torch.distributed.is_initialized():
            backend, place = "nccl" if device.type == "cuda" else "gloo", f"file://{meeting}" if meeting else "env://"
            torch.distributed.init_process_group(backend, place, rank=rank, world_size=count)
    return Processes(count, rank, device)


def is_shared() -> bool:
    """Whether this process is one of several that share a training."""
    return MEETING_FILE in os.environ or TORCHRUN in os.environ


def launch(command: Sequence[str], count: int) -> int:
    """Run a command in `count` processes that share a training, and return their exit status.

    Signals that ask a training to end are passed on. All processes then end with status 75, after process 0 has saved the
    state. If a process fails, the others are killed, and the message of the failed process comes last on stderr.
    Otherwise only process 0 writes to stderr.

    Raises:
        ValueError: there are fewer cores than processes, which would wait for one another.
    """
    if count > (cores := len(os.sched_getaffinity(0))):
        raise ValueError(
            f"{count} processes need a core each, and this job has {cores}: ask for more cores (`cpus_per_task: {count}` beside "
            "`gpus` in the profile of a cluster), or for fewer processes"
        )
    with tempfile.TemporaryDirectory(prefix="xlgrid-") as name, signals() as received:
        folder = Path(name)
        # The new processes inherit this mask, so that an early signal waits until their `signals` listens.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        workers = [_start(command, rank, count, folder) for rank in range(count)]
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        try:
            failed = _wait(workers, received)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
        if failed is None:
            return max(worker.returncode for worker in workers)
        status = workers[failed].returncode
        if failed:
            print((folder / str(failed)).read_text(errors="replace"), end="", file=sys.stderr)
        if status < 0:
            print(
                f"error: process {failed} of {count} was ended by {signal.Signals(-status).name}, and the others with "
                "it; the same command continues from the last saved state; if the memory of the machine ran out, ask "
                "for more",
                file=sys.stderr,
            )
        # A shell reports the same status.
        return 128 - status if status < 0 else status


def _start(command: Sequence[str], rank: int, count: int, folder: Path) -> "subprocess.Popen[bytes]":
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, MEETING_FILE: folder / "meeting"}
    environment = os.environ | {name: str(value) for name, value in numbers.items()}
    if rank == 0:
        return subprocess.Popen(command, env=environment)
    with (folder / str(rank)).open("wb") as errors:
        return subprocess.Popen(command, env=environment, stderr=errors)


def _wait(workers: Sequence["subprocess.Popen[bytes]"], received: list[signal.Signals]) -> int | None:
    """Pass signals on until all processes have ended or one has failed; return the number of the failed process."""
    while any([worker.poll() is None for worker in workers]):
        for rank, worker in enumerate(workers):
            if worker.returncode not in (None, 0, os.EX_TEMPFAIL):
                return rank
        while received:
            number = received.pop()
            for worker in workers:
                worker.send_signal(number)
        time.sleep(POLL_SECONDS)
    return next((rank for rank, worker in enumerate(workers) if worker.returncode not in (0, os.EX_TEMPFAIL)), None)
