"""What becomes of an array whose submission fails, is not answered, or comes while the head is ending."""

import json
import time
from pathlib import Path

import pytest
from stub import finish
from submitter import Head, Queue

from snakemake_executor_plugin_submitit import bundles, failures, submission
from snakemake_executor_plugin_submitit.bundles import Status
from snakemake_executor_plugin_submitit.clusters.cluster import Refused
from snakemake_executor_plugin_submitit.resources import Request
from snakemake_executor_plugin_submitit.tasks import TaskState


@pytest.fixture
def cluster() -> Queue:
    return Queue()


@pytest.fixture
def head(tmp_path: Path, cluster: Queue) -> Head:
    return Head(tmp_path, cluster)


# Submissions that fail.


def test_a_failed_submission_is_tried_again_later_and_at_longer_intervals(head: Head, cluster: Queue) -> None:
    cluster.errors = [OSError("busy") for _ in range(12)]
    head.add(1, Request())
    head.flush()
    head.flush()
    assert len(cluster.errors) == 11, "it was tried again at once"
    seconds = [head.retry() for _ in range(11)]
    assert [round(value) for value in seconds] == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]
    assert head.reports[0] == ("submission", "cannot submit (busy): trying again")
    assert (head.judge.verdicts, head.buffered()) == ([], ["rule0"]), "a cluster that is busy refuses nothing"
    head.retry()
    assert (cluster.jobs(), head.reports[-1]) == ([["rule0"]], ("submission", ""))
    cluster.errors = [OSError("busy")]
    head.add(1, Request())
    head.flush()
    assert head.retry() < 3, "the intervals do not begin anew after a success"


def test_a_failed_submission_postpones_all_others(tmp_path: Path, cluster: Queue) -> None:
    head = Head(tmp_path, cluster, array_size=1)
    head.add(3, Request())
    cluster.errors = [OSError("busy") for _ in range(3)]
    head.flush()
    assert (len(cluster.names), [kind for kind, _ in head.reports]) == (1, ["submission"])


def test_an_unknown_refusal_is_believed_after_a_minute(head: Head, cluster: Queue) -> None:
    cluster.errors = [RuntimeError("something new") for _ in range(100)]
    head.add(1, Request())
    head.flush()
    seconds = 0.0
    while not head.judge.verdicts:
        seconds += head.retry()
    assert 55 < seconds < 70
    assert [(verdict.cause, verdict.message) for verdict in head.judge.verdicts] == [
        (failures.REFUSED, "something new")
    ]
    assert head.buffered() == []


@pytest.mark.parametrize("error", [Refused("never"), RuntimeError("something new")])
def test_after_a_final_refusal_other_jobs_have_all_their_attempts(head: Head, cluster: Queue, error: Exception) -> None:
    cluster.errors = [error] * (1 if isinstance(error, Refused) else submission.TRIES + 1)
    head.add(1, Request())
    head.flush()
    while not head.judge.verdicts:
        head.retry()
    cluster.errors = [RuntimeError("something new")]
    head.add(1, Request())
    head.retry()
    assert head.submitter.retry_at < time.time() + 3
    head.retry()
    assert len(cluster.submitted) == 1 and len(head.judge.verdicts) == 1


def test_a_refused_array_fails_only_those_jobs_that_still_wait(tmp_path: Path, cluster: Queue) -> None:
    """The cluster may know a task of the array all the same."""
    head = Head(tmp_path, cluster)
    head.add(2, Request())
    cluster.errors, cluster.known = [Refused("never")], {1: "5_1"}
    head.flush()
    assert [verdict.job.key for verdict in head.judge.verdicts] == ["rule0"]
    assert head.tasks == {"rule1": "5_1"}
    assert [report for report in head.reports if report[1]] == [], "a refusal is no trouble that lasts"


@pytest.mark.parametrize("fails", ["mkdir", "write"])
def test_a_full_disk_delays_a_submission_and_leaves_nothing(
    head: Head, cluster: Queue, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    def refuse(*args: object, **more: object) -> None:
        raise OSError("No space left on device")

    head.add(1, Request())
    with monkeypatch.context() as patch:
        patch.setattr(*((Path, "mkdir") if fails == "mkdir" else (bundles, "write_json")), refuse)
        head.flush()
    assert (cluster.submitted, head.buffered(), list(head.ledger.iterdir())) == ([], ["rule0"], [])
    assert head.reports == [("submission", "cannot submit (No space left on device): trying again")]
    head.retry()
    assert cluster.jobs() == [["rule0"]]


# Submissions that were not answered.


def test_nothing_is_submitted_until_the_cluster_tells_what_became_of_an_array(head: Head, cluster: Queue) -> None:
    cluster.errors, cluster.known = [OSError("timed out")], OSError("no answer")
    head.add(1, Request())
    head.flush()
    head.retry()
    assert cluster.submitted == []
    assert head.reports[-1][0] == "queue" and "no answer" in head.reports[-1][1]
    cluster.known = {}
    head.retry()
    assert cluster.jobs() == [["rule0"]]
    assert ("queue", "") in head.reports, "the trouble never ends"


def test_bundles_that_the_cluster_does_not_know_are_submitted_again(head: Head, cluster: Queue) -> None:
    cluster.errors, cluster.known = [OSError("timed out")], {1: "5_1"}
    head.add(2, Request())
    head.flush()
    [array] = head.ledger.iterdir()
    assert (head.tasks, head.buffered()) == ({"rule1": "5_1"}, ["rule0"])
    assert json.loads((array / "array.json").read_text())["tasks"] == [None, "5_1"]
    assert [path.name for path in array.iterdir() if path.is_dir()] == ["1"], "the next head would follow it"


def test_a_task_that_ran_before_the_cluster_forgot_it_is_not_submitted_again(head: Head, cluster: Queue) -> None:
    """The first job of its bundle is done, the second waits for another task."""
    cluster.errors, cluster.known = [OSError("timed out")], OSError("no answer")
    head.add(2, Request(bundle=2))
    head.flush()
    [array] = head.ledger.iterdir()
    (array / "submitit").mkdir()
    (array / "submitit" / f"{array.name}_0_log.out").touch()
    finish(array / "0", 0)
    Status("stopped", 1.0, "host").write(array / "0", 1)
    cluster.known = {}
    head.retry()
    assert [(verdict.job.key, verdict.cause) for verdict in head.judge.verdicts] == [("rule0", None)]
    assert cluster.jobs() == [["rule1"]]


# The end of the head.


@pytest.mark.parametrize("error", [None, OSError("timed out"), Refused("never")], ids=str)
def test_a_head_that_is_interrupted_during_a_submission_submits_no_further_array(
    tmp_path: Path, error: Exception | None
) -> None:
    class Interrupted(Queue):
        calls = 0

        def submit(self, *args: object) -> list[str]:
            self.calls += 1
            head.submitter.closing = True
            if error:
                raise error
            return super().submit(*args)  # type: ignore[arg-type]

    cluster = Interrupted()
    head = Head(tmp_path, cluster, array_size=1)
    head.add(3, Request())
    head.flush()
    assert cluster.calls == 1
    assert head.judge.verdicts == [], "a job fails, although the head is ending"


def test_a_task_that_is_accepted_while_the_head_is_ending_is_stopped(tmp_path: Path) -> None:
    class Interrupted(Queue):
        def submit(self, *args: object) -> list[str]:
            head.submitter.closing = True
            return super().submit(*args)  # type: ignore[arg-type]

    cluster = Interrupted()
    head = Head(tmp_path, cluster)
    head.add(1, Request())
    head.flush()
    [task] = head.followed.all
    assert task.state is TaskState.STOPPING
    assert (task.folder / "revoked").exists(), "its worker would run the job"
