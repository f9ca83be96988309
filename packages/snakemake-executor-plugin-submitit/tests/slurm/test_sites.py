"""Sites whose habits differ, on a real Slurm with scripts before its commands: no job is lost, doubled or wrong, and no head hangs."""

import signal
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from grid import Grid, slurm, wait, wrapper

pytestmark = pytest.mark.slow
# Longer than the head needs to ask the cluster twice.
SECONDS = 14


class Site(NamedTuple):
    """The options of Snakemake and the variables of the environment at a site."""

    options: tuple[str, ...] = ()
    environment: dict[str, str] = {}


@pytest.fixture
def mine() -> Iterator[str]:
    """A job of the user that has nothing to do with the grid."""
    options = ["--parsable", "--job-name=mine", "--output=/dev/null", "--cpus-per-task=1", "--mem=10", "--time=5"]
    job = slurm("sbatch", *options, "--hold", "--wrap", "sleep 300").strip()
    yield job
    slurm("scancel", job)


def two_clusters(grid: Grid, mine: str) -> Site:
    """The cluster behind `--clusters=test` is not the one that commands speak to without the option."""
    unknown = "echo slurm_load_jobs error: Invalid job id specified >&2; exit 1"
    refusal = "grep -q '^#SBATCH --clusters=test$' ${!#} || { echo error: invalid partition specified >&2; exit 1; }"
    elsewhere = {
        "sbatch": refusal,
        **{
            name: f'[[ " $* " == *" --clusters=test "* ]] || {{ {then}; }}'
            for name, then in (("squeue", "exit 0"), ("sacct", "exit 0"), ("scontrol", unknown), ("scancel", unknown))
        },
    }
    variables = [wrapper(grid, name, before) for name, before in elsewhere.items()]
    return Site(("--submitit-clusters", "test"), variables[0])


def bare_numbers(grid: Grid, mine: str) -> Site:
    return Site((), wrapper(grid, "sbatch", "$real \"$@\" | grep -oE '[0-9]+'; exit ${PIPESTATUS[0]}"))


def banner_before(grid: Grid, mine: str) -> Site:
    return Site((), wrapper(grid, "sbatch", f"echo Budget of job {mine} checked; echo {mine}"))


def banner_after(grid: Grid, mine: str) -> Site:
    return Site(
        (), wrapper(grid, "sbatch", f'$real "$@" || exit; echo Budget of job {mine} checked; echo {mine}; exit')
    )


def filters(grid: Grid, mine: str) -> Site:
    squeue = {"PARTITION": "other", "ACCOUNT": "other", "NAMES": "other", "STATES": "COMPLETED", "FORMAT": "%i"}
    sbatch = {"PARTITION": "other", "TIMELIMIT": "0", "ARRAY_INX": "0", "WAIT": "1", "JOB_NAME": "other"}
    return Site(
        ("--submitit-partition", "gpu"),
        {
            **{f"SQUEUE_{name}": value for name, value in squeue.items()},
            **{f"SBATCH_{name}": value for name, value in sbatch.items()},
            **{"SACCT_FORMAT": "jobid", "SCANCEL_STATE": "PENDING", "SCANCEL_NAME": "other"},
        },
    )


def blind_squeue(grid: Grid, mine: str) -> Site:
    return Site((), wrapper(grid, "squeue", "exit 0"))


def profile(grid: Grid, mine: str) -> Site:
    (grid.folder / "profile").mkdir()
    text = "retries: 1\nset-resources: [job:runtime=6]\nsubmitit-bundle-seconds: 60\n"
    (grid.folder / "profile" / "config.yaml").write_text(text)
    return Site((), {"SNAKEMAKE_PROFILE": str(grid.folder / "profile")})


def other_folder(grid: Grid, mine: str) -> Site:
    return Site(("--submitit-folder", str(grid.folder / "an other" / "ledger")))


SITES = [two_clusters, bare_numbers, banner_before, banner_after, filters, blind_squeue, profile, other_folder]
sites = pytest.mark.parametrize("site", SITES, ids=lambda site: site.__name__)


@sites
def test_each_job_runs_once_at_each_site(grid: Grid, mine: str, site: Callable[[Grid, str], Site]) -> None:
    grid.write(2, f"sleep {SECONDS}", "bundle=1")
    options, variables = site(grid, mine)
    assert grid.run("--retries", "1", *options, env=variables) == 0, grid.report()
    assert grid.starts() == {"0": 1, "1": 1}, grid.report()
    assert (grid.folder / "all.txt").read_text() == "0\n1\n"
    assert not grid.tasks(), "tasks are still in the queue"
    assert mine in slurm("squeue", "--noheader", "--format=%i").split(), "a foreign job was cancelled"
    assert len(grid.history()) == 2, f"other tasks were queued: {grid.history()}"


@sites
def test_ctrl_c_cancels_the_tasks_of_the_grid_and_nothing_else_at_each_site(
    grid: Grid, mine: str, site: Callable[[Grid, str], Site]
) -> None:
    # In one task, since the number of a task without an array is that of a job.
    grid.write(2, "sleep 120")
    options, variables = site(grid, mine)
    head = grid.start(*options, env=variables)
    wait("a job runs", lambda: len(grid.starts()) > 0, report=grid.report)
    head.send_signal(signal.SIGINT)
    assert grid.end(head, 60) != 0
    wait("the tasks are cancelled", lambda: not grid.tasks(), report=grid.report)
    assert mine in slurm("squeue", "--noheader", "--format=%i").split(), "a foreign job was cancelled"


def test_a_head_in_a_small_job_submits_larger_tasks(grid: Grid) -> None:
    """sbatch would pass the limits of the head's own job on to the tasks."""
    told = "echo $SLURM_MEM_PER_NODE ${{SLURM_MEM_PER_CPU-}} > memory-{wildcards.job}"
    grid.write(2, f"{told}; sleep {SECONDS}", "bundle=1, mem_mb=700")
    options = ("--ntasks=1", "--cpus-per-task=1", "--mem-per-cpu=500")
    job = grid.submit_head(*options, arguments=["--retries", "1"])
    wait("the head ends", lambda: job not in grid.tasks(), 120, report=grid.report)
    assert grid.starts() == {"0": 1, "1": 1}, grid.report()
    assert [(grid.folder / f"memory-{number}").read_text() for number in range(2)] == ["700\n", "700\n"]
    assert (grid.folder / "all.txt").read_text() == "0\n1\n"
