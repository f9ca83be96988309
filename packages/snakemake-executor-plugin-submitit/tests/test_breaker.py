"""A broken host or a full disk costs a few attempts, and no job fails because of it."""

import time
from pathlib import Path
from typing import Any

import pytest
from stub import dispatcher
from submitter import Queue

from snakemake_executor_plugin_submitit import breaker, failures, submission
from snakemake_executor_plugin_submitit.breaker import PAUSES, ROW, full
from snakemake_executor_plugin_submitit.bundles import Job, Status
from snakemake_executor_plugin_submitit.clusters.cluster import Refused
from snakemake_executor_plugin_submitit.resources import Request

FULL = "exit code 1\noutput:\nOSError: [Errno 28] No space left on device"


class Clock:
    """The time that the head sees."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.late = 0.0
        for name in ("time", "monotonic"):
            real = getattr(time, name)
            monkeypatch.setattr(time, name, lambda real=real: real() + self.late)

    def wait(self, seconds: float) -> None:
        self.late += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


class Site:
    """A head and its cluster, on which each job is a task of its own; the test says where each task runs, and how it ends."""

    def __init__(self, folder: Path, is_local: bool) -> None:
        self.cluster = Queue()
        self.cluster.is_local = is_local  # type: ignore[misc]
        self.head, self.messages = dispatcher(self.cluster, folder / "ledger")
        self.head.submitter.cluster = self.cluster
        self.verdicts: dict[str, str | None] = {}

    def add(self, *keys: str, rule: str = "rule") -> None:
        self.head.add([(Job(key, rule, "shell", "true"), Request(), None) for key in keys])
        self.poll()

    def poll(self) -> None:
        self.verdicts |= {verdict.job.key: verdict.cause for verdict in self.head.poll()}

    def waiting(self) -> list[str]:
        """The jobs that have a task, and have not ended."""
        tasks = self.head.tasks.all
        return [job.job.key for task in tasks for job in task.jobs if not job.has_ended]

    def end(self, key: str, host: str, cause: str | None = None, message: str = FULL) -> None:
        """Let a job end, and the head know."""
        job = self.head.tasks.by_key[key]
        state: Any = "failed" if cause else "done"
        now = time.time()
        Status(state, now, host, ended=now, cause=cause, message=message if cause else "").write(
            job.task.folder, job.number
        )
        self.poll()


@pytest.fixture
def slurm(tmp_path: Path, clock: Clock) -> Site:
    return Site(tmp_path, is_local=False)


@pytest.fixture
def local(tmp_path: Path, clock: Clock) -> Site:
    site = Site(tmp_path, is_local=True)
    site.cluster.room = lambda request: (100, 100)  # type: ignore[method-assign]
    return site


def test_a_job_that_a_place_has_failed_is_submitted_again_and_has_not_failed(slurm: Site) -> None:
    slurm.add("a")
    slurm.end("a", "bad", failures.HOST)
    assert slurm.verdicts == {}
    assert slurm.waiting() == ["a"]
    assert any("No space left on device" in message and "bad" in message for message in slurm.messages)
    slurm.end("a", "good")
    assert slurm.verdicts == {"a": None}
    assert not (slurm.head.folder / "failures.jsonl").exists()


def test_after_a_failure_one_job_tries_elsewhere_before_the_others_follow(slurm: Site) -> None:
    slurm.add("a")
    slurm.end("a", "bad", failures.HOST)
    slurm.add("b", "c")
    assert len(slurm.waiting()) == 1
    assert slurm.cluster.excluded == ["bad"]
    slurm.end(slurm.waiting()[0], "good")
    slurm.poll()
    assert len(slurm.waiting()) == 2
    assert slurm.cluster.excluded == ["bad"], "the others would be sent to the broken host"


def test_a_job_that_was_in_the_queue_tells_that_others_may_follow(slurm: Site) -> None:
    """The job that tries may wait in the queue for hours."""
    slurm.add("queued")
    slurm.add("a")
    slurm.end("a", "bad", failures.HOST)
    slurm.add("b")
    slurm.end("queued", "good")
    slurm.poll()
    assert sorted(slurm.waiting()) == ["a", "b"]


def test_jobs_that_were_on_their_way_to_a_broken_host_hold_nothing_up(slurm: Site) -> None:
    slurm.add("queued")
    slurm.add("a")
    slurm.end("a", "bad", failures.HOST)
    slurm.end("a", "good")
    slurm.end("queued", "bad", failures.HOST)
    slurm.add("b")
    assert sorted(slurm.waiting()) == ["b", "queued"]


@pytest.mark.parametrize(("message", "excluded"), [(FULL, []), ("CUDA-capable device is busy", ["node GPU 4"])])
def test_a_full_disk_is_no_fault_of_the_gpu_of_a_job(local: Site, message: str, excluded: list[str]) -> None:
    local.cluster.can_spare = lambda place: " GPU " in place  # type: ignore[method-assign]
    local.add("a")
    local.end("a", "node GPU 4", failures.HOST, message)
    assert list(local.cluster.excluded) == excluded


def test_a_host_is_tried_again_after_an_hour(slurm: Site, clock: Clock) -> None:
    slurm.add("a")
    slurm.end("a", "bad", failures.HOST)
    slurm.end("a", "good")
    clock.wait(breaker.FORGIVE)
    slurm.poll()
    assert list(slurm.cluster.excluded) == []


def test_trouble_on_a_second_host_is_trouble_of_what_they_share(slurm: Site, clock: Clock) -> None:
    slurm.add("a", "b")
    slurm.end("a", "one", failures.HOST)
    slurm.end("a", "two", failures.HOST)
    assert list(slurm.cluster.excluded) == []
    assert slurm.waiting() == ["b"], "no pause"
    clock.wait(PAUSES[0] + 1)
    slurm.poll()
    assert sorted(slurm.waiting()) == ["a", "b"]


def test_a_cluster_without_another_host_is_tried_again_after_a_pause(slurm: Site, clock: Clock) -> None:
    slurm.add("a")
    slurm.cluster.errors = [Refused("Requested node configuration is not available")]
    slurm.end("a", "only", failures.HOST)
    assert slurm.verdicts == {}, "the job was refused"
    assert list(slurm.cluster.excluded) == []
    clock.wait(PAUSES[0] + 1)
    slurm.poll()
    assert slurm.waiting() == ["a"]


def test_on_one_machine_the_pauses_grow_until_a_job_goes_well(local: Site, clock: Clock) -> None:
    local.add("a")
    local.end("a", "here", failures.HOST)
    local.add(*"bcdef")
    for pause in PAUSES:
        local.poll()
        tried = len(local.cluster.submitted)
        clock.wait(pause - 1)
        local.poll()
        assert len(local.cluster.submitted) == tried, "too early"
        clock.wait(2)
        local.poll()
        assert len(local.cluster.submitted) == tried + 1
        trial = local.head.judge.breaker.trial
        assert trial
        local.end(trial.jobs[0].job.key, "here", failures.HOST)
    clock.wait(PAUSES[-1] + 1)
    local.poll()
    trial = local.head.judge.breaker.trial
    assert trial
    local.end(trial.jobs[0].job.key, "here")
    local.poll()
    assert not local.head.submitter.buffer


@pytest.mark.parametrize("cause", [failures.EXCEPTION, failures.OUT_OF_MEMORY])
def test_a_job_that_fails_by_itself_has_shown_that_jobs_run(local: Site, clock: Clock, cause: str) -> None:
    local.add("a")
    local.end("a", "here", failures.HOST)
    local.add("b")
    clock.wait(PAUSES[0] + 1)
    local.poll()
    [first] = local.waiting()
    local.end(first, "here", cause, "exit code 1")
    assert local.verdicts == {first: cause}
    local.poll()
    assert len(local.waiting()) == 1


def test_a_job_that_fills_the_disk_itself_fails_in_the_end(local: Site, clock: Clock) -> None:
    local.add("a")
    attempts = 0
    while "a" not in local.verdicts:
        local.end("a", "here", failures.HOST)
        clock.wait(1000)
        local.poll()
        attempts += 1
    assert local.verdicts == {"a": failures.HOST}
    assert attempts == 1 + local.head.settings.bundle.max_requeues


def test_a_trial_whose_task_vanishes_is_followed_by_another(local: Site, clock: Clock) -> None:
    local.add("a")
    local.end("a", "here", failures.HOST)
    clock.wait(PAUSES[0] + 1)
    local.poll()
    local.cluster.state = "NODE_FAIL"
    local.poll()
    local.cluster.state = None
    local.poll()
    assert local.waiting() == ["a"]


def test_failures_in_a_row_on_one_host_are_its_fault_if_the_same_rule_goes_well_elsewhere(slurm: Site) -> None:
    keys = [f"job{number}" for number in range(ROW + 2)]
    slurm.add(*keys)
    slurm.end(keys.pop(), "bad", failures.EXCEPTION, "exit code 1")
    slurm.end(keys.pop(), "good")
    for key in keys[:-1]:
        slurm.end(key, "bad", failures.EXCEPTION, "exit code 1")
    assert slurm.cluster.excluded == ["bad"]
    # The last of them has not failed, and nor does one that is on its way there.
    assert keys[-2] not in slurm.verdicts
    slurm.end(keys[-1], "bad", failures.EXCEPTION, "exit code 1")
    assert keys[-1] not in slurm.verdicts


@pytest.mark.parametrize("elsewhere", ["nothing", "another rule", "before"])
def test_a_rule_that_fails_everywhere_is_no_host_s_fault(slurm: Site, elsewhere: str) -> None:
    keys = [f"job{number}" for number in range(2 * ROW)]
    slurm.add("other", rule="another")
    slurm.add("early", *keys)
    if elsewhere == "before":
        slurm.end("early", "good")
    slurm.end(keys[0], "bad", failures.EXCEPTION, "exit code 1")
    if elsewhere == "another rule":
        slurm.end("other", "good")
    for key in keys[1:]:
        slurm.end(key, "bad", failures.EXCEPTION, "exit code 1")
    assert list(slurm.cluster.excluded) == []
    assert {slurm.verdicts[key] for key in keys} == {failures.EXCEPTION}


def test_jobs_whose_workers_were_killed_fail_and_blame_no_host(slurm: Site) -> None:
    """Nobody has noted where these jobs ran."""
    keys = [f"job{number}" for number in range(ROW + 2)]
    slurm.add(*keys)
    jobs = [slurm.head.tasks.by_key[key] for key in keys]
    slurm.head.judge.fail(jobs[0], failures.KILLED, "its worker died")
    slurm.end(keys[1], "good")
    for job in jobs[2:]:
        slurm.head.judge.fail(job, failures.KILLED, "its worker died")
    slurm.poll()
    assert list(slurm.cluster.excluded) == []
    assert {slurm.verdicts[key] for key in (keys[0], *keys[2:])} == {failures.KILLED}


def test_a_worker_that_could_not_write_its_ledger_is_the_host_s_fault(slurm: Site) -> None:
    slurm.add("a")
    task = slurm.head.tasks.by_key["a"].task
    Status("running", time.time(), "bad").write(task.folder, 0)
    log = task.folder.parent / "submitit" / task.log_name
    log.parent.mkdir()
    log.write_text("Traceback (most recent call last):\nOSError: [Errno 5] Input/output error: '0.json'\n")
    slurm.head.submitter.buffer += slurm.head.judge.settle(task, "FAILED")
    slurm.poll()
    assert slurm.verdicts == {}
    assert slurm.cluster.excluded == ["bad"]


@pytest.mark.parametrize("place", ["ledger", "TMPDIR"])
def test_nothing_is_submitted_while_a_disk_is_full(
    slurm: Site, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    monkeypatch.setattr(submission.tempfile, "gettempdir", lambda: str(temporary))
    whole = {"ledger": slurm.head.folder, "TMPDIR": temporary}[place]
    monkeypatch.setattr(submission, "full", lambda folders: next((path for path in folders if path == whole), None))
    slurm.add("a")
    assert slurm.cluster.submitted == []
    assert any(str(whole) in message for message in slurm.messages)
    monkeypatch.setattr(submission, "full", lambda folders: None)
    slurm.poll()
    assert slurm.waiting() == ["a"]


def test_a_disk_is_full_if_it_has_no_room_or_no_file_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert full([tmp_path]) is None
    assert full([tmp_path / "missing"]) is None

    class Disk:
        f_bavail, f_files, f_favail = 10, 100, 10

    monkeypatch.setattr(breaker.os, "statvfs", lambda path: Disk)
    assert full([tmp_path]) is None
    for name in ("f_bavail", "f_favail"):
        with monkeypatch.context() as patch:
            patch.setattr(Disk, name, 0)
            assert full([tmp_path]) == tmp_path
    # Btrfs counts no files.
    monkeypatch.setattr(Disk, "f_favail", 0)
    monkeypatch.setattr(Disk, "f_files", 0)
    assert full([tmp_path]) is None
