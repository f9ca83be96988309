"""Tasks on this machine: shares of cores and GPUs, and what holds when the head is another process."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from waiting import wait_for
from workflow import LOCAL, environment, project, run

from snakemake_executor_plugin_submitit.bundles import Bundle, Job
from snakemake_executor_plugin_submitit.clusters.cluster import Refused
from snakemake_executor_plugin_submitit.clusters.local import Local, birth
from snakemake_executor_plugin_submitit.resources import Request

MINUTES = 10


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")


def local(setup: tuple[str, ...] = (), cores: int = 2) -> Local:
    cluster = Local(setup, cores, 1, 5)
    cluster.cores = cores
    return cluster


def bundle(folder: Path, name: str, command: str) -> Path:
    path = folder / name
    Bundle((Job(name, "rule", "shell", command),), str(folder), latency_wait=0.1, grace=1).write(path)
    return path


def submit(cluster: Local, folder: Path, request: Request, **commands: str) -> list[str]:
    bundles = [bundle(folder, name, command) for name, command in commands.items()]
    return cluster.submit(folder / "submitit", "array", bundles, request, MINUTES)


def finish(cluster: Local, tasks: list[str], seconds: float = 30) -> None:
    wait_for(lambda: None not in cluster.states(tasks).values(), "the tasks do not end", seconds)


def test_each_task_has_gpus_of_its_own(two_gpus: None, tmp_path: Path) -> None:
    cluster = local(cores=8)
    assert cluster.room(Request(gpus=1)) == (2, 2)
    tell = "sleep 0.5; echo $CUDA_VISIBLE_DEVICES >"
    tasks = submit(cluster, tmp_path, Request(gpus=1), a=f"{tell} a.txt", b=f"{tell} b.txt")
    assert cluster.room(Request(gpus=1))[0] == 0, "both are in use"
    finish(cluster, tasks)
    assert [(tmp_path / f"{name}.txt").read_text() for name in "ab"] == ["4\n", "7\n"]
    assert cluster.room(Request(gpus=2)) == (1, 1)


@pytest.mark.parametrize(("visible", "gpus"), [("4,7", 3), ("4,4", 2), ("NoDevFiles", 1), ("", 1), (None, 1)])
def test_more_gpus_than_can_be_used_are_refused(
    monkeypatch: pytest.MonkeyPatch, visible: str | None, gpus: int
) -> None:
    """The job would run on the CPU, while nobody notices."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with pytest.raises(Refused, match=f"{gpus} GPUs are requested, but {gpus - 1} can be used here") as refused:
        local().room(Request(gpus=gpus))
    assert (repr(visible) in str(refused.value)) == (visible is not None)


@pytest.mark.parametrize(("visible", "expected"), [(None, "unset"), ("4,7", "4,7")])
def test_who_asks_for_no_gpu_sees_what_the_head_sees(
    visible: str | None, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    cluster = local()
    finish(cluster, submit(cluster, tmp_path, Request(), a="echo ${CUDA_VISIBLE_DEVICES-unset} > a.txt"))
    assert (tmp_path / "a.txt").read_text().strip() == expected


def test_a_task_runs_the_setup_lines_in_its_log_and_begins_with_the_threads_of_a_job(tmp_path: Path) -> None:
    """Libraries read the threads when the worker imports them, which is before it reads the bundle."""
    cluster = local(setup=("export PREPARED='two words'", "cd /", "echo a module is missing >&2"))
    tell = "echo $PREPARED $OMP_NUM_THREADS > a.txt; cat /proc/$PPID/environ > worker"
    finish(cluster, submit(cluster, tmp_path, Request(cpus=3), a=tell))
    assert (tmp_path / "a.txt").read_text() == "two words 1\n", "threads are the bundle's"
    assert "OMP_NUM_THREADS=3" in (tmp_path / "worker").read_text().split("\0")
    [log] = (tmp_path / "submitit").glob("*_log.out")
    assert "a module is missing" in log.read_text()


def test_another_head_can_tell_whether_a_task_runs(tmp_path: Path) -> None:
    cluster = local()
    tasks = submit(cluster, tmp_path, Request(), a="sleep 30")
    ask = (
        "import sys; from snakemake_executor_plugin_submitit.clusters.local import Local;"
        "print(Local((), 2, 1, 5).states(sys.argv[1:]))"
    )

    def states() -> str:
        return subprocess.run([sys.executable, "-c", ask, *tasks], capture_output=True, text=True, check=True).stdout

    assert states() == f"{ {tasks[0]: None} }\n"
    cluster.cancel(tasks)
    finish(cluster, tasks)
    assert states() == f"{ {tasks[0]: 'ENDED'} }\n"


def test_a_task_ends_with_submitit_s_controller(tmp_path: Path) -> None:
    cluster = local()
    tasks = submit(cluster, tmp_path, Request(), a="echo $$ > a.txt; exec sleep 30")
    number = tmp_path / "a.txt"
    wait_for(lambda: number.exists() and number.read_text(), "the job does not start")
    os.kill(int(tasks[0].split(".")[0]), signal.SIGKILL)
    finish(cluster, tasks)
    wait_for(lambda: not birth(int(number.read_text())), "the job goes on without its worker")


def test_a_number_that_another_process_has_by_now_is_not_the_task() -> None:
    assert local().states([f"{os.getpid()}.1"]) == {f"{os.getpid()}.1": "ENDED"}


def test_ctrl_c_ends_all_in_a_few_words(tmp_path: Path) -> None:
    """A terminal signals the head, submitit's controllers and the tasks alike."""
    text = 'rule all:\n    input: "a", "b"\nrule job:\n    output: "{x}"\n    shell: "echo $$ > {wildcards.x}.pid; sleep 60"'
    project(tmp_path, text)
    command = [sys.executable, "-m", "snakemake", "--nocolor", *LOCAL, "--submitit-bundle-size", "1"]
    head = subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    pids = [tmp_path / "a.pid", tmp_path / "b.pid"]
    deadline = time.time() + 60
    while not all(path.exists() and path.read_text() for path in pids) and time.time() < deadline:
        time.sleep(0.1)
    os.killpg(head.pid, signal.SIGINT)
    errors = head.communicate(timeout=60)[1]
    assert "Traceback" not in errors
    left = [path.name for path in pids if birth(int(path.read_text()))]
    assert not left, f"these go on: {left}\n{errors}"


@pytest.mark.parametrize(
    ("request_", "slots", "held", "later", "room"),
    [
        (Request(cpus=3, gpus=1), 1, (3, ["4"]), Request(gpus=1), (1, 2)),
        (Request(cpus=2, gpus=2), 1, (2, ["4", "7"]), Request(gpus=1), (0, 2)),
        (Request(cpus=2), 3, (6, []), Request(), (0, 2)),
        (Request(), 1, (1, []), Request(cpus=9), (0, 1)),
    ],
    ids=["a GPU", "both GPUs", "three jobs at a time", "a later task wants more cores than there are"],
)
def test_a_task_holds_cores_and_gpus_until_its_end_for_this_head_and_for_the_next_one(
    two_gpus: None,
    tmp_path: Path,
    request_: Request,
    slots: int,
    held: tuple[int, list[str]],
    later: Request,
    room: tuple[int, int],
) -> None:
    """Otherwise a GPU would get two trainings when a head is killed."""
    cluster, other = local(cores=8), local(cores=8)
    cluster.slots = other.slots = slots
    before = cluster.room(later)
    tasks = submit(cluster, tmp_path, request_, a="sleep 30")
    # The kernel lets a parent go on before it shows the environment of a program that begins.
    environment = Path("/proc", tasks[0].partition(".")[0], "environ")
    wait_for(lambda: bool(environment.read_bytes()), "the task has no environment")
    other.states(tasks)
    assert cluster.held == other.held == {tasks[0]: held}
    assert cluster.room(later) == other.room(later) == room
    cluster.cancel(tasks)
    finish(cluster, tasks)
    finish(other, tasks)
    assert cluster.room(later) == other.room(later) == before


def test_no_more_cores_are_used_than_the_setting_and_the_machine_allow() -> None:
    here = len(os.sched_getaffinity(0))
    assert [Local((), allowed, 1, 5).cores for allowed in (1, here, here + 1)] == [1, here, here]
    assert [local(cores=8).room(Request(cpus=cpus)) for cpus in (4, 5, 9)] == [(2, 2), (1, 1), (1, 1)]


def test_a_gpu_that_is_excluded_goes_to_no_task_that_can_do_without_it(two_gpus: None) -> None:
    cluster = local(cores=8)
    cluster.excluded = ["node GPU 4"]
    assert (cluster.usable_devices(1), cluster.usable_devices(2)) == (["7"], ["4", "7"])
    assert cluster.room(Request(gpus=1)) == cluster.room(Request(gpus=2)) == (1, 1)


def test_this_machine_can_do_without_a_gpu_as_long_as_it_has_another(two_gpus: None) -> None:
    cluster = local()
    assert cluster.can_spare("node GPU 4") and not cluster.can_spare("node GPU 4,7") and not cluster.can_spare("node")
    cluster.excluded = ["node GPU 4"]
    assert not cluster.can_spare("node GPU 7")


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.10 GiB of which 3.06 "
        "MiB is free. Process 77 has 78.6 GiB memory in use. Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is "
        "reserved by PyTorch but unallocated.",
    ],
    ids=["busy", "filled by others"],
)
def test_a_gpu_that_cannot_be_used_is_left_out_and_said(two_gpus: None, tmp_path: Path, words: str) -> None:
    (tmp_path / "error").write_text(words)
    (tmp_path / "Snakefile").write_text(
        "rule all:\n    input: expand('{n}', n=range(6))\n"
        "rule train:\n    output: '{n}'\n    resources: gpus=1\n"
        "    shell: 'echo $CUDA_VISIBLE_DEVICES >> gpus; "
        "if [ $CUDA_VISIBLE_DEVICES = 4 ]; then cat error >&2; exit 1; fi; touch {output}'\n"
    )
    ended = run(tmp_path, *LOCAL)
    assert " GPU 4 through no fault of their own" in ended.stderr
    used = (tmp_path / "gpus").read_text().split()
    assert (used.count("4"), used.count("7")) == (1, 6)


def test_an_interruption_of_the_terminal_does_not_reach_a_task(tmp_path: Path) -> None:
    """The head ends its tasks itself, and goes on receiving interruptions."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    cluster = local()
    tasks = submit(cluster, tmp_path, Request(), a="sleep 30")
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before, "the head no longer receives interruptions"
    status = Path(f"/proc/{tasks[0].partition('.')[0]}/status").read_text()
    [mask] = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigBlk:")]
    assert mask & 1 << signal.SIGINT - 1, "an interruption ends the task before the head has ended the job"
    cluster.cancel(tasks)
    finish(cluster, tasks)


def test_tasks_of_an_earlier_head_whose_submission_it_could_not_record_are_known_by_their_bundles(
    tmp_path: Path,
) -> None:
    cluster = local()
    paths = [bundle(tmp_path / "array", str(number), "sleep 30") for number in range(2)]
    tasks = cluster.submit(tmp_path / "array" / "submitit", "array", paths, Request(), MINUTES)
    # A process has no command line for a moment while it starts.
    by_bundle = dict(enumerate(tasks))
    folder = tmp_path / "array" / "submitit"
    wait_for(lambda: cluster.stray(folder, "array") == by_bundle, "the tasks are not known", 10)
    cluster.cancel(tasks[:1])
    finish(cluster, tasks[:1])
    assert local().stray(folder, "array") == {1: tasks[1]}
    cluster.cancel(tasks)
    finish(cluster, tasks)


def test_a_project_may_have_the_name_of_a_pattern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """submitit puts the number of a task in the place of %j, also in the name of a folder."""
    folder = tmp_path / "100%done 5%j %A%t"
    folder.mkdir()
    monkeypatch.chdir(folder)
    cluster = local()
    command = "echo hello > one.txt; until [ -e go ]; do sleep 0.1; done"
    [task] = submit(cluster, folder, Request(), **{"0": command})
    wait_for(lambda: cluster.stray(folder / "submitit", "array") == {0: task}, "the task is not known", 10)
    (folder / "go").touch()
    finish(cluster, [task])
    assert (folder / "one.txt").read_text() == "hello\n"
    assert list(tmp_path.iterdir()) == [folder]


def test_to_cancel_a_task_that_is_over_is_no_error(tmp_path: Path) -> None:
    cluster = local()
    tasks = submit(cluster, tmp_path, Request(), a="true")
    finish(cluster, tasks)
    cluster.cancel([*tasks, "4194305.1"])
