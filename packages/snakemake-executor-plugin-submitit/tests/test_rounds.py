"""When the head asks the cluster, and what it does about the answers; all with a clock of its own."""

import errno
import os
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from clocked import Clock, Cluster, begin, poll, submitted
from stub import finish

from snakemake_executor_plugin_submitit import dispatch, failures
from snakemake_executor_plugin_submitit.bundles import Job, Status
from snakemake_executor_plugin_submitit.dispatch import Dispatcher
from snakemake_executor_plugin_submitit.resources import Request
from snakemake_executor_plugin_submitit.tasks import Task

# How often the cluster is asked.


@pytest.mark.parametrize(("silent", "least", "most"), [(None, 5, 10), (OSError("no answer"), 9, 11)])
def test_the_cluster_is_asked_soon_after_a_submission_and_then_ever_less_often(
    head: Dispatcher, clock: Clock, cluster: Cluster, silent: OSError | None, least: float, most: float
) -> None:
    cluster.silent = silent
    submitted(head, clock)
    begin = clock.now
    poll(head, clock, 600)
    gaps = cluster.gaps()
    assert 4.5 < cluster.asked[0] - begin < 6
    assert least < gaps[0] < most and all(earlier <= later + 0.5 for earlier, later in pairwise(gaps))
    assert 59 < gaps[-1] < 61


def test_a_new_submission_makes_the_head_ask_soon_again(head: Dispatcher, clock: Clock, cluster: Cluster) -> None:
    submitted(head, clock)
    poll(head, clock, 600)
    cluster.asked.clear()
    head.add([(Job("late", "rule", "shell", "true"), Request(), None)])
    begin = clock.now
    poll(head, clock, 30)
    assert cluster.asked[0] - begin < 12, "a small bundle waits for five seconds, and then the question for as many"


@pytest.mark.parametrize(("count", "least"), [(1, 5), (400, 25), (4000, 60)])
def test_the_more_tasks_there_are_the_less_often_the_cluster_is_asked(
    head: Dispatcher, clock: Clock, cluster: Cluster, tmp_path: Path, count: int, least: float
) -> None:
    """Verdicts come from files, and a listing of many tasks costs the controller time."""
    submitted(head, clock)
    head.tasks.all += [head.tasks.all[0]] * (count - 1)
    begin, times = clock.now, cluster.asked
    while not times:
        for call in [next(head.ask(), None)]:
            if call:
                call()
        clock.now += 0.5
    assert least - 1 < times[0] - begin < least + 1.1


def test_this_machine_is_asked_with_every_poll(
    clock: Clock, cluster: Cluster, tmp_path: Path, messages: list[str]
) -> None:
    cluster.is_local = True  # type: ignore[misc]
    head = begin(cluster, tmp_path, messages)
    submitted(head, clock)
    poll(head, clock, 5, step=1)
    assert len(cluster.asked) == 5


# What the answers mean.


def test_a_task_is_settled_after_the_second_answer_that_it_is_over(
    head: Dispatcher, clock: Clock, cluster: Cluster
) -> None:
    """A file system may show what the task wrote last only after the end of the task."""
    submitted(head, clock)
    cluster.ended["1_0"] = "FAILED"
    Status("running", 1.0, "host").write(cluster.submitted[0], 0)
    assert poll(head, clock, 6) == [] and len(cluster.asked) == 1
    assert poll(head, clock, 7) == [failures.KILLED] and len(cluster.asked) == 2


def test_a_status_that_comes_after_the_end_of_its_task_counts(head: Dispatcher, clock: Clock, cluster: Cluster) -> None:
    submitted(head, clock)
    cluster.ended["1_0"] = "COMPLETED"
    poll(head, clock, 6)
    finish(cluster.submitted[0])
    assert poll(head, clock, 10) == [None]
    assert head.tasks.alive() == []


def test_answers_that_a_task_is_over_count_only_in_a_row(head: Dispatcher, clock: Clock, cluster: Cluster) -> None:
    """Slurm requeues a task."""
    submitted(head, clock)
    Status("running", 1.0, "host").write(cluster.submitted[0], 0)
    for word in ("FAILED", None, "FAILED"):
        cluster.ended = {"1_0": word} if word else {}
        count = len(cluster.asked)
        while len(cluster.asked) == count:
            assert poll(head, clock, 0.5) == []
    assert head.poll() == [] and head.tasks.alive() != []


def test_a_reason_for_which_a_task_waits_is_said_once(
    head: Dispatcher, clock: Clock, cluster: Cluster, messages: list[str]
) -> None:
    cluster.stuck = {"1_0": "PartitionConfig", "1_1": "PartitionConfig", "1_2": "JobHeldUser"}
    submitted(head, clock, 3)
    poll(head, clock, 100)
    first, second = messages
    assert "PartitionConfig" in first and "`show 1_0`" in first and "JobHeldUser" in second


def test_a_trouble_is_said_again_once_a_minute_until_it_ends(
    head: Dispatcher, clock: Clock, cluster: Cluster, messages: list[str]
) -> None:
    cluster.silent = OSError("no answer")
    submitted(head, clock)
    poll(head, clock, 200)
    assert len([message for message in messages if "no answer" in message]) == 4
    cluster.silent = None
    poll(head, clock, 61)
    assert head.silent_since is None, "the next silence ends the run too soon"
    count = len(messages)
    poll(head, clock, 200)
    assert len(messages) == count


def test_a_task_whose_files_can_be_read_again_is_no_trouble_any_more(
    head: Dispatcher, clock: Clock, cluster: Cluster, messages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(task: Task) -> None:
        raise OSError("Input/output error")

    submitted(head, clock)
    with monkeypatch.context() as patch:
        patch.setattr(head.judge, "read", refuse)
        poll(head, clock, 10)
    assert len(messages) == 1 and "Input/output error" in messages[0]
    poll(head, clock, 300)
    assert len(messages) == 1
    assert head.tasks.all[0].unreadable_since is None, "the next trouble ends the task too soon"


@pytest.mark.parametrize(("where", "minutes"), [("", 120), ("*/0/status", 5)])
def test_a_task_that_stays_unreadable_fails_its_jobs_sooner_if_the_rest_of_the_ledger_can_be_read(
    head: Dispatcher, clock: Clock, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, where: str, minutes: int
) -> None:
    """A file system that does not answer comes back, a damaged file does not."""
    listdir = os.listdir
    submitted(head, clock)
    [broken] = head.folder.glob(where) if where else [head.folder]

    def refuse(path: Path) -> list[str]:
        if Path(path).is_relative_to(broken):
            raise OSError(errno.EIO, "Input/output error", str(path))
        return listdir(path)

    monkeypatch.setattr(os, "listdir", refuse)
    cluster.ended["1_0"] = "COMPLETED"
    assert poll(head, clock, minutes * 60 - 60, step=20) == []
    assert poll(head, clock, 3 * 60, step=20) == [failures.UNREADABLE]


def test_a_file_system_that_works_again_just_now_is_no_damaged_file(
    head: Dispatcher, clock: Clock, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may come back between the look at a status and that at the ledger."""
    submitted(head, clock)
    read, calls = head.judge.read, Counter[float]()

    def refuse(task: Task) -> None:
        # The first call is that of the poll, the second comes when the task is over according to the cluster.
        calls[clock.now] += 1
        if calls[clock.now] <= 2:
            raise OSError("Input/output error")
        read(task)

    monkeypatch.setattr(head.judge, "read", refuse)
    monkeypatch.setattr(head.judge, "give_up", lambda task, word: pytest.fail("the task was given up"))
    poll(head, clock, 600, step=20)
    finish(cluster.submitted[0])
    cluster.ended["1_0"] = "COMPLETED"
    assert poll(head, clock, 200, step=20) == [None]


def test_a_trouble_that_changes_is_said_at_once(
    head: Dispatcher, clock: Clock, cluster: Cluster, messages: list[str]
) -> None:
    submitted(head, clock)
    for words in ("first", "second", "second"):
        cluster.silent = OSError(words)
        poll(head, clock, 20, step=5)
    assert [("first" in message, "second" in message) for message in messages] == [(True, False), (False, True)]


@pytest.mark.parametrize("question", ["states", "learn"], ids=["about tasks", "about its limits"])
def test_a_silence_ends_the_run_after_the_minutes_of_the_setting(
    head: Dispatcher, clock: Clock, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no answer")

    monkeypatch.setattr(cluster, question, refuse)
    submitted(head, clock)
    poll(head, clock, 119 * 60, step=30)
    with pytest.raises(dispatch.Unreachable, match=r"has not answered for 12[0-9] minutes"):
        poll(head, clock, 3 * 60, step=30)


# Earlier heads.


def follow(head: Dispatcher, cluster: Cluster, folder: Path, messages: list[str]) -> Dispatcher:
    """The next head in the same folder."""
    head.hold.close()
    return begin(cluster, folder, messages)


def test_the_next_head_takes_over_a_job_that_runs_and_submits_the_others(
    head: Dispatcher, clock: Clock, cluster: Cluster, tmp_path: Path, messages: list[str]
) -> None:
    submitted(head, clock)
    next_head = follow(head, cluster, tmp_path, messages)
    next_head.add([(Job(key, "rule", "shell", "true"), Request(), None) for key in ("0", "new")])
    poll(next_head, clock, 10)
    assert cluster.jobs() == [["0"], ["new"]]
    assert cluster.cancelled == [], "a task that serves is cancelled"


def test_a_task_with_a_damaged_bundle_is_cancelled_by_the_next_head(
    head: Dispatcher, clock: Clock, cluster: Cluster, tmp_path: Path, messages: list[str]
) -> None:
    submitted(head, clock)
    (cluster.submitted[0] / "bundle.json").write_text("")
    next_head = follow(head, cluster, tmp_path, messages)
    assert (cluster.submitted[0] / "revoked").exists()
    next_head.poll()
    assert cluster.cancelled == ["1_0"]
    next_head.poll()
    assert cluster.cancelled == ["1_0"], "it is cancelled again and again"


def test_a_task_that_makes_the_same_file_in_another_way_gives_way(
    head: Dispatcher, clock: Clock, cluster: Cluster, tmp_path: Path, messages: list[str]
) -> None:
    """The job of the old task ends all the same before its task does."""
    head.add([(Job("old", "rule", "shell", "a", outputs=("out",)), Request(), None)])
    head.poll()
    next_head = follow(head, cluster, tmp_path, messages)
    next_head.add([(Job("new", "rule", "shell", "b", outputs=("out",)), Request(), None)])
    poll(next_head, clock, 4)
    assert (cluster.cancelled, cluster.jobs()) == (["1_0"], [["old"]]), "two tasks write the same file"
    cluster.ended["1_0"] = "CANCELLED"
    poll(next_head, clock, 30)
    assert cluster.jobs() == [["new"]]


def test_a_task_that_is_stopped_may_still_end_a_job_that_is_wanted(
    head: Dispatcher, clock: Clock, cluster: Cluster, tmp_path: Path, messages: list[str]
) -> None:
    """The job waits in the buffer for the end of its task, and need not run again."""
    job = Job("job", "rule", "shell", "true", outputs=("out",))
    head.add([(job, Request(), None)])
    head.poll()
    (cluster.submitted[0] / "revoked").touch()
    next_head = follow(head, cluster, tmp_path, messages)
    next_head.add([(job, Request(), None)])
    poll(next_head, clock, 2)
    (tmp_path / "out").touch()
    stamps = ((tmp_path / "out").stat().st_mtime_ns,)
    Status("done", 1.0, "host", ended=2.0, stamps=stamps).write(cluster.submitted[0], 0)
    cluster.ended["1_0"] = "CANCELLED"
    assert poll(next_head, clock, 30) == [None]
    assert (cluster.jobs(), next_head.submitter.buffer) == ([["job"]], [])
