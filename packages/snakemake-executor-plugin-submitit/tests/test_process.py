"""What the worker does for a job before and after its command: it waits for inputs, shows the end of the log, and leaves no process."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from waiting import wait_for

from snakemake_executor_plugin_submitit import worker
from snakemake_executor_plugin_submitit.bundles import Bundle, Job
from snakemake_executor_plugin_submitit.clusters.local import birth
from snakemake_executor_plugin_submitit.process import discard, environment, make_ready, place, set_environment, spawn


def job_with_input(tmp_path: Path) -> tuple[Job, Bundle]:
    job = Job("key", "rule", "shell", "true", inputs=("in.txt",))
    return job, Bundle((job,), str(tmp_path), latency_wait=60)


def test_a_job_waits_for_an_input_that_comes_late(tmp_path: Path) -> None:
    def must_end() -> bool:
        (tmp_path / "in.txt").touch()
        return False

    assert make_ready(*job_with_input(tmp_path), must_end) is None


def test_a_worker_that_has_to_end_waits_for_no_input(tmp_path: Path) -> None:
    problem = make_ready(*job_with_input(tmp_path), lambda: True)
    assert problem and problem.endswith("in.txt")


@pytest.mark.parametrize("is_known", [True, False])
def test_a_command_starts_once_the_guard_knows_it(tmp_path: Path, is_known: bool) -> None:
    job = Job("key", "rule", "shell", "touch begun")
    pid, start = spawn(job, Bundle((job,), str(tmp_path)), environment(), tmp_path, tmp_path / "output")
    if is_known:
        os.write(start, b"\n")
    os.close(start)
    _, ended = os.waitpid(pid, 0)
    assert (tmp_path / "begun").exists() == is_known == (os.waitstatus_to_exitcode(ended) == 0)


def test_a_shell_command_reads_nothing_and_is_killed_before_its_worker(tmp_path: Path) -> None:
    job = Job("key", "rule", "shell", "cat; cat /proc/self/oom_score_adj; ls /proc/self/fd | wc -l")
    # Who runs the tests may have opened further descriptors for all processes.
    opened = [fd for fd in range(3, 1024) if Path(f"/proc/self/fd/{fd}").exists()]
    inherited = [0, 1, 2, *filter(os.get_inheritable, opened)]
    pid, start = spawn(job, Bundle((job,), str(tmp_path)), environment(), tmp_path, tmp_path / "output")
    os.write(start, b"\n")
    os.close(start)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    # `ls` has one more, for the folder.
    assert (tmp_path / "output").read_text().split() == ["1000", str(len(inherited) + 1)]


@pytest.mark.parametrize("size", [0, 1, worker.TAIL, worker.TAIL + 1, 5 * worker.TAIL])
def test_the_end_of_a_log_is_shown(tmp_path: Path, size: int) -> None:
    text = "".join(str(number % 10) for number in range(size))
    (tmp_path / "log").write_text(text)
    assert worker.tail(tmp_path / "log") == (text if size <= worker.TAIL else f"… {text[-worker.TAIL :]}")


def test_the_guard_kills_the_jobs_of_a_worker_that_is_killed_and_no_job_that_has_ended() -> None:
    """A worker starts two process groups, tells the guard of both, and then that the second has ended."""
    program = """
import subprocess, time
from pathlib import Path
from snakemake_executor_plugin_submitit.guard import Guard
guard = Guard(Path("/nowhere/heartbeat"))
guard.__enter__()
groups = [subprocess.Popen(["sleep", "60"], start_new_session=True).pid for _ in range(2)]
for group in (*groups, *range(10**7, 10**7 + 5000)):
    guard.add(group)
guard.discard(groups[1])
print(*groups, flush=True)
time.sleep(60)
"""
    started = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert started.stdout
    killed, ended = map(int, started.stdout.readline().split())
    try:
        started.kill()
        wait_for(lambda: not birth(killed), "the job goes on without its worker")
        assert birth(ended), "the guard has killed a process group that it was told has ended"
    finally:
        started.wait()
        os.killpg(ended, signal.SIGKILL)


# Room for outputs.


@pytest.mark.parametrize("is_directory", [True, False])
def test_an_old_output_is_removed_but_for_a_folder_that_is_not_the_output_of_the_job(
    tmp_path: Path, is_directory: bool
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("full")
    for name in ("empty", "full", "file", "link", "missing"):
        discard(tmp_path / name, is_directory)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == (set() if is_directory else {"full"})


def test_the_null_device_is_not_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    def unlink(path: Path, missing_ok: bool = False) -> None:
        raise AssertionError(f"{path} was removed")

    monkeypatch.setattr(Path, "unlink", unlink)
    discard(Path(os.devnull), False)


def test_a_job_begins_with_its_folders_and_without_its_old_files(tmp_path: Path) -> None:
    for name in ("a/out", "a/folder/old", "b/log"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    outputs = ("a/out", "a/folder", "c/d/new")
    job = Job("key", "rule", "shell", "true", (), outputs, ("a/folder",), ("b/log",), "bench/table.tsv")
    bundle = Bundle((job,), str(tmp_path), tmpdir=str(tmp_path / "scratch" / "deep"))
    assert make_ready(job, bundle, lambda: False) is None
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")} == {
        *("a", "b", "c", "c/d", "bench", "scratch", "scratch/deep")
    }


def test_a_job_without_room_for_its_outputs_says_why(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    job = Job("key", "rule", "shell", "true", outputs=("a/out",))
    problem = make_ready(job, Bundle((job,), str(tmp_path)), lambda: False)
    assert problem and problem.startswith("cannot make room for the outputs: ")


def test_a_nested_snakemake_makes_room_itself(tmp_path: Path) -> None:
    """It restores the old outputs of a job that fails."""
    (tmp_path / "out").touch()
    job = Job("key", "rule", "snakemake", "true", ("missing",), ("out", "deep/out"))
    assert make_ready(job, Bundle((job,), str(tmp_path)), lambda: False) is None
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_job_waits_for_late_inputs_until_its_patience_is_over(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    job = Job("key", "rule", "shell", "true", inputs=("link", "a.txt", "b.txt"))
    began = time.monotonic()
    problem = make_ready(job, Bundle((job,), str(tmp_path), latency_wait=0.5), lambda: False)
    assert time.monotonic() - began >= 0.5
    assert problem and problem.endswith("after 0.5 s (--latency-wait): a.txt, b.txt")


@pytest.mark.parametrize("tmpdir", [None, "/scratch"])
def test_jobs_share_threads_temporary_files_and_variables_of_the_workflow(
    monkeypatch: pytest.MonkeyPatch, tmpdir: str | None
) -> None:
    monkeypatch.setattr(os, "environ", {})
    set_environment(Bundle((), "", threads=3, tmpdir=tmpdir, environment={"TOKEN": "secret", "TMP": "/mine"}))
    temporary = tmpdir or tempfile.gettempdir()
    assert (os.environ["TMPDIR"], os.environ["TEMP"], os.environ["TMP"]) == (temporary, temporary, "/mine")
    assert (os.environ["TOKEN"], os.environ["OMP_NUM_THREADS"]) == ("secret", "3")


@pytest.mark.parametrize(("executor", "gpus"), [("local", " GPU 0,1"), ("slurm", "")])
def test_a_place_has_the_gpus_of_a_task_only_where_this_machine_is_the_cluster(
    monkeypatch: pytest.MonkeyPatch, executor: str, gpus: str
) -> None:
    monkeypatch.setenv("SUBMITIT_HOLDS", "2:0,1")
    monkeypatch.setenv("SUBMITIT_EXECUTOR", executor)
    monkeypatch.delenv("SUBMITIT_NODE", raising=False)
    assert place() == f"{socket.gethostname()}{gpus}"


def test_a_place_has_the_cluster_s_name_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only under this name can the cluster be told to send no task there."""
    monkeypatch.delenv("SUBMITIT_HOLDS", raising=False)
    monkeypatch.setenv("SUBMITIT_NODE", "node7")
    assert place() == "node7"
