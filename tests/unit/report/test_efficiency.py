"""What jobs have used of what they requested comes from the executor's ledger or Snakemake's benchmarks, and leads to a request for next
time."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from status_fixture import RUN, STUDY, write
from typer.testing import CliRunner

from xlgrid.cli.app import app
from xlgrid.plan.load import load_plan
from xlgrid.report import ledger
from xlgrid.report.efficiency import NUMBERS, advice, read, tables, unused

pytestmark = pytest.mark.usefixtures("tiny_project")

MEASURED = {"seconds": 90.0, "memory_mb": 2000.0, "cpu_seconds": 45.0, "cause": None}
REQUESTED = {"mem_mb": 8000, "runtime": 60, "cpus": 2, "gpus": 1, "requeues": 0}
BENCHMARK = "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time\n"


def record(**entries: Any) -> None:
    line = {"rule": "train", "output": RUN.path, "state": "done", **MEASURED, **REQUESTED, **entries}
    path = ledger.FOLDER / "usage.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


def uses() -> list[dict[str, Any]]:
    """The rows of `read`, without what is not known."""
    rows = read(load_plan("tiny"), ledger.FOLDER).to_dict("records")
    return [{str(name): value for name, value in row.items() if not pd.isna(value)} for row in rows]


def job(output: str = "a", cause: str = "", **numbers: float) -> dict[str, Any]:
    return {"rule": "train", "output": output, "cause": cause, **dict.fromkeys(NUMBERS, np.nan), **numbers}


def ask() -> str:
    result = CliRunner().invoke(app, ["efficiency", "tiny"], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def rows(*jobs: dict[str, Any]) -> list[list[str]]:
    """The row of memory and the row of time, without the rule."""
    return [[next(iter(column.cells)) for column in table.columns][1:] for table in tables(pd.DataFrame(jobs))]  # type: ignore[misc]


def test_the_ledger_has_what_a_job_requested_and_used() -> None:
    record()
    assert uses() == [{"rule": "train", "output": RUN.path, **MEASURED, **REQUESTED, "cause": ""}]


def test_each_attempt_counts_and_jobs_of_other_studies_do_not() -> None:
    record(cause="out of memory", state="failed", memory_mb=None, seconds=None)
    record()
    record(output="results/tiny-2/runs/x")
    assert [use["cause"] for use in uses()] == ["out of memory", ""]


def test_a_job_that_was_requeued_has_no_time() -> None:
    """The time of the attempts before the last one is not known: a node may be lost after a minute."""
    record(requeues=2)
    [use] = uses()
    assert use["memory_mb"] == 2000 and not use.keys() & {"seconds", "cpu_seconds"}
    assert "runtime" not in advice(read(load_plan("tiny"), ledger.FOLDER))
    assert "1 jobs were requeued" in ask()


def test_a_line_that_is_only_half_written_is_left_out() -> None:
    record()
    with (ledger.FOLDER / "usage.jsonl").open("a") as file:
        file.write('{"rule": "tra')
    assert len(uses()) == 1


def test_benchmarks_tell_the_use_of_jobs_that_the_ledger_does_not_have() -> None:
    record()
    folder = "results/tiny/benchmarks/runs/ner/tiny/full-ft"
    for source in ("qa1", "qa2"):
        write(f"{folder}/{source}/seed1.tsv", f"{BENCHMARK}4.50\t0:00:04\t426.25\t1\t1\t1\t1\t1\t1\t4.25\n")
    train = {use["output"].split("/")[6]: use for use in uses() if use["rule"] == "train"}
    assert train.keys() == {"qa1", "qa2"} and train["qa1"]["mem_mb"] == 8000
    assert {name: train["qa2"].get(name) for name in (*MEASURED, "mem_mb")} == {
        **{"seconds": 4.5, "memory_mb": 426.25, "cpu_seconds": 4.25, "cause": "", "mem_mb": None}
    }


def test_a_job_with_several_files_counts_once() -> None:
    record(rule="data", output="results/tiny/data/ner/qa1/train.parquet")
    write("results/tiny/benchmarks/data/ner/qa1.tsv", f"{BENCHMARK}1\t0\t100\t1\t1\t1\t1\t1\t1\t1\n")
    assert len(uses()) == 1


def test_a_benchmark_without_a_measurement_is_not_a_measurement_of_zero() -> None:
    """Snakemake writes a dash or `NA` if a job ends before it is looked at."""
    write("results/tiny/benchmarks/text/qa1.tsv", f"{BENCHMARK}0.01\t0:00:00\t-\t-\t-\t-\t-\t-\tNA\tnan\n")
    [use] = uses()
    assert (use["rule"], use["seconds"]) == ("text", 0.01) and not use.keys() & {"memory_mb", "cpu_seconds"}


@pytest.mark.parametrize(
    ("encoder", "rule"),
    [("{scratch: {kind: bert, languages: [qa1, qa2, qb1]}}", "pretrain"), ("{hub: google/bert}", "fetch_encoder")],
)
def test_the_rule_of_a_benchmark_is_the_one_that_makes_the_file_in_this_study(encoder: str, rule: str) -> None:
    write("studies/tiny.yaml", STUDY.replace("{scratch: {kind: bert, languages: [qa1, qa2, qb1]}}", encoder))
    write("results/tiny/benchmarks/encoders/tiny.tsv", f"{BENCHMARK}1\t0\t100\t1\t1\t1\t1\t1\t1\t1\n")
    assert [use["rule"] for use in uses()] == [rule]


def test_median_percentile_and_most_are_uses_of_jobs() -> None:
    requested = {"mem_mb": 4000, "runtime": 1, "cpus": 1, "gpus": 0}
    jobs = [job(seconds=n, memory_mb=100 * n, cpu_seconds=n / 2, **requested) for n in range(1, 21)]
    used = [row["seconds"] for row in jobs]
    assert np.quantile(used, [0.5, 0.95, 1], method="inverted_cdf").tolist() == [10, 19, 20]
    memory, time = rows(*jobs)
    assert memory == ["20", "0", "1,000", "1,900", "2,000", "4,000", "74%"]
    assert time == ["10.0 s", "19.0 s", "20.0 s", "1 min", "82%", "50%", "0"]


def test_requests_that_differ_are_a_range() -> None:
    assert rows(*(job(memory_mb=100, mem_mb=mem_mb) for mem_mb in (8000, 16000)))[0][-2] == "8,000 to 16,000"


def test_what_is_not_known_is_a_dash() -> None:
    memory, time = rows(job(cause="killed"))
    assert memory == ["1", "1", *"–––––"] and time == [*"–––––––"]


def test_a_job_of_which_one_side_is_not_known_counts_for_no_share() -> None:
    used, requested = pd.Series([1, None, 2, 2]), pd.Series([4, 8, None, 4])
    assert unused(used, requested) == f"{1 - 3 / 8:.0%}"
    assert unused(used[1:3], requested[1:3]) == "–"


@given(st.lists(st.tuples(st.floats(0, 1e5), st.floats(0, 1e6)), min_size=1))
def test_the_request_has_the_margin_that_is_stated(measured: list[tuple[float, float]]) -> None:
    asked = advice(pd.DataFrame([job(seconds=seconds, memory_mb=memory) for seconds, memory in measured]))
    memory, minutes = int(asked["mem_mb"].removesuffix(" * attempt")), int(asked["runtime"])
    most = 1.25 * max(used for _, used in measured) + 500
    assert most <= memory < most + 100
    longest = max(5, 1.5 * max(used for used, _ in measured) / 60)
    assert longest <= minutes < longest + 1


KILLED = job(cause="out of memory", mem_mb=8000)


@pytest.mark.parametrize(
    ("jobs", "memory"),
    [
        # The worker was killed with its job.
        ([KILLED, job("b", memory_mb=1000)], 16000),
        # The kernel killed the job alone. Other processes may have had the rest of the memory.
        ([KILLED | {"memory_mb": 5000}], 16000),
        # The next attempt of the same job shows what it needs.
        ([KILLED, job(memory_mb=8800, mem_mb=16000)], 11500),
    ],
)
def test_a_job_that_lacked_memory_needs_more_than_it_had(jobs: list[dict[str, Any]], memory: int) -> None:
    assert advice(pd.DataFrame(jobs))["mem_mb"] == f"{memory} * attempt"


def test_a_job_that_lacked_time_needs_more_than_it_had() -> None:
    late = job(cause="timeout", seconds=3600, runtime=60)
    assert advice(pd.DataFrame([late])) == {"runtime": "120"}
    assert advice(pd.DataFrame([late, job(seconds=3700, runtime=60)]))["runtime"] == "93"


def test_nothing_is_asked_of_which_nothing_is_known() -> None:
    assert advice(pd.DataFrame([job(cause="killed")])) == {}


def test_the_command_ends_with_lines_for_a_profile_and_says_what_is_missing() -> None:
    record()
    write("results/tiny/benchmarks/text/qa1.tsv", f"{BENCHMARK}1\t0\t100\t1\t1\t1\t1\t1\t1\t1\n")
    output = ask()
    assert yaml.safe_load(output[output.index("set-resources:") :]) == {
        "set-resources": {
            "train": {"mem_mb": "3000 * attempt", "runtime": 5},
            "text": {"mem_mb": "700 * attempt", "runtime": 5},
        }
    }
    assert "1 of 2 jobs have no request" in output
    assert "GPU is not recorded" in output


def test_a_study_that_has_not_run_is_told() -> None:
    assert ask().startswith("No job of tiny has been measured")
    assert not Path("results").exists()
