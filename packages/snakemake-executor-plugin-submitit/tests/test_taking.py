"""A real worker takes one bundle after the other, and finds the last one when it is started again."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from snakemake_executor_plugin_submitit.bundles import Bundle, Job, name_of, read_json, read_statuses, revoke
from snakemake_executor_plugin_submitit.messages import Mail


class Bench:
    """A ledger, the head's end of the line, and a worker in a process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mail = Mail()
        self.mail.listen(is_local=True)
        self.process: subprocess.Popen[bytes] | None = None

    def bundle(self, name: str, command: str, idle: float = 20, **settings: Any) -> Path:
        jobs = (Job(name, "rule", "shell", command),)
        settings = {"latency_wait": 1, **settings}
        Bundle(jobs, str(self.folder), head=self.mail.address, idle=idle, **settings).write(self.folder / name / "0")
        return self.folder / name / "0"

    def start(self, home: Path) -> None:
        command = [sys.executable, "-m", "snakemake_executor_plugin_submitit", "run", str(home)]
        self.process = subprocess.Popen(command)

    def await_message(self, kind: str, at: Path) -> tuple[dict[str, Any], Any]:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            self.mail.wait(1)
            for message, sender in self.mail.read():
                if (message["kind"], message["at"]) == (kind, name_of(at)):
                    return message, sender
        raise AssertionError(f"no message {kind} from {at}")

    def answer(self, kind: str, at: Path, **more: str) -> None:
        """Answer the offer of a worker."""
        message, sender = self.await_message("idle", at)
        self.mail.send({"kind": kind, "life": message["life"], "at": message["at"], **more}, sender)

    def code(self) -> int:
        assert self.process
        return self.process.wait(20)

    def lines(self) -> list[str]:
        return (self.folder / "out.txt").read_text().split()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    if bench.process:
        bench.process.kill()


def test_a_worker_runs_the_bundles_that_it_is_given_until_it_is_sent_away(bench: Bench) -> None:
    first, second = (bench.bundle(name, f"echo {name} $PPID >> out.txt") for name in ("first", "second"))
    bench.start(first)
    bench.answer("take", first, bundle=name_of(second))
    bench.answer("leave", second)
    assert bench.code() == 0
    one, parent, two, same = bench.lines()
    assert (one, two, parent) == ("first", "second", same)
    for folder in (first, second):
        assert [status.state for _, status, _ in read_statuses(folder)] == ["done"]


def test_a_worker_leaves_by_itself_if_nobody_answers(bench: Bench) -> None:
    began = time.monotonic()
    bench.start(bench.bundle("first", "true"))
    assert bench.code() == 0
    assert time.monotonic() - began < 12


def test_a_worker_waits_no_longer_than_its_bundle_says(bench: Bench) -> None:
    first = bench.bundle("first", "true", idle=0)
    bench.start(first)
    bench.await_message("end", first)


def test_an_answer_to_another_offer_is_ignored(bench: Bench) -> None:
    first, second = (bench.bundle(name, f"echo {name} >> out.txt") for name in ("first", "second"))
    bench.start(first)
    message, sender = bench.await_message("idle", first)
    for life, at in (("other", message["at"]), (message["life"], "other/0")):
        bench.mail.send({"kind": "take", "life": life, "at": at, "bundle": name_of(second)}, sender)
    assert bench.code() == 0
    assert bench.lines() == ["first"]


def test_a_revoked_bundle_is_taken_but_its_jobs_do_not_start(bench: Bench) -> None:
    first, second = (bench.bundle(name, f"echo {name} >> out.txt") for name in ("first", "second"))
    revoke(second)
    bench.start(first)
    bench.answer("take", first, bundle=name_of(second))
    assert bench.code() == 0
    assert bench.lines() == ["first"]


def test_a_worker_that_does_not_find_its_next_bundle_says_that_it_has_not_begun_it(bench: Bench) -> None:
    first = bench.bundle("first", "true")
    bench.start(first)
    bench.answer("take", first, bundle="missing/0")
    bench.await_message("end", first)
    assert bench.code() != 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGUSR2])
def test_a_worker_that_is_started_again_goes_on_with_the_bundle_that_it_took_last(bench: Bench, number: int) -> None:
    first = bench.bundle("first", "echo first >> out.txt")
    second = bench.bundle("second", "echo second >> out.txt; test -e go || sleep 60")
    bench.start(first)
    bench.answer("take", first, bundle=name_of(second))
    while not (second / "status" / "0.json").exists():
        time.sleep(0.05)
    assert bench.process
    time.sleep(0.3)
    bench.process.send_signal(number)
    assert bench.code() != 0
    (bench.folder / "go").touch()
    bench.start(first)
    bench.answer("leave", second)
    assert bench.code() == 0
    assert bench.lines() == ["first", "second", "second"]


def test_a_worker_that_is_started_again_offers_itself_if_its_last_bundle_is_gone(bench: Bench) -> None:
    first, second = (bench.bundle(name, f"echo {name} >> out.txt") for name in ("first", "second"))
    (first / "next").write_text('"gone/0"')
    bench.start(first)
    bench.answer("take", first, bundle=name_of(second))
    bench.answer("leave", second)
    assert bench.code() == 0
    assert read_json(first / "next") == name_of(second)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR2])
def test_a_signal_ends_a_worker_without_jobs_at_once(bench: Bench, number: int) -> None:
    first = bench.bundle("first", "true", idle=60)
    bench.start(first)
    bench.answer("stay", first)
    began = time.monotonic()
    assert bench.process
    os.kill(bench.process.pid, number)
    bench.await_message("end", first)
    bench.code()
    assert time.monotonic() - began < 30, "the worker would have waited for 60 s"
