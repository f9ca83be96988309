"""Fixtures of all tests."""

import fcntl
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

# Where cluster.sh puts its cluster, unless the environment names another.
CONF = Path("/var/tmp/test-slurm/slurm.conf")

# Tests send these to what they start, which inherits their being ignored: by `nohup`, or by a shell in its background.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def slurm() -> Callable[[], AbstractContextManager[None]]:
    """What holds the Slurm of the executor plugin's cluster.sh for one test at a time, the plugin's own tests included.

    No test runs on a site's own Slurm.
    """
    conf = Path(os.environ.setdefault("SLURM_CONF", str(CONF)))
    try:
        ours = conf.read_text().startswith("# SLURM_TEST_DEFAULTS")
        subprocess.run(["sinfo", "--noheader"], check=True, capture_output=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        ours = False
    if not ours:
        pytest.skip("no Slurm here: `packages/snakemake-executor-plugin-submitit/tests/slurm/cluster.sh up` starts one")

    @contextmanager
    def alone() -> Iterator[None]:
        with (conf.parent / "tests.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    return alone
