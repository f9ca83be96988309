"""Which tasks are looked at, and how often."""

import os
from collections import Counter
from pathlib import Path

import pytest
from clocked import Clock
from stub import task_of

from snakemake_executor_plugin_submitit import watch
from snakemake_executor_plugin_submitit.bundles import Status
from snakemake_executor_plugin_submitit.tasks import Task
from snakemake_executor_plugin_submitit.watch import Watch


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(watch, "time", clock)
    return clock


def tasks_of(folder: Path, count: int, name: str = "a") -> list[Task]:
    """An array whose folders were changed long ago."""
    (folder / name / "submitit").mkdir(parents=True)
    tasks = [task_of(folder / name, number, f"{name}{number}") for number in range(count)]
    for path in (folder / name / "submitit", *(task.folder / "status" for task in tasks)):
        os.utime(path, (1e9, 1e9))
    return tasks


def changed(watch: Watch, tasks: list[Task], *waiting: str) -> list[str]:
    return sorted(task.name for task in watch.changed(tasks, waiting))


def rest(watch: Watch, clock: Clock, tasks: list[Task], *waiting: str) -> None:
    """Look until nothing has changed for a while."""
    for _ in range(4):
        changed(watch, tasks, *waiting)
        clock.now += 3


def test_a_task_is_read_when_its_statuses_change_and_not_otherwise(tmp_path: Path, clock: Clock) -> None:
    watch, tasks = Watch(), tasks_of(tmp_path, 2)
    assert changed(watch, tasks) == ["7_0", "7_1"]
    rest(watch, clock, tasks)
    assert changed(watch, tasks) == []
    Status("running", 1.0, "host").write(tasks[1].folder, 0)
    assert changed(watch, tasks) == ["7_1"]


def test_a_change_is_not_missed_where_times_of_files_are_coarse(tmp_path: Path, clock: Clock) -> None:
    """A second change may leave the same time of modification as the first."""
    watch, [task] = Watch(), tasks_of(tmp_path, 1)
    folder = task.folder / "status"
    rest(watch, clock, [task])
    os.utime(folder, (2e9, 2e9))
    assert changed(watch, [task]) == ["7_0"]
    clock.now += 2
    Status("running", 1.0, "host").write(task.folder, 0)
    os.utime(folder, (2e9, 2e9))
    assert changed(watch, [task]) == ["7_0"]


def test_every_task_that_runs_is_read_once_a_minute_at_least(tmp_path: Path, clock: Clock) -> None:
    watch, tasks = Watch(), tasks_of(tmp_path, 1)
    rest(watch, clock, tasks)
    seen = []
    for _ in range(120):
        clock.now += 1
        seen += changed(watch, tasks)
    assert len(seen) == 2


def test_what_could_not_be_read_and_what_is_missing_is_read_again(tmp_path: Path, clock: Clock) -> None:
    watch, tasks = Watch(), tasks_of(tmp_path, 3)
    rest(watch, clock, tasks)
    tasks[0].unreadable_since = 1.0
    (tasks[2].folder / "status").rmdir()
    assert changed(watch, tasks) == ["7_0", "7_2"]


def test_a_task_that_waits_in_the_queue_is_not_read_before_it_has_a_log(tmp_path: Path, clock: Clock) -> None:
    watch, tasks = Watch(), tasks_of(tmp_path, 3)
    assert changed(watch, tasks, "7_0", "7_1") == ["7_2"]
    (tmp_path / "a" / "submitit" / "7_1_0_log.out").touch()
    assert changed(watch, tasks, "7_0", "7_1") == ["7_1", "7_2"]
    rest(watch, clock, tasks, "7_0", "7_1")
    Status("running", 1.0, "host").write(tasks[1].folder, 0)
    assert changed(watch, tasks, "7_0", "7_1") == ["7_1"], "the queue has not been asked since the task began"


def test_thousands_of_tasks_in_the_queue_cost_one_look_per_array(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch()
    tasks = [task for name in "abc" for task in tasks_of(tmp_path, 100, name)]
    waiting = [task.name for task in tasks]
    rest(watch, clock, tasks, *waiting)
    calls: Counter[str] = Counter()
    for name in ("open", "listdir", "stat", "scandir"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args, name=name, real=real: (calls.update([name]), real(*args))[1])
    assert changed(watch, tasks, *waiting) == []
    assert calls == {"open": 3}
