"""What jobs have used of what they requested."""

import csv
from pathlib import Path
from typing import Any

import pytest
from workflow import LOCAL, run

from snakemake_executor_plugin_submitit.bundles import Status
from snakemake_executor_plugin_submitit.efficiency import Efficiency
from snakemake_executor_plugin_submitit.resources import Request


def ended(seconds: float, state: Any = "done", **used: Any) -> Status:
    return Status(state, 100.0, "host", ended=100.0 + seconds, **used)


def rows(path: Path) -> dict[str, dict[str, str]]:
    with path.open(newline="") as file:
        return {row["rule"]: row for row in csv.DictReader(file)}


def test_a_rule_has_the_use_of_all_its_jobs(tmp_path: Path) -> None:
    efficiency, request = Efficiency(), Request(cpus=2, minutes=30, mem_mb=4000)
    efficiency.note("train", request, ended(10, cpu_seconds=15.0, memory_mb=900.0))
    efficiency.note("train", request, ended(30, "failed", cpu_seconds=5.0, memory_mb=1200.0))
    efficiency.note("plot", Request(), ended(1, cpu_seconds=0.5, memory_mb=10.0))
    efficiency.write(tmp_path / "new" / "use.csv")
    table = rows(tmp_path / "new" / "use.csv")
    assert table.keys() == {"train", "plot"}
    assert table["train"] == {
        "rule": "train",
        "jobs": "2",
        "failed": "1",
        "mean_seconds": "20.0",
        "longest_seconds": "30.0",
        "runtime_minutes": "30",
        "cores": "2",
        # 20 s of 2 x 40 s.
        "used_share_of_cores": "0.25",
        "largest_memory_mb": "1200",
        "mem_mb": "4000",
    }


def test_what_is_not_known_is_left_empty_and_counts_for_nothing(tmp_path: Path) -> None:
    """A worker that was killed has measured nothing."""
    efficiency = Efficiency()
    efficiency.note("a", Request(), ended(10))
    efficiency.note("b", Request(), ended(10, cpu_seconds=5.0, memory_mb=1.0))
    efficiency.note("b", Request(), ended(90))
    efficiency.note("c", Request(), Status("failed", 100.0, "host"))
    efficiency.write(tmp_path / "use.csv")
    table = rows(tmp_path / "use.csv")
    assert (table["a"]["used_share_of_cores"], table["a"]["largest_memory_mb"], table["a"]["mem_mb"]) == ("", "", "")
    assert table["b"]["used_share_of_cores"] == "0.50"
    assert "c" not in table


def test_memory_of_each_core_is_memory_of_the_job(tmp_path: Path) -> None:
    efficiency = Efficiency()
    efficiency.note("a", Request(cpus=4, mem_mb_per_cpu=500), ended(1))
    efficiency.write(tmp_path / "use.csv")
    assert rows(tmp_path / "use.csv")["a"]["mem_mb"] == "2000"


@pytest.mark.slow
@pytest.mark.parametrize("fails", [False, True])
def test_a_run_writes_what_its_jobs_have_used_however_it_ends(tmp_path: Path, fails: bool) -> None:
    (tmp_path / "Snakefile").write_text(
        "rule all:\n    input: 'busy', 'idle'\n"
        "rule busy:\n    output: 'busy'\n    shell: \"python3 -c 'import time\\nx = bytearray(10**8)\\nwhile time.process_time() < 1: pass'; "
        f'{"exit 3" if fails else "touch busy"}"\n'
        "rule idle:\n    output: 'idle'\n    shell: 'sleep 1; touch idle'\n"
    )
    run(tmp_path, *LOCAL, "--keep-going", "--submitit-efficiency-report", "use.csv", check=not fails)
    table = rows(tmp_path / "use.csv")
    # A busy machine gives a job only a share of a core, so the seconds of the processor are compared, for which the job itself waits.
    used = {rule: float(row["used_share_of_cores"]) * float(row["longest_seconds"]) for rule, row in table.items()}
    assert used["busy"] > 0.9 > used["idle"]
    assert float(table["busy"]["largest_memory_mb"]) > 100
    assert table["busy"]["failed"] == str(int(fails))
