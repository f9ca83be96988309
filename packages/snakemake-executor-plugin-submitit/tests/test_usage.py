"""What jobs have requested and used, a line for each."""

import json
from pathlib import Path
from typing import Any

import pytest
from workflow import LOCAL, run

from snakemake_executor_plugin_submitit.bundles import Job, Status
from snakemake_executor_plugin_submitit.resources import Request
from snakemake_executor_plugin_submitit.usage import usage


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "usage.jsonl").read_text().splitlines()]


def job(rule: str) -> Job:
    return Job(key="", rule=rule, kind="shell", command="", outputs=(f"{rule}.txt", "other.txt"))


def test_a_line_has_what_a_job_requested_and_used() -> None:
    request = Request(cpus=2, minutes=30, mem_mb=4000, gpus=1)
    status = Status("done", 100.0, "host", ended=110.0, cpu_seconds=15.0, memory_mb=900.0)
    assert usage(job("train"), request, status) == {
        **{"rule": "train", "output": "train.txt", "state": "done", "cause": None, "time": 110.0, "requeues": 0},
        **{"seconds": 10.0, "runtime": 30, "memory_mb": 900.0, "mem_mb": 4000, "cpu_seconds": 15.0},
        **{"cpus": 2, "gpus": 1},
    }


def test_what_is_not_known_is_null() -> None:
    """A worker that was killed has measured nothing, and one machine limits nothing."""
    line = usage(job("a"), Request(), Status("failed", 100.0, "host", cause="out of memory"))
    assert {name for name, value in line.items() if value is None} == {
        *("seconds", "memory_mb", "cpu_seconds", "mem_mb", "runtime")
    }
    assert line["cause"] == "out of memory"


def test_memory_of_each_core_is_memory_of_the_job() -> None:
    request = Request(cpus=4, mem_mb_per_cpu=500)
    assert usage(job("a"), request, Status("done", 100.0, "host", ended=101.0))["mem_mb"] == 2000


@pytest.mark.slow
@pytest.mark.parametrize("fails", [False, True])
def test_a_run_writes_what_its_jobs_have_used_however_it_ends(tmp_path: Path, fails: bool) -> None:
    (tmp_path / "Snakefile").write_text(
        "rule all:\n    input: 'busy', 'idle'\n"
        "rule busy:\n    output: 'busy'\n    shell: \"python3 -c 'import time\\nx = bytearray(10**8)\\nwhile time.process_time() < 1: pass'; "
        f'{"exit 3" if fails else "touch busy"}"\n'
        "rule idle:\n    output: 'idle'\n    shell: 'sleep 1; touch idle'\n"
    )
    run(tmp_path, *LOCAL, "--keep-going", check=not fails)
    used = {line["output"]: line for line in lines(tmp_path / ".snakemake" / "submitit")}
    assert used["busy"]["cpu_seconds"] > 0.9 > used["idle"]["cpu_seconds"]
    assert used["busy"]["memory_mb"] > 100
    assert used["idle"]["seconds"] >= 1
    assert (used["busy"]["cause"] is not None) == fails
