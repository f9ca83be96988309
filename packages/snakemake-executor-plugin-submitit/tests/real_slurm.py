"""The fixture of tests on the real Slurm that slurm/cluster.sh starts, for the tests of this plugin and of what uses it."""

import fcntl
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

# Where cluster.sh puts its cluster, unless the environment names another.
CONF = Path("/var/tmp/test-slurm/slurm.conf")

CLUSTER = Path(__file__).parent / "slurm" / "cluster.sh"


def _settle(conf: Path) -> None:
    """Bring back what an earlier test left down, and end its jobs, so that a test that failed fails no other."""
    subprocess.run([CLUSTER, "up", conf.parent], check=True, capture_output=True, timeout=180)
    deadline = time.monotonic() + 60
    while queue := subprocess.run(["squeue", "--noheader"], check=True, capture_output=True, text=True).stdout:
        assert time.monotonic() < deadline, f"jobs of an earlier test do not end:\n{queue}"
        subprocess.run(["scancel", f"--user={os.getuid()}"], check=True, capture_output=True)
        time.sleep(0.5)


def seen_by_slurm() -> str:
    """Why tasks wait: the state of the node, the queue, and the last lines of both logs."""
    folder = Path(os.environ["SLURM_CONF"]).parent
    commands = (
        "sinfo --Node --format='%T %E'",
        "squeue --format='%i %T %r %M %C %m %Z'",
        f"tail -n 15 {folder / 'slurmctld.log'} {folder / 'slurmd.log'}",
    )
    return "\n".join(
        subprocess.run(command, shell=True, check=False, capture_output=True, text=True, timeout=20).stdout
        for command in commands
    )


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
        pytest.skip(f"no Slurm for tests here: {CLUSTER} up starts one")

    @contextmanager
    def alone() -> Iterator[None]:
        with (conf.parent / "tests.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _settle(conf)
            try:
                yield
            except BaseException:
                print(seen_by_slurm())
                raise

    return alone
