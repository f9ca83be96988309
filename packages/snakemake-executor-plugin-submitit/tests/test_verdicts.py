"""What becomes of the jobs of a task that is over: each ends with a verdict, or waits for another task."""

import json
from pathlib import Path

import pytest
from stub import Stub, claim, task_of

from snakemake_executor_plugin_submitit import failures
from snakemake_executor_plugin_submitit.breaker import Breaker
from snakemake_executor_plugin_submitit.bundles import HEARTBEAT, Status, heartbeat
from snakemake_executor_plugin_submitit.clusters.cluster import GONE
from snakemake_executor_plugin_submitit.tasks import JobState, Task, Tasks, TaskState, Waiting
from snakemake_executor_plugin_submitit.verdicts import Judge

MAX_REQUEUES = 2


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    return Judge(tmp_path, MAX_REQUEUES, Tasks(), Breaker(Stub(), lambda kind, trouble: None, print))


def claimed(judge: Judge, folder: Path, *states: str | None) -> Task:
    """A task with a job per state, for all of which Snakemake waits, and which has these states on disk."""
    task = task_of(folder / f"array{len(judge.tasks.all)}", 0, *(str(number) for number in range(len(states))))
    claim(task)
    judge.tasks.add(task)
    for number, state in enumerate(states):
        if state:
            Status(state, 1.0, "host", ended=2.0).write(task.folder, number)  # type: ignore[arg-type]
    log = task.folder.parent / "submitit" / "7_0_0_log.out"
    log.parent.mkdir()
    log.write_text("the last words of the task\n")
    return task


def causes(judge: Judge) -> dict[str, str | None]:
    return {verdict.job.key: verdict.cause for verdict in judge.verdicts}


def keys(waiting: list[Waiting]) -> list[str]:
    return [entry.job.key for entry in waiting]


# Jobs that the worker has ended.


def test_the_end_of_a_job_is_a_verdict_once(judge: Judge, tmp_path: Path) -> None:
    task = claimed(judge, tmp_path, "done", "running", "stopped")
    judge.read(task)
    judge.read(task)
    assert [(verdict.job.key, verdict.cause, verdict.task) for verdict in judge.verdicts] == [("0", None, "7_0")]
    assert [job.state for job in task.jobs] == [JobState.JUDGED, JobState.CLAIMED, JobState.CLAIMED]


def test_a_job_that_nobody_waits_for_has_no_verdict(judge: Judge, tmp_path: Path) -> None:
    task = claimed(judge, tmp_path, "done")
    task.jobs[0].state = JobState.UNCLAIMED
    judge.read(task)
    assert (judge.verdicts, task.jobs[0].state) == ([], JobState.ENDED)


def test_a_job_that_an_earlier_head_closed_is_closed(judge: Judge, tmp_path: Path) -> None:
    task = claimed(judge, tmp_path, "done")
    (task.folder / "status" / "0.json").rename(task.folder / "status" / "0.closed")
    task.jobs[0].state = JobState.UNCLAIMED
    judge.read(task)
    assert task.jobs[0].state is JobState.CLOSED


def test_a_failure_is_noted_and_a_success_is_not(judge: Judge, tmp_path: Path) -> None:
    task = claimed(judge, tmp_path, "done", None)
    Status("failed", 1.0, "host", ended=2.0, cause="NaN", message="exit code 1").write(task.folder, 1)
    judge.read(task)
    [line] = map(json.loads, (tmp_path / "failures.jsonl").read_text().splitlines())
    noted = {name: line[name] for name in ("outputs", "rule", "cluster", "cause", "message", "logs")}
    assert noted == {
        "outputs": ["1.txt"],
        "rule": "rule",
        "cluster": "stub",
        "cause": "NaN",
        "message": "exit code 1",
        "logs": [],
    }


def test_a_status_without_an_end_tells_no_duration(judge: Judge, tmp_path: Path) -> None:
    task = claimed(judge, tmp_path, None)
    judge.end(task.jobs[0], Status("done", 1.0, "host"))
    assert judge.durations == {}


# Jobs that their task has not ended.


@pytest.mark.parametrize(
    ("word", "status", "cause"),
    [
        ("FAILED", "running", failures.KILLED),
        ("OUT_OF_MEMORY", "running", failures.OUT_OF_MEMORY),
        ("TIMEOUT", "running", failures.TIMEOUT),
        ("CANCELLED by 0", "running", failures.CANCELLED),
        ("CANCELLED by 0", None, failures.CANCELLED),
        ("CANCELLED", "stopped", failures.CANCELLED),
        ("NODE_FAIL", "running", None),
        ("PREEMPTED", "running", None),
        ("PREEMPTED", "stopped", None),
        ("FAILED", "stopped", None),
        ("COMPLETED", None, None),
    ],
)
def test_a_job_fails_with_the_task_only_if_one_of_the_two_is_to_blame(
    judge: Judge, tmp_path: Path, word: str, status: str | None, cause: str | None
) -> None:
    task = claimed(judge, tmp_path, status)
    returned = judge.settle(task, word)
    assert causes(judge) == ({"0": cause} if cause else {})
    assert keys(returned) == ([] if cause else ["0"])
    assert task.state is TaskState.OVER


def test_a_failed_task_tells_why_in_the_words_of_its_log(judge: Judge, tmp_path: Path) -> None:
    judge.settle(claimed(judge, tmp_path, "running"), "FAILED")
    [verdict] = judge.verdicts
    assert verdict.message.startswith("its worker died (FAILED)\n")
    assert verdict.message.endswith("7_0_0_log.out:\nthe last words of the task")


def test_a_job_of_a_cancelled_task_tells_so(judge: Judge, tmp_path: Path) -> None:
    judge.settle(claimed(judge, tmp_path, None), "CANCELLED by 0")
    assert judge.verdicts[0].message == "its array task was cancelled (CANCELLED by 0)"


def test_ended_jobs_of_a_task_that_is_over_are_left_as_they_are(judge: Judge, tmp_path: Path) -> None:
    task = claimed(judge, tmp_path, "done", "running")
    judge.read(task)
    judge.settle(task, "FAILED")
    assert causes(judge) == {"0": None, "1": failures.KILLED}


def test_a_task_without_trace_or_log_was_cancelled_before_it_started(judge: Judge, tmp_path: Path) -> None:
    task = claimed(judge, tmp_path, None)
    task.log().unlink()  # type: ignore[union-attr]
    assert judge.settle(task, GONE) == []
    assert causes(judge) == {"0": failures.CANCELLED}
    assert "before it started" in judge.verdicts[0].message


@pytest.mark.parametrize("word", ["NODE_FAIL", "COMPLETED"])
def test_a_task_without_a_log_whose_end_is_known_was_not_cancelled(judge: Judge, tmp_path: Path, word: str) -> None:
    task = claimed(judge, tmp_path, None)
    task.log().unlink()  # type: ignore[union-attr]
    assert keys(judge.settle(task, word)) == ["0"]


def test_a_task_whose_jobs_have_failed_starts_none_of_them_if_it_is_in_the_queue_after_all(
    judge: Judge, tmp_path: Path
) -> None:
    task = claimed(judge, tmp_path, None)
    judge.settle(task, "CANCELLED by 0")
    assert (task.folder / "revoked").exists()


def test_a_task_that_is_over_has_no_sign_of_life_for_the_next_head(judge: Judge, tmp_path: Path) -> None:
    task = claimed(judge, tmp_path, "failed", None)
    (task.folder / HEARTBEAT).touch()
    judge.read(task)
    judge.settle(task, "NODE_FAIL")
    assert heartbeat(task.folder) is None and task.folder.exists()


def test_a_task_that_the_queue_has_forgotten_and_that_has_a_log_was_not_cancelled(judge: Judge, tmp_path: Path) -> None:
    assert keys(judge.settle(claimed(judge, tmp_path, None), GONE)) == ["0"]


@pytest.mark.parametrize("word", ["CANCELLED by 0", "FAILED"])
@pytest.mark.parametrize("status", [None, "running"])
def test_the_jobs_of_a_task_that_a_head_stopped_run_again(
    judge: Judge, tmp_path: Path, word: str, status: str | None
) -> None:
    task = claimed(judge, tmp_path, status)
    task.state = TaskState.STOPPING
    assert keys(judge.settle(task, word)) == ["0"]
    assert judge.verdicts == []


def test_the_cluster_tells_the_cause_by_its_word_and_the_log_of_the_task(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = claimed(judge, tmp_path, "running")
    with (task.folder.parent / "submitit" / "7_0_0_log.out").open("a") as log:
        log.write("memory limit exceeded\n")
    monkeypatch.setattr(judge.cluster, "cause", lambda word, log: f"{word} {log.splitlines()[-1]}")
    judge.settle(task, GONE)
    assert causes(judge) == {"0": f"{GONE} memory limit exceeded"}


def settled(judge: Judge, folder: Path, word: str, *states: str | None) -> list[str]:
    """Settle a task with a job per state, and return the keys of the jobs that run again."""
    task = claimed(judge, folder, *states)
    judge.read(task)
    return keys(judge.settle(task, word))


def test_a_job_that_loses_its_node_runs_again_as_often_as_the_setting_says(judge: Judge, tmp_path: Path) -> None:
    again = [settled(judge, tmp_path, "NODE_FAIL", "running") for _ in range(MAX_REQUEUES + 1)]
    assert again == [["0"]] * MAX_REQUEUES + [[]]
    [verdict] = judge.verdicts
    assert verdict.cause == failures.NODE_FAILURE
    words = f"its array task ended {MAX_REQUEUES + 1} times without it (last: NODE_FAIL)\n"
    assert verdict.message.startswith(words) and verdict.message.endswith("the last words of the task")


def test_tasks_that_end_before_any_job_fail_their_jobs_at_last(judge: Judge, tmp_path: Path) -> None:
    """Lines of `--submitit-setup` that fail end every task."""
    again = [settled(judge, tmp_path, "FAILED", None) for _ in range(MAX_REQUEUES + 1)]
    assert again == [["0"]] * MAX_REQUEUES + [[]]


def test_a_job_that_only_waited_while_others_of_its_bundle_ended_was_not_interrupted(
    judge: Judge, tmp_path: Path
) -> None:
    """A bundle ends after its seconds, and the jobs that it has not begun get another one."""
    for _ in range(MAX_REQUEUES + 1):
        assert settled(judge, tmp_path, "COMPLETED", "done", None) == ["1"]
    assert settled(judge, tmp_path, "PREEMPTED", "done", "running") == ["1"]


def test_a_job_that_ends_is_counted_anew_when_it_runs_again(judge: Judge, tmp_path: Path) -> None:
    for _ in range(2):
        again = [settled(judge, tmp_path, "NODE_FAIL", "running") for _ in range(MAX_REQUEUES + 1)]
        assert again == [["0"]] * MAX_REQUEUES + [[]]


def test_a_job_that_saves_its_state_and_loses_its_node_runs_again_without_limit(judge: Judge, tmp_path: Path) -> None:
    assert [settled(judge, tmp_path, "PREEMPTED", "stopped") for _ in range(2 * MAX_REQUEUES)] == [["0"]] * (
        2 * MAX_REQUEUES
    )


def test_a_job_that_saves_its_state_in_a_task_that_fails_has_a_limit(judge: Judge, tmp_path: Path) -> None:
    assert [settled(judge, tmp_path, "FAILED", "stopped") for _ in range(MAX_REQUEUES + 1)][-1] == []


def test_jobs_that_wait_in_bundles_in_which_others_end_run_again_without_limit(judge: Judge, tmp_path: Path) -> None:
    """A bundle starts no further job after its seconds, so the task may end many times before a job's turn comes."""
    again = [settled(judge, tmp_path, "COMPLETED", "done", None) for _ in range(2 * MAX_REQUEUES)]
    assert again == [["1"]] * (2 * MAX_REQUEUES)


def break_file(path: Path) -> None:
    """Make a file that cannot be read as a file."""
    path.unlink()
    path.mkdir()


def test_a_status_that_cannot_be_read_keeps_no_other_from_being_read(judge: Judge, tmp_path: Path) -> None:
    task = claimed(judge, tmp_path, "done", "done", "done")
    break_file(task.folder / "status" / "0.json")
    with pytest.raises(OSError, match=r"0\.json"):
        judge.read(task)
    assert causes(judge) == {"1": None, "2": None}


def test_only_the_job_whose_status_cannot_be_read_fails_and_is_named(judge: Judge, tmp_path: Path) -> None:
    task = claimed(judge, tmp_path, "done", "done", None, "done")
    task.jobs[3].state = JobState.UNCLAIMED
    for number in (0, 3):
        break_file(task.folder / "status" / f"{number}.json")
    with pytest.raises(OSError):
        judge.read(task)
    assert keys(judge.give_up(task, "COMPLETED")) == ["2"]
    assert causes(judge) == {"0": failures.UNREADABLE, "1": None}
    assert str(task.folder / "status" / "0.json") in judge.verdicts[-1].message
    assert task.state is TaskState.OVER


def test_a_status_that_can_be_read_at_last_counts(judge: Judge, tmp_path: Path) -> None:
    """The job would run again otherwise."""
    task = claimed(judge, tmp_path, "done", "running")
    assert judge.give_up(task, "COMPLETED") == []
    assert causes(judge) == {"0": None, "1": failures.KILLED}


def test_a_task_of_which_no_status_can_be_read_fails_its_jobs(judge: Judge, tmp_path: Path) -> None:
    task = claimed(judge, tmp_path, None, None)
    task.jobs[1].state = JobState.UNCLAIMED
    (task.folder / "status").rmdir()
    (task.folder / "status").touch()
    assert judge.give_up(task, "COMPLETED") == []
    assert causes(judge) == {"0": failures.UNREADABLE}
    assert task.state is TaskState.OVER


# Jobs of an earlier head.


def claims(judge: Judge, task: Task, is_recorded: bool = False) -> tuple[bool, list[str]]:
    """Whether the first job of a task serves for one that Snakemake asks for, and the names of tasks that Snakemake learns."""
    names: list[str] = []
    entry = Waiting(task.jobs[0].job, task.jobs[0].waiting.request, None, 0.0)  # type: ignore[union-attr]
    return judge.claim(task.jobs[0], entry, lambda job: is_recorded, lambda job, name: names.append(name)), names


def earlier(judge: Judge, folder: Path, status: str | None) -> Task:
    """A task of an earlier head, with one job in this state."""
    task = claimed(judge, folder, None)
    task.jobs[0].state = JobState.UNCLAIMED
    if status:
        (folder / "0.txt").touch()
        stamps = ((folder / "0.txt").stat().st_mtime_ns,)
        Status(status, 1.0, "host", ended=2.0, stamps=stamps).write(task.folder, 0)  # type: ignore[arg-type]
        judge.read(task)
    return task


def test_a_job_that_runs_is_taken_over(judge: Judge, tmp_path: Path) -> None:
    task = earlier(judge, tmp_path, None)
    assert claims(judge, task) == (True, ["7_0"])
    assert task.jobs[0].state is JobState.CLAIMED and judge.verdicts == []


@pytest.mark.parametrize("state", [TaskState.STOPPING, TaskState.OVER])
def test_a_job_of_a_task_that_is_stopped_or_over_is_not_taken_over(
    judge: Judge, tmp_path: Path, state: TaskState
) -> None:
    task = earlier(judge, tmp_path, None)
    task.state = state
    assert claims(judge, task) == (False, [])


def test_a_job_that_is_done_is_taken_over_with_its_verdict(judge: Judge, tmp_path: Path) -> None:
    task = earlier(judge, tmp_path, "done")
    assert claims(judge, task) == (True, ["7_0"])
    assert causes(judge) == {"0": None} and task.jobs[0].state is JobState.JUDGED


def test_a_job_that_is_done_serves_only_once(judge: Judge, tmp_path: Path) -> None:
    task = earlier(judge, tmp_path, "done")
    claims(judge, task)
    assert claims(judge, task) == (False, [])


def test_a_job_that_failed_runs_again(judge: Judge, tmp_path: Path) -> None:
    assert claims(judge, earlier(judge, tmp_path, "failed")) == (False, [])


def test_a_job_whose_end_snakemake_has_recorded_runs_again(judge: Judge, tmp_path: Path) -> None:
    """Snakemake asks for another run, and the earlier head died between the record of Snakemake and its own."""
    task = earlier(judge, tmp_path, "done")
    assert claims(judge, task, is_recorded=True) == (False, [])
    assert judge.verdicts == [] and task.jobs[0].state is JobState.CLOSED
