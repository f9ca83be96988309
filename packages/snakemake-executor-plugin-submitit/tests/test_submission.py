"""How jobs are put into bundles, and bundles into arrays."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
from stub import Stub, task_of
from submitter import Head, Queue

from snakemake_executor_plugin_submitit import failures, submission
from snakemake_executor_plugin_submitit.bundles import Bundle, Job, read_bundle
from snakemake_executor_plugin_submitit.resources import Request
from snakemake_executor_plugin_submitit.submission import array_name
from snakemake_executor_plugin_submitit.tasks import JobState, TaskState, Waiting


@pytest.fixture
def cluster() -> Queue:
    return Queue()


@pytest.fixture
def head(tmp_path: Path, cluster: Queue) -> Head:
    return Head(tmp_path, cluster)


# Bundles.


def sizes(head: Head, count: int, bundle: int, seconds: float | None = None, **more: object) -> list[int]:
    """How many jobs the bundles have, if each job takes so many seconds."""
    head.judge.durations = {} if seconds is None else {"rule": (2, 2 * seconds)}
    waiting = head.add(count, Request(bundle=bundle))
    values = {"seconds": 600, "room": None, "is_busy": False, **more}
    return [len(jobs) for jobs in head.submitter.bundles(Request(bundle=bundle), waiting, **values)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(None, [4, 4, 2]), (1, [4, 4, 2]), (150, [4, 4, 2]), (300, [2] * 5), (600, [1] * 10), (10_000, [1] * 10)],
)
def test_a_bundle_has_as_many_jobs_as_fill_the_seconds_and_no_more_than_was_asked_for(
    head: Head, seconds: float | None, expected: list[int]
) -> None:
    assert sizes(head, 10, 4, seconds) == expected


def test_jobs_that_run_at_a_time_fill_the_seconds_together(tmp_path: Path, cluster: Queue) -> None:
    assert sizes(Head(tmp_path, cluster, slots=3), 10, 10, 300) == [6, 4]


@pytest.mark.parametrize(
    ("room", "seconds", "expected"),
    [
        ((4, 4), None, [3, 3, 3, 1]),
        ((2, 4), None, [3, 3]),
        ((0, 4), None, []),
        ((4, 4), 1, [10]),
        ((4, 4), 2.5, [4, 4, 2]),
        ((4, 3), 60, [4, 4, 2]),
    ],
)
def test_this_machine_shares_jobs_out_evenly_unless_they_are_too_short_for_a_task(
    head: Head, room: tuple[int, int], seconds: float | None, expected: list[int]
) -> None:
    assert sizes(head, 10, 100, seconds, room=room) == expected


@pytest.mark.parametrize(("count", "age", "waits"), [(3, 0, True), (4, 0, False), (3, 100, False)])
def test_while_jobs_run_a_small_bundle_waits_a_little_for_more_jobs(
    head: Head, count: int, age: float, waits: bool
) -> None:
    waiting = head.add(count, Request(bundle=4), since=time.time() - age)
    submitted = head.submitter.bundles(Request(bundle=4), waiting, 600, None, is_busy=True)
    assert (submitted == []) == waits


def test_the_seconds_of_a_job_are_the_mean_of_the_rules_that_are_known(head: Head) -> None:
    head.judge.durations = {"quick": (4, 8.0), "slow": (2, 20.0), "instant": (5, 0.0)}
    mixed = [entry for rule in ("quick", "slow", "unknown") for entry in head.add(1, Request(), rule)]
    assert head.submitter.mean_seconds(mixed) == 6.0
    assert head.submitter.mean_seconds(mixed[2:]) is None
    assert 0 < (head.submitter.mean_seconds(head.add(1, Request(), "instant")) or 0) < 0.1, "a divisor must not be zero"


def test_jobs_of_different_requests_folders_or_kinds_share_no_task(head: Head, cluster: Queue) -> None:
    shell, nested = Job("a", "rule", "shell", "true"), Job("b", "rule", "snakemake", "true")
    same, other = Request(bundle=9), Request(bundle=9, cpus=2)
    entries = [
        (shell, same, None),
        (shell, same, None),
        (nested, same, None),
        (shell, other, None),
        (shell, same, "/x"),
    ]
    head.submitter.buffer = [Waiting(*entry, 0.0) for entry in entries]
    head.flush()
    assert sorted(len(jobs) for jobs in cluster.jobs()) == [1, 1, 1, 2]


def test_a_job_whose_output_another_task_still_makes_keeps_no_other_job_waiting(
    head: Head, cluster: Queue, tmp_path: Path
) -> None:
    task = task_of(tmp_path / "array", 0, "a")
    task.state = TaskState.STOPPING
    head.followed.add(task)
    blocked = Job("blocked", "rule", "shell", "true", outputs=("a.txt",))
    head.submitter.buffer.append(Waiting(blocked, Request(), None, 0.0))
    head.add(1, Request())
    head.flush()
    assert (cluster.jobs(), head.buffered()) == ([["rule1"]], ["blocked"])


# Arrays.


def written(cluster: Stub, number: int = 0) -> Bundle:
    bundle = read_bundle(cluster.submitted[number])
    assert bundle
    return bundle


@pytest.mark.parametrize(("limit", "minutes"), [(None, 33), (34, 33), (32, 32), (30, 30), (29, 33)])
def test_a_task_has_the_minutes_of_its_job_and_those_to_save_its_state_as_far_as_the_cluster_allows(
    head: Head, cluster: Queue, limit: int | None, minutes: int
) -> None:
    """Slurm asks the job for that a minute before the time limit here, and perhaps a minute earlier; the worker has to start, too."""
    cluster.limit = limit
    head.add(1, Request(minutes=30, cpus=3))
    head.flush()
    bundle = written(cluster)
    assert (cluster.minutes, bundle.limit, bundle.seconds, bundle.threads) == ([minutes], minutes * 60, None, 3)


@pytest.mark.parametrize(
    ("limit", "sizes", "minutes", "seconds"),
    [
        (None, [4], 43, 600),
        (43, [4], 43, 600),
        (36, [4], 36, 210),
        (33, [1, 1, 1, 1], 33, None),
        (30, [1] * 4, 30, None),
    ],
)
def test_where_the_cluster_allows_little_more_than_a_job_takes_fewer_jobs_share_a_task(
    head: Head, cluster: Queue, limit: int | None, sizes: list[int], minutes: int, seconds: float | None
) -> None:
    """Each of them still has its minutes."""
    cluster.limit = limit
    head.add(4, Request(minutes=30, bundle=4))
    head.flush()
    assert [len(jobs) for jobs in cluster.jobs()] == sizes
    bundle = written(cluster)
    assert (cluster.minutes, bundle.limit, bundle.seconds) == ([minutes], minutes * 60, seconds)


def test_nothing_is_submitted_before_the_limits_of_the_cluster_are_known(
    head: Head, cluster: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def learn() -> None:
        asked.append(len(cluster.submitted))
        if len(asked) == 1:
            raise OSError("no answer")

    monkeypatch.setattr(cluster, "learn", learn)
    head.add(1, Request())
    head.flush()
    assert (asked, cluster.submitted, len(head.submitter.buffer)) == ([0], [], 1)
    assert head.retry() > 0
    head.add(1, Request())
    head.flush()
    assert (asked, len(cluster.submitted)) == ([0, 0], 2), "the limits are asked for once"


def test_a_cluster_that_was_silent_for_long_may_refuse_as_often_as_any(
    head: Head, cluster: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal for an unknown reason is final only after several attempts."""
    answers: list[Exception] = [OSError("no answer")] * (submission.TRIES + 1)

    def learn() -> None:
        if answers:
            raise answers.pop()

    monkeypatch.setattr(cluster, "learn", learn)
    cluster.errors = [RuntimeError("something new")]
    head.add(1, Request())
    head.flush()
    while cluster.errors:
        head.retry()
    assert (head.judge.verdicts, head.buffered()) == ([], ["rule0"])


def test_all_tasks_of_an_array_have_the_time_of_the_largest_bundle(head: Head, cluster: Queue) -> None:
    head.add(3, Request(minutes=30, bundle=2))
    head.flush()
    assert (len(cluster.minutes), cluster.sizes) == (1, [2])
    assert written(cluster, 1).limit == written(cluster, 0).limit == cluster.minutes[0] * 60


def test_a_job_without_runtime_has_an_hour_in_a_queue_and_no_limit_on_this_machine(
    head: Head, cluster: Queue, tmp_path: Path
) -> None:
    here = Stub()
    (tmp_path / "here").mkdir()
    for each in (head, Head(tmp_path / "here", here)):
        each.add(1, Request())
        each.flush()
    assert (cluster.minutes, written(here).limit) == ([63], None)


def test_a_worker_knows_how_many_gpus_its_task_has_requested(tmp_path: Path) -> None:
    cluster = Stub()
    head = Head(tmp_path, cluster)
    head.add(1, Request())
    head.add(1, Request(gpus=2))
    head.flush()
    assert sorted(written(cluster, number).gpus for number in range(2)) == [0, 2]


def test_an_array_has_no_more_tasks_than_the_setting_says(tmp_path: Path, cluster: Queue) -> None:
    head = Head(tmp_path, cluster, array_size=2)
    head.add(5, Request())
    head.flush()
    assert cluster.sizes == [2, 2, 1]
    assert [keys for [keys] in cluster.jobs()] == [f"rule{number}" for number in range(5)]
    assert head.buffered() == []


def test_an_accepted_array_is_recorded_for_the_next_head(head: Head, cluster: Queue) -> None:
    head.add(2, Request())
    head.flush()
    [array] = head.ledger.iterdir()
    about = json.loads((array / "array.json").read_text())
    assert cluster.names == [array_name(array)], "the next head does not find an array whose answer was lost"
    assert (about["cluster"], about["tasks"]) == (cluster.name, ["1_0", "1_1"])
    assert head.tasks == {"rule0": "1_0", "rule1": "1_1"}
    assert {job.state for task in head.followed.all for job in task.jobs} == {JobState.CLAIMED}
    assert head.submitter.booked_at > time.time() - 60, "the cluster is asked soon after a submission"


def test_a_job_for_which_the_cluster_will_never_have_room_fails_alone(head: Head, cluster: Queue) -> None:
    head.add(1, Request(gpus=1))
    head.add(1, Request())
    head.flush()
    assert [(verdict.job.key, verdict.cause, verdict.task) for verdict in head.judge.verdicts] == [
        ("rule0", failures.REFUSED, None)
    ]
    assert cluster.jobs() == [["rule1"]]
    assert head.buffered() == []


@pytest.mark.parametrize(("prefix", "shown"), [("", "a_rule_1"), ("lab 7/", "lab_7_a_rule_1")])
def test_names_of_arrays_sort_by_time_and_show_the_prefix_and_the_rule_first(
    head: Head, cluster: Queue, prefix: str, shown: str
) -> None:
    head.submitter.settings = replace(head.submitter.settings, prefix=prefix)
    for _ in range(3):
        head.add(1, Request(), rule="a rule/1", since=0)
        head.flush()
        time.sleep(0.002)
    folders = [folder.parent.name for folder in cluster.submitted]
    assert folders == sorted(folders)
    assert len(set(folders)) == 3
    # The next head finds an array by the name of its folder, whatever its own prefix.
    assert cluster.names == [array_name(Path(name)) for name in folders]
    assert {name.partition("-")[0] for name in cluster.names} == {shown}
    assert array_name(Path("/ledger") / "20260101-000000-abc-train") == "train-20260101-000000-abc"
