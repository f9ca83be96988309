"""The end of a head: it cancels its tasks, and waits for those that are about to end."""

from collections.abc import Collection

import pytest
from clocked import Clock, Cluster, poll, submitted
from stub import finish

from snakemake_executor_plugin_submitit.bundles import Job
from snakemake_executor_plugin_submitit.dispatch import Dispatcher
from snakemake_executor_plugin_submitit.resources import Request


def test_an_interrupted_head_cancels_and_revokes_all_tasks(
    head: Dispatcher, clock: Clock, cluster: Cluster, messages: list[str]
) -> None:
    submitted(head, clock, 2)
    head.add([(Job("late", "rule", "shell", "true"), Request(), None)])
    head.cancel()
    assert sorted(cluster.cancelled) == ["1_0", "1_1"]
    assert all((folder / "revoked").exists() for folder in cluster.submitted)
    assert head.submitter.buffer == [] and messages == []


@pytest.mark.parametrize(("error", "is_deaf"), [(OSError("no answer"), False), (TimeoutError("no answer"), True)])
def test_a_head_that_cannot_cancel_names_its_tasks(
    head: Dispatcher, clock: Clock, cluster: Cluster, messages: list[str], error: OSError, is_deaf: bool
) -> None:
    def refuse(tasks: Collection[str]) -> None:
        raise error

    submitted(head, clock, 2)
    cluster.cancel = refuse  # type: ignore[method-assign]
    head.cancel()
    assert messages == ["submitit: cannot cancel tasks (no answer), please cancel: 1_0 1_1"]
    assert head.is_deaf == is_deaf, (
        "the end of the head waits for a cluster that does not answer, or does not wait at all"
    )


def test_the_end_of_a_head_waits_for_the_tasks_that_it_has_cancelled(
    head: Dispatcher, clock: Clock, cluster: Cluster, messages: list[str]
) -> None:
    submitted(head, clock)
    head.cancel()
    begin = clock.now
    states = cluster.states

    def later(tasks: Collection[str]) -> dict[str, str | None]:
        cluster.ended = {"1_0": "CANCELLED"} if clock.now > begin + 3 else {}
        return states(tasks)

    cluster.states = later  # type: ignore[method-assign]
    head.rest()
    assert 3 < clock.now - begin < 6
    assert (head.tasks.alive(), messages) == ([], [])
    assert set(clock.sleeps) == {1}, "the queue is asked without a pause"


def test_a_head_that_ends_waits_for_a_task_whose_jobs_have_ended_and_leaves_the_others(
    head: Dispatcher, clock: Clock, cluster: Cluster
) -> None:
    """Otherwise the folder of the finished task would stay."""
    submitted(head, clock, 2)
    finish(cluster.submitted[0])
    poll(head, clock, 0.5)
    head.close(head.tasks.all[0].jobs[0].job)
    cluster.ended = {"1_0": "COMPLETED"}
    head.rest()
    assert [task.name for task in head.tasks.alive()] == ["1_1"]
    assert not cluster.submitted[0].exists()
    assert cluster.cancelled == []


def test_a_head_gives_up_on_tasks_that_do_not_end_cancels_them_again_and_names_them(
    head: Dispatcher, clock: Clock, cluster: Cluster, messages: list[str]
) -> None:
    submitted(head, clock)
    head.cancel()
    begin = clock.now
    head.rest()
    assert 29 < clock.now - begin < 32
    assert 4 <= cluster.cancelled.count("1_0") <= 7
    assert messages == ["submitit: still in the queue of queue, please cancel: 1_0"]


@pytest.mark.parametrize(("error", "questions"), [(TimeoutError("no answer"), 1), (OSError("no answer"), 5)])
def test_a_head_that_ends_asks_a_cluster_again_that_refuses_but_not_one_that_hangs(
    head: Dispatcher, clock: Clock, cluster: Cluster, messages: list[str], error: OSError, questions: int
) -> None:
    submitted(head, clock)
    head.cancel()
    cluster.silent = error
    count = len(cluster.asked)
    head.rest(5)
    assert len(cluster.asked) == count + questions
    assert messages == ["submitit: still in the queue of queue, please cancel: 1_0"]


def test_a_head_that_ends_cancels_what_it_had_still_to_cancel(head: Dispatcher, clock: Clock, cluster: Cluster) -> None:
    submitted(head, clock)
    head.stop(head.tasks.all[0])
    cluster.ended = {"1_0": "CANCELLED"}
    head.rest()
    assert cluster.cancelled == ["1_0"]
