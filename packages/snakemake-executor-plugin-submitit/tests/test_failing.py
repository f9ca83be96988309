"""A job that fails leaves behind, with this executor, what it leaves with Snakemake's own.

`features/failures.smk` has a rule per way to fail; it runs once with each executor, and the tests compare way by way.
"""

import json
import re
from pathlib import Path

import pytest
from matrix import HERE, Ran, files, of_old, ran, records
from workflow import LOCAL, STOCK, project, run

pytestmark = pytest.mark.slow
WAYS = sorted(set(re.findall(r'"out/(\w+)/text', (HERE / "failures.smk").read_text())))


def failing(folder: Path, *options: str) -> Ran:
    """Run all ways to fail."""
    paths = ("out/updated/text.txt", "out/of_old/text.txt", "log/of_old.txt", "bench/of_old.tsv")
    more = ("--snakefile", "failures.smk", "--keep-going", "--latency-wait", "1")
    return ran(folder, *more, *options, prepare=lambda folder: of_old(folder, *paths))


@pytest.fixture(scope="module")
def failing_stock(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return failing(tmp_path_factory.mktemp("failing-stock") / "project", *STOCK)


@pytest.fixture(scope="module")
def failing_local(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return failing(tmp_path_factory.mktemp("failing-local") / "project", *LOCAL)


@pytest.mark.parametrize("way", WAYS)
def test_failure_leaves_the_same_files(failing_stock: Ran, failing_local: Ran, way: str) -> None:
    def left(ran: Ran) -> dict[str, tuple[str, str]]:
        names = (f"out/{way}", f"log/{way}.txt", f"bench/{way}.tsv")
        return files(ran.folder, [ran.folder / name for name in names])

    # Snakemake takes a group for one job, and deletes all that a failed one has made; its own executor makes no groups.
    assert left(failing_local) == ({} if way == "group_last" else left(failing_stock))


@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("kept", "after")])
def test_failure_is_reported(failing_local: Ran, way: str) -> None:
    if way == "group_last":
        assert "group_first+group_last: exception: exit code 1" in failing_local.err, failing_local.err
    else:
        assert re.search(rf"Error in rule {way}:|(Exception|Error) in rule {way} in file", failing_local.err)


@pytest.mark.parametrize("way", ["missing", "missing_nested", "half"])
def test_missing_output_is_the_same_exception(failing_stock: Ran, failing_local: Ran, way: str) -> None:
    words = f"MissingOutputException in rule {way} "
    assert (words in failing_stock.err, words in failing_local.err) == (True, True)


def test_every_failure_is_noted(failing_local: Ran) -> None:
    """... those as well that Snakemake finds after the success of the command: missing or empty outputs."""
    assert (failing_local.folder / "out" / "kept" / "text.txt").read_text() == "kept\n", "jobs without failure go on"
    lines = (failing_local.folder / ".snakemake" / "submitit" / "failures.jsonl").read_text().splitlines()
    causes = {line["rule"]: line["cause"] for line in map(json.loads, lines)}
    assert set(causes) == {"group_first+group_last" if way == "group_last" else way for way in WAYS} - {"kept", "after"}
    assert {rule: causes[rule] for rule in ("missing", "half", "empty", "status")} == {
        "missing": "rejected by Snakemake",
        "half": "rejected by Snakemake",
        "empty": "rejected by Snakemake",
        "status": "exception",
    }
    [message] = [line["message"] for line in map(json.loads, lines) if line["rule"] == "half"]
    assert "out/half/second.txt" in message


OTHER_RESOURCES = """
rule job:
    output: "out.txt"
    resources: att=lambda wildcards, attempt: attempt, nodes=1, mpi="srun"
    retries: 1
    shell: "[ {resources.att} = 2 ] && touch {output}"
"""


def test_resources_that_mean_nothing_to_the_cluster_are_said_once_and_kept_for_the_job(tmp_path: Path) -> None:
    process = run(project(tmp_path, OTHER_RESOURCES), *LOCAL)
    for name in ("att", "nodes", "mpi"):
        assert process.stderr.count(f"the resource '{name}' (job) is not passed on to the cluster") == 1, process.stderr


def test_failures_leave_the_same_records(failing_stock: Ran, failing_local: Ran) -> None:
    expected, recorded = ((ran.status, records(ran.folder).keys()) for ran in (failing_stock, failing_local))
    assert recorded == expected


def test_no_failure_is_taken_for_an_interruption(failing_local: Ran) -> None:
    """Else Snakemake would want to know what to do about incomplete files."""
    assert list((failing_local.folder / ".snakemake" / "incomplete").rglob("*")) == []


@pytest.mark.parametrize("options", [STOCK, LOCAL], ids=["stock", "local"])
def test_write_protected_output_stays(tmp_path: Path, options: list[str]) -> None:
    def prepare(folder: Path) -> None:
        of_old(folder, "out/text.txt")
        (folder / "out" / "text.txt").chmod(0o444)

    process = ran(tmp_path / "project", "--snakefile", "protected.smk", *options, "out/text.txt", prepare=prepare)
    assert process.status == 1
    assert "Write-protected output files" in process.err
    assert (process.folder / "out" / "text.txt").read_text() == "before\n"
