"""Fixtures of all tests of the plugin."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

# Where cluster.sh puts its cluster, unless the environment names another.
CONF = Path("/var/tmp/test-slurm/slurm.conf")

# Tests send these signals to processes that they start, and a process inherits an ignored signal from `nohup` or from a
# shell that runs in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def slurm() -> None:
    """Require the Slurm that slurm/cluster.sh starts. The tests cancel jobs and set nodes down, so they refuse any other."""
    conf = Path(os.environ.setdefault("SLURM_CONF", str(CONF)))
    try:
        for_tests = conf.read_text().startswith("# SLURM_TEST_DEFAULTS")
        subprocess.run(["sinfo", "--noheader"], check=True, capture_output=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        for_tests = False
    if not for_tests:
        pytest.skip("no Slurm for tests here: tests/slurm/cluster.sh up starts one")
