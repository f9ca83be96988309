"""README.md's tables of states are what the head does."""

import re
import time
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from stub import Stub

from snakemake_executor_plugin_submitit import failures
from snakemake_executor_plugin_submitit.bundles import Bundle, Job, Status, close_job, modification_times
from snakemake_executor_plugin_submitit.dispatch import Dispatcher
from snakemake_executor_plugin_submitit.resources import Request
from snakemake_executor_plugin_submitit.submission import Settings
from snakemake_executor_plugin_submitit.tasks import JobState, Task, TaskJob, TaskState

README = (Path(__file__).parents[1] / "README.md").read_text()
Change = tuple[str, str]


class Scene:
    """A head with one job, whose task is in the queue.

    Attributes:
        changes: of states of jobs and tasks, in order.
        recorded: whether Snakemake has recorded the end of the job.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.cluster, self.recorded = folder, Stub(), False
        self.job = Job("key", "rule", "shell", "true", outputs=("out.txt",))
        self.changes: list[Change] = []
        self.head = self.start()
        self.ask()
        self.head.poll()

    def start(self) -> Dispatcher:
        settings = Settings(self.folder / "ledger", 1000, 600, Bundle((), str(self.folder)))
        return Dispatcher(self.cluster, settings, say=print, recorded=lambda job: self.recorded)

    def again(self) -> None:
        """Another head."""
        self.head.hold.close()
        self.head = self.start()

    def ask(self) -> None:
        self.head.add([(self.job, Request(), None)])

    @property
    def bundle(self) -> Path:
        return self.cluster.submitted[0]

    def status(self, state: Any = "done", cause: str | None = None) -> None:
        (self.folder / "out.txt").touch()
        stamps = modification_times(self.job.outputs, str(self.folder))
        Status(state, time.time(), "host", ended=time.time(), stamps=stamps, cause=cause).write(self.bundle, 0)

    def lend(self) -> Task:
        """Give the worker another bundle."""
        [home] = self.head.tasks.all
        guest = Task(self.folder / "ledger" / "z-guest" / "0", Bundle((self.job,), str(self.folder)), home.name)
        guest.bundle.write(guest.folder)
        self.head.tasks.lend(home, guest)
        return guest


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    scene = Scene(tmp_path)
    for kind in (TaskJob, Task):

        def note(item: object, name: str, value: object) -> None:
            if name == "state" and isinstance(value, Enum) and (old := getattr(item, "state", value)) is not value:
                scene.changes.append((old.name, value.name))
            object.__setattr__(item, name, value)

        monkeypatch.setattr(kind, "__setattr__", note)
    return scene


def asks_again(scene: Scene) -> None:
    scene.again()
    scene.ask()


def ends_unseen(scene: Scene) -> None:
    scene.status()
    scene.again()


def ended_and_closed(scene: Scene) -> None:
    scene.status()
    close_job(scene.bundle, 0)
    scene.again()


def asks_for_an_end(scene: Scene) -> None:
    ends_unseen(scene)
    scene.ask()


def asks_for_another_run(scene: Scene) -> None:
    scene.recorded = True
    asks_for_an_end(scene)


def ends(scene: Scene) -> None:
    scene.status()
    scene.head.poll()


def loses_its_task(scene: Scene) -> None:
    scene.cluster.state = "NODE_FAIL"
    scene.head.poll()


def is_failed_by_its_host(scene: Scene) -> None:
    scene.status("failed", failures.HOST)
    scene.head.poll()


def is_taken_note_of(scene: Scene) -> None:
    ends(scene)
    scene.head.close(scene.job)


def is_lent(scene: Scene) -> None:
    scene.lend()


def comes_back(scene: Scene) -> None:
    scene.head.tasks.leave(scene.lend())


def is_cancelled(scene: Scene) -> None:
    scene.head.stop(scene.head.tasks.all[0])


def ends_after_a_cancellation(scene: Scene) -> None:
    is_cancelled(scene)
    loses_its_task(scene)


def ends_while_it_is_lent(scene: Scene) -> None:
    scene.lend().end()


CASES: dict[Change, tuple[Callable[[Scene], None], ...]] = {
    ("UNCLAIMED", "CLAIMED"): (asks_again,),
    ("UNCLAIMED", "ENDED"): (ends_unseen,),
    ("UNCLAIMED", "CLOSED"): (ended_and_closed,),
    ("ENDED", "JUDGED"): (asks_for_an_end,),
    ("ENDED", "CLOSED"): (asks_for_another_run,),
    ("CLAIMED", "JUDGED"): (ends,),
    ("CLAIMED", "RETURNED"): (loses_its_task, is_failed_by_its_host),
    ("JUDGED", "CLOSED"): (is_taken_note_of,),
    ("ALIVE", "LENT"): (is_lent,),
    ("LENT", "ALIVE"): (comes_back,),
    ("ALIVE", "STOPPING"): (is_cancelled,),
    ("ALIVE", "OVER"): (loses_its_task,),
    ("LENT", "OVER"): (ends_while_it_is_lent,),
    ("STOPPING", "OVER"): (ends_after_a_cancellation,),
}


def rows(head: str) -> Iterator[Change]:
    """The first two columns of a table of README.md."""
    table = README.partition(f"| {head} | becomes | when |\n")[2].partition("\n\n")[0]
    for line in table.splitlines()[1:]:
        _, state, becomes, *_ = (cell.strip() for cell in line.split("|"))
        yield state, becomes


def test_the_tables_have_every_state_and_every_change_that_is_tested() -> None:
    changes = [*rows("Job"), *rows("Task")]
    assert set(changes) == CASES.keys()
    assert {name for change in changes for name in change} == {*JobState.__members__, *TaskState.__members__}


@pytest.mark.parametrize(("change", "case"), [(change, case) for change, cases in CASES.items() for case in cases])
def test_a_state_changes_as_the_table_says(scene: Scene, change: Change, case: Callable[[Scene], None]) -> None:
    case(scene)
    assert change in scene.changes
    # The same case goes through no change that the tables lack.
    assert set(scene.changes) <= CASES.keys()


def test_the_tests_that_hold_a_promise_exist() -> None:
    table = README.partition("| Promise | Held by |\n")[2].partition("\n\n")[0].splitlines()[1:]
    for line in table:
        tests = re.findall(r"`([\w/]+\.py)`", line.rpartition("|")[0].rpartition("|")[2])
        assert tests, line
        assert all((Path(__file__).parents[1] / test).exists() for test in tests), line
