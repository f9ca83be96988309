"""The executor on a real Slurm, with the real Snakemake: whole grids, and all that clusters do to tasks."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from grid import Grid, slurm, wait, wrapper
from workflow import environment

from snakemake_executor_plugin_submitit.bundles import Bundle, Job, read_statuses

pytestmark = pytest.mark.slow
# A job that goes on once the test says so.
GATE = "until [ -e go ]; do sleep 0.1; done"


def names(count: int) -> set[str]:
    return {str(job) for job in range(count)}


def once(count: int) -> dict[str, int]:
    return dict.fromkeys(names(count), 1)


def test_a_grid_of_200_jobs_runs_each_once_in_few_tasks(grid: Grid) -> None:
    grid.write(200, local=False)
    assert grid.run() == 0, grid.report()
    assert (grid.folder / "all.txt").read_text().split() == [str(job) for job in range(200)]
    assert grid.starts() == once(200), "a job was started more than once, or never"
    assert len(grid.history()) <= 3, f"201 jobs took many array tasks: {grid.history()}"
    assert not [path for path in grid.ledger.iterdir() if path.is_dir()], (
        "the ledger still has bundles after all has ended well"
    )
    assert not grid.tasks(), "tasks are still in the queue"


# Failures of jobs.


def test_failing_jobs_cost_only_themselves_and_are_rerun_after_the_repair(grid: Grid) -> None:
    bad = {"4", "9"}
    grid.write(10, "if [ -e broken ]; then case {wildcards.job} in 4|9) echo no such model >> {log}; exit 3; esac; fi")
    grid.open("broken")
    assert grid.run("--keep-going") != 0, "Snakemake hides that jobs failed"
    assert grid.outputs() == names(10) - bad, grid.report()
    output, task = " ".join(grid.said().split()), next(iter(grid.history()))
    assert output.count("exception: exit code 3") == 2, f"the cause is not reported: {output}"
    assert "logs/4.txt: no such model" in output, f"the end of the log is not reported: {output}"
    assert f"external_jobid: {task}" in output, f"the task {task} of the failed jobs is not reported: {output}"
    lines = (grid.ledger / "failures.jsonl").read_text().splitlines()
    assert {path for line in lines for path in json.loads(line)["outputs"]} == {f"out/{job}.txt" for job in bad}

    (grid.folder / "broken").unlink()
    assert grid.run() == 0, grid.report()
    assert grid.outputs() == names(10)
    assert grid.starts() == once(10) | dict.fromkeys(bad, 2), "the second run should do the failed jobs alone"


@pytest.fixture
def worker(grid: Grid) -> Grid:
    """Five jobs in one task, of which the third waits, and tells the worker's process id."""
    waits = (
        "if [ {wildcards.job} = 2 ]; then echo $PPID > part; mv part worker; until [ -e go ]; do sleep 0.1; done; fi"
    )
    grid.write(5, waits)
    return grid


def kill_worker(grid: Grid) -> None:
    wait("the third job runs", (grid.folder / "worker").exists, report=grid.report)
    os.kill(int((grid.folder / "worker").read_text()), signal.SIGKILL)


def test_sigkill_of_a_worker_fails_the_job_that_ran_and_no_other(worker: Grid) -> None:
    head = worker.start("--keep-going")
    kill_worker(worker)
    assert worker.end(head) != 0, "Snakemake hides that a job's worker was killed"
    assert worker.outputs() == names(5) - {"2"}, worker.report()
    assert worker.starts() == once(5), "jobs of the bundle were started again"
    assert "killed: its worker died (FAILED)" in worker.said(), f"the cause is not reported: {worker.said()}"


def test_sigkill_of_a_worker_with_retries_runs_its_job_again(worker: Grid) -> None:
    head = worker.start("--retries", "1")
    kill_worker(worker)
    worker.open()
    assert worker.end(head) == 0, worker.report()
    assert worker.outputs() == names(5), worker.report()
    assert worker.starts() == once(5) | {"2": 2}, "the others of the bundle were started again"


@pytest.mark.parametrize("bundle", [1, 4], ids=["array", "task"])
def test_a_project_may_have_the_name_of_a_pattern(slurm: None, tmp_path: Path, bundle: int) -> None:
    """Slurm and submitit replace %j and others in the paths of logs."""
    grid = Grid(tmp_path / "5%j 100%done %A%%a")
    grid.folder.mkdir()
    grid.write(2, resources=f"bundle={bundle}")
    try:
        assert grid.run() == 0, grid.report()
        assert grid.outputs() == names(2)
        assert [*tmp_path.iterdir()] == [grid.folder]
    finally:
        grid.stop()


# The head goes.


@pytest.fixture
def killed(grid: Grid) -> Grid:
    """A grid of six one-job tasks, two running and four queued, whose head was killed."""
    grid.write(6, GATE, "bundle=1")
    head = grid.start()
    wait("two jobs run and four are queued", lambda: len(grid.starts()) == 2, report=grid.report)
    grid.kill(head)
    return grid


def test_a_killed_head_is_replaced_while_jobs_run(killed: Grid) -> None:
    head = killed.start()
    wait(
        "the new head finds the old tasks", lambda: "an earlier run left 6 tasks" in killed.said(), report=killed.report
    )
    killed.open()
    assert killed.end(head) == 0, killed.report()
    assert killed.outputs() == names(6)
    assert killed.starts() == once(6), f"jobs were computed twice; {killed.report()}"
    assert not killed.tasks(), "tasks are still in the queue"


def test_a_killed_head_is_replaced_after_all_has_ended(killed: Grid) -> None:
    killed.open()
    wait("the tasks end by themselves", lambda: not killed.tasks(), report=killed.report)
    assert killed.run() == 0, killed.report()
    assert killed.outputs() == names(6)
    assert killed.starts() == once(6), f"jobs were computed twice; {killed.report()}"


def test_a_head_killed_while_it_submits_loses_and_doubles_nothing(grid: Grid) -> None:
    grid.write(4, "sleep 1", "bundle=1")
    env = wrapper(grid, "sbatch", f'{shutil.which("sbatch")} "$@" > answer; kill -KILL $PPID; exit 1')
    grid.run(env=env)
    grid.unlock()
    assert grid.run() == 0, grid.report()
    assert grid.starts() == once(4), grid.report()
    assert not grid.tasks(), "tasks are still in the queue"


def test_ctrl_c_empties_the_queue_and_keeps_what_is_done(grid: Grid) -> None:
    # The first two end by themselves.
    grid.write(8, f"[ $(wc -l < starts.log) -le 2 ] || {GATE}", "bundle=1")
    head = grid.start()
    wait("two jobs are done and two run", lambda: len(grid.starts()) == 4, report=grid.report)
    outputs = grid.outputs()
    head.send_signal(signal.SIGINT)
    assert grid.end(head, 30) != 0
    wait("the queue is empty", lambda: not grid.tasks(), 5, report=grid.report)
    assert len(outputs) == 2 and grid.outputs() == outputs, grid.report()
    grid.open()
    before = grid.starts()
    assert grid.run() == 0, grid.report()
    assert grid.outputs() == names(8)
    assert set(grid.starts() - before) == names(8) - outputs, "the second run should do the rest alone"


# Events in Slurm, and commands of Slurm that a person gives.


def bundles(grid: Grid) -> dict[str, set[str]]:
    """The jobs of each array task."""
    jobs_of = {}
    for chunk in grid.ledger.glob("*/"):
        tasks = json.loads((chunk / "array.json").read_text())["tasks"]
        for number, task in enumerate(tasks):
            jobs = json.loads((chunk / str(number) / "bundle.json").read_text())["jobs"]
            jobs_of[task] = {Path(job["outputs"][0]).stem for job in jobs}
    return jobs_of


@pytest.mark.parametrize(("state", "accounting"), [("RUNNING", "on"), ("PENDING", "on"), ("PENDING", "off")])
def test_scancel_of_a_task_fails_its_jobs_as_cancelled(grid: Grid, state: str, accounting: str) -> None:
    grid.write(8, GATE, "bundle=2")
    head = grid.start("--keep-going", env=wrapper(grid, "sacct", "exit 1") if accounting == "off" else {})
    wait("two tasks run", lambda: len(grid.starts()) == 2, report=grid.report)
    task = min(task for task, current in grid.tasks().items() if current == state)
    lost = bundles(grid)[task]
    slurm("scancel", task)
    # A job that still runs when the gate opens would end well.
    wait("the cancelled task has ended", lambda: task not in grid.tasks(), report=grid.report)
    grid.open()
    assert grid.end(head) != 0, "Snakemake hides that a task was cancelled"
    assert grid.outputs() == names(8) - lost, grid.report()
    assert grid.said().count("cancelled: ") == 2, f"the two jobs are not reported as cancelled: {grid.said()}"


def test_a_node_that_goes_down_and_comes_back_costs_no_finished_job(grid: Grid) -> None:
    # The first job of each of the two tasks ends by itself.
    grid.write(4, f"mkdir task-$SLURM_ARRAY_TASK_ID 2> {{log}} || {GATE}", "bundle=2")
    head = grid.start()
    wait("each task is at its second job", lambda: len(grid.starts()) == 4, report=grid.report)
    outputs, lost = grid.outputs(), grid.processes()
    node = slurm("sinfo", "--noheader", "--format=%n").strip()
    slurm("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
    try:
        wait("the tasks leave the node", lambda: set(grid.tasks().values()) == {"PENDING"}, report=grid.report)
    finally:
        slurm("scontrol", "update", f"nodename={node}", "state=resume")
    # A job of before that still runs when the gate opens would end well.
    wait("the processes of before have ended", lambda: not lost & grid.processes(), report=grid.report)
    grid.open()
    assert grid.end(head) == 0, grid.report()
    assert grid.outputs() == names(4)
    assert len(outputs) == 2 and {job for job, times in grid.starts().items() if times == 1} == outputs, grid.report()


def test_slurmdbd_may_stop(worker: Grid) -> None:
    head = worker.start("--retries", "1")
    wait("the third job runs", (worker.folder / "worker").exists, report=worker.report)
    cluster, folder = Path(__file__).with_name("cluster.sh"), Path(os.environ["SLURM_CONF"]).parent
    slurm(str(cluster), "stop-accounting", str(folder))
    try:
        kill_worker(worker)
        worker.open()
        code = worker.end(head)
    finally:
        slurm(str(cluster), "start-accounting", str(folder))
    assert code == 0, worker.report()
    assert worker.outputs() == names(5), worker.report()
    assert worker.starts() == once(5) | {"2": 2}, worker.report()


@pytest.mark.parametrize("command", ["sbatch", "squeue"])
def test_a_controller_that_does_not_answer_is_asked_again(grid: Grid, command: str) -> None:
    grid.write(4)
    fails = "if [ $n -lt 2 ]; then echo error: Socket timed out on send/recv operation >&2; exit 1; fi"
    env = wrapper(grid, command, fails)
    assert grid.run(env=env) == 0, grid.report()
    assert grid.starts() == once(4), grid.report()
    assert len((grid.folder / "bin" / f"{command}.log").read_text().splitlines()) > 2, "it was never asked again"


def test_a_lost_answer_of_sbatch_runs_nothing_twice(grid: Grid) -> None:
    grid.write(4, "sleep 1", "bundle=1")
    env = wrapper(grid, "sbatch", f'if [ $n = 0 ]; then {shutil.which("sbatch")} "$@" > answer; exit 1; fi')
    assert grid.run(env=env) == 0, grid.report()
    assert grid.starts() == once(4), grid.report()
    assert (grid.folder / "answer").read_text().strip().isdigit(), "no job was lost"
    assert not grid.tasks(), "tasks are still in the queue"


# Time limits.

# Sums up numbers, one per 0.25 s; on SIGUSR2 it writes what it has so far, from which the next attempt goes on.
RESUMABLE = """\
import json, signal, sys, time
from pathlib import Path

state, (count, halt) = Path("state.json"), map(int, sys.argv[1:])
number, total = json.loads(state.read_text()) if state.exists() else (0, 0)
first = not state.exists()


def save(*_):
    state.write_text(json.dumps([number, total]))
    sys.exit(75)


signal.signal(signal.SIGUSR2, save)
while number < count:
    if first and number == halt:
        Path("halted").touch()
        signal.pause()
    time.sleep(0.25)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    number, total = number + 1, (total * 31 + number) % 1_000_003
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR2})
Path("total.txt").write_text(str(total))
"""


def total(count: int) -> str:
    """Return the state that the job above computes."""
    result = 0
    for number in range(count):
        result = (result * 31 + number) % 1_000_003
    return str(result)


def test_a_signal_before_the_end_requeues_a_job_that_goes_on(grid: Grid) -> None:
    grid.write(1, "python work.py 10 5")
    (grid.folder / "work.py").write_text(RESUMABLE)
    head = grid.start()
    wait("the job is half done", (grid.folder / "halted").exists, report=grid.report)
    slurm("scancel", "--batch", "--signal=USR2", *grid.tasks())
    assert grid.end(head) == 0, grid.report()
    assert (grid.folder / "total.txt").read_text() == total(10), "the result is not that of an uninterrupted run"
    assert grid.starts() == {"0": 2}, grid.report()


@pytest.mark.thorough
def test_a_job_has_the_whole_of_its_runtime(grid: Grid) -> None:
    """Slurm sends its signal 90 s, the grace, before the time limit, and up to a minute earlier."""
    grid.write(1, "sleep 25", "runtime=1")
    assert grid.run() == 0, grid.report()
    assert grid.starts() == once(1), grid.report()


@pytest.fixture
def short() -> Iterator[str]:
    """A partition whose tasks end after a minute, so that they have no time beyond that of their job."""
    name = f"short{os.getpid()}"
    slurm("scontrol", "create", f"PartitionName={name}", "Nodes=ALL", "MaxTime=1")
    yield name
    with contextlib.suppress(AssertionError):
        slurm("scontrol", "delete", f"PartitionName={name}")


def test_a_job_longer_than_its_time_limit_ends_through_requeues(grid: Grid, short: str) -> None:
    """Slow: Slurm has no limit shorter than a minute, and holds requeued tasks for some seconds."""
    grid.write(1, "python work.py 248 -1", f"runtime=1, slurm_partition='{short}'")
    (grid.folder / "work.py").write_text(RESUMABLE)
    code = grid.run("--submitit-grace", "30", "--submitit-max-requeues", "20", timeout=150)
    assert code == 0, grid.report()
    assert (grid.folder / "total.txt").read_text() == total(248), "the result is not that of an uninterrupted run"
    assert grid.starts()["0"] > 1, "the limit never cut the job short"


def has_started(grid: Grid, times: int) -> bool:
    return grid.starts()["0"] == times


def test_too_many_requeues_are_a_timeout(grid: Grid, short: str) -> None:
    grid.write(1, "trap 'exit 75' USR2; while :; do sleep 0.1; done", f"runtime=1, slurm_partition='{short}'")
    head = grid.start("--submitit-max-requeues", "1", "--submitit-grace", "30")
    for starts in (1, 2):
        wait("the job runs", partial(has_started, grid, starts), report=grid.report)
        slurm("scancel", "--batch", "--signal=USR2", *grid.tasks())
    assert grid.end(head) != 0, "Snakemake hides that the job never ended"
    assert "timeout: the task reached its time limit 2 times" in grid.said(), (
        f"the cause is not reported: {grid.said()}"
    )
    assert not grid.tasks(), "the task is still in the queue"


def test_a_job_that_hangs_in_a_bundle_is_stopped_and_the_rest_goes_on(tmp_path: Path) -> None:
    """Without Slurm, since a rule's limit is at least a minute."""
    commands = ["echo 0 > 0.txt", "sleep 60", "echo 2 > 2.txt"]
    jobs = tuple(
        Job(str(number), "job", "shell", command, outputs=(f"{number}.txt",), limit=1)
        for number, command in enumerate(commands)
    )
    Bundle(jobs, str(tmp_path), max_requeues=0).write(tmp_path / "bundle")
    command = [sys.executable, "-m", "snakemake_executor_plugin_submitit", "run", str(tmp_path / "bundle")]
    subprocess.run(command, env=environment(), check=True, capture_output=True, timeout=20)
    statuses = {number: status for number, status, _ in read_statuses(tmp_path / "bundle")}
    assert [statuses[number].state for number in range(3)] == ["done", "failed", "done"], statuses
    assert statuses[1].cause == "timeout", statuses[1]


# Resources and settings of a run.


def test_few_jobs_at_a_time_do_not_deadlock(grid: Grid) -> None:
    grid.write(30)
    assert grid.run("--jobs", "10") == 0, grid.report()
    assert grid.starts() == once(30), grid.report()


def test_two_tasks_at_a_time_see_different_gpus(grid: Grid) -> None:
    both = "until [ $(wc -l < starts.log) = 2 ]; do sleep 0.1; done"
    grid.write(2, f"echo $CUDA_VISIBLE_DEVICES > gpu-{{wildcards.job}}; {both}", "gpus=1, bundle=1")
    assert grid.run() == 0, grid.report()
    assert {(grid.folder / f"gpu-{job}").read_text() for job in (0, 1)} == {"0\n", "1\n"}


def test_an_unknown_resource_is_named_with_its_nearest(grid: Grid) -> None:
    grid.write(1, resources="slurm_partitoin='gpu'")
    assert grid.run() != 0, "an unknown resource was accepted"
    assert "unknown resource 'slurm_partitoin' of rule job, did you mean 'slurm_partition'?" in grid.said(), grid.said()
    assert "cpus_per_task, mem_mb" in grid.said(), f"the known resources are not listed: {grid.said()}"


def test_a_wrong_partition_ends_the_run_with_the_words_of_sbatch(grid: Grid) -> None:
    grid.write(3, resources="slurm_partition='gpus', bundle=1")
    assert grid.run() != 0, "a wrong partition was accepted"
    assert "invalid partition specified: gpus" in grid.said(), f"the words of sbatch are missing: {grid.said()}"


def test_more_than_any_node_has_is_refused_with_the_words_of_sbatch(grid: Grid) -> None:
    grid.write(1, resources="gpus=9")
    assert grid.run() != 0, "nine GPUs were found"
    assert "refused by the cluster: sbatch" in grid.said() and "node configuration" in grid.said(), grid.said()
    assert "trying again" not in grid.said(), "it was submitted again"


def test_a_job_that_slurm_will_never_start_is_reported_with_the_reason(grid: Grid) -> None:
    grid.write(1, resources="cpus_per_task=99")
    grid.start()
    wait("the reason is reported", lambda: "waits in the queue: PartitionConfig" in grid.said(), 30, grid.report)


def test_setup_lines_that_fail_are_shown(grid: Grid) -> None:
    grid.write(2)
    assert grid.run("--submitit-setup", "echo no module named cuda; exit 3", "--submitit-max-requeues", "1") != 0
    assert "no module named cuda" in grid.said(), f"what the task said is missing: {grid.said()}"
    assert len(grid.history()) <= 2, f"more tasks than --submitit-max-requeues allows: {grid.history()}"


def test_the_head_may_run_in_a_job(grid: Grid) -> None:
    grid.write(4)
    job = grid.submit_head("--mem=500")
    wait("the head ends", lambda: job not in grid.tasks(), 60, report=grid.report)
    assert grid.starts() == once(4), grid.report()
    assert list(grid.history().values()) == 2 * ["COMPLETED"], f"the head, and the jobs in a task: {grid.report()}"


def test_a_disk_that_is_full_for_seconds_fails_no_job(grid: Grid) -> None:
    """The cluster has no other node, so that nothing can go on elsewhere."""
    (grid.folder / "full").touch()
    grid.write(8, command="if test -e full; then echo x > /dev/full; fi")
    head = grid.start("--submitit-bundle-size", "2")
    wait("a failure is noticed", lambda: "through no fault of their own" in grid.said(), report=grid.report)
    (grid.folder / "full").unlink()
    assert grid.end(head) == 0, grid.report()
    assert len(grid.outputs()) == 8
    assert not (grid.ledger / "failures.jsonl").exists()
