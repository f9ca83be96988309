"""The head of a trial of `faults`: a dispatcher, and what Snakemake does around it."""

import json
import os
import random
import signal
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from snakemake_executor_plugin_submitit import breaker, dispatch, pool, submission
from snakemake_executor_plugin_submitit.bundles import Bundle, Job
from snakemake_executor_plugin_submitit.clusters import cluster
from snakemake_executor_plugin_submitit.clusters.slurm import Slurm
from snakemake_executor_plugin_submitit.messages import Mail
from snakemake_executor_plugin_submitit.resources import Request

if TYPE_CHECKING:
    from faults_jobs import Plan
    from faults_trial import Trial

RETRIES = 2
INTERRUPTED, REFUSED = 4, 5
# Seconds after which a job that hangs by design is stopped; the others have more time than they need.
LIMIT, PLENTY = 0.4, 30.0


class Cluster(cluster.Cluster):
    """Asks the controller, which is the process that forked the head. All tasks run on one host all the same."""

    name = "slurm"
    ends = Slurm.ends

    def __init__(self, channel: Any) -> None:
        super().__init__()
        self.channel = channel
        self.lock = Lock()

    def ask(self, *question: Any) -> Any:
        with self.lock:
            self.channel.send(question)
            answer = self.channel.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def can_spare(self, place: str) -> bool:
        return True

    def submit(self, folder: Path, name: str, bundles: Sequence[Path], request: Request, minutes: int) -> list[str]:
        return self.ask("submit", name, [str(bundle) for bundle in bundles], minutes)

    def states(self, tasks: Collection[str]) -> dict[str, str | None]:
        return self.ask("states", list(tasks))

    def cancel(self, tasks: Collection[str]) -> None:
        self.ask("cancel", list(tasks))

    def stray(self, folder: Path, name: str) -> dict[int, str]:
        return self.ask("stray", name)


def job_of(plan: "Plan", folder: Path) -> Job:
    """The job of a plan."""
    return Job(
        key=f"key-{plan.name}",
        rule=plan.kind,
        kind="shell",
        command=f"bash job.bash {plan.name} {plan.kind} {plan.seconds}",
        inputs=(f"out/{plan.needs}",) if plan.needs else (),
        outputs=(f"out/{plan.name}",),
        limit=LIMIT if plan.kind in ("hangs", "stubborn", "endless") else PLENTY,
    )


def whole(folder: Path, name: str) -> bool:
    """Whether the output of a job is there and complete."""
    path = folder / "out" / name
    return path.exists() and path.read_text() == f"begin {name}\nend {name}\n"


def run(trial: "Trial", folder: Path, channel: Any, task: str, number: int) -> None:
    """Have all jobs run (`work`), or just start and rest (`rest`)."""
    interrupted = []
    signal.signal(signal.SIGINT, lambda *_: interrupted.append(True))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    source = random.Random(f"head {trial.seed} {number}")
    os.chdir(folder)
    dispatch.ASK, dispatch.ASK_MOST, dispatch.QUIET, submission.GATHER = 0.03, 0.2, 0.5, 0.05
    # The scheduler here ends the task of a single job after a minute of its own, with no time for more.
    submission.EARLY = -20.0
    breaker.PAUSES = (0.3,)
    dispatch.time = SimpleNamespace(  # type: ignore[assignment]
        time=time.time,
        monotonic=time.monotonic,
        sleep=lambda seconds: time.sleep(min(seconds, 0.02)),
    )
    record = os.open("records.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(**what: Any) -> None:
        os.write(record, (json.dumps({"time": time.time(), "head": number, **what}) + "\n").encode())

    mail = Mail()
    mail.listen(is_local=True)
    pool.MARGIN = 0.0
    settings = dispatch.Settings(
        folder / "ledger",
        trial.array,
        trial.seconds,
        Bundle((), os.getcwd(), slots=trial.slots, grace=20, latency_wait=2, head=mail.address, idle=trial.idle),
    )
    try:
        head = dispatch.Dispatcher(Cluster(channel), settings, say=lambda text: print(time.time(), text), mail=mail)
    except (OSError, RuntimeError) as error:
        print(f"{type(error).__name__}: {error}")
        raise SystemExit(REFUSED) from None
    request = Request(minutes=1, bundle=trial.bundle)
    lines = [json.loads(line) for line in Path("records.jsonl").read_text().splitlines()]
    successes = {line["job"] for line in lines if line["what"] == "success"}
    failures: dict[str, int] = {}
    flying: set[str] = set()
    verdicts = 0
    # Some jobs become ready a little later.
    later = {plan.name for plan in trial.plans if source.random() < 0.3}
    began = time.time()
    plans = {f"key-{plan.name}": plan for plan in trial.plans}
    while True:
        candidates = [
            plan
            for plan in trial.plans
            if plan.name not in successes | flying
            and failures.get(plan.name, 0) <= RETRIES
            and (plan.needs is None or plan.needs in successes)
            and task == "work"
        ]
        if not candidates and not flying:
            break
        batch = [plan for plan in candidates if plan.name not in later or time.time() > began + 0.05]
        if batch:
            flying |= {plan.name for plan in batch}
            head.add([(job_of(plan, folder), request, None) for plan in batch])
        for verdict in head.poll():
            plan = plans[verdict.job.key]
            flying.discard(plan.name)
            verdicts += 1
            if verdict.cause is None:
                note(what="success", job=plan.name, task=verdict.task, whole=whole(folder, plan.name))
                successes.add(plan.name)
            else:
                Path("out", plan.name).unlink(missing_ok=True)
                failures[plan.name] = failures.get(plan.name, 0) + 1
                note(
                    what="failure",
                    job=plan.name,
                    task=verdict.task,
                    cause=verdict.cause,
                    message=verdict.message,
                    last=failures[plan.name] > RETRIES,
                )
            if verdicts == trial.dies.get(number):
                os.kill(os.getpid(), signal.SIGKILL)
            head.close(verdict.job)
            note(what="closed", job=plan.name)
        # Not as long as in life.
        head.submitter.retry_at = min(head.submitter.retry_at, time.time() + 0.05)
        if interrupted:
            note(what="interrupted", job="")
            head.cancel()
            head.rest(5)
            raise SystemExit(INTERRUPTED)
        time.sleep(0.004)
    if task == "rest" and head.tasks.alive():
        # A task that was killed together with its heart is over when the heart has been still for long enough, and the next head
        # clears away what it leaves.
        while head.tasks.alive() and time.time() < began + 3 * dispatch.QUIET:
            head.poll()
            time.sleep(0.01)
        head.hold.close()
        head = dispatch.Dispatcher(Cluster(channel), settings)
    note(what="finished", job="")
    head.rest(10)
