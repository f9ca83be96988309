"""What a head finds of earlier heads, and what keeps two heads apart."""

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stub import Stub, add, dispatcher, task_of
from submitit.core.utils import DelayedSubmission

from snakemake_executor_plugin_submitit import restart
from snakemake_executor_plugin_submitit.bundles import write_json
from snakemake_executor_plugin_submitit.restart import find_tasks, hold, remove_empty
from snakemake_executor_plugin_submitit.tasks import Task, TaskState


class Known(Stub):
    """A cluster that knows some tasks.

    Attributes:
        alive: names of tasks in the queue.
        arrays: tasks of arrays whose submission was not answered, by the name of the array.
        error: raised by each question.
    """

    def __init__(self, name: str = "slurm") -> None:
        super().__init__()
        self.name = name  # type: ignore[misc]
        self.alive: set[str] = set()
        self.arrays: dict[str, dict[int, str]] = {}
        self.questions: list[list[str]] = []
        self.error: OSError | None = None

    def states(self, tasks: Any) -> dict[str, str | None]:
        if self.error:
            raise self.error
        self.questions.append(list(tasks))
        return {task: None if task in self.alive else "COMPLETED" for task in tasks}

    def stray(self, folder: Path, name: str) -> dict[int, str]:
        assert folder.name == "submitit"
        return self.arrays.get(name, {})


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    (tmp_path / "ledger").mkdir()
    return tmp_path / "ledger"


def array(ledger: Path, name: str, names: list[str | None] | None, cluster: str = "slurm", host: str = "") -> Path:
    """An array with two tasks; without their names if the submission was not answered."""
    for number in range(2):
        task_of(ledger / name, number, f"{name}-{number}")
    if names is not None:
        about = {
            "cluster": cluster,
            "host": host or (socket.gethostname() if cluster == "local" else None),
            "tasks": names,
            "submitted": 1.0,
        }
        write_json(ledger / name / "array.json", about)
    return ledger / name


def followed(ledger: Path, cluster: Known) -> tuple[dict[str, tuple[str, TaskState]], list[str]]:
    """Name and state of each task by its first job, and what the head says."""
    messages: list[str] = []
    tasks, _ = find_tasks(ledger, cluster, messages.append)
    return {task.jobs[0].job.key: (task.name, task.state) for task in tasks}, messages


@pytest.mark.parametrize(
    ("names", "alive", "revoked", "states"),
    [
        (["7_0", "7_1"], {"7_1"}, [], [TaskState.OVER, TaskState.ALIVE]),
        (["7_0", "7_1"], {"7_0"}, [0, 1], [TaskState.STOPPING, TaskState.OVER]),
        # The cluster has not accepted the first task.
        ([None, "7_1"], {"", "7_1"}, [], [TaskState.OVER, TaskState.ALIVE]),
    ],
)
def test_tasks_in_the_queue_are_followed_or_being_stopped_and_others_are_over(
    ledger: Path, names: list[str | None], alive: set[str], revoked: list[int], states: list[TaskState]
) -> None:
    folder, cluster = array(ledger, "a", names), Known()
    cluster.alive = alive
    for number in revoked:
        (folder / str(number) / "revoked").touch()
    expected = {f"a-{n}": (name or "", state) for n, (name, state) in enumerate(zip(names, states, strict=True))}
    assert followed(ledger, cluster) == (expected, [])
    assert cluster.questions == [[name for name in names if name]]


@pytest.mark.parametrize("is_damaged", [True, False])
def test_an_array_whose_submission_was_not_recorded_is_asked_for_by_its_name(ledger: Path, is_damaged: bool) -> None:
    folder = array(ledger, "20260101-000000-abc-train", None)
    if is_damaged:
        (folder / "array.json").write_text("")
    cluster = Known()
    cluster.arrays = {"train-20260101-000000-abc": {1: "9_1"}}
    cluster.alive = {"9_1"}
    tasks, _ = followed(ledger, cluster)
    assert list(tasks.values()) == [("", TaskState.OVER), ("9_1", TaskState.ALIVE)]


def test_a_ledger_without_tasks_needs_no_answer_of_the_cluster(ledger: Path) -> None:
    (ledger / "failures.jsonl").touch()
    cluster = Known()
    cluster.error = OSError("no answer")
    assert followed(ledger, cluster) == ({}, [])


def test_a_cluster_that_does_not_answer_ends_the_run_because_jobs_could_run_twice(ledger: Path) -> None:
    array(ledger, "a", ["7_0", "7_1"])
    cluster = Known()
    cluster.error = OSError("no answer")
    with pytest.raises(RuntimeError, match=r"the cluster does not answer \(no answer\)"):
        followed(ledger, cluster)


@pytest.mark.parametrize(
    ("cluster", "recorded", "host", "where"),
    [
        ("slurm", "slurm", "", None),
        ("slurm", "local", "", "the cluster 'local'"),
        ("local", "local", "", None),
        ("local", "local", "elsewhere", "elsewhere"),
        ("local", "slurm", "", "the cluster 'slurm'"),
    ],
)
def test_tasks_of_another_cluster_or_machine_are_left_alone(
    ledger: Path, cluster: str, recorded: str, host: str, where: str | None
) -> None:
    array(ledger, "a", ["7_0", "7_1"], recorded, host)
    array(ledger, "b", ["8_0", "8_1"], cluster)
    messages: list[str] = []
    tasks, arrays = find_tasks(ledger, Known(cluster), messages.append)
    assert [path.name for path in arrays] == (["b"] if where else ["a", "b"])
    assert len(tasks) == (2 if where else 4)
    assert messages == ([f"submitit: {ledger / 'a'} belongs to {where} and is left alone"] if where else [])


def test_arrays_come_in_the_order_of_their_submission(ledger: Path) -> None:
    """The last array of a job counts."""
    for name in ("c", "a", "b"):
        array(ledger, name, ["7_0", "7_1"])
    assert [key[0] for key in followed(ledger, Known())[0]] == ["a", "a", "b", "b", "c", "c"]


def test_only_arrays_without_a_task_are_deleted(ledger: Path) -> None:
    folders = [array(ledger, name, None) for name in "ab"]
    remove_empty(folders, [Task(folders[0] / "0", task_of(ledger / "x", 0, "x").bundle, "7_0")])
    assert [folder.exists() for folder in folders] == [True, False]


def test_a_ledger_that_cannot_be_read_is_not_taken_for_a_silent_cluster(ledger: Path) -> None:
    with pytest.raises(RuntimeError, match=r"cannot read .*nowhere.*try again when it can be read"):
        followed(ledger / "nowhere", Known())


# Other users.


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What is unpickled."""
    paths: list[Path] = []
    monkeypatch.setattr(DelayedSubmission, "load", paths.append)
    return paths


def open_to_others(path: Path) -> None:
    path.chmod(0o777)


def open_to_the_group(path: Path) -> None:
    path.chmod(0o770)


def of_another(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(path, 65534, -1)


@pytest.mark.parametrize("change", [open_to_others, open_to_the_group, of_another])
@pytest.mark.parametrize("where", ["", "a"])
def test_what_others_may_have_written_is_refused_before_anything_is_unpickled(
    ledger: Path, loaded: list[Path], change: Callable[[Path], None], where: str
) -> None:
    """Whoever puts a pickle there has a command run as the owner of the head."""
    folder = array(ledger, "a", None) / "submitit"
    folder.mkdir()
    (folder / f"{os.getpid()}_submitted.pkl").touch()
    change(ledger / where)
    with pytest.raises(RuntimeError, match=f"others may have put programs into {ledger / where} .*delete it"):
        dispatcher(Stub(), ledger)
    assert loaded == []


def test_a_link_to_a_folder_elsewhere_is_no_array(ledger: Path, tmp_path: Path) -> None:
    array(tmp_path, "elsewhere", ["7_0", "7_1"])
    (ledger / "a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RuntimeError, match=f"others may have put programs into {ledger / 'a'}"):
        followed(ledger, Known())


@pytest.mark.parametrize(("mode", "is_refused"), [(0o777, True), (0o1777, False), (0o775, False)])
def test_a_ledger_that_everybody_could_exchange_is_refused(tmp_path: Path, mode: int, is_refused: bool) -> None:
    """The sticky bit, as of /tmp, keeps others from that."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(mode)
    if is_refused:
        with pytest.raises(RuntimeError, match=f"everybody may write to {tmp_path / 'open'}"):
            dispatcher(Stub(), tmp_path / "open" / "project" / "ledger")
    else:
        dispatcher(Stub(), tmp_path / "open" / "project" / "ledger")


def test_a_ledger_that_is_deleted_under_a_living_head_is_made_again_for_it_alone(tmp_path: Path) -> None:
    cluster = Stub()
    head, messages = dispatcher(cluster, tmp_path / "project" / "ledger")
    add(head, "first")
    head.poll()
    shutil.rmtree(tmp_path / "project")
    add(head, "second")
    head.poll()
    assert [keys for keys in cluster.jobs() if keys] == [["second"]], messages
    ledger = tmp_path / "project" / "ledger"
    assert ledger.stat().st_mode & 0o077 == 0
    assert (ledger / "lock").read_text().startswith(f"process {os.getpid()} ")


# The lock of the ledger.


def test_the_lock_names_its_holder(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("process 1 on a machine with a much longer name than this one has, surely\n")
    with hold(tmp_path / "lock"):
        assert (tmp_path / "lock").read_text() == f"process {os.getpid()} on {socket.gethostname()}\n"


@pytest.mark.parametrize("error", [BlockingIOError, PermissionError])
@pytest.mark.parametrize(("text", "holder"), [("process 7 on here\n", "process 7 on here"), ("", "somewhere")])
def test_a_lock_that_is_held_names_the_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[OSError], text: str, holder: str
) -> None:
    def refuse(*args: object) -> None:
        raise error("held")

    (tmp_path / "lock").write_text(text)
    monkeypatch.setattr(restart.fcntl, "lockf", refuse)
    with pytest.raises(RuntimeError, match=rf"another Snakemake \({holder}\) uses {tmp_path}"):
        hold(tmp_path / "lock")
    assert (tmp_path / "lock").read_text() == text


def test_a_file_system_without_locks_is_no_reason_to_refuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise OSError("no locks available")

    monkeypatch.setattr(restart.fcntl, "lockf", refuse)
    hold(tmp_path / "lock").close()
