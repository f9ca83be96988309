"""Fixtures of all tests of the plugin."""

import fcntl
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from clocked import Clock, Cluster, begin

from snakemake_executor_plugin_submitit import dispatch, submission
from snakemake_executor_plugin_submitit.dispatch import Dispatcher

# Where cluster.sh puts its cluster, unless the environment names another.
CONF = Path("/var/tmp/test-slurm/slurm.conf")

# Tests send these signals to processes that they start, and a process inherits an ignored signal from `nohup` or from a
# shell that runs in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def slurm() -> Callable[[], AbstractContextManager[None]]:
    """What holds the Slurm that slurm/cluster.sh starts for one test at a time, whichever process runs the test.

    The tests cancel jobs, set nodes down and count what runs on two cores, so they refuse any other Slurm.
    """
    conf = Path(os.environ.setdefault("SLURM_CONF", str(CONF)))
    try:
        for_tests = conf.read_text().startswith("# SLURM_TEST_DEFAULTS")
        subprocess.run(["sinfo", "--noheader"], check=True, capture_output=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        for_tests = False
    if not for_tests:
        pytest.skip("no Slurm for tests here: tests/slurm/cluster.sh up starts one")

    @contextmanager
    def alone() -> Iterator[None]:
        with (conf.parent / "tests.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    return alone


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the head; its time passes only when the test says so."""
    clock = Clock()
    for module in (dispatch, submission):
        monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def cluster(clock: Clock) -> Cluster:
    """A cluster whose tasks the test ends."""
    return Cluster(clock)


@pytest.fixture
def messages() -> list[str]:
    """What the head says."""
    return []


@pytest.fixture
def head(cluster: Cluster, tmp_path: Path, messages: list[str]) -> Dispatcher:
    """A head that follows no earlier head."""
    return begin(cluster, tmp_path, messages)
