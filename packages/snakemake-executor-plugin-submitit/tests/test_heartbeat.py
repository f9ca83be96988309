"""The sign of life of a worker, without which the word of the cluster that a task is over does not count."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from clocked import Clock, Cluster, begin, poll, submitted
from stub import finish
from waiting import wait_for

from snakemake_executor_plugin_submitit import failures
from snakemake_executor_plugin_submitit.bundles import HEARTBEAT, Bundle, Job, Status, heartbeat
from snakemake_executor_plugin_submitit.clusters.cluster import GONE
from snakemake_executor_plugin_submitit.dispatch import QUIET, Dispatcher
from snakemake_executor_plugin_submitit.guard import BEAT
from snakemake_executor_plugin_submitit.resources import Request
from snakemake_executor_plugin_submitit.tasks import TaskState

# The worker.

# A file system takes its time.
PROGRAM = """
import sys, time
from pathlib import Path
from snakemake_executor_plugin_submitit import guard, worker

unlink = Path.unlink

def slowly(path, **options):
    time.sleep(0.3)
    unlink(path, **options)

Path.unlink = slowly
guard.BEAT = 0.05
worker.Worker(sys.argv[1])()
"""


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A bundle of a job that goes on until there is a file `go`, or until it is asked to end."""
    # Without the trap, a signal that comes between two sleeps would be lost on the shell.
    job = Job("key", "rule", "shell", "trap exit USR2 TERM; until [ -e go ]; do sleep 0.05; done")
    Bundle((job,), str(tmp_path)).write(tmp_path / "bundle")
    return tmp_path / "bundle"


@pytest.fixture
def process(bundle: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A worker whose heart beats."""
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(bundle)], start_new_session=True)
    try:
        wait_for(lambda: heartbeat(bundle), "there is no heartbeat")
        yield process
    finally:
        for line in subprocess.run(["ps", "-s", str(process.pid), "-o", "pid="], capture_output=True).stdout.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(line), signal.SIGKILL)
        process.wait()


def beats(bundle: Path, seconds: float = 20) -> None:
    before = heartbeat(bundle)
    wait_for(lambda: heartbeat(bundle) != before, "the heart does not beat", seconds)
    assert heartbeat(bundle), "the heartbeat is gone"


def test_the_heart_of_a_worker_beats_whatever_keeps_the_worker_busy(
    process: "subprocess.Popen[bytes]", bundle: Path
) -> None:
    """An import from a slow file system, or a ledger that cannot be written, may keep it busy for minutes."""
    beats(bundle)
    process.send_signal(signal.SIGSTOP)
    beats(bundle)


def test_a_heartbeat_that_was_deleted_comes_back(process: "subprocess.Popen[bytes]", bundle: Path) -> None:
    (bundle / HEARTBEAT).unlink()
    wait_for(lambda: heartbeat(bundle), "the worker seems dead")


@pytest.mark.parametrize("number", [None, signal.SIGTERM, signal.SIGUSR2])
def test_no_heartbeat_is_left_by_a_worker_that_ends_or_is_asked_to(
    process: "subprocess.Popen[bytes]", bundle: Path, number: int | None
) -> None:
    if number:
        process.send_signal(number)
    else:
        (bundle.parent / "go").touch()
    process.wait(20)
    assert heartbeat(bundle) is None


def test_the_heartbeat_of_a_worker_that_is_killed_ends_at_once(
    process: "subprocess.Popen[bytes]", bundle: Path
) -> None:
    process.kill()
    wait_for(lambda: heartbeat(bundle) is None, "the worker seems alive")


def test_a_heartbeat_needs_no_room_on_the_disk_and_may_not_be_mistaken_for_silence() -> None:
    """A beat that is late, or that a network file system shows late, must not end a task."""
    assert QUIET > 3 * BEAT


# The head.


@pytest.fixture
def running(head: Dispatcher, clock: Clock, cluster: Cluster) -> Path:
    """A bundle whose only job runs according to its files, and whose task has failed according to the cluster."""
    submitted(head, clock)
    [folder] = cluster.submitted
    Status("running", 1.0, "host").write(folder, 0)
    cluster.ended["1_0"] = "FAILED"
    return folder


def beat(folder: Path, when: int) -> None:
    (folder / HEARTBEAT).touch()
    os.utime(folder / HEARTBEAT, (when, when))


def test_a_task_whose_heart_beats_is_not_over_whatever_the_cluster_says(
    running: Path, head: Dispatcher, clock: Clock, messages: list[str]
) -> None:
    for when in range(60):
        beat(running, when)
        assert poll(head, clock, BEAT) == []
    assert any("its worker lives" in message for message in messages)
    finish(running)
    assert poll(head, clock, 10) == [None], "what the worker writes is not heard"


@pytest.mark.parametrize("ahead", [-3600, 3600])
def test_a_task_is_over_when_its_heart_has_been_still_for_long_whatever_the_clocks_say(
    running: Path, head: Dispatcher, clock: Clock, ahead: int
) -> None:
    beat(running, int(clock.now) + ahead)
    assert poll(head, clock, QUIET) == []
    assert poll(head, clock, 30) == [failures.KILLED]


def test_a_heartbeat_is_old_only_if_it_has_not_changed_since_the_last_look(
    running: Path, head: Dispatcher, clock: Clock, cluster: Cluster
) -> None:
    """The head has seen it when the cluster was wrong before, hours ago."""
    beat(running, 1)
    poll(head, clock, 20)
    cluster.ended.clear()
    poll(head, clock, 3600)
    cluster.ended["1_0"] = GONE
    beat(running, 2)
    assert poll(head, clock, QUIET) == []


def test_a_task_whose_jobs_have_all_ended_is_settled_at_once(
    running: Path, head: Dispatcher, clock: Clock, cluster: Cluster
) -> None:
    beat(running, 1)
    finish(running)
    assert poll(head, clock, 6) == [None]
    assert head.tasks.alive() == []


def test_the_next_head_starts_no_job_of_a_task_whose_heart_beats(
    running: Path, head: Dispatcher, clock: Clock, cluster: Cluster, tmp_path: Path, messages: list[str]
) -> None:
    job = Job("job", "rule", "shell", "true", outputs=("out",))
    head.add([(job, Request(), None)])
    poll(head, clock, 6)
    folder = cluster.submitted[-1]
    cluster.ended["2_0"] = GONE
    head.hold.close()
    beat(folder, 1)
    head = begin(cluster, tmp_path, messages)
    head.add([(job, Request(), None)])
    for when in range(2, 20):
        beat(folder, when)
        assert poll(head, clock, BEAT) == []
    assert len(cluster.submitted) == 2, "the job was submitted beside itself"
    assert cluster.cancelled == [], "a task that works was cancelled"
    # Its worker is killed, and so is what would have deleted the heartbeat.
    assert poll(head, clock, QUIET + 30) == []
    assert len(cluster.submitted) == 3, "the job is lost"


def test_the_next_head_submits_the_jobs_of_a_worker_that_has_ended_at_once(
    head: Dispatcher, clock: Clock, cluster: Cluster, tmp_path: Path, messages: list[str]
) -> None:
    submitted(head, clock)
    cluster.ended["1_0"] = "COMPLETED"
    head.hold.close()
    submitted(begin(cluster, tmp_path, messages), clock)
    assert len(cluster.submitted) == 2


def test_a_task_that_the_queue_hid_from_the_next_head_starts_no_job_beside_it(
    head: Dispatcher, clock: Clock, cluster: Cluster, tmp_path: Path, messages: list[str]
) -> None:
    """It was waiting in the queue, perhaps to be started again, and had no heart that could beat."""
    done, left = (Job(name, "rule", "shell", f"touch {name}", outputs=(name,)) for name in ("done", "left"))
    head.add([(done, Request(), None)])
    head.poll()
    [folder] = cluster.submitted
    shutil.rmtree(folder)
    Bundle((done, left), str(tmp_path)).write(folder)
    Status("done", 1.0, "host", ended=2.0).write(folder, 0)
    cluster.ended["1_0"] = GONE
    head.hold.close()
    begin(cluster, tmp_path, messages).add([(left, Request(), None)])
    subprocess.run([sys.executable, "-c", PROGRAM, str(folder)], check=True, timeout=60)
    assert not (tmp_path / "left").exists()


def test_nothing_is_submitted_beside_a_task_of_unknown_jobs_whose_heart_beats(
    running: Path, head: Dispatcher, clock: Clock, cluster: Cluster, tmp_path: Path, messages: list[str]
) -> None:
    (running / "bundle.json").write_text("")
    head.hold.close()
    beat(running, 1)
    cluster.ended.clear()
    head = begin(cluster, tmp_path, messages)
    head.add([(Job("other", "rule", "shell", "true"), Request(), None)])
    poll(head, clock, 6)
    cluster.ended["1_0"] = "CANCELLED"
    assert poll(head, clock, QUIET) == []
    assert len(cluster.submitted) == 1
    poll(head, clock, 30)
    assert len(cluster.submitted) == 2


def test_the_next_head_takes_what_a_task_has_done_that_the_cluster_does_not_know(
    head: Dispatcher, clock: Clock, cluster: Cluster, tmp_path: Path, messages: list[str]
) -> None:
    job = Job("job", "rule", "shell", "true", outputs=("out",))
    head.add([(job, Request(), None)])
    head.poll()
    [folder] = cluster.submitted
    beat(folder, 1)
    cluster.ended["1_0"] = GONE
    head.hold.close()
    head = begin(cluster, tmp_path, messages)
    head.add([(job, Request(), None)])
    poll(head, clock, BEAT)
    (tmp_path / "out").touch()
    stamps = ((tmp_path / "out").stat().st_mtime_ns,)
    Status("done", 1.0, "host", ended=2.0, stamps=stamps).write(folder, 0)
    assert poll(head, clock, 30) == [None]
    assert len(cluster.submitted) == 1


def test_an_ending_head_leaves_the_files_of_a_worker_that_may_live(
    running: Path, head: Dispatcher, clock: Clock, cluster: Cluster, tmp_path: Path, messages: list[str]
) -> None:
    head.hold.close()
    beat(running, 1)
    cluster.ended.clear()
    head = begin(cluster, tmp_path, messages)
    [task] = head.tasks.all
    task.state = TaskState.STOPPING
    cluster.ended["1_0"] = GONE
    head.rest()
    assert running.exists(), "the worker would end, and its job run twice at a time"
