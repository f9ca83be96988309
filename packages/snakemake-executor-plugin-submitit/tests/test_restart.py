"""A head that follows an earlier head, or that is told to stop."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path

import pytest
from stub import Stub, dispatcher
from waiting import wait_for
from workflow import LOCAL, environment, project, run

from snakemake_executor_plugin_submitit.bundles import Bundle, Job, Status, modification_times
from snakemake_executor_plugin_submitit.dispatch import Dispatcher, Settings
from snakemake_executor_plugin_submitit.resources import Request
from snakemake_executor_plugin_submitit.tasks import Task


class Deaf(Stub):
    """A cluster whose tasks never end, and that does not hear the first cancellations."""

    def __init__(self) -> None:
        super().__init__()
        self.cancelled: list[list[str]] = []

    def cancel(self, tasks: Collection[str]) -> None:
        self.cancelled.append([*tasks])
        if len(self.cancelled) < 3:
            raise TimeoutError("scancel did not answer")


def test_a_cancellation_that_the_cluster_did_not_hear_is_repeated_by_the_next_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("snakemake_executor_plugin_submitit.dispatch.ASK", 0.01)
    cluster = Deaf()
    settings = Settings(tmp_path, 1000, 600, Bundle((), str(tmp_path)))
    head = Dispatcher(cluster, settings)
    head.add([(Job("key", "rule", "shell", "true"), Request(), None)])
    head.poll()
    head.cancel()
    head.hold.close()
    later = Dispatcher(cluster, settings)
    later.add([(Job("key", "rule", "shell", "true"), Request(), None)])
    wait_for(lambda: later.poll() or len(cluster.cancelled) == 3, "the task is not cancelled", 10)
    assert len({*map(tuple, cluster.cancelled)}) == 1
    later.poll()
    assert len(cluster.cancelled) == 3, "what the cluster has heard is repeated"


def test_a_head_that_was_cancelled_submits_nothing_more(tmp_path: Path) -> None:
    cluster = Stub()
    head = Dispatcher(cluster, Settings(tmp_path, 1000, 600, Bundle((), str(tmp_path))))
    head.add([(Job("key", "rule", "shell", "true"), Request(), None)])
    head.poll()
    assert len(cluster.submitted) == 1
    head.cancel()
    head.poll()
    head.poll()
    assert len(cluster.submitted) == 1, "the job of the cancelled task was submitted again"


@pytest.mark.parametrize("known", [{"train": (2, 40.0)}, {}], ids=["long", "nobody knows"])
def test_what_takes_long_goes_first_rule_by_rule_and_what_is_short_shares_a_task(
    tmp_path: Path, known: dict[str, tuple[int, float]]
) -> None:
    """On a machine that runs two tasks at a time, by what earlier jobs of the rules took; what nobody knows may be long."""
    cluster = Stub()
    head = Dispatcher(cluster, Settings(tmp_path, 1000, 600, Bundle((), str(tmp_path))))
    head.judge.durations = {"evaluate": (10, 4.0), "table": (10, 1.0), **known}
    rules = ["evaluate"] * 4 + ["table"] + ["train"] * 4 + ["pretrain"] * 2
    jobs = [Job(f"{rule}-{number}", rule, "shell", "true") for number, rule in enumerate(rules)]
    head.add([(job, Request(bundle=100), None) for job in jobs])
    head.poll()
    *shared_out, together = cluster.jobs()
    assert sorted(shared_out) == [["pretrain-9"], ["train-5", "train-6"]]
    assert shared_out[0] == ["pretrain-9"] or not known, "nobody knows how long it takes, and it did not go first"
    assert together == [f"evaluate-{number}" for number in range(4)] + ["table-4"]


@pytest.mark.parametrize("inputs", [(), ("in.txt",)], ids=["no inputs", "inputs that are gone"])
def test_a_job_that_ended_without_its_outputs_is_not_intact(tmp_path: Path, inputs: tuple[str, ...]) -> None:
    job = Job("key", "rule", "shell", "true", inputs=inputs, outputs=("out.txt",))
    [task_job] = Task(tmp_path, Bundle((job,), str(tmp_path)), "1").jobs
    stamps = modification_times(job.outputs, str(tmp_path))
    task_job.status = Status("done", 1.0, "host", ended=2.0, stamps=stamps)
    assert not task_job.is_intact()


def test_only_jobs_that_are_done_tell_how_long_a_rule_takes(tmp_path: Path) -> None:
    head = Dispatcher(Stub(), Settings(tmp_path, 1000, 600, Bundle((), str(tmp_path))))
    jobs = tuple(Job(str(number), "rule", "shell", "true") for number in range(3))
    task = Task(tmp_path, Bundle(jobs, str(tmp_path)), "1")
    assert not task.is_finished
    statuses = [("done", 10.0), ("failed", 100.0), ("done", 20.0)]
    for task_job, (state, seconds) in zip(task.jobs, statuses, strict=True):
        head.judge.end(task_job, Status(state, 5.0, "host", ended=5.0 + seconds))  # type: ignore[arg-type]
    assert head.judge.durations == {"rule": (2, 30.0)}
    assert task.is_finished


SNAKEFILE = """
rule job:
    output: "out.txt"
    input: "script.py"
    params: text=config.get("text", "old")
    {action}
"""
RUN = """run:
        import time
        time.sleep(1.5)
        open(output[0], "w").write(params.text)"""
SCRIPT = 'script: "script.py"'
CODE = "import time; time.sleep(1.5); open(snakemake.output[0], 'w').write({what})"


@pytest.mark.slow
@pytest.mark.parametrize("action", ["run", "script", "script that changes"])
def test_what_an_earlier_head_made_otherwise_is_made_again(tmp_path: Path, action: str) -> None:
    folder = project(tmp_path, SNAKEFILE.format(action=RUN if action == "run" else SCRIPT))
    script = folder / "script.py"
    script.write_text(CODE.format(what="'old'" if action == "script that changes" else "snakemake.params.text"))
    head = subprocess.Popen(
        [sys.executable, "-m", "snakemake", *LOCAL],
        cwd=folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: list(folder.glob(".snakemake/submitit/*/*/status/0.json")), "the job does not start", 60)
    head.kill()
    head.wait()
    wait_for((folder / "out.txt").exists, "the job ends with its head", 60)
    time.sleep(0.5)
    run(folder, "--unlock")
    changed = []
    if action == "script that changes":
        script.write_text(CODE.format(what="'new'"))
    else:
        changed = ["--config", "text=new"]
    # Of a job that a nested Snakemake ended, the head has no mark left: somebody has to ask.
    run(folder, *LOCAL, "--forceall", *changed)
    assert (folder / "out.txt").read_text() == "new", "it was taken for what is asked for now"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda folder: None, ""),
        (lambda folder: os.utime(folder / "out", ns=(1, 1)), "the output is not the one that the job left"),
        (lambda folder: os.utime(folder / "in"), "an input is newer"),
        (lambda folder: (folder / "out").unlink(), "the output is gone"),
    ],
)
def test_a_job_that_ended_without_a_head_is_taken_over_only_if_its_files_are_as_it_left_them(
    tmp_path: Path, change: Callable[[Path], object], reason: str
) -> None:
    job = Job("key", "rule", "shell", "true", inputs=("in",), outputs=("out",))
    for name in job.inputs + job.outputs:
        (tmp_path / name).touch()
        os.utime(tmp_path / name, ns=(10**18, 10**18) if name == "out" else (10**9, 10**9))
    cluster = Stub()
    first, _ = dispatcher(cluster, tmp_path / "ledger")
    first.add([(job, Request(), None)])
    first.poll()
    first.hold.close()
    stamps = modification_times(job.outputs, str(tmp_path))
    Status("done", 1.0, "host", ended=2.0, stamps=stamps).write(cluster.submitted[0], 0)
    change(tmp_path)
    second, _ = dispatcher(cluster, tmp_path / "ledger")
    second.add([(job, Request(), None)])
    verdicts = second.poll()
    assert ([verdict.cause for verdict in verdicts], len(cluster.submitted)) == (([], 2) if reason else ([None], 1)), (
        reason
    )
