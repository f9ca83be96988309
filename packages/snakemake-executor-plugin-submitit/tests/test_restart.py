"""A head that follows an earlier head, or that is told to stop."""

import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path

import pytest
from stub import Stub
from waiting import wait_for
from workflow import LOCAL, environment, project, run

from snakemake_executor_plugin_submitit.bundles import Bundle, Job
from snakemake_executor_plugin_submitit.dispatch import Dispatcher, Settings
from snakemake_executor_plugin_submitit.resources import Request


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
