"""The dispatcher when the cluster or the file system does not do its part."""

import errno
import os
import threading
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest
from stub import Stub, add, dispatcher, finish

from snakemake_executor_plugin_submitit import bundles, dispatch
from snakemake_executor_plugin_submitit.bundles import Job
from snakemake_executor_plugin_submitit.clusters.commands import Commands
from snakemake_executor_plugin_submitit.resources import Request


class Hanging(Stub):
    """A cluster whose calls of the given names do not return until `hurry`."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.names = set(names)
        self.hurried = threading.Event()

    def hang(self, name: str) -> None:
        if name in self.names and not self.hurried.is_set():
            self.hurried.wait(60)
            raise TimeoutError(f"{name} did not answer")

    def submit(self, folder: Path, name: str, bundles: Sequence[Path], request: Request, minutes: int) -> list[str]:
        self.hang("submit")
        return super().submit(folder, name, bundles, request, minutes)

    def states(self, tasks: Collection[str]) -> dict[str, str | None]:
        self.hang("states")
        return super().states(tasks)

    def hurry(self) -> None:
        self.hurried.set()


def test_verdicts_arrive_while_a_submission_hangs(tmp_path: Path) -> None:
    cluster = Hanging()
    head, _ = dispatcher(cluster, tmp_path / "ledger")
    add(head, "first")
    assert head.poll() == []
    cluster.names = {"submit"}
    add(head, "second")
    head.poll()
    finish(cluster.submitted[0])
    began = time.monotonic()
    assert [verdict.job.key for verdict in head.poll()] == ["first"]
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("name", ["submit", "states"])
def test_an_interruption_does_not_wait_for_a_call_that_hangs(tmp_path: Path, name: str) -> None:
    cluster = Hanging(name)
    head, _ = dispatcher(cluster, tmp_path / "ledger")
    add(head, "job")
    head.poll()
    head.poll()
    began = time.monotonic()
    head.cancel()
    head.rest()
    assert time.monotonic() - began < 10


def test_a_submission_that_was_under_way_at_an_interruption_is_revoked_and_cancelled(tmp_path: Path) -> None:
    class Late(Hanging):
        """Accepts an array, but does not answer."""

        def __init__(self) -> None:
            super().__init__("submit")
            self.cancelled: list[str] = []

        def stray(self, folder: Path, name: str) -> dict[int, str]:
            return {0: "7"}

        def cancel(self, tasks: Collection[str]) -> None:
            self.cancelled += tasks

    cluster = Late()
    head, _ = dispatcher(cluster, tmp_path / "ledger")
    add(head, "job")
    head.poll()
    head.cancel()
    assert cluster.cancelled == ["7"]
    [bundle] = (tmp_path / "ledger").glob("*/0/bundle.json")
    assert (bundle.parent / "revoked").exists(), "its worker would run the job"


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Folders that cannot be listed."""
    folders: set[str] = set()
    listdir = os.listdir

    def refuse(path: Any) -> list[str]:
        if str(path) in folders:
            raise OSError(errno.EIO, "Input/output error", str(path))
        return listdir(path)

    monkeypatch.setattr(bundles.os, "listdir", refuse)
    return folders


def test_an_unreadable_bundle_holds_up_no_other(tmp_path: Path, broken: set[str]) -> None:
    class Wide(Stub):
        def room(self, request: Request) -> tuple[int, int]:
            return 8, 8

        def states(self, tasks: Collection[str]) -> dict[str, str | None]:
            return dict.fromkeys(tasks, self.state)

    cluster = Wide()
    head, messages = dispatcher(cluster, tmp_path / "ledger")
    add(head, "first", "second")
    head.poll()
    first, second = cluster.submitted
    broken.add(str(first / "status"))
    finish(first)
    finish(second)
    assert [verdict.job.key for verdict in head.poll()] == ["second"]
    assert any("Input/output error" in message for message in messages)
    add(head, "third")
    head.poll()
    assert len(cluster.submitted) == 3, "nothing is submitted any more"
    cluster.state = "COMPLETED"
    assert [verdict.job.key for verdict in head.poll()] == [], "a job was judged without its status"
    broken.clear()
    assert [(verdict.job.key, verdict.cause) for verdict in head.poll()][:1] == [("first", None)]


def test_the_ledger_is_for_the_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    """A colleague who may write there could replace what the tasks run."""
    umask = os.umask(0o002)
    try:
        head, _ = dispatcher(Stub(), tmp_path / "ledger")
        add(head, "job")
        head.poll()
        head.fail(head.tasks.all[0].jobs[0].job, "exception", "message")
    finally:
        os.umask(umask)
    [array] = (path for path in (tmp_path / "ledger").iterdir() if path.is_dir())
    assert [path.stat().st_mode & 0o077 for path in (tmp_path / "ledger", array)] == [0, 0]
    assert (tmp_path / "ledger" / "failures.jsonl").stat().st_mode & 0o022 == 0


def test_a_command_ends_after_its_limit_with_all_that_it_has_started() -> None:
    commands = Commands()
    commands.limit = 0.5
    began = time.monotonic()
    with pytest.raises(TimeoutError, match="bash did not answer within"):
        commands.run("bash", "-c", "sleep 30; echo late")
    assert time.monotonic() - began < 10, "a child of the command holds its output open"


def test_commands_under_way_are_stopped_when_the_head_ends() -> None:
    commands = Commands()
    answer = dispatch.in_thread(lambda: commands.run("sleep", "30"))
    while not commands.processes:
        time.sleep(0.01)
    commands.hurry()
    with pytest.raises(TimeoutError, match=r"^sleep was stopped, because the head is ending"):
        answer.result(10)
    assert commands.limit < 10


@pytest.mark.parametrize(
    ("script", "words"), [("echo no such queue >&2; exit 3", "no such queue"), ("exit 3", "exit code 3")]
)
def test_a_command_that_fails_says_why(script: str, words: str) -> None:
    with pytest.raises(OSError, match=f"^bash: {words}$"):
        Commands().run("bash", "-c", script)


def test_groups_of_jobs_that_are_ready_together_are_submitted_together(tmp_path: Path) -> None:
    """The first group does not make the others wait for more jobs, as they do while earlier jobs run."""

    class Queue(Stub):
        is_local = False

        def room(self, request: Request) -> None:
            return None

    cluster = Queue()
    head, _ = dispatcher(cluster, tmp_path / "ledger")
    head.add([(Job(key, "rule", "shell", "true"), Request(gpus=n, bundle=10), None) for n, key in enumerate("ab")])
    head.poll()
    assert cluster.jobs() == [["a"], ["b"]]
    head.add([(Job("c", "rule", "shell", "true"), Request(bundle=10), None)])
    head.poll()
    assert len(cluster.submitted) == 2, "a small bundle does not wait for more jobs while others run"
