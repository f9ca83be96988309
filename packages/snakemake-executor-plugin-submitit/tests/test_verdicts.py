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
    assert (line["outputs"], line["cluster"], line["cause"], line["message"]) == (
        ["1.txt"],
        "stub",
        "NaN",
        "exit code 1",
    )


def test_only_jobs_that_are_done_tell_how_long_a_rule_takes(judge: Judge, tmp_path: Path) -> None:
    task = claimed(judge, tmp_path, None, None, None, None)
    for job, state, ended in zip(task.jobs, ("done", "failed", "done", "done"), (15, 105, 25, None), strict=True):
        judge.end(job, Status(state, 5.0, "host", ended=ended))  # type: ignore[arg-type]
    assert judge.durations == {"rule": (2, 30.0)}


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


def test_a_task_without_trace_or_log_was_cancelled_before_it_started(judge: Judge, tmp_path: Path) -> None:
    task = claimed(judge, tmp_path, None)
    task.log().unlink()  # type: ignore[union-attr]
    assert judge.settle(task, GONE) == []
    assert causes(judge) == {"0": failures.CANCELLED}
    assert "before it started" in judge.verdicts[0].message


@pytest.mark.parametrize(("word", "has_log"), [("NODE_FAIL", False), ("COMPLETED", False), (GONE, True)])
def test_a_task_whose_end_is_known_or_that_has_a_log_was_not_cancelled(
    judge: Judge, tmp_path: Path, word: str, has_log: bool
) -> None:
    task = claimed(judge, tmp_path, None)
    if not has_log:
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


@pytest.mark.parametrize("word", ["CANCELLED by 0", "FAILED"])
@pytest.mark.parametrize("status", [None, "running"])
def test_the_jobs_of_a_task_that_a_head_stopped_run_again(
    judge: Judge, tmp_path: Path, word: str, status: str | None
) -> None:
    task = claimed(judge, tmp_path, status)
    task.state = TaskState.STOPPING
    assert keys(judge.settle(task, word)) == ["0"]
    assert judge.verdicts == []


def settled(judge: Judge, folder: Path, word: str, *states: str | None) -> list[str]:
    """Settle a task with a job per state, and return the keys of the jobs that run again."""
    task = claimed(judge, folder, *states)
    judge.read(task)
    return keys(judge.settle(task, word))


@pytest.mark.parametrize(
    ("word", "status", "has_limit"),
    [
        ("NODE_FAIL", "running", True),
        # Lines of `--submitit-setup` that fail end every task.
        ("FAILED", None, True),
        # A job that has saved its state.
        ("FAILED", "stopped", True),
        ("PREEMPTED", "stopped", False),
    ],
)
def test_a_job_whose_task_ends_without_it_runs_again_as_often_as_the_setting_says(
    judge: Judge, tmp_path: Path, word: str, status: str | None, has_limit: bool
) -> None:
    again = [settled(judge, tmp_path, word, status) for _ in range(MAX_REQUEUES + 1)]
    assert again == [["0"]] * MAX_REQUEUES + [[] if has_limit else ["0"]]
    words = f"its array task ended {MAX_REQUEUES + 1} times without it (last: {word})\n"
    assert [verdict.message.startswith(words) for verdict in judge.verdicts] == [True] * has_limit


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
    judge.recorded, judge.submitted = lambda job: is_recorded, lambda job, name: names.append(name)
    return judge.claim(task.jobs[0], entry), names


RUNS, DONE = (True, JobState.CLAIMED, 0), (True, JobState.JUDGED, 1)


@pytest.mark.parametrize(
    ("status", "task_state", "is_recorded", "expected"),
    [
        (None, TaskState.ALIVE, False, RUNS),
        (None, TaskState.STOPPING, False, (False, JobState.UNCLAIMED, 0)),
        (None, TaskState.OVER, False, (False, JobState.UNCLAIMED, 0)),
        ("done", TaskState.ALIVE, False, DONE),
        ("done", TaskState.OVER, False, DONE),
        ("failed", TaskState.ALIVE, False, (False, JobState.ENDED, 0)),
        # Snakemake asks for another run, and the earlier head died between the record of Snakemake and its own.
        ("done", TaskState.ALIVE, True, (False, JobState.CLOSED, 0)),
    ],
)
def test_a_job_of_an_earlier_head_is_taken_over_once_if_it_runs_or_is_done(
    judge: Judge,
    tmp_path: Path,
    status: str | None,
    task_state: TaskState,
    is_recorded: bool,
    expected: tuple[bool, JobState, int],
) -> None:
    task = earlier(judge, tmp_path, status)
    task.state = task_state
    is_taken, names = claims(judge, task, is_recorded)
    assert (is_taken, task.jobs[0].state, len(judge.verdicts)) == expected
    assert names == (["7_0"] if is_taken else [])
    assert claims(judge, task) == (False, [])


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
