"""The partition of a job follows from its request and a table of limits."""

import math
from pathlib import Path
from typing import Any

import pytest
from stub import asks

from snakemake_executor_plugin_submitit.clusters.partitions import EXAMPLE, Partition, read_partitions
from snakemake_executor_plugin_submitit.clusters.slurm import Slurm

TABLE = """\
partitions:
  long: {max_runtime: 7-00:00:00, max_mem_mb: 64000, max_threads: 32}
  short: {max_runtime: 120, max_mem_mb: 64000, max_threads: 32, max_nodes: 4}
  big: {max_runtime: 2d, max_mem_mb: 512000}
  gpu: {max_runtime: 1440, max_mem_mb: 64000, max_threads: 32, max_gpu: 4, available_constraints: [a100, h100]}
  far: {max_runtime: 60, cluster: wice}
"""


@pytest.fixture
def table(tmp_path: Path) -> list[Partition]:
    (tmp_path / "partitions.yaml").write_text(TABLE)
    return read_partitions(tmp_path / "partitions.yaml")


def chosen(table: list[Partition], slots: int = 1, **request: Any) -> str | None:
    slurm = object.__new__(Slurm)
    slurm.partitions, slurm.slots, slurm.table = table, slots, "partitions.yaml"
    return slurm.adapt(asks(**request)).option("partition")


@pytest.mark.parametrize(
    ("request_", "partition"),
    [
        ({}, "short"),
        ({"minutes": 120}, "short"),
        ({"minutes": 121, "mem_mb": 60000}, "long"),
        ({"minutes": 4000}, "long"),
        ({"mem_mb": 64001}, "big"),
        ({"cpus": 33}, "big"),
        ({"gpus": 1}, "gpu"),
        ({"gres": "gpu:a100:2"}, "gpu"),
        ({"gpus": 4, "constraint": "a100"}, "gpu"),
        ({"clusters": "wice"}, "far"),
        ({"partition": "mine"}, "mine"),
        ({"extra": "--partition=mine"}, None),
    ],
)
def test_a_job_gets_the_partition_that_allows_it_with_the_nearest_limits(
    table: list[Partition], request_: dict[str, Any], partition: str | None
) -> None:
    assert chosen(table, **request_) == partition


def test_jobs_at_a_time_share_what_a_partition_allows(table: list[Partition]) -> None:
    assert chosen(table, mem_mb=40000) == "short"
    assert chosen(table, 2, mem_mb=40000) == "big"


def test_a_partition_with_gpus_is_the_last_resort_of_a_job_without(table: list[Partition]) -> None:
    gpu = [partition for partition in table if partition.name in ("gpu", "long")]
    assert chosen(gpu, minutes=1440) == "long"
    assert chosen(gpu[1:], minutes=1440) == "gpu"


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"gpus": 5}, "at most gpus 4"),
        ({"minutes": 20000}, "runtime 20000"),
        ({"gpus": 1, "constraint": "v100"}, "a100, h100"),
        ({"clusters": "elsewhere"}, "it is on wice"),
    ],
)
def test_a_job_that_no_partition_allows_is_told_why(
    table: list[Partition], request_: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=r"partitions\.yaml") as error:
        chosen(table, **request_)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("time", "minutes"),
    [
        (90, 90),
        ("90", 90),
        ("36h", 36 * 60),
        ("2d", 2880),
        ("1.5h", 90),
        ("12:30:00", 750),
        ("90:00", 90),
        ("1-0", 1440),
        ("1-12", 36 * 60),
        ("1-12:30", 36 * 60 + 30),
        ("7-00:00:00", 7 * 1440),
        ("UNLIMITED", math.inf),
        ("'12:30:00'", 750),
    ],
)
def test_a_time_is_read_as_slurm_reads_it(tmp_path: Path, time: object, minutes: float) -> None:
    (tmp_path / "p.yaml").write_text(f"partitions: {{a: {{max_runtime: {time}}}}}")
    assert [partition.max_runtime for partition in read_partitions(tmp_path / "p.yaml")] == [minutes]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "partitions"),
        ("partitions: 3", "partitions"),
        ("short: {max_runtime: 3}", "partitions"),
        ("partitions: {a: {max_runtim: 3}}", "did you mean 'max_runtime'"),
        ("partitions: {a: {max_runtime: soon}}", "got 'soon'"),
        ("partitions: {a: {max_mem_mb: -1}}", "got '-1'"),
        ("partitions: {a: {max_gpu: yes}}", "got 'yes'"),
        ("partitions: {a: [3]}", "got ['3']"),
        ("partitions: {a: {", "cannot read"),
        (None, "cannot read"),
    ],
)
def test_a_mistake_in_a_table_is_told_with_its_file(tmp_path: Path, text: str | None, words: str) -> None:
    if text is not None:
        (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(ValueError, match=r"p\.yaml") as error:
        read_partitions(tmp_path / "p.yaml")
    assert words in str(error.value)


@pytest.mark.parametrize("page", ["message", "README.md"])
def test_the_example_is_a_table(tmp_path: Path, page: str) -> None:
    text = EXAMPLE
    if page == "README.md":
        text = (Path(__file__).parents[1] / page).read_text().partition("```yaml\n")[2].partition("```")[0]
    (tmp_path / "p.yaml").write_text(text)
    assert read_partitions(tmp_path / "p.yaml")
