"""Random faults against the executor plugin's head and workers: no job may be lost, doubled or wrongly reported.

`python tests/faults.py --trials 1000 --seed 0 --workers 2` runs trials, prints the seeds of those that failed,
and exits with 1 if there are any. Neither Snakemake nor Slurm takes part. In each trial a process of its own plays
Slurm (`Controller`): it forks the head, which plays Snakemake (`faults_head`), and the array tasks, which are real
workers; it answers the head's questions, and kills, truncates and fills the disk at moments that the seed draws.
The jobs themselves write down when they start and end, and hold a lock, so that they bear witness (`faults_verdict`).
"""

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import faults_head
import faults_verdict
from faults_jobs import JOB
from faults_processes import (
    LIBC,
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    Log,
    Task,
    begin,
    descendants,
    kill_session,
    session,
)
from faults_trial import Trial, draw

from snakemake_executor_plugin_submitit import guard, worker

# Files of the ledger that may be cut short.
DAMAGED = ("*/*/status/*.json", "*/*/status/*.json", "*/*/status/*.closed", "*/*/bundle.json", "*/array.json")
# Seconds: of a task of one job, of Slurm's patience with SIGTERM, in which workers leave after the end, of a whole trial.
LIMIT, KILL_WAIT, LEAVE, TRIAL = 0.8, 0.8, 2.0, 40.0


class Controller:
    """Simulates slurmctld and the nodes, and injects faults."""

    def __init__(self, trial: Trial, folder: Path) -> None:
        self.trial, self.folder = trial, folder
        self.random = random.Random(f"controller {trial.seed}")
        self.tasks: dict[str, Task] = {}
        self.bundles: dict[Path, list[str]] = {}
        self.arrays = 0
        self.heads = 0
        self.head = 0
        self.channel: Any = None
        self.kill_at_submission = False
        self.log = (folder / "controller.jsonl").open("a")
        self.faults = list(trial.faults)
        self.disk: float | None = None
        self.mend_at: float | None = None
        # Until then the queue seems to be empty.
        self.blind = 0.0
        # No more faults.
        self.calm = False
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)

    def note(self, kind: str, **more: Any) -> None:
        print(json.dumps({"time": time.time(), "kind": kind, **more}), file=self.log, flush=True)

    def run(self) -> None:
        """Run heads until one has finished its work; a last head then checks that nothing is left."""
        began = time.time()
        self.start_head("work")
        final = False
        while True:
            if time.time() > began + TRIAL:
                self.note("stuck")
                break
            if self.channel.poll(0.004):
                try:
                    self.answer(*self.channel.recv())
                except (EOFError, OSError):
                    time.sleep(0.002)
            code = self.reap()
            now = time.time()
            while self.faults and now >= began + self.faults[0][0]:
                _, kind, drawn = self.faults.pop(0)
                if final:
                    continue
                if not self.fault(kind, drawn) and now < began + TRIAL / 4:
                    self.faults.append((now - began + 0.03, kind, drawn))
                    self.faults.sort()
                    break
            self.oversee(now)
            if code is not None:
                if final:
                    break
                final = code == 0
                if final:
                    self.calm, self.blind = True, 0.0
                    self.note(
                        "finished", alive=[task.name for task in self.tasks.values() if task.alive and not task.denied]
                    )
                    self.full(False)
                self.start_head("rest" if final else "work")
        for task in self.tasks.values():
            if task.alive and not task.denied:
                self.note("left", task=task.name, state=task.state)
        # A worker that the head believes to be gone leaves when nobody answers it.
        patience = time.time() + LEAVE
        while (left := list(descendants(os.getpid()))) and time.time() < patience:
            self.reap()
            time.sleep(0.01)
        if left:
            self.note("survivors", processes=left)
        for pid, _ in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.log.close()

    # Processes.

    def start_head(self, task: str) -> None:
        self.heads += 1
        if self.channel:
            self.channel.close()
        self.channel, head_channel = multiprocessing.Pipe()
        # An interruption waits until the head has its handler.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        self.head = os.fork()
        if self.head:
            self.note("head", pid=self.head, number=self.heads, task=task)
        else:
            self.become(
                lambda: faults_head.run(self.trial, self.folder, head_channel, task, self.heads), f"head-{self.heads}"
            )
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        head_channel.close()

    def start(self, task: Task) -> None:
        task.state, task.started, task.ending, task.kill_at = "RUNNING", time.time(), None, None
        # As submitit's, by which the head knows that a task has started.
        with contextlib.suppress(FileNotFoundError):
            (task.folder.parent / "submitit").mkdir(exist_ok=True)
            (task.folder.parent / "submitit" / f"{task.name}_0_log.out").touch()
        # Python starts in no time here, and is not hit meanwhile.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
        task.pid = os.fork()
        if task.pid == 0:
            os.setsid()
            os.environ.update(TASK=task.name, CONTROLLER=str(os.getppid()))
            worker.PATIENCE, guard.BEAT = 0.5, 0.1
            self.become(worker.Worker(str(task.folder)), f"task-{task.name}")
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR2})
        self.note("start", task=task.name, pid=task.pid)

    def become(self, call: Any, name: str) -> None:
        """In a fork: call, and end as Python would."""
        code = 1
        try:
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            out = os.open(self.folder / f"{name}.out", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(out, 1)
            os.dup2(out, 2)
            # Snakemake's logger, which the head writes to, is not upset by a full disk.
            file = io.FileIO(1, "w", closefd=False) if name.startswith("head") else Log(self.folder / "full")
            sys.stdout = io.TextIOWrapper(io.BufferedWriter(file), line_buffering=True)
            sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
            begin(self.folder, self.trial)
            call()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)

    def reap(self) -> int | None:
        """Collect what has ended; the head's exit code if it is the head."""
        code = None
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return code
            if pid == 0:
                return code
            if pid == self.head:
                code = os.waitstatus_to_exitcode(status)
                self.note("head ended", code=code)
                self.head = 0
            for task in self.tasks.values():
                if task.pid == pid and task.state == "RUNNING":
                    self.over(task, os.waitstatus_to_exitcode(status))

    def over(self, task: Task, code: int) -> None:
        """A task's first process has ended: nothing of the task survives it."""
        if not self.trial.contained and not task.ending:
            deadline = time.time() + 0.5
            while (left := session(task.pid)) and time.time() < deadline:
                time.sleep(0.002)
            if left:
                self.note("survivors", task=task.name, processes=left)
        while kill_session(task.pid):
            time.sleep(0.002)
        word, again = task.ending or {0: ("COMPLETED", False), worker.RESUMABLE: ("REQUEUED", True)}.get(
            code, ("FAILED", False)
        )
        self.note("end", task=task.name, code=code, word=word, again=again)
        task.state = "PENDING" if again else word
        task.ready_at = time.time() + self.random.uniform(0, 0.05)
        task.ended = time.time()

    def oversee(self, now: float) -> None:
        """Start tasks and enforce limits."""
        for task in [task for task in self.tasks.values() if task.state == "RUNNING"]:
            if task.limit and not task.ending and now > task.started + task.limit:
                self.note("fault", fault="limit", task=task.name)
                task.ending, task.kill_at = ("TIMEOUT", False), now + KILL_WAIT
                # A worker that has come to an end by then requeues itself, as submitit would.
                os.kill(task.pid, signal.SIGUSR2)
            if task.kill_at and now > task.kill_at:
                kill_session(task.pid)
        if self.disk and now > self.disk:
            self.full(False)
        if self.mend_at and now > self.mend_at:
            self.mend_at = None
            (self.folder / "broken").unlink()
        self.schedule(now)

    def schedule(self, now: float) -> None:
        """Start the tasks whose turn it is."""
        running = sum(task.state == "RUNNING" for task in self.tasks.values())
        for task in list(self.tasks.values()):
            if task.state == "PENDING" and now >= task.ready_at and running < self.trial.width:
                running += 1
                self.start(task)

    def full(self, full: bool, seconds: float = 0.0) -> None:
        self.disk = time.time() + seconds if full else None
        flag = self.folder / "full"
        if full:
            flag.touch()
        else:
            flag.unlink(missing_ok=True)

    # The head's questions.

    def answer(self, question: str, *arguments: Any) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.channel.send(getattr(self, f"on_{question}")(*arguments))

    def on_submit(self, array: str, folders: Sequence[str], minutes: int) -> Any:
        if self.random.random() < self.trial.refuse:
            return RuntimeError("sbatch: Batch job submission failed: Socket timed out on send/recv operation")
        self.arrays += 1
        names = []
        for number, folder in enumerate(folders):
            jobs = [Path(job["outputs"][0]).name for job in json.loads(Path(folder, "bundle.json").read_text())["jobs"]]
            task = Task(f"{self.arrays}_{number}", array, Path(folder), jobs, LIMIT if minutes == 1 else None)
            task.ready_at = time.time() + self.random.uniform(0, 0.03)
            self.tasks[task.name] = task
            names.append(task.name)
            self.note("submitted", task=task.name, jobs=jobs, folder=folder)
        if self.kill_at_submission:
            self.kill_at_submission = False
            self.schedule(time.time() + 1)
            time.sleep(0.01)
            self.note("fault", fault="kill head while it submits")
            if self.head:
                os.kill(self.head, signal.SIGKILL)
        elif self.random.random() < self.trial.lose:
            self.note("lost answer", array=array)
            self.schedule(time.time() + 1)
            return RuntimeError("sbatch: Socket timed out on send/recv operation")
        return names

    def on_states(self, names: Sequence[str]) -> Any:
        if self.random.random() < self.trial.mute and not self.calm:
            return OSError("squeue: Unable to contact slurm controller")
        states: dict[str, str | None] = {}
        for name in names:
            task = self.tasks.get(name)
            if task and time.time() < self.blind:
                task.denied = task.denied or task.alive
                states[name] = "GONE"
            elif task is None or (self.trial.forgets and not task.alive and time.time() > task.ended + 0.2):
                states[name] = "GONE"
            else:
                states[name] = None if task.alive else task.state
        return states

    def on_cancel(self, names: Sequence[str]) -> None:
        for name in names:
            # The name of an array stands for all its tasks.
            for task in self.tasks.values():
                if name in (task.name, task.name.partition("_")[0]) and task.alive:
                    self.note("cancelled by the head", task=task.name)
                    self.stop(task, "CANCELLED", False)

    def on_stray(self, array: str) -> Any:
        if self.random.random() < self.trial.mute and not self.calm:
            return OSError("squeue: Unable to contact slurm controller")
        tasks = [task for task in self.tasks.values() if task.array == array and (task.alive or not self.trial.forgets)]
        return {int(task.name.partition("_")[2]): task.name for task in tasks}

    # Faults.

    def stop(self, task: Task, word: str, again: bool) -> None:
        """End a task with SIGTERM first, as scancel, preemption and time limits do."""
        if task.state == "PENDING":
            task.state, task.ended = ("PENDING" if again else word), time.time()
            return
        task.ending, task.kill_at = (word, again), time.time() + KILL_WAIT
        # Slurm signals all processes of a task, in no particular order; submitit's local tasks the first.
        pids = session(task.pid)
        self.random.shuffle(pids)
        for pid in pids if self.random.random() < 0.7 else [task.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def fault(self, kind: str, drawn: float) -> bool:
        """Inject a fault; False if it has no target at present."""
        if kind in ("kill head", "interrupt head"):
            if not self.head:
                return False
            self.note("fault", fault=kind)
            os.kill(self.head, signal.SIGKILL if kind == "kill head" else signal.SIGINT)
            return True
        if kind == "kill head while it submits":
            self.kill_at_submission = True
            return True
        if kind == "full disk":
            self.note("fault", fault=kind)
            self.full(True, 0.05 + 0.4 * drawn)
            return True
        if kind == "broken host":
            self.note("fault", fault=kind)
            (self.folder / "broken").touch()
            self.mend_at = time.time() + 0.02 + 0.2 * drawn
            return True
        if kind == "blind queue":
            self.note("fault", fault=kind)
            # Shorter than the patience with a heart that is still.
            self.blind = time.time() + 0.05 + 0.4 * drawn
            return True
        if kind == "damage":
            return self.damage(drawn)
        queued = kind in ("CANCELLED", "PREEMPTED") and drawn < 0.3
        choice = [
            task
            for task in self.tasks.values()
            if (task.alive if queued else task.state == "RUNNING") and not task.ending
        ]
        if not choice:
            return False
        task = choice[int(drawn * 997) % len(choice)]
        self.note("fault", fault=kind, task=task.name)
        word, _, requeue = kind.partition(" and ")
        if kind == "kill worker":
            os.kill(task.pid, signal.SIGKILL)
        elif kind == "USR2":
            os.kill(task.pid, signal.SIGUSR2)
        elif word in ("CANCELLED", "TIMEOUT", "PREEMPTED"):
            self.stop(task, word, bool(requeue))
        else:
            task.ending = (word, bool(requeue))
            kill_session(task.pid)
        return True

    def damage(self, drawn: float) -> bool:
        """Cut a file of the ledger short, as a crash of a node or a file server may."""
        ledger = self.folder / "ledger"
        choice: list[Path] = []
        self.learn()
        # Folders come and go meanwhile.
        with contextlib.suppress(FileNotFoundError):
            choice = sorted(ledger.glob(DAMAGED[int(drawn * 31) % len(DAMAGED)]))
        # Of an array that is being submitted, nothing is damaged.
        submitted = {task.folder.parent for task in self.tasks.values()}
        submitted |= {folder.parent for folder in self.bundles if (folder.parent / "array.json").exists()}
        choice = [path for path in choice if ledger / path.relative_to(ledger).parts[0] in submitted]
        if not choice:
            return False
        path = choice[int(drawn * 997) % len(choice)]
        try:
            size = path.stat().st_size
            # Noted first, so that no consequence precedes its cause.
            self.note("damage", path=str(path.relative_to(ledger)), jobs=self.jobs_of(path))
            os.truncate(path, 0 if drawn < 0.5 else int(size * drawn))
        except FileNotFoundError:
            return False
        return True

    def learn(self) -> None:
        """Read which jobs the bundles hold, those of the workers' further bundles, too."""
        self.bundles |= {task.folder: task.jobs for task in self.tasks.values()}
        # Folders come and go meanwhile, and a file may be damaged already.
        with contextlib.suppress(FileNotFoundError, ValueError):
            for path in (self.folder / "ledger").glob("*/*/bundle.json"):
                if path.parent not in self.bundles:
                    jobs = json.loads(path.read_text())["jobs"]
                    self.bundles[path.parent] = [Path(job["outputs"][0]).name for job in jobs]

    def jobs_of(self, path: Path) -> list[str]:
        """The jobs whose memory a file of the ledger is."""
        if path.name == "array.json":
            return []
        folder = path.parent if path.name == "bundle.json" else path.parent.parent
        jobs = self.bundles.get(folder, [])
        return jobs if path.name == "bundle.json" else [jobs[int(path.stem)]] if jobs else []


def run(trial: Trial, keep: bool = True) -> list[str]:
    """Run one trial in this process, which must have no other children, and return the violations."""
    folder = Path(tempfile.mkdtemp(prefix=f"faults-{trial.seed}-"))
    for name in ("locks", "starts", "out", "state"):
        (folder / name).mkdir()
    (folder / "job.bash").write_text(JOB)
    Controller(trial, folder).run()
    wrong = faults_verdict.violations(trial, folder)
    if wrong and keep:
        wrong.append(f"see {folder}")
    else:
        shutil.rmtree(folder)
    return wrong


def run_seed(seed: int) -> tuple[int, list[str], float]:
    began = time.time()
    return seed, run(draw(seed)), time.time() - began


def run_alone(trial: Trial) -> list[str]:
    """Run one trial in a process of its own."""
    with ProcessPoolExecutor(1) as pool:
        return pool.submit(run, trial).result()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first trial; the others follow")
    parser.add_argument("--workers", type=int, default=2, help="trials at a time")
    arguments = parser.parse_args()
    from rich.progress import track

    began, failed = time.time(), []
    with ProcessPoolExecutor(arguments.workers) as pool:
        results = pool.map(run_seed, range(arguments.seed, arguments.seed + arguments.trials))
        for seed, wrong, seconds in track(results, "trials", total=arguments.trials, disable=not sys.stdout.isatty()):
            if wrong:
                failed.append(seed)
                print(f"seed {seed} ({seconds:.1f} s):", *wrong, sep="\n    ", flush=True)
    print(f"{arguments.trials - len(failed)} of {arguments.trials} trials passed in {time.time() - began:.0f} s")
    if failed:
        print("failed seeds:", *failed)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
