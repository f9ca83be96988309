"""The fixture of tests on the real Slurm that slurm/cluster.sh starts, for the tests of this plugin and of what uses it."""

import fcntl
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

# Where cluster.sh puts its cluster, unless the environment names another.
CONF = Path("/var/tmp/test-slurm/slurm.conf")


@pytest.fixture(scope="session")
def slurm() -> Callable[[], AbstractContextManager[None]]:
    """A context in which a test has Slurm for itself, whichever process runs the other tests.

    The tests cancel jobs, set nodes down and count what runs on two cores, so they refuse any Slurm but the one of cluster.sh.
    """
    conf = Path(os.environ.setdefault("SLURM_CONF", str(CONF)))
    try:
        for_tests = conf.read_text().startswith("# SLURM_TEST_DEFAULTS")
        subprocess.run(["sinfo", "--noheader"], check=True, capture_output=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        for_tests = False
    if not for_tests:
        pytest.skip(f"no Slurm for tests here: {Path(__file__).parent / 'slurm' / 'cluster.sh'} up starts one")

    @contextmanager
    def alone() -> Iterator[None]:
        with (conf.parent / "tests.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    return alone
