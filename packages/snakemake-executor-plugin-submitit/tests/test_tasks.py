"""Which tasks the head follows, which jobs are found again, and which folders are deleted."""

import os
from pathlib import Path

import pytest
from stub import task_of

from snakemake_executor_plugin_submitit.bundles import Bundle, Job, Status, modification_times
from snakemake_executor_plugin_submitit.tasks import JobState, Task, TaskJob, Tasks, TaskState


def end(task_job: TaskJob, state: str) -> None:
    """Give a job a final status, in memory and on disk."""
    stamps = modification_times(task_job.job.outputs, task_job.task.bundle.directory)
    task_job.status = Status(state, 1.0, "host", ended=2.0, stamps=stamps)  # type: ignore[arg-type]
    task_job.status.write(task_job.task.folder, task_job.number)
    task_job.state = JobState.ENDED


# Whether the outputs of a job are those that it left.


@pytest.mark.parametrize(
    ("change", "is_intact"),
    [
        ({}, True),
        ({"newer": 300}, True),
        ({"newer": 301}, False),
        ({"in": 299, "older": 250}, False),
        ({"out": 400}, False),
        ({"out": None}, False),
    ],
    ids=["as it was left", "as old as its input", "newer input", "an older output", "other output", "output gone"],
)
def test_a_job_is_intact_while_its_outputs_are_those_that_it_left_and_no_input_is_newer(
    tmp_path: Path, change: dict[str, int | None], is_intact: bool
) -> None:
    """The oldest output and the newest input decide."""
    ages: dict[str, int | None] = {"in": 100, "newer": 200, "out": 300, "older": 300}
    job = Job("key", "rule", "shell", "true", inputs=("in", "newer"), outputs=("out", "older"))
    [task_job] = Task(tmp_path / "array" / "0", Bundle((job,), str(tmp_path)), "1").jobs
    for is_change in (False, True):
        for name, age in (change if is_change else ages | {n: change[n] for n in change if n != "out"}).items():
            (tmp_path / name).touch()
            os.utime(tmp_path / name, (age or 0, age or 0))
            if age is None:
                (tmp_path / name).unlink()
        if not is_change:
            stamps = modification_times(job.outputs, str(tmp_path))
            task_job.status = Status("done", 1.0, "", stamps=stamps)
    assert task_job.is_intact() == is_intact


@pytest.mark.parametrize(("state", "is_intact"), [("done", True), ("failed", False), (None, False)])
def test_a_job_without_files_is_intact_once_it_is_done(tmp_path: Path, state: str | None, is_intact: bool) -> None:
    [task_job] = Task(tmp_path / "array" / "0", Bundle((Job("key", "rule", "shell", "true"),), ""), "1").jobs
    task_job.status = Status(state, 1.0, "") if state else None  # type: ignore[arg-type]
    assert task_job.is_intact() == is_intact


# Which jobs are found again.


@pytest.mark.parametrize(
    ("state", "status", "is_found"),
    [
        (TaskState.ALIVE, None, True),
        (TaskState.ALIVE, "done", True),
        (TaskState.ALIVE, "failed", False),
        (TaskState.OVER, None, False),
        (TaskState.OVER, "done", True),
        (TaskState.OVER, "failed", False),
    ],
)
def test_a_job_of_an_earlier_head_is_found_unless_it_has_failed_or_its_task_ended_without_it(
    tmp_path: Path, state: TaskState, status: str | None, is_found: bool
) -> None:
    tasks, task = Tasks(), task_of(tmp_path / "array", 0, "a")
    task.state = state
    if status:
        end(task.jobs[0], status)
    tasks.add(task)
    assert ("a" in tasks.by_key, "a.txt" in tasks.by_output) == (is_found, is_found)


def test_the_last_task_with_a_job_counts(tmp_path: Path) -> None:
    tasks = Tasks()
    earlier, later = (task_of(tmp_path / name, 0, "a") for name in ("first", "second"))
    for task in (earlier, later):
        tasks.add(task)
    assert tasks.by_key["a"].task is later
    # To forget the earlier task does not hide the job of the later one.
    earlier.state = TaskState.OVER
    tasks.forget(earlier)
    assert tasks.by_key["a"].task is later


def test_a_closed_job_is_closed_on_disk_and_found_no_more(tmp_path: Path) -> None:
    tasks, task = Tasks(), task_of(tmp_path / "array", 0, "a", "b")
    tasks.add(task)
    end(task.jobs[0], "done")
    tasks.close(task.jobs[0].job)
    assert task.jobs[0].state is JobState.CLOSED
    assert set(tasks.by_key) == {"b"} and set(tasks.by_output) == {"b.txt"}
    assert (task.folder / "status" / "0.closed").exists(), "the next head would report the end again"


# Which folders are deleted.


def finished(tmp_path: Path, number: int, state: str) -> Task:
    """A task that is over, and of whose only job Snakemake knows the end."""
    task = task_of(tmp_path / "array", number, f"job{number}")
    end(task.jobs[0], state)
    task.jobs[0].state, task.state = JobState.CLOSED, TaskState.OVER
    return task


def test_the_last_task_of_an_array_takes_the_array_with_it(tmp_path: Path) -> None:
    tasks, other = Tasks(), task_of(tmp_path / "other", 0, "a")
    both = [finished(tmp_path, number, "done") for number in range(2)]
    for task in (*both, other):
        tasks.add(task)
    tasks.forget(both[0])
    assert (both[0].folder.exists(), both[1].folder.exists()) == (False, True)
    tasks.forget(both[1])
    assert not (tmp_path / "array").exists()
    assert tasks.all == [other]


def test_the_files_of_a_failure_stay_and_so_does_their_array(tmp_path: Path) -> None:
    """A person may want to read the log of the task, which is in the folder of the array."""
    tasks = Tasks()
    failed, done = finished(tmp_path, 0, "failed"), finished(tmp_path, 1, "done")
    for task in (failed, done):
        tasks.add(task)
        tasks.forget(task)
    assert tasks.all == []
    assert (failed.folder / "bundle.json").exists(), "the files of the failure are gone"
    assert not done.folder.exists(), "the files of a success are left"


@pytest.mark.parametrize(
    ("task_state", "job_state", "status", "is_forgotten"),
    [
        (TaskState.ALIVE, JobState.CLOSED, "done", False),
        (TaskState.STOPPING, JobState.CLOSED, "done", False),
        (TaskState.OVER, JobState.CLAIMED, None, False),
        (TaskState.OVER, JobState.JUDGED, "done", False),
        (TaskState.OVER, JobState.ENDED, "done", False),
        (TaskState.OVER, JobState.ENDED, "failed", True),
        (TaskState.OVER, JobState.UNCLAIMED, None, True),
        (TaskState.OVER, JobState.RETURNED, None, True),
        (TaskState.OVER, JobState.CLOSED, "done", True),
    ],
)
def test_a_task_is_forgotten_once_it_is_over_and_snakemake_needs_no_job_of_it(
    tmp_path: Path, task_state: TaskState, job_state: JobState, status: str | None, is_forgotten: bool
) -> None:
    tasks, task = Tasks(), task_of(tmp_path / "array", 0, "a")
    tasks.add(task)
    if status:
        end(task.jobs[0], status)
    task.state, task.jobs[0].state = task_state, job_state
    tasks.forget(task)
    assert (tasks.all == [], "a" not in tasks.by_key) == (is_forgotten, is_forgotten)


NAMES = [("7_0", "7_0_0_log.out"), ("7_0;wice", "7_0_0_log.out"), ("123.456", "123_0_log.out")]


@pytest.mark.parametrize(("name", "log"), NAMES)
def test_the_log_of_a_task_is_the_first_that_it_wrote(tmp_path: Path, name: str, log: str) -> None:
    task = task_of(tmp_path / "array", 0, "a")
    task.name = name
    assert task.log() is None
    folder = tmp_path / "array" / "submitit"
    folder.mkdir()
    for other in ("7_1_0_log.out", "8_0_0_log.out", "1234_0_log.out", log.replace("0_log", "1_log"), log):
        (folder / other).touch()
    assert task.log() == folder / log
