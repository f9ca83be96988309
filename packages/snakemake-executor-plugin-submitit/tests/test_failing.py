"""A job that fails leaves behind, with this executor, what it leaves with Snakemake's own.

`features/failures.smk` has a rule per way to fail; it runs once with each executor, and the tests compare way by way.
"""

import re
from pathlib import Path

import pytest
from matrix import HERE, Ran, files, of_old, ran, records
from workflow import LOCAL, STOCK

WAYS = sorted(set(re.findall(r'^ +"?out/(\w+)/text', (HERE / "failures.smk").read_text(), re.M)))


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


def test_failures_end_with_the_same_status(failing_stock: Ran, failing_local: Ran) -> None:
    assert (failing_stock.status, failing_local.status) == (1, 1)


def test_jobs_without_failure_go_on(failing_local: Ran) -> None:
    assert (failing_local.folder / "out" / "kept" / "text.txt").read_text() == "kept\n"


def test_failures_leave_the_same_records(failing_stock: Ran, failing_local: Ran) -> None:
    expected, found = (records(ran.folder).keys() for ran in (failing_stock, failing_local))
    assert found == expected


def test_no_failure_is_taken_for_an_interruption(failing_local: Ran) -> None:
    """Else Snakemake would want to know what to do about incomplete files."""
    assert list((failing_local.folder / ".snakemake" / "incomplete").rglob("*")) == []


@pytest.mark.parametrize("options", [STOCK, LOCAL], ids=["stock", "local"])
def test_write_protected_output_stays(tmp_path: Path, options: list[str]) -> None:
    def prepare(folder: Path) -> None:
        of_old(folder, "out/text.txt")
        (folder / "out" / "text.txt").chmod(0o444)

    done = ran(tmp_path / "project", "--snakefile", "protected.smk", *options, "out/text.txt", prepare=prepare)
    assert done.status == 1
    assert "Write-protected output files" in done.err
    assert (done.folder / "out" / "text.txt").read_text() == "before\n"
